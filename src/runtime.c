/* runtime.c - from the words of a manifest to the program that will run.
 *
 * The kernel, env(1) and version managers each take a step from `exec` to a
 * real program. Inside the sandbox most of what they use on the way is hidden,
 * so the steps are taken here, on the host, as they would take them, and the
 * plan gets the end of the way: one ELF program, the argument list it would
 * have been started with, and what it needs to see.
 *
 * A manifest is a stranger's. What it names is shown inside, so it may name:
 * files of the extension itself; programs of the user's PATH or of the system;
 * binaries. A script elsewhere is somebody's text, and is refused: a manifest
 * that names one would read it. */
#include "config.h"

#include "runtime.h"

#include "binfmt.h"
#include "cleanup.h"
#include "fdutil.h"
#include "fragment.h"
#include "hostfs.h"
#include "path_match.h"
#include "shim.h"
#include "store.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#define HEAD_MAX     4096 /* enough for a shebang and for any shim */
#define MAX_STEPS    8
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

/* One resolution. @path is where we are, @argv what it would be started with.
 */
struct resolution {
	struct zb_program *out;
	const char *dir;      /* extension's directory, NULL for a grant */
	char *dir_real;	      /* canonical */
	const char *path_env; /* PATH */
	char *home;	      /* canonical; NULL: none, or / */
	const char *who; /* for messages: the extension's or program's name */
	char *path;
	struct zb_strv argv;
	bool from_path; /* found by a bare name in PATH, or through a shim */
	struct zb_buf story;
	struct zb_buf head;
	struct zb_error *err;
};

/* ---- words for messages -------------------------------------------------- */

/* @path as people know it: a file of the extension by its relative name. */
static const char *shown(const struct resolution *r, const char *path)
{
	size_t n = r->dir ? strlen(r->dir) : 0;

	if (n && !strncmp(path, r->dir, n) && path[n] == '/')
		return path + n + 1;
	return path;
}

static int out_of_memory(struct resolution *r)
{
	return zb_fail(r->err, ZB_ELIMIT, "%s: out of memory", r->who);
}

/* A word with control characters made visible: "python3\r". */
static char *escaped(const char *s)
{
	struct zb_buf b = {0};

	zb_text_escape(&b, s, strlen(s), 512);
	return zb_buf_steal(&b);
}

static void tell(struct resolution *r, const char *how)
{
	zb_buf_addf(&r->story, "%s%s%s%s%s", r->story.len ? " -> " : "",
		    shown(r, r->path), how ? " (" : "", how ? how : "",
		    how ? ")" : "");
}

static int end_story(struct resolution *r)
{
	int rc = 0;

	if (r->story.len)
		rc = zb_strv_add(&r->out->story, zb_buf_str(&r->story));
	zb_buf_clear(&r->story);
	return rc ? out_of_memory(r) : 0;
}

/* ---- argument lists ------------------------------------------------------ */

/* Put @word before the argument list, or in the place of its first one. */
static int put_first(struct resolution *r, const char *word, bool replace)
{
	struct zb_strv l = {0};
	int rc = zb_strv_add(&l, word);

	for (size_t i = replace ? 1 : 0; !rc && i < r->argv.n; i++)
		rc = zb_strv_add(&l, r->argv.v[i]);
	if (rc) {
		zb_strv_done(&l);
		return out_of_memory(r);
	}
	zb_strv_done(&r->argv);
	r->argv = l;
	return 0;
}

static int go_to(struct resolution *r, const char *path)
{
	char *copy = zb_strdup(path);

	if (!copy)
		return out_of_memory(r);
	free(r->path);
	r->path = copy;
	return 0;
}

/* ---- where things are ---------------------------------------------------- */

static bool in_extension(const struct resolution *r, const char *path)
{
	return r->dir && (zb_path_below(path, r->dir) ||
			  (r->dir_real && zb_path_below(path, r->dir_real)));
}

/* A place that holds people's own files, or other extensions. */
static bool is_personal(const struct resolution *r, const char *real)
{
	zb_auto(free) char *siblings =
		r->dir_real ? zb_path_dir(r->dir_real) : NULL;

	return (r->home && zb_path_below(real, r->home)) ||
	       (siblings && strcmp(siblings, "/") != 0 &&
		zb_path_below(real, siblings));
}

/* Where programs get by being installed, and not with somebody's files. */
static bool is_installed(const char *real)
{
	static const char *const places[] = {
		"/usr", "/bin",	 "/sbin",
		"/lib", "/opt",	 "/nix/store",
		"/gnu", "/snap", "/home/linuxbrew",
	};

	for (size_t i = 0; real && i < ZB_ARRAY_LEN(places); i++)
		if (zb_path_below(real, places[i]))
			return true;
	return false;
}

/* A program that only the manifest or a shebang names, by its path, in a place
 * where anybody's repository may lie. It runs; but what lies around it is
 * nobody's wish but a stranger's. */
