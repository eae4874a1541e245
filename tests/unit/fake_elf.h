/* fake_elf.h - the smallest 64-bit ELF file that says what a test wants: its
 * machine, its loader, its library path. It is never run. */
#ifndef ZB_FAKE_ELF_H
#define ZB_FAKE_ELF_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define FAKE_ELF_SIZE 4096

static inline void fake_put(unsigned char *p, uint64_t v, int n)
{
	for (int i = 0; i < n; i++)
		p[i] = (unsigned char)(v >> (8 * i));
}

static inline void fake_segment(unsigned char *p, uint32_t type, uint64_t at,
				uint64_t size)
{
	fake_put(p, type, 4);
	fake_put(p + 8, at, 8);	 /* offset */
	fake_put(p + 16, at, 8); /* address: the same */
	fake_put(p + 32, size, 8);
}

/* Little-endian. @machine as in <elf.h>, @type 2 or 3. */
static inline void fake_elf(unsigned char out[FAKE_ELF_SIZE], unsigned machine,
			    unsigned type, const char *interp,
			    const char *runpath)
{
	unsigned char *ph = out + 64;
	unsigned n = 1;

	memset(out, 0, FAKE_ELF_SIZE);
	memcpy(out, "\177ELF\2\1\1", 7);
	fake_put(out + 16, type, 2);
	fake_put(out + 18, machine, 2);
	fake_put(out + 20, 1, 4);
	fake_put(out + 32, 64, 8); /* program headers */
	fake_put(out + 54, 56, 2);
	fake_segment(ph, 1, 0, FAKE_ELF_SIZE);
	if (interp) {
		strcpy((char *)out + 1024, interp);
		fake_segment(ph + 56 * n++, 3, 1024, strlen(interp) + 1);
	}
	if (runpath) {
		strcpy((char *)out + 2048 + 1, runpath);
		fake_put(out + 3072, 5, 8); /* DT_STRTAB */
		fake_put(out + 3080, 2048, 8);
		fake_put(out + 3088, 29, 8); /* DT_RUNPATH */
		fake_put(out + 3096, 1, 8);
		fake_segment(ph + 56 * n++, 2, 3072, 48);
	}
	fake_put(out + 56, n, 2);
}

/* The machine of this very program; 0 if it is not 64-bit little-endian. */
static inline unsigned own_machine(void)
{
	unsigned char h[20] = {0};
	FILE *f = fopen("/proc/self/exe", "re");

	if (!f)
		return 0;
	if (fread(h, 1, sizeof(h), f) != sizeof(h) || h[4] != 2 || h[5] != 1)
		memset(h, 0, sizeof(h));
	fclose(f);
	return h[18] | (unsigned)h[19] << 8;
}

#endif
