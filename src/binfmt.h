/* binfmt.h - what kind of program a file is, from its bytes: a script with a
 * shebang, an ELF program for this machine, or nothing the kernel would start.
 * Pure: bytes in, facts out. */
#ifndef ZB_BINFMT_H
#define ZB_BINFMT_H

#include "buf.h"

/* The kernel reads this much of a file to find out what it is. */
#define ZB_SHEBANG_MAX 256

enum zb_bin_kind {
	ZB_BIN_EMPTY,
	ZB_BIN_ELF,
	ZB_BIN_SCRIPT,	   /* starts with #! */
	ZB_BIN_BOM_SCRIPT, /* a byte-order mark, then #!: not started */
	ZB_BIN_MACHO,
	ZB_BIN_PE,
	ZB_BIN_TEXT,  /* no #!: execve(2) says ENOEXEC */
	ZB_BIN_OTHER, /* binary data of no known kind */
};

enum zb_bin_kind zb_bin_kind(const char *head, size_t n);

/* The first line as the kernel reads it: interpreter, and all the rest as one
 * argument (blanks at both ends removed). @crlf: the line ends in CR LF, and
 * the CR is still part of interpreter or argument. */
struct zb_shebang {
	char interp[ZB_SHEBANG_MAX];
	char arg[ZB_SHEBANG_MAX]; /* "" if there is none */
	bool crlf;
};
/* Return: false if there is no interpreter in it, or the line is so long that
 * the kernel would not take it. */
bool zb_shebang_parse(const char *head, size_t n, struct zb_shebang *out);

/* Split the argument of `env -S` as env(1) does: blanks, '...', "...",
 * backslashes; no ${VARIABLE}. Also fine for plain words. Return: 0, or
 * ZB_EUSAGE for what cannot be split here. */
int zb_env_split(const char *s, struct zb_strv *out, struct zb_error *err);

/* Reads @n bytes at @offset; false if they are not there. */
typedef bool zb_read_at(void *ctx, uint64_t offset, void *p, size_t n);

struct zb_elf {
	unsigned machine; /* EM_* */
	bool is64, little_endian;
	bool executable;	/* ET_EXEC or ET_DYN */
	char *interp;		/* PT_INTERP; NULL: static */
	struct zb_strv runpath; /* DT_RUNPATH, else DT_RPATH; $ORIGIN kept */
};
/* Read the headers. Bounded: at most 256 program headers, 4096 dynamic
 * entries. Return: 0; ZB_EUSAGE for a file that is not well-formed. */
int zb_elf_parse(struct zb_elf *out, zb_read_at *read_at, void *ctx,
		 struct zb_error *err);
void zb_elf_done(struct zb_elf *e);
/* "x86_64", "aarch64"... or "machine 123" in @buf. */
const char *zb_elf_machine_name(unsigned machine, bool is64, char *buf,
				size_t n);
/* Is it of the kind that this build runs as itself? */
bool zb_elf_is_native(const struct zb_elf *e);

#endif
