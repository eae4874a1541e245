/* plan.h - what one extension may touch, in no platform's terms.
 *
 * Plan = resolve(scope chain, manifest, facts of this host). Pure and
 * deterministic: the host is seen only through struct zb_facts. Enforcement,
 * explanation and the three renderers all read this one struct. */
#ifndef ZB_PLAN_H
#define ZB_PLAN_H

#include "granted.h"
#include "manifest.h"
#include "scope.h"

/* Rights on a place. */
enum {
	ZB_MAY_READ = 1,
	ZB_MAY_WRITE = 2,  /* content of what exists */
	ZB_MAY_CREATE = 4, /* create, delete, rename below a directory */
	ZB_MAY_EXEC = 8,
	ZB_MAY_LIST = 16, /* directory entries */
};

enum zb_place_kind {
	ZB_PLACE_SYSTEM,    /* loader, libraries, /etc files: base.json */
	ZB_PLACE_RUNTIME,   /* interpreter and its prefix */
	ZB_PLACE_EXTENSION, /* the extension's code */
	ZB_PLACE_DATA,	    /* its private data_dir */
	ZB_PLACE_HOME,	    /* its private HOME */
	ZB_PLACE_TMP,	    /* private /tmp: made fresh, no source */
	ZB_PLACE_GRANT,	    /* fs.read, fs.write, fs.exec of a scope */
	ZB_PLACE_LINK,	    /* a symlink shown as on the host. Inside HOME or
			       data/ it is made beforehand, like a stub */
	ZB_PLACE_TEXT,	    /* a generated file: @content */
	ZB_PLACE_PIN,	    /* an ancestor of a place inside HOME or data/,
			       bound onto itself so that it cannot be renamed (or,
			       in a brokered HOME, one where programs are kept):
			       @source is that directory in home/ or data/,
			       made beforehand */
	ZB_PLACE_DIR,	    /* a read-only directory of ours that shows only
			       the places in it. In the sandbox's root a plain
			       one: a small directory of the system, shown as
			       copies and links. Elsewhere a tmpfs, made
			       read-only when its mount points are in it: on
			       the way to a place below /tmp, or in HOME where
			       zot's extensions are, or hiding the supervisor's
			       own directories in a wide grant */
	ZB_PLACE_PROC,
	ZB_PLACE_DEV,
};

/* One place that exists inside. Sorted so that a parent comes before what
 * lies in it. Paths are absolute, canonical (no . .. // or trailing /). */
struct zb_place {
	enum zb_place_kind kind;
	char *path;    /* where it is seen inside: its real name */
	char *source;  /* host path that stands there; NULL: made afresh */
	char *link_to; /* ZB_PLACE_LINK */
	char *content; /* ZB_PLACE_TEXT */
	unsigned rights;
	bool is_dir;
	/* SYSTEM, TEXT: a small file that stands in the sandbox's own root as a
	 * copy made at the start. A mount costs more than a small file. */
	bool copied;
	/* A file that the read-only place around it shows as it is: it has more
	 * rights there (execution), and no mount of its own. */
	bool shown;
	/* A deny pattern may match below it, or a pattern limits it: the broker
	 * alone opens here. Nothing can be executed from it: the kernel wants
	 * READ_FILE for that, which such a place never gets. */
	bool carved;
	/* Grants with a pattern in their last component ("DIR/x*"): of what is
	 * below @path only what one of these matches may be read; and of it
	 * only what one of those may be changed. Empty: all of it. What may be
	 * changed may be read, too. */
	struct zb_strv only, only_changes;
	/* Not carved itself, but a carved place is mounted below it: the floor
	 * cannot give READ here (Landlock follows mounts upward), so the
	 * broker serves reads of files, and nothing can be executed. Listing
	 * it is still the floor's. */
	bool brokered;
	/* Brokered, and the carved place below it may be written to: then the
	 * floor cannot give WRITE or CREATE here either. */
	bool brokered_writes;
	struct zb_origin origin;
	/* The line that lets it be changed, where that is not @origin. */
	struct zb_origin changed_by;
};

/* A deny, as a pattern over canonical paths inside (path_match.h). */
struct zb_deny {
	char *pattern;
	bool built_in; /* below write grants only */
	struct zb_origin origin;
};

/* How a rule is enforced on the host the plan was made for. */
enum zb_enforced {
	ZB_ENFORCED_FLOOR,
	ZB_ENFORCED_BROKER,
	ZB_ENFORCED_MEDIATOR,
	ZB_ENFORCED_SUPERVISOR,
	ZB_NOT_ENFORCEABLE,
};