static bool is_strange(const struct resolution *r, const char *real)
{
	zb_auto(free) char *dir = zb_path_dir(r->path);
	zb_auto(free) char *place = dir ? zb_host_resolve("", dir, NULL) : NULL;

	if (in_extension(r, real))
		return true;
	return !r->from_path && (!is_installed(real) || is_personal(r, real) ||
				 !is_installed(place) || is_personal(r, place));
}

/* `exec` as zot takes it: absolute as it is; with a slash from the extension's
 * directory; bare from PATH. */
static int locate(struct resolution *r, const char *exec)
{
	char *at;

	r->from_path = !strchr(exec, '/');
	if (!*exec)
		return zb_fail(r->err, ZB_EUSAGE, "%s: exec is empty", r->who);
	if (!r->from_path) {
		if (!r->dir && exec[0] != '/')
			return zb_fail(r->err, ZB_EUSAGE,
				       "%s: a program is an absolute path or a "
				       "bare name",
				       r->who);
		at = zb_path_join(r->dir ? r->dir : "/", exec);
	} else {
		at = zb_host_which(exec, r->path_env, NULL);
		if (!at) {
			zb_auto(free) char *word = escaped(exec);

			return zb_fail(r->err, ZB_EUSAGE,
				       "%s: exec %s: not found in PATH (%s)",
				       r->who, word ? word : "?", r->path_env);
		}
	}
	if (!at)
		return out_of_memory(r);
	free(r->path);
	r->path = at;
	return 0;
}

/* Is the file at r->path one that execve(2) would start at all? Names what is
 * wrong as the user wrote it: @as. */
static int check_startable(struct resolution *r, const char *word)
{
	zb_auto(free) char *as = escaped(word);
	struct stat st;

	if (!as)
		return out_of_memory(r);
	if (stat(r->path, &st)) {
		int e = errno;

		if (e == ENOENT || e == ENOTDIR)
			return zb_fail(r->err, ZB_EUSAGE,
				       "%s: exec %s: not found%s", r->who, as,
				       lstat(r->path, &st)
					       ? ""
					       : " (it is a dangling link)");
		return zb_fail_sys(r->err, e, "%s: exec %s", r->who, as);
	}
	if (S_ISDIR(st.st_mode))
		return zb_fail(r->err, ZB_EUSAGE, "%s: exec %s: is a directory",
			       r->who, as);
	if (!S_ISREG(st.st_mode))
		return zb_fail(r->err, ZB_EUSAGE, "%s: exec %s: is no file",
			       r->who, as);
	if (access(r->path, X_OK))
		return zb_fail(r->err, ZB_EUSAGE,
			       "%s: %s is not executable (chmod +x %s)", r->who,
			       shown(r, r->path), shown(r, r->path));
	if (!zb_host_head(r->path, HEAD_MAX, &r->head))
		return zb_fail_sys(r->err, errno, "%s: read %s", r->who,
				   r->path);
	return 0;
}

/* Is the directory @place (canonical) one of PATH? */
static bool in_path(const struct resolution *r, const char *place)
{
	for (const char *s = r->path_env; *s;) {
		size_t n = strcspn(s, ":");
		zb_auto(free) char *dir = zb_strndup(s, n);
		zb_auto(free) char *real =
			dir && *dir == '/' ? zb_host_resolve("", dir, NULL)
					   : NULL;

		if (real && !strcmp(real, place))
			return true;
		s += n + (s[n] == ':');
	}
	return false;
}

/* A script that is there to be run by everybody: in a place of programs, or
 * linked from one. */
static bool is_public(const struct resolution *r, const char *real)
{
	zb_auto(free) char *dir = zb_path_dir(r->path);
	zb_auto(free) char *place = dir ? zb_host_resolve("", dir, NULL) : NULL;

	return !is_personal(r, real) &&
	       (is_installed(real) ||
		(place && !is_personal(r, place) &&
		 (is_installed(place) || in_path(r, place))));
}

/* A script of ours, of the system, of PATH, or one that the user granted; not
 * one of somebody else. */
static int check_may_show(struct resolution *r)
{
	zb_auto(free) char *real = zb_host_resolve("", r->path, NULL);

	if (!real)
		return zb_fail_sys(r->err, errno, "%s: %s", r->who, r->path);
	if (r->from_path || !r->dir || in_extension(r, real) ||
	    is_public(r, real))
		return 0;
	return zb_fail(r->err, ZB_EPOLICY,
		       "%s: %s is a script outside the extension's directory; "
		       "it is not shown to the extension. Put its directory "
		       "into PATH and name it without a path, if it is meant "
		       "to be run",
		       r->who, r->path);
}

/* ---- scripts ------------------------------------------------------------- */

static bool is_shell(const char *path)
{
	static const char *const shells[] = {"sh", "bash", "dash", "zsh",
					     "ksh"};

	for (size_t i = 0; i < ZB_ARRAY_LEN(shells); i++)
		if (!strcmp(zb_path_name(path), shells[i]))
			return true;
	return false;
}

