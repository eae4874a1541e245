/* binfmt.c - shebang lines as the kernel reads them, and ELF headers.
 *
 * A program's author chose every byte here. Nothing is trusted to be in
 * order: each table is bounded, each offset is read through a function that
 * may say no, and sizes are never used to allocate. */
#include "binfmt.h"

#include "cleanup.h"

#include <string.h>

/* ---- kinds -------------------------------------------------------------- */

static bool starts(const char *p, size_t n, const char *magic, size_t len)
{
	return n >= len && !memcmp(p, magic, len);
}

static const struct {
	const char *magic;
	size_t len;
	enum zb_bin_kind kind;
} magics[] = {
	{"\177ELF", 4, ZB_BIN_ELF},
	{"#!", 2, ZB_BIN_SCRIPT},
	{"\xef\xbb\xbf#!", 5, ZB_BIN_BOM_SCRIPT},
	{"\xcf\xfa\xed\xfe", 4, ZB_BIN_MACHO},
	{"\xce\xfa\xed\xfe", 4, ZB_BIN_MACHO},
	{"\xca\xfe\xba\xbe", 4, ZB_BIN_MACHO},
	{"MZ", 2, ZB_BIN_PE},
};

enum zb_bin_kind zb_bin_kind(const char *head, size_t n)
{
	if (n == 0)
		return ZB_BIN_EMPTY;
	for (size_t i = 0; i < ZB_ARRAY_LEN(magics); i++)
		if (starts(head, n, magics[i].magic, magics[i].len))
			return magics[i].kind;
	return memchr(head, '\0', n) ? ZB_BIN_OTHER : ZB_BIN_TEXT;
}

/* ---- shebang ------------------------------------------------------------ */

static bool blank(char c)
{
	return c == ' ' || c == '\t';
}

bool zb_shebang_parse(const char *head, size_t n, struct zb_shebang *out)
{
	const char *p = head + 2, *end, *eol, *word;

	memset(out, 0, sizeof(*out));
	if (!starts(head, n, "#!", 2))
		return false;
	if (n > ZB_SHEBANG_MAX)
		n = ZB_SHEBANG_MAX;
	eol = memchr(p, '\n', n - 2);
	end = eol ? eol : head + n;
	out->crlf = eol && eol > p && eol[-1] == '\r';
	while (end > p && blank(end[-1]))
		end--;
	while (p < end && blank(*p))
		p++;
	word = p;
	while (p < end && !blank(*p) && *p)
		p++;
	/* A line cut in its first word would start something else. */
	if (p == word || (!eol && p == head + n && n == ZB_SHEBANG_MAX))
		return false;
	memcpy(out->interp, word, (size_t)(p - word));
	while (p < end && blank(*p))
		p++;
	memcpy(out->arg, p, (size_t)(end - p));
	return true;
}

/* One escape of env -S after the backslash. Return: false for \c (stop). */
static bool add_escape(struct zb_buf *word, char c)
{
	static const char from[] = "fnrtv_", to[] = "\f\n\r\t\v ";
	const char *at = strchr(from, c);

	if (c == 'c')
		return false;
	return !zb_buf_addc(word, c && at ? to[at - from] : c);
}

/* Where the splitter is. */
struct split {
	char quote; /* '"', '\'' or 0 */
	bool in_word;
	struct zb_buf word;
	struct zb_strv *out;
};

static void end_word(struct split *s)
{
	if (s->in_word)
		zb_strv_add(s->out, zb_buf_str(&s->word));
	zb_buf_clear(&s->word);
	s->in_word = false;
}

/* Take one character (of @p; more for an escape). Return: how many were
 * taken, 0 to stop. */
static size_t split_step(struct split *s, const char *p)
{
	if (*p == '\\' && p[1] && (s->quote != '\'' || strchr("\\'", p[1]))) {
		s->in_word = true;
		/* \_ outside quotes is a blank between words. */
		if (p[1] == '_' && !s->quote)
			end_word(s);
		else if (!add_escape(&s->word, p[1]))
			return 0;
		return 2;
	}
	if (s->quote ? *p == s->quote : (*p == '\'' || *p == '"')) {
		s->quote = s->quote ? 0 : *p;
		s->in_word = true;
	} else if (!s->quote && (blank(*p) || *p == '\n' || *p == '\r')) {
		end_word(s);
	} else {
		s->in_word = true;
		zb_buf_addc(&s->word, *p);
	}
	return 1;
}