struct zb_env_var {
	char *name, *value;
	struct zb_origin origin;
};

struct zb_plan {
	char *name;	   /* the extension's */
	char *base;	   /* policy in a word: "strict", "standard+scope" */
	char *project;	   /* real path; NULL: unknown, or refused */
	bool uses_project; /* some rule names ${project} */
	/* A ${project} that nobody can mean: not granted, one record
	 * (decided_by plan). NULL: it was fine. And why, static: "contains
	 * HOME". */
	char *project_refused;
	const char *project_why;
	char *home, *zot_home, *extension_dir, *data_dir; /* as spelled */
	char *home_real, *zot_home_real, *extension_real; /* canonical */
	bool state_beside;
	/* The directories of HOME where programs are kept are no mounts, so
	 * what another instance has mounted in HOME can be moved into them:
	 * only as long as no instance has anything carved there (stubs.h). */
	bool loose_home;
	char *cwd;	     /* extension_dir */
	struct zb_strv argv; /* argv[0] as the program sees it */
	char *exec_path;     /* absolute path inside, handed to execve */
	struct zb_place *places;
	size_t n_places;
	struct zb_deny *denies;
	size_t n_denies;
	/* Refused without a record: exact paths or patterns. */
	struct zb_strv quiet;
	struct zb_env_var *env;
	size_t n_env;
	struct zb_strv env_withheld; /* asked for or secret-looking names */
	struct zb_scope scope;	     /* the merged chain: protocol, limits... */
	struct zb_strv notices;	     /* said once to the user at start */
	/* State "beside": shipped files, relative to the extension's
	 * directory, that fs.write makes writable. Before the start each is
	 * copied into data/ unless it is there already. */
	struct zb_strv data_copies;
	/* Directories of the host that fs.write has made before the start. */
	struct zb_strv made;
	/* Canonical paths of what the supervisor itself runs and reads, with
	 * each link that leads there: nothing opens them for writing. */
	struct zb_strv own;
	/* Where the names in its fs lists lead, to be held against later. */
	struct zb_granted granted;
	enum zb_ledger_mode ledger;
};

/* What the host says of one path, for the resolver. */
struct zb_path_fact {
	bool exists;
	bool is_dir, is_file, is_link;
	uint64_t size; /* of a file */
	char *real; /* canonical target of the whole path; NULL: dangling. The
		       resolver walks by itself and does not need it */
	char *link; /* readlink() text when is_link (last component) */
	/* A directory in which nobody with the user's rights can make a name */
	bool held;
};

/* One thing a runtime fragment or a program resolution asks to be there. The
 * path is as spelled: links among its components, and it being one itself, are
 * shown as links, and the target is granted. */
struct zb_need {
	char *path;
	/* ZB_MAY_*; 0: a link that is shown (/lib64), its target not granted.
	 */
	unsigned rights;
	bool optional; /* skip silently when absent */
	char *from;    /* "runtimes/python.json" */
};

/* A way to start the extension, found by effects (runtime.h): the program
 * resolved through PATH, shebangs, env, symlinks and shims. */
struct zb_program {
	char *exec_path;
	struct zb_strv argv;
	char *kind; /* "native" "sh" "python" "node" */
	struct zb_need *needs;
	size_t n_needs;
	struct zb_strv path_prefix; /* directories to put before PATH */
	struct zb_strv quiet;
	struct zb_strv story; /* how it was found, a step a line */
};

