/* cmd.h - the commands, one file each (cmd_*.c), and what they share. Effects;
 * what a command and its options are is options.h. */
#ifndef ZB_CMD_H
#define ZB_CMD_H

#include "options.h"

/* All commands, NULL name at the end (command_table.c). */
extern const struct zb_command zb_commands[];

/* The first thing in main(): descriptors 0, 1 and 2 are there, a reader that
 * goes away is an error of write(2), and there is one heap (memory.h). */
void zb_cmd_begin(void);
/* Are standard input and output terminals? */
bool zb_cmd_on_terminal(void);
/* Print "zotbox: MESSAGE" to stderr (characters that a terminal would act on
 * are shown, not sent), return zb_exit_code(err->code). */
int zb_cmd_fail(const struct zb_error *err);
/* The same prefix and care for a message that is no failure. */
void zb_cmd_say(const char *fmt, ...) ZB_PRINTF(1, 2);
/* The same in red, where that is wanted: on a terminal, without NO_COLOR. */
void zb_cmd_alarm(const char *fmt, ...) ZB_PRINTF(1, 2);
/* Append text that was escaped once by its writer: our own line breaks stay,
 * whatever else a terminal would act on is shown. Not zb_text_escape(), a
 * second pass of that would double the backslashes. */
void zb_cmd_visible(struct zb_buf *out, const char *s, size_t n);
/* Write @n bytes of results to stdout, whole. Return: 0, or ZB_ESYS: the
 * command should end with 1 (a closed pipe is not worth a message). */
int zb_cmd_out(const void *p, size_t n);

/* The commands, as rows of the table. Return: exit code. */
int zb_cmd_ext_list(const struct zb_args *a);
int zb_cmd_ext_install(const struct zb_args *a);
int zb_cmd_ext_update(const struct zb_args *a);
int zb_cmd_ext_remove(const struct zb_args *a);
int zb_cmd_ext_unwrap(const struct zb_args *a);
int zb_cmd_ext_enable(const struct zb_args *a);
int zb_cmd_ext_disable(const struct zb_args *a);
int zb_cmd_ext_logs(const struct zb_args *a);
int zb_cmd_ext_doctor(const struct zb_args *a);
int zb_cmd_ext_allow(const struct zb_args *a);
int zb_cmd_ext_revoke(const struct zb_args *a);
int zb_cmd_ext_trust(const struct zb_args *a);
int zb_cmd_ext_untrust(const struct zb_args *a);
int zb_cmd_ext_scope(const struct zb_args *a);
int zb_cmd_ext_why(const struct zb_args *a);
int zb_cmd_check(const struct zb_args *a);
int zb_cmd_wrap(const struct zb_args *a);
/* Beside its code: what its help says. */
extern const struct zb_option zb_console_options[];
extern const char zb_console_more[];
int zb_cmd_console(const struct zb_args *a);
extern const struct zb_option zb_host_options[];
extern const char zb_host_more[];
int zb_cmd_host(const struct zb_args *a);
int zb_cmd_version(const struct zb_args *a);
int zb_cmd_help(const struct zb_args *a);

#endif