int zb_env_split(const char *s, struct zb_strv *out, struct zb_error *err)
{
	struct split state = {.out = out};
	int rc = 0;

	for (const char *p = s; *p && !rc;) {
		size_t took;

		if (*p == '$' && state.quote != '\'')
			rc = zb_fail(err, ZB_EUSAGE,
				     "env -S \"%s\": a variable in it is not "
				     "expanded here; write it out",
				     s);
		took = split_step(&state, p);
		if (!took)
			break;
		p += took;
	}
	if (!rc && state.quote)
		rc = zb_fail(err, ZB_EUSAGE, "env -S \"%s\": no closing quote",
			     s);
	end_word(&state);
	zb_buf_done(&state.word);
	return rc;
}

/* ---- ELF ---------------------------------------------------------------- */

#define MAX_SEGMENTS 256
#define MAX_DYNAMIC  4096
#define MAX_STRING   4096

enum {
	TYPE_EXEC = 2,
	TYPE_DYN = 3,
	SEG_LOAD = 1,
	SEG_DYNAMIC = 2,
	SEG_INTERP = 3,
	DYN_NULL = 0,
	DYN_STRTAB = 5,
	DYN_RPATH = 15,
	DYN_RUNPATH = 29,
};

struct segment {
	uint64_t type, offset, vaddr, size;
};

struct elf_reader {
	struct zb_elf *elf;
	zb_read_at *read_at;
	void *ctx;
	struct segment *seg;
	size_t n_seg;
};

/* An unsigned number of @n bytes in the file's byte order. */
static uint64_t number(const struct zb_elf *e, const unsigned char *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)p[e->little_endian ? i : n - 1 - i] << (8 * i);
	return v;
}

static bool get(struct elf_reader *r, uint64_t at, void *p, size_t n)
{
	return at <= UINT64_MAX - n && r->read_at(r->ctx, at, p, n);
}

/* A NUL-terminated string at @at, at most @max bytes. NULL if it is none. */
static char *get_string(struct elf_reader *r, uint64_t at, uint64_t max)
{
	struct zb_buf b = {.max = MAX_STRING};
	char c = 1;

	for (uint64_t i = 0; i < max && get(r, at + i, &c, 1) && c; i++)
		if (zb_buf_addc(&b, c))
			break;
	if (c || b.failed || !b.len) {
		zb_buf_done(&b);
		return NULL;
	}
	return zb_buf_steal(&b);
}

/* Offset in the file of virtual address @va, or UINT64_MAX. */
static uint64_t to_offset(const struct elf_reader *r, uint64_t va)
{
	for (size_t i = 0; i < r->n_seg; i++) {
		const struct segment *s = &r->seg[i];

		if (s->type == SEG_LOAD && va >= s->vaddr &&
		    va - s->vaddr < s->size)
			return s->offset + (va - s->vaddr);
	}
	return UINT64_MAX;
}

static int add_runpath(struct zb_elf *e, const char *list)
{
	while (*list) {
		size_t n = strcspn(list, ":");
		char *one = zb_strndup(list, n);

		if (n && zb_strv_take(&e->runpath, one))
			return ZB_ELIMIT;
		if (!n)
			free(one);
		list += n + (list[n] == ':');
	}
	return 0;
}

/* The library search path in the dynamic section @s. */
static int read_dynamic(struct elf_reader *r, const struct segment *s)
{
	size_t w = r->elf->is64 ? 8 : 4;
	uint64_t strtab = UINT64_MAX, rpath = 0, runpath = 0;
	unsigned char entry[16];
	char *list;
	int rc;

	for (uint64_t i = 0; i < MAX_DYNAMIC && (i + 1) * 2 * w <= s->size;
	     i++) {
		uint64_t tag, val;

		if (!get(r, s->offset + i * 2 * w, entry, 2 * w))
			break;
		tag = number(r->elf, entry, w);
		val = number(r->elf, entry + w, w);
		if (tag == DYN_NULL)
			break;
		if (tag == DYN_STRTAB)
			strtab = to_offset(r, val);
		else if (tag == DYN_RPATH)
			rpath = val;
		else if (tag == DYN_RUNPATH)
			runpath = val;
	}
	if (strtab == UINT64_MAX || !(rpath || runpath))
		return 0;
	list = get_string(r, strtab + (runpath ? runpath : rpath), MAX_STRING);
	rc = list ? add_runpath(r->elf, list) : 0;
	free(list);
	return rc;
}

static bool read_segment(struct elf_reader *r, uint64_t at, struct segment *s)
{
	const struct zb_elf *e = r->elf;
	unsigned char p[56];

	if (!get(r, at, p, e->is64 ? 56 : 32))
		return false;
	s->type = number(e, p, 4);
	s->offset = e->is64 ? number(e, p + 8, 8) : number(e, p + 4, 4);
	s->vaddr = e->is64 ? number(e, p + 16, 8) : number(e, p + 8, 4);
	s->size = e->is64 ? number(e, p + 32, 8) : number(e, p + 16, 4);
	return true;
}