/* What the kernel, or env, looks for when the first line ends in CR LF. */
static int crlf(struct resolution *r, const struct zb_shebang *sb)
{
	bool env = !strcmp(zb_path_name(sb->interp), "env");
	zb_auto(free) char *line =
		env ? zb_strdup(sb->arg)
		    : zb_strf("%s%s%s", sb->interp, sb->arg[0] ? " " : "",
			      sb->arg);
	zb_auto(free) char *word = NULL;

	if (!line)
		return out_of_memory(r);
	line[strcspn(line, "\r")] = '\0';
	word = escaped(line);
	return zb_fail(r->err, ZB_EUSAGE,
		       "%s: %s line 1 ends in CRLF: interpreter \"%s\\r\" does "
		       "not exist (convert the file to LF)",
		       r->who, shown(r, r->path), word ? word : "?");
}

/* Files that are named need to be shown, unless the extension's own directory
 * shows them. A link in there that leads out is followed to where it does. */
static int need_file(struct resolution *r, const char *path, unsigned rights)
{
	zb_auto(free) char *at = zb_strdup(path);

	for (int hop = 0; at && in_extension(r, at) && hop < 40; hop++) {
		char text[PATH_MAX];
		ssize_t n = readlink(at, text, sizeof(text) - 1);
		zb_auto(free) char *dir = zb_path_dir(at);

		if (n < 0) {
			zb_auto(free) char *real =
				zb_host_resolve("", at, NULL);

			/* A linked directory on the way may lead out too. */
			if (!real || in_extension(r, real))
				return 0;
			free(at);
			at = zb_steal(&real);
			break;
		}
		text[n] = '\0';
		free(at);
		at = dir ? zb_path_join(dir, text) : NULL;
	}
	if (!at || zb_need_add(r->out, at, rights, r->who))
		return out_of_memory(r);
	return 0;
}

/* The words after env and its -S or --, with what -S holds split. */
static int env_words(struct resolution *r, struct zb_strv *l)
{
	size_t i = 1;
	int rc = 0;

	if (i < r->argv.n && !strcmp(r->argv.v[i], "-S")) {
		i++;
		if (i < r->argv.n)
			rc = zb_env_split(r->argv.v[i++], l, r->err);
	} else if (i < r->argv.n && !strncmp(r->argv.v[i], "-S", 2)) {
		rc = zb_env_split(r->argv.v[i++] + 2, l, r->err);
	} else if (i < r->argv.n && !strcmp(r->argv.v[i], "--")) {
		i++;
	}
	for (; !rc && i < r->argv.n; i++)
		if (zb_strv_add(l, r->argv.v[i]))
			rc = out_of_memory(r);
	return rc;
}

/* env in a shebang or a manifest: its words are in argv after argv[0]. The
 * program they name takes the place of env. Options of env that change what
 * the program gets are beyond this: they are refused by name. */
static int through_env(struct resolution *r)
{
	struct zb_strv l = {0};
	int rc = env_words(r, &l);
	zb_auto(free) char *word = l.n ? escaped(l.v[0]) : NULL;

	if (!rc && (!l.n || l.v[0][0] == '-' || strchr(l.v[0], '=')))
		rc = zb_fail(r->err, ZB_EUSAGE,
			     "%s: env %s: only a program name, or -S and a "
			     "program name, is understood here; set variables "
			     "in the scope (env.set)",
			     r->who, word ? word : "");
	if (rc) {
		zb_strv_done(&l);
		return rc;
	}
	zb_strv_done(&r->argv);
	r->argv = l;
	return 0;
}

/* r->argv[0] is what env was told to start: find it. */
static int after_env(struct resolution *r)
{
	zb_auto(free) char *name = zb_strdup(r->argv.v[0]);
	zb_auto(free) char *word = escaped(r->argv.v[0]);
	int rc;

	if (!name || !word)
		return out_of_memory(r);
	zb_buf_addf(&r->story, ": interpreter %s", word);
	r->from_path = !strchr(name, '/');
	if (!r->from_path) {
		char *at = zb_path_join(r->dir ? r->dir : "/", name);

		rc = at ? go_to(r, at) : out_of_memory(r);
		free(at);
	} else {
		char *at = zb_host_which(name, r->path_env, NULL);

		if (!at)
			return zb_fail(r->err, ZB_EUSAGE,
				       "%s: %s: interpreter %s not found in "
				       "PATH (%s)",
				       r->who, shown(r, r->path), word,
				       r->path_env);
		rc = go_to(r, at);
		free(at);
	}
	if (!rc)
		rc = put_first(r, r->path, true);
	if (!rc)
		tell(r, NULL);
	return rc;
}

/* Step into the interpreter of the script at r->path, as the kernel does:
 * INTERP [ARG] SCRIPT ARGS... */