/* All the resolver may know of the host. Borrowed; the caller owns it. */
struct zb_facts {
	const char *home;     /* value of HOME */
	const char *zot_home; /* as spelled by the user */
	const char *zot_home_real;
	const char *extension_dir; /* as spelled */
	const char *extension_real;
	const char *project; /* real path; NULL: unknown */
	const char *xdg_runtime_dir;
	const char *private_data;     /* host path of data/ */
	const char *private_home;     /* host path of home/ */
	const char *shipped_manifest; /* host path shown as extension.json, or
					 NULL to show what is there */
	const char *user_name;
	unsigned uid, gid;
	const char *const *environ_; /* "NAME=VALUE", NULL-terminated */
	/* Top-level names in the extension's directory (state "beside"). */
	const struct zb_strv *extension_entries;
	const struct zb_program *program;
	const struct zb_need *base_needs; /* policies/runtimes/base.json */
	size_t n_base_needs;
	const struct zb_strv *base_quiet; /* NULL: none */
	/* Look at one host path without following its last component: fill
	 * @out (its strings are heap, freed by the resolver). Called once for
	 * every granted path and each of its ancestors. */
	void (*look)(void *ctx, const char *path, struct zb_path_fact *out);
	/* Expand DIR/pattern at start (fs.exec): append full paths. */
	void (*expand)(void *ctx, const char *pattern, struct zb_strv *out);
	/* Append the names in directory @dir. Return: false if there are more
	 * than @max, or it cannot be read. NULL: nothing is listed, so no
	 * directory is shown as copies. */
	bool (*list)(void *ctx, const char *dir, size_t max,
		     struct zb_strv *out);
	/* Look a bare name up in the sandbox's PATH and say what it needs to
	 * run; ZB_EUSAGE if there is none. Fills @out like runtime.h. */
	int (*find_program)(void *ctx, const char *name, struct zb_program *out,
			    struct zb_error *err);
	void *ctx;
	/* An instance with the same private HOME runs, and its is not loose. */
	bool held_home;
	/* Names that permissions.json asks for in env.pass. */
	const struct zb_strv *requested_env;
	/* --yes-i-mean-it was given when the scope was granted. */
	bool mean_it;
	/* Where the names of the scope led when they were granted; what is not
	 * in it is granted now. NULL: nothing is known. */
	const struct zb_granted *granted;
	/* "KEY VALUE" of what is granted now, wherever it led before; NULL:
	 * nothing. */
	const struct zb_strv *given;
	/* What the supervisor runs and reads itself (zb_own_places()), as
	 * spelled; NULL: nothing. And the build tree that it runs from. */
	const struct zb_strv *own;
	const char *own_tree;
	/* What `ext allow` calls the extension; NULL: it cannot name it. */
	const char *command_name;
};

/* Resolve. A rule that nothing can enforce is ZB_EUNSUPPORTED naming it; a
 * grant that is refused for breadth ZB_EPOLICY; bad paths ZB_EUSAGE.
 * @scope is the merged chain; ownership of its contents moves to @out->scope
 * on success (it is zeroed), and stays with the caller on failure. */
int zb_plan_resolve(struct zb_plan *out, struct zb_scope *scope,
		    const struct zb_manifest *manifest,
		    const struct zb_facts *facts, struct zb_error *err);
void zb_plan_done(struct zb_plan *p);
void zb_program_done(struct zb_program *p);

/* The place that holds @path (deepest one whose path is a prefix), or -1. A
 * link holds only itself: nothing canonical goes through it. */
int zb_plan_place(const struct zb_plan *p, const char *path);
/* The same for the first @n bytes of @path. */
int zb_plan_place_n(const struct zb_plan *p, const char *path, size_t n);

/* Is, holds or lies in what stands at canonical @path, or (@only, a pattern,
 * not NULL) what of it @only matches, something of @p->own? That one, or NULL.
 */
const char *zb_plan_own(const struct zb_plan *p, const char *path,
			const char *only);

/* Effective limit: UINT64_MAX when none. */
uint64_t zb_plan_limit(const struct zb_plan *p, enum zb_limit l);
/* Is protocol verb @v granted (for lists: at all / for @name)? */
bool zb_plan_verb(const struct zb_plan *p, enum zb_verb v, const char *name);
/* May an intercept answer of @event contain @part ("block", "replace",
 * "modify:TOOL")? With @part NULL: is the event granted at all? */
bool zb_plan_intercept(const struct zb_plan *p, const char *event,
		       const char *part);

/* Print the plan rule by rule with origins, as text for people. */
int zb_plan_print(const struct zb_plan *p, struct zb_buf *out);
/* Its parts: who and where; what exists inside and the environment (values
 * only of what a scope sets: others may be secrets), what is left out. */
int zb_plan_print_head(const struct zb_plan *p, struct zb_buf *out);
int zb_plan_print_inside(const struct zb_plan *p, struct zb_buf *out);

/* "grant", "system"... static. */
const char *zb_place_kind_name(enum zb_place_kind kind);
/* "rwcxl", "-" for each that is missing. Return: @out. */
#define ZB_RIGHTS_TEXT 6
const char *zb_rights_text(unsigned rights, char out[ZB_RIGHTS_TEXT]);
/* The line of env.pass that passes variable @name, be it set or not; or NULL.
 */
const struct zb_rule *zb_env_rule(const struct zb_scope *s, const char *name);
/* Is its value from a scope file (env.set), not from the user's environment? */
bool zb_env_is_set(const struct zb_env_var *v);

#endif