/* Read the table of segments, then what the loader would look at. */
static int read_segments(struct elf_reader *r, uint64_t at, size_t n,
			 size_t size, struct zb_error *err)
{
	for (r->n_seg = 0; r->n_seg < n; r->n_seg++)
		if (!read_segment(r, at + r->n_seg * size, &r->seg[r->n_seg]))
			return zb_fail(err, ZB_EUSAGE,
				       "its program headers are cut off");
	for (size_t i = 0; i < n; i++) {
		const struct segment *s = &r->seg[i];

		if (s->type == SEG_INTERP && !r->elf->interp) {
			r->elf->interp = get_string(r, s->offset, s->size);
			if (!r->elf->interp)
				return zb_fail(err, ZB_EUSAGE,
					       "its PT_INTERP is malformed");
		}
		if (s->type == SEG_DYNAMIC && read_dynamic(r, s))
			return zb_fail(err, ZB_ELIMIT, "out of memory");
	}
	return 0;
}

static int read_header(struct elf_reader *r, struct zb_error *err)
{
	struct zb_elf *e = r->elf;
	unsigned char h[64];
	size_t n, size, want;
	uint64_t type, at;

	if (!get(r, 0, h, 52) || memcmp(h, "\177ELF", 4) ||
	    (h[4] != 1 && h[4] != 2) || (h[5] != 1 && h[5] != 2))
		return zb_fail(err, ZB_EUSAGE, "its ELF header is malformed");
	e->is64 = h[4] == 2;
	e->little_endian = h[5] == 1;
	if (e->is64 && !get(r, 0, h, 64))
		return zb_fail(err, ZB_EUSAGE, "its ELF header is cut off");
	type = number(e, h + 16, 2);
	e->machine = (unsigned)number(e, h + 18, 2);
	e->executable = type == TYPE_EXEC || type == TYPE_DYN;
	at = e->is64 ? number(e, h + 32, 8) : number(e, h + 28, 4);
	size = number(e, h + (e->is64 ? 54 : 42), 2);
	n = number(e, h + (e->is64 ? 56 : 44), 2);
	want = e->is64 ? 56 : 32;
	if (n > MAX_SEGMENTS || (n && size < want))
		return zb_fail(err, ZB_EUSAGE,
			       "its program headers are malformed");
	r->seg = calloc(n ? n : 1, sizeof(*r->seg));
	if (!r->seg)
		return zb_fail(err, ZB_ELIMIT, "out of memory");
	return read_segments(r, at, n, size, err);
}

int zb_elf_parse(struct zb_elf *out, zb_read_at *read_at, void *ctx,
		 struct zb_error *err)
{
	struct elf_reader r = {.elf = out, .read_at = read_at, .ctx = ctx};
	int rc;

	memset(out, 0, sizeof(*out));
	rc = read_header(&r, err);
	free(r.seg);
	if (rc)
		zb_elf_done(out);
	return rc;
}

void zb_elf_done(struct zb_elf *e)
{
	if (!e)
		return;
	free(e->interp);
	zb_strv_done(&e->runpath);
	memset(e, 0, sizeof(*e));
}

static const struct {
	unsigned machine;
	bool is64;
	const char *name;
} machines[] = {
	{3, false, "i386"},	{8, false, "mips"},
	{21, true, "ppc64"},	{22, true, "s390x"},
	{40, false, "arm"},	{62, true, "x86_64"},
	{62, false, "x32"},	{183, true, "aarch64"},
	{243, true, "riscv64"}, {258, true, "loongarch64"},
};

const char *zb_elf_machine_name(unsigned machine, bool is64, char *buf,
				size_t n)
{
	for (size_t i = 0; i < ZB_ARRAY_LEN(machines); i++)
		if (machines[i].machine == machine && machines[i].is64 == is64)
			return machines[i].name;
	snprintf(buf, n, "machine %u, %d bit", machine, is64 ? 64 : 32);
	return buf;
}

#if defined(__x86_64__)
#define OWN_MACHINE 62
#elif defined(__aarch64__)
#define OWN_MACHINE 183
#elif defined(__riscv)
#define OWN_MACHINE 243
#elif defined(__s390x__)
#define OWN_MACHINE 22
#elif defined(__powerpc64__)
#define OWN_MACHINE 21
#elif defined(__arm__)
#define OWN_MACHINE 40
#elif defined(__loongarch__)
#define OWN_MACHINE 258
#elif defined(__i386__)
#define OWN_MACHINE 3
#else
#error "name this machine's ELF number here"
#endif

bool zb_elf_is_native(const struct zb_elf *e)
{
	const uint16_t probe = 1;
	bool little = *(const unsigned char *)&probe == 1;

	return e->machine == OWN_MACHINE && e->little_endian == little &&
	       e->is64 == (sizeof(void *) == 8);
}