static int through_shebang(struct resolution *r, const struct zb_shebang *sb)
{
	int rc = put_first(r, r->path, true);

	if (!rc && sb->arg[0])
		rc = put_first(r, sb->arg, false);
	if (!rc)
		rc = put_first(r, sb->interp, false);
	if (!rc)
		rc = need_file(r, r->path, ZB_MAY_READ | ZB_MAY_EXEC);
	if (rc)
		return rc;
	if (!strcmp(zb_path_name(sb->interp), "env")) {
		rc = through_env(r);
		return rc ? rc : after_env(r);
	}
	if (sb->interp[0] != '/') {
		zb_auto(free) char *at =
			zb_path_join(r->dir ? r->dir : "/", sb->interp);

		rc = at ? go_to(r, at) : out_of_memory(r);
	} else {
		rc = go_to(r, sb->interp);
	}
	if (!rc && !zb_host_exists("", r->path)) {
		zb_auto(free) char *word = escaped(sb->interp);

		return zb_fail(r->err, ZB_EUSAGE,
			       "%s: interpreter \"%s\" does not exist", r->who,
			       word ? word : "?");
	}
	r->from_path = false;
	zb_buf_addf(&r->story, ": interpreter %s", r->path);
	return rc;
}

/* TARGET WORDS... and what the shim was called with. */
static int shim_argv(struct resolution *r, const struct zb_shim *shim)
{
	struct zb_strv l = {0};
	int rc = zb_strv_add(&l, shim->target);

	for (size_t i = 0; !rc && i < shim->args.n; i++)
		rc = zb_strv_add(&l, shim->args.v[i]);
	for (size_t i = 1; !rc && i < r->argv.n; i++)
		rc = zb_strv_add(&l, r->argv.v[i]);
	zb_strv_done(&r->argv);
	r->argv = l;
	return rc ? out_of_memory(r) : 0;
}

/* A script that only chooses a program: step to that. *@took: it was one. */
static int through_shim(struct resolution *r, bool *took)
{
	zb_auto(free) char *name = zb_strdup(zb_path_name(r->path));
	struct zb_shim shim;
	bool named;
	int rc;

	*took = false;
	if (!name)
		return out_of_memory(r);
	rc = zb_shim_resolve(&shim, r->path, name, zb_buf_str(&r->head),
			     r->dir ? r->dir : "/", r->path_env, r->err);
	if (rc)
		return zb_wrap(r->err, "%s", r->who);
	if (!shim.target)
		return 0;
	*took = true;
	named = strcmp(shim.manager, "plain") != 0;
	zb_buf_addf(&r->story, " (%s%sshim%s%s)", named ? shim.manager : "",
		    named ? " " : "", shim.why ? ", version " : "",
		    shim.why ? shim.why : "");
	rc = shim_argv(r, &shim);
	if (!rc)
		rc = go_to(r, shim.target);
	if (!rc)
		tell(r, NULL);
	zb_shim_done(&shim);
	return rc;
}

static int script(struct resolution *r)
{
	struct zb_shebang sb;
	bool took = false;
	int rc;

	if (!zb_shebang_parse(r->head.data, r->head.len, &sb))
		return zb_fail(r->err, ZB_EUSAGE,
			       "%s: %s: its first line names no interpreter, "
			       "or is longer than the kernel reads",
			       r->who, shown(r, r->path));
	if (sb.crlf)
		return crlf(r, &sb);
	if (!in_extension(r, r->path) &&
	    (is_shell(sb.interp) || is_shell(sb.arg))) {
		rc = through_shim(r, &took);
		if (rc || took)
			return rc;
	}
	rc = check_may_show(r);
	return rc ? rc : through_shebang(r, &sb);
}

/* ---- the end of the way: an ELF program ---------------------------------- */

/* The parser asks for a few bytes at a time, and mostly for the next ones. */
struct elf_file {
	int fd;
	uint64_t at; /* where @block is from */
	size_t n;
	char block[4096];
};

static bool read_at(void *ctx, uint64_t offset, void *p, size_t n)
{
	struct elf_file *f = ctx;
	ssize_t got;

	if (n > sizeof(f->block) || offset > INT64_MAX - n)
		return false;
	if (offset < f->at || offset + n > f->at + f->n) {
		got = pread(f->fd, f->block, sizeof(f->block), (off_t)offset);
		f->at = offset;
		f->n = got < 0 ? 0 : (size_t)got;
		if (f->n < n)
			return false;
	}
	memcpy(p, f->block + (offset - f->at), n);
	return true;
}

static int cannot_run(struct resolution *r, const char *why)
{
	return zb_fail(r->err, ZB_EUSAGE, "%s: cannot run %s: %s", r->who,
		       shown(r, r->path), why);
}

/* Read the headers of the program at @path and check that this machine and
 * kernel would start it. */
