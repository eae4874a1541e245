/* appcontainer_reader.h - reads the description of an AppContainer and decides
 * by its entries as Windows does: an object's own denies, its own allows, then
 * those inherited from the directory above, and so on up; the first entry that
 * names a right decides it. It knows nothing of plans. */
#ifndef ZB_APPCONTAINER_READER_H
#define ZB_APPCONTAINER_READER_H

#include <stdbool.h>
#include <stddef.h>

struct ac;

/* What is tried, and the right it takes. */
enum ac_act {
	AC_READ,   /* FILE_READ_DATA, FILE_LIST_DIRECTORY */
	AC_EXEC,   /* FILE_EXECUTE */
	AC_WRITE,  /* FILE_WRITE_DATA */
	AC_META,   /* FILE_WRITE_ATTRIBUTES */
	AC_CREATE, /* FILE_ADD_FILE on the directory above */
	AC_DELETE, /* DELETE, or FILE_DELETE_CHILD on the directory above */
};

/* NULL if a line is not understood; @why says which. */
struct ac *ac_read(const char *text, char *why, size_t why_size);
void ac_free(struct ac *a);

bool ac_decide(const struct ac *a, enum ac_act act, const char *path,
	       bool is_dir);
/* As sbpl_locate(). What is in the container's own folder is located below
 * "container-temp", where everything but leaving it is allowed. */
bool ac_locate(const struct ac *a, const char *path, char *out,
	       size_t out_size);
/* Is @path below a line `WHAT "..."`? */
bool ac_below(const struct ac *a, const char *what, const char *path);
/* Is there a line that begins so? */
bool ac_has_line(const struct ac *a, const char *line);
/* The SID of capability @name, or NULL. */
const char *ac_capability(const struct ac *a, const char *name);

/* Split as CommandLineToArgvW does, into @out (heap strings, NULL-terminated);
 * returns how many, at most @max - 1. */
size_t ac_split(const char *cmd, char **out, size_t max);

#endif