static int parse_elf(struct resolution *r, const char *path, struct zb_elf *elf)
{
	zb_auto(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_file file = {.fd = fd};
	char name[32], why[160];
	struct zb_error e = {0};
	struct utsname u;

	if (fd < 0)
		return zb_fail_sys(r->err, errno, "%s: read %s", r->who, path);
	if (zb_elf_parse(elf, read_at, &file, &e))
		return cannot_run(r, e.msg);
	if (!zb_elf_is_native(elf)) {
		snprintf(why, sizeof(why),
			 "it is built for %s, and this machine is %.32s",
			 zb_elf_machine_name(elf->machine, elf->is64, name,
					     sizeof(name)),
			 uname(&u) ? "another" : u.machine);
		return cannot_run(r, why);
	}
	if (!elf->executable)
		return cannot_run(r, "it is an object file, not a program");
	return 0;
}

/* The loader a program names will be shown: so it must be one. A stranger's
 * program could name any file there. */
static int check_loader(struct resolution *r, const char *loader, bool strange)
{
	zb_auto(free) char *real = zb_host_resolve("", loader, NULL);
	zb_auto(free) char *word = escaped(loader);
	struct zb_elf elf = {0};
	char why[256];
	int rc;

	if (!word)
		return out_of_memory(r);
	snprintf(why, sizeof(why), "its loader %.128s is not on this host",
		 word);
	if (!real)
		return cannot_run(r, why);
	snprintf(why, sizeof(why), "its loader %.128s is no loader", word);
	if (loader[0] != '/' || !zb_host_is_program(real) ||
	    (strange && is_personal(r, real)))
		return cannot_run(r, why);
	rc = parse_elf(r, real, &elf);
	if (rc || elf.interp)
		rc = cannot_run(r, why);
	zb_elf_done(&elf);
	return rc;
}

/* What a directory of the library search path stands for. NULL: nothing that
 * may be shown. */
static char *runpath_dir(const struct resolution *r, const char *entry,
			 const char *real)
{
	zb_auto(free) char *origin = zb_path_dir(real);
	zb_auto(free) char *at = NULL;
	zb_auto(free) char *dir = NULL;
	const char *rest = NULL;
	struct stat st;

	if (!strncmp(entry, "$ORIGIN", 7))
		rest = entry + 7;
	else if (!strncmp(entry, "${ORIGIN}", 9))
		rest = entry + 9;
	at = rest ? zb_strf("%s%s", origin ? origin : "", rest)
		  : zb_strdup(entry);
	if (!at || at[0] != '/' || strchr(at, '$'))
		return NULL;
	dir = zb_host_resolve("", at, NULL);
	/* All of HOME or / is no library directory. */
	if (!dir || stat(dir, &st) || !S_ISDIR(st.st_mode) ||
	    !strcmp(dir, "/") || (r->home && zb_path_below(r->home, dir)))
		return NULL;
	return zb_steal(&dir);
}

static int need_runpath(struct resolution *r, const struct zb_elf *elf,
			const char *real)
{
	for (size_t i = 0; i < elf->runpath.n; i++) {
		zb_auto(free) char *dir =
			runpath_dir(r, elf->runpath.v[i], real);

		if (dir && zb_need_add(r->out, dir, ZB_MAY_READ | ZB_MAY_LIST,
				       "library path"))
			return out_of_memory(r);
	}
	return 0;
}

/* Installation prefix of a program in PREFIX/bin; /usr for /bin. */
static char *prefix_of(const char *program)
{
	zb_auto(free) char *bin = zb_path_dir(program);
	char *prefix;

	if (!bin)
		return NULL;
	if (strcmp(zb_path_name(bin), "bin") != 0 &&
	    strcmp(zb_path_name(bin), "sbin") != 0)
		return NULL;
	prefix = zb_path_dir(bin);
	if (prefix && !strcmp(prefix, "/")) {
		free(prefix);
		prefix = zb_strdup("/usr");
	}
	return prefix;
}

static int add_prefix(struct zb_fragment_vars *v, char *prefix)
{
	int rc = 0;

	if (prefix && !zb_strv_has(&v->prefix, prefix))
		rc = zb_strv_add(&v->prefix, prefix);
	free(prefix);
	return rc;
}

/* The names a program goes by: as it is called, each link, the real file. */
static int add_names(struct zb_fragment_vars *v, const char *path,
		     const struct zb_strv *links)
{
	if (zb_strv_add(&v->names, zb_path_name(path)) ||
	    zb_strv_add(&v->names, zb_path_name(v->real)))
		return ZB_ELIMIT;
	for (size_t i = 0; i < links->n; i++)
		if (zb_strv_add(&v->names, zb_path_name(links->v[i])))
			return ZB_ELIMIT;
	return 0;
}

/* Is there a Python's own library below @prefix? Then the prefix is what a
 * pyvenv.cfg says it is, also if a stranger wrote the file. */
static bool is_python_prefix(const char *prefix)
{
	static const char *const libs[] = {"lib", "lib64"};

	for (size_t i = 0; i < ZB_ARRAY_LEN(libs); i++) {
		zb_auto(free) char *dir = zb_strf("%s/%s", prefix, libs[i]);
		DIR *d = dir ? opendir(dir) : NULL;
		struct dirent *e;
		bool found = false;

		while (d && !found && (e = readdir(d))) {
			zb_auto(free) char *os =
				zb_strf("%s/%s/os.py", dir, e->d_name);

			found = !strncmp(e->d_name, "python", 6) && os &&
				!access(os, R_OK);
		}
		if (d)
			closedir(d);
		if (found)
			return true;
	}
	return false;
}

/* The value of `home = DIR` in a pyvenv.cfg: where the base program is. */
static char *venv_home(const char *text)
{
	const char *p = text;

	while (p) {
		if (!strncmp(p, "home", 4)) {
			p += 4;
			p += strspn(p, " \t");
			if (*p == '=') {
				p++;
				p += strspn(p, " \t");
				return zb_strndup(p, strcspn(p, "\r\n"));
			}
		}
		p = strchr(p, '\n');
		p = p ? p + 1 : NULL;
	}
	return NULL;
}

/* Is @path a file where it says it is, and no link to another? */
static bool is_at_home(const char *path)
{
	zb_auto(free) char *dir = zb_path_dir(path);
	zb_auto(free) char *place = dir ? zb_host_resolve("", dir, NULL) : NULL;
	zb_auto(free) char *want =
		place ? zb_path_join(place, zb_path_name(path)) : NULL;
	zb_auto(free) char *real = zb_host_resolve("", path, NULL);

	return want && real && !strcmp(want, real);
}

/* The installation prefix that the `home` of a pyvenv.cfg is in; heap, NULL:
 * none. With .. in it, what it names depends on who reads it. */
static char *venv_base(const char *home)
{
	zb_auto(free) char *plain =
		home[0] == '/' ? zb_path_join("/", home) : NULL;
	zb_auto(free) char *at = plain && !strcmp(plain, home)
					 ? zb_strf("%s/python", home)
					 : NULL;
	zb_auto(free) char *base = at ? prefix_of(at) : NULL;

	return base && is_python_prefix(base) ? zb_steal(&base) : NULL;
}

/* A Python virtual environment: pyvenv.cfg beside the program or above it,
 * whose `home` is where the real one is. */
static int venv(struct resolution *r, struct zb_fragment_vars *v)
{
	zb_auto(free) char *bin = zb_path_dir(r->path);
	zb_auto(free) char *top = bin ? zb_path_dir(bin) : NULL;
	zb_auto(free) char *cfg = NULL;
	zb_auto(free) char *home = NULL;
	zb_auto(free) char *base = NULL;
	struct zb_buf text = {0};
	int rc = 0;

	for (int i = 0; top && i < 2 && !text.len; i++) {
		free(cfg);
		cfg = zb_strf("%s/pyvenv.cfg", i ? top : bin);
		if (cfg)
			zb_host_head(cfg, HEAD_MAX, &text);
	}
	home = text.len ? venv_home(zb_buf_str(&text)) : NULL;
	/* What lies in the extension's directory is shown by that. */
	if (text.len && !in_extension(r, cfg) && is_at_home(cfg)) {
		rc = zb_need_add(r->out, cfg, ZB_MAY_READ, r->who);
		if (!rc)
			rc = add_prefix(v, zb_strdup(top));
	}
	base = home ? venv_base(home) : NULL;
	if (!rc && base)
		rc = add_prefix(v, zb_steal(&base));
	zb_buf_done(&text);
	return rc;
}

/* A python that was copied out of its prefix looks where it was built for. */
static int built_for(struct zb_fragment_vars *v)
{
	static const char *const usual[] = {"/usr", "/usr/local"};

	for (size_t i = 0; i < v->prefix.n; i++)
		if (is_python_prefix(v->prefix.v[i]))
			return 0;
	for (size_t i = 0; i < ZB_ARRAY_LEN(usual); i++)
		if (is_python_prefix(usual[i]) &&
		    add_prefix(v, zb_strdup(usual[i])))
			return ZB_ELIMIT;
	return 0;
}

/* Inside, the directory of a program behind a shim is not in PATH. */
static int need_in_path(struct resolution *r)
{
	zb_auto(free) char *dir = zb_path_dir(r->path);
	zb_auto(free) char *hit = NULL;

	if (!dir || !r->from_path)
		return dir ? 0 : out_of_memory(r);
	hit = zb_host_which(zb_path_name(r->path), r->path_env, NULL);
	if (hit && !strcmp(hit, r->path))
		return 0;
	return zb_strv_add(&r->out->path_prefix, dir) ? out_of_memory(r) : 0;
}

/* Which directories below HOME are opened, for people. */
static int tell_needs(struct resolution *r)
{
	for (size_t i = 0; i < r->out->n_needs; i++) {
		const struct zb_need *n = &r->out->needs[i];

		if (!r->home || !(n->rights & ZB_MAY_LIST) ||
		    !zb_path_below(n->path, r->home))
			continue;
		if (zb_strv_addf(&r->out->story, "read-only: %s", n->path))
			return out_of_memory(r);
	}
	return 0;
}

static int elf_needs(struct resolution *r, const struct zb_elf *elf,
		     const char *real)
{
	bool strange = is_strange(r, real);
	int rc = need_file(r, r->path, ZB_MAY_READ | ZB_MAY_EXEC);

	if (!rc && elf->interp)
		rc = check_loader(r, elf->interp, strange);
	if (!rc && elf->interp &&
	    zb_need_add(r->out, elf->interp, ZB_MAY_READ | ZB_MAY_EXEC,
			"loader"))
		rc = out_of_memory(r);
	/* Where a stranger's program would look is the stranger's wish. */
	return rc || strange ? rc : need_runpath(r, elf, real);
}

static int fragments(struct resolution *r, const char *real,
		     const struct zb_strv *links)
{
	struct zb_fragment_vars v = {.root = "",
				     .home = r->home,
				     .ext_dir = r->dir_real,
				     .real = real,
				     .strange = is_strange(r, real)};
	int rc = add_names(&v, r->path, links);

	if (!rc && !in_extension(r, real))
		rc = add_prefix(&v, prefix_of(real));
	if (!rc && !strncmp(zb_path_name(real), "python", 6)) {
		rc = venv(r, &v);
		if (!rc)
			rc = built_for(&v);
	}
	if (rc == ZB_ELIMIT)
		out_of_memory(r);
	if (!rc)
		rc = zb_fragments_apply(&v, r->out, r->err);
	zb_strv_done(&v.names);
	zb_strv_done(&v.prefix);
	return rc;
}

/* r->path is an ELF program: say what it needs. */
static int finish(struct resolution *r)
{
	struct zb_elf elf = {0};
	struct zb_strv links = {0};
	zb_auto(free) char *real = zb_host_resolve("", r->path, &links);
	const char *manager;
	int rc;

	if (!real) {
		rc = zb_fail_sys(r->err, errno, "%s: %s", r->who, r->path);
		goto out;
	}
	manager = zb_shim_by_name(real, zb_path_name(r->path));
	if (manager) {
		rc = zb_fail(r->err, ZB_EUSAGE,
			     "%s: %s is a link to %s, which chooses the "
			     "program when it starts: put the directory of the "
			     "real %s before it in PATH",
			     r->who, r->path, manager, zb_path_name(r->path));
		goto out;
	}
	rc = parse_elf(r, r->path, &elf);
	if (!rc)
		rc = elf_needs(r, &elf, real);
	if (!rc)
		rc = fragments(r, real, &links);
	if (!rc && strcmp(real, r->path) != 0)
		zb_buf_addf(&r->story, " -> %s", shown(r, real));
	if (!rc)
		rc = end_story(r);
	zb_needs_tidy("", r->out->needs, &r->out->n_needs);
	if (!rc)
		rc = tell_needs(r);
	if (!rc)
		rc = need_in_path(r);
out:
	zb_elf_done(&elf);
	zb_strv_done(&links);
	return rc;
}

static const struct {
	enum zb_bin_kind kind;
	const char *why;
} unstartable[] = {
	{ZB_BIN_EMPTY, "it is empty"},
	{ZB_BIN_BOM_SCRIPT,
	 "a byte-order mark stands before its #!; take it out"},
	{ZB_BIN_MACHO, "it is built for macOS"},
	{ZB_BIN_PE, "it is built for Windows"},
	{ZB_BIN_TEXT, "exec format error: a script needs a first line such as "
		      "#!/bin/sh"},
	{ZB_BIN_OTHER, "exec format error: it is no program of this system"},
};

/* Take steps until there is an ELF program. */
static int walk(struct resolution *r, const char *as)
{
	for (int i = 0; i < MAX_STEPS; i++) {
		enum zb_bin_kind kind;
		int rc = check_startable(r, i ? r->path : as);

		if (rc)
			return rc;
		kind = zb_bin_kind(zb_buf_str(&r->head), r->head.len);
		if (!in_extension(r, r->path) && r->argv.n > 1 &&
		    !strcmp(zb_path_name(r->path), "env")) {
			rc = through_env(r);
			if (!rc)
				rc = after_env(r);
			if (rc)
				return rc;
			continue;
		}
		if (kind == ZB_BIN_ELF)
			return finish(r);
		for (size_t k = 0; k < ZB_ARRAY_LEN(unstartable); k++)
			if (unstartable[k].kind == kind)
				return cannot_run(r, unstartable[k].why);
		rc = script(r);
		if (rc)
			return rc;
	}
	return zb_fail(r->err, ZB_EUSAGE,
		       "%s: %s: more than %d interpreters one behind another",
		       r->who, as, MAX_STEPS);
}

static void resolution_done(struct resolution *r)
{
	free(r->path);
	free(r->dir_real);
	free(r->home);
	zb_strv_done(&r->argv);
	zb_buf_done(&r->story);
	zb_buf_done(&r->head);
}

static char *real_home(void)
{
	const char *home = getenv("HOME");
	char *real =
		home && home[0] == '/' ? zb_host_resolve("", home, NULL) : NULL;

	if (real && strcmp(real, "/") != 0)
		return real;
	free(real);
	return NULL;
}

static int resolve(struct zb_program *out, const char *dir, const char *who,
		   const char *exec, const struct zb_strv *args,
		   const char *path_env, struct zb_error *err)
{
	struct zb_program p = {0};
	struct resolution r = {.out = &p,
			       .dir = dir,
			       .path_env = path_env ? path_env : DEFAULT_PATH,
			       .home = real_home(),
			       .who = who,
			       .err = err};
	int rc;

	r.dir_real = dir ? zb_host_resolve("", dir, NULL) : NULL;
	rc = locate(&r, exec);
	if (!rc)
		rc = zb_strv_add(&r.argv, r.path);
	for (size_t i = 0; args && !rc && i < args->n; i++)
		rc = zb_strv_add(&r.argv, args->v[i]);
	if (rc == ZB_ELIMIT)
		out_of_memory(&r);
	if (!rc) {
		tell(&r, NULL);
		rc = walk(&r, exec);
	}
	if (!rc && !p.kind) {
		p.kind = zb_strdup("native");
		rc = p.kind ? 0 : out_of_memory(&r);
	}
	if (!rc) {
		p.exec_path = zb_steal(&r.path);
		p.argv = r.argv;
		r.argv = (struct zb_strv){0};
		*out = p;
	} else {
		zb_program_done(&p);
	}
	resolution_done(&r);
	return rc;
}

int zb_runtime_resolve(struct zb_program *out, const char *dir,
		       const struct zb_manifest *manifest, const char *path,
		       struct zb_error *err)
{
	if (!manifest->exec)
		return zb_fail(err, ZB_EUSAGE, "%s: it has no exec",
			       manifest->name);
	return resolve(out, dir, manifest->name, manifest->exec,
		       &manifest->args, path, err);
}

int zb_runtime_program(struct zb_program *out, const char *name,
		       const char *path, struct zb_error *err)
{
	return resolve(out, NULL, name, name, NULL, path, err);
}

/* ---- what every sandbox needs -------------------------------------------- */

/* SSL_CERT_FILE names a CA bundle where the system's is not used. Shown only
 * if it is one, and holds no key. */
static int need_cert_file(struct zb_program *out)
{
	const char *path = getenv("SSL_CERT_FILE");
	struct zb_buf text = {0};
	int rc = 0;

	for (size_t i = 0; path && i < out->n_needs; i++)
		if (!strcmp(out->needs[i].path, path))
			return 0; /* it is shown in any case */
	if (!path || path[0] != '/' ||
	    !zb_host_head(path, (size_t)4 << 20, &text))
		goto out;
	if (strstr(zb_buf_str(&text), "BEGIN CERTIFICATE") &&
	    !strstr(zb_buf_str(&text), "PRIVATE KEY"))
		rc = zb_need_add(out, path, ZB_MAY_READ, "SSL_CERT_FILE");
out:
	zb_buf_done(&text);
	return rc;
}

int zb_runtime_base_at(const char *root, struct zb_need **out, size_t *n,
		       struct zb_strv *quiet, struct zb_error *err)
{
	struct zb_fragment_vars v = {.root = root};
	struct zb_program p = {0};
	int rc = zb_fragment_add("base", &v, &p, err);

	if (!rc && !*root && need_cert_file(&p))
		rc = zb_fail(err, ZB_ELIMIT, "out of memory");
	for (size_t i = 0; !rc && i < p.quiet.n; i++)
		if (zb_strv_add(quiet, p.quiet.v[i]))
			rc = zb_fail(err, ZB_ELIMIT, "out of memory");
	if (!rc) {
		zb_needs_tidy(root, p.needs, &p.n_needs);
		*out = zb_steal(&p.needs);
		*n = p.n_needs;
		p.n_needs = 0;
	}
	zb_program_done(&p);
	return rc;
}

int zb_runtime_base(struct zb_need **out, size_t *n, struct zb_strv *quiet,
		    struct zb_error *err)
{
	return zb_runtime_base_at("", out, n, quiet, err);
}

void zb_needs_done(struct zb_need *needs, size_t n)
{
	for (size_t i = 0; needs && i < n; i++) {
		free(needs[i].path);
		free(needs[i].from);
	}
	free(needs);
}
