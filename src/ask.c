/* ask.c - a table from grants to sentences.
 *
 * A sentence says what the extension could do, not what the key is called, and
 * says it of this machine: how many files, and whether some look like keys. The
 * order of rows matters: the first that fits is taken, so what is grave stands
 * before what is general. */
#include "ask.h"

#include "cleanup.h"
#include "path_match.h"
#include "resolve.h"
#include "text.h"

#include <string.h>

#define MAX_SHOWN 200

const char *zb_risk_heading(enum zb_risk r)
{
	static const char *const headings[] = {
		[ZB_RISK_GRAVE] = "with this it can do, or make you believe, "
				  "whatever it likes",
		[ZB_RISK_HIGH] = "with this it gets at what is yours, or acts "
				 "in your name",
		[ZB_RISK_SOME] = "with this it sees or does more, within "
				 "bounds",
		[ZB_RISK_LOW] = "harmless",
	};

	return headings[r];
}

void zb_reach_done(struct zb_reach *r)
{
	free(r->example);
	free(r->leads_to);
	free(r->runs);
	*r = (struct zb_reach){0};
}

void zb_ask_done(struct zb_ask *a)
{
	free(a->does);
	free(a->without);
	*a = (struct zb_ask){0};
}

/* ---- names --------------------------------------------------------------- */

/* A name holds no slash, so the patterns of paths serve. */
static bool fits_one(const char *name, const char *const *patterns)
{
	zb_auto(free) char *path = zb_strf("/%s", name);

	for (; path && *patterns; patterns++) {
		zb_auto(free) char *p = zb_strf("/%s", *patterns);

		if (p && zb_pattern_match(p, path))
			return true;
	}
	return false;
}

bool zb_looks_like_credentials(const char *name)
{
	static const char *const names[] = {
		".env*",
		"*.pem",
		"*.key",
		"*.p12",
		"*.pfx",
		"*.kdbx",
		"*.keystore",
		"*.jks",
		"id_rsa*",
		"id_ed25519*",
		"id_ecdsa*",
		"id_dsa*",
		".netrc",
		".npmrc",
		".pypirc",
		".pgpass",
		".git-credentials",
		"credentials*",
		"auth.json",
		"secring.gpg",
		"private-keys-v1.d",
		"key4.db",
		"logins.json",
		"Login Data",
		"*.keychain*",
		"token*",
		"*secret*",
		"wallet.dat",
		NULL,
	};

	return fits_one(name, names);
}

/* What a shell, git, an editor or a desktop runs when it starts next, wherever
 * it is. What zot and git run in a project is zb_carve_outs. */
static bool is_run_later(const char *value)
{
	static const char *const names[] = {
		".bashrc",	".bash_profile", ".bash_login",
		".bash_logout", ".bash_aliases", ".profile",
		".zshrc",	".zshenv",	 ".zprofile",
		".zlogin",	".zlogout",	 "config.fish",
		".kshrc",	".cshrc",	 ".tcshrc",
		".login",	".inputrc",	 ".pam_environment",
		".gitconfig",	".hgrc",	 "authorized_keys",
		".ssh",		".xprofile",	 ".xinitrc",
		".xsession",	".xsessionrc",	 ".vimrc",
		".emacs",	".tmux.conf",	 ".screenrc",
		".gdbinit",	".envrc",	 "crontab",
		"*.desktop",	"*.service",	 "*.timer",
		NULL,
	};
	zb_auto(free) char *path = zb_path_join("/", value);

	for (size_t i = 0; path && zb_carve_outs[i]; i++)
		if (zb_pattern_match(zb_carve_outs[i], path))
			return true;
	return fits_one(zb_path_name(value), names);
}

/* Places whose content is run later, and new files in them as well. "~" is
 * HOME. The directories of PATH are asked of the host. */
static const char *const run_places[] = {
	/* programs, which a shell finds by their names */
	"~/bin",
	"~/.local/bin",
	"~/.cargo/bin",
	"~/go/bin",
	"~/.npm-global",
	"~/.pyenv",
	"~/.nvm",
	"~/.asdf",
	"/usr/local/bin",
	"/usr/local/sbin",
	"/usr/local/lib",
	"/usr/bin",
	"/usr/sbin",
	"/usr/lib",
	/* sessions and services */
	"~/.config/autostart",
	"~/.config/autostart-scripts",
	"~/.config/plasma-workspace",
	"~/.config/systemd",
	"~/.config/environment.d",
	"~/.local/share/systemd",
	"~/.local/share/applications",
	"~/.local/share/dbus-1",
	"/etc",
	"/var/spool/cron",
	/* shells */
	"~/.bashrc",
	"~/.bashrc.d",
	"~/.bash_profile",
	"~/.profile",
	"~/.zshrc",
	"~/.zshenv",
	"~/.zsh",
	"~/.oh-my-zsh",
	"~/.config/fish",
	"~/.config/zsh",
	/* programs that run what their own files say */
	"~/.ssh",
	"~/.gitconfig",
	"~/.config/git",
	"~/.vim",
	"~/.vimrc",
	"~/.config/nvim",
	"~/.emacs.d",
	"~/.config/emacs",
	"~/.config/tmux",
	"~/.config/Code",
	"~/.vscode",
	"~/.cargo/config.toml",
	"~/.local/lib",
	"~/.claude",
	"~/.agents",
};

/* How @place, canonical and called @word, is touched; NULL: not at all. */
static const char *touches(const char *path, const char *only,
			   const char *place, const char *word)
{
	if (zb_path_below(path, place))
		return "";
	if (only ? zb_pattern_match(only, place) : zb_path_below(place, path))
		return word;
	return NULL;
}

const char *zb_run_later(const char *path, const char *only, const char *home,
			 const struct zb_strv *dirs)
{
	const char *found = NULL, *hit;

	for (size_t i = 0; i < ZB_ARRAY_LEN(run_places); i++) {
		const char *word = run_places[i];
		zb_auto(free) char *place =
			*word == '~' ? zb_strf("%s%s", home, word + 1)
				     : zb_strdup(word);

		hit = place ? touches(path, only, place, word) : NULL;
		if (hit && (!*hit || !found))
			found = hit;
	}
	for (size_t i = 0; dirs && i < dirs->n; i++) {
		hit = touches(path, only, dirs->v[i], dirs->v[i]);
		if (hit && (!*hit || !found))
			found = hit;
	}
	return found;
}

/* ---- grants that are no paths -------------------------------------------- */

struct row {
	const char *key, *value; /* "*" at the end: anything from there on */
	enum zb_risk risk;
	const char *does;    /* %s: the value, without what @value fixes */
	const char *without; /* likewise */
};

#define HOST_SHELL                                                             \
	"outside the sandbox, with all of your rights: as good as a shell"

static const struct row rows[] = {
	{"protocol.call_tool", "bash", ZB_RISK_GRAVE,
	 "have the agent run any command, " HOST_SHELL,
	 "it cannot have commands run"},
	{"protocol.call_tool", "write", ZB_RISK_GRAVE,
	 "have the agent write any file, " HOST_SHELL,
	 "it cannot have files written"},
	{"protocol.call_tool", "edit", ZB_RISK_GRAVE,
	 "have the agent change any file, " HOST_SHELL,
	 "it cannot have files changed"},
	{"protocol.call_tool", "*", ZB_RISK_HIGH,
	 "have the agent run its tool %s, outside the sandbox",
	 "its calls of %s fail"},
	{"protocol.intercept.tool_call", "modify:bash", ZB_RISK_GRAVE,
	 "put its own command in the place of any that the agent runs, " HOST_SHELL,
	 "the agent's commands stay as they are"},
	{"protocol.intercept.tool_call", "modify:write", ZB_RISK_GRAVE,
	 "put its own file in the place of any that the agent writes, " HOST_SHELL,
	 "what the agent writes stays as it is"},
	{"protocol.intercept.tool_call", "modify:edit", ZB_RISK_GRAVE,
	 "put its own change in the place of any that the agent makes, " HOST_SHELL,
	 "what the agent changes stays as it is"},
	{"protocol.intercept.tool_call", "modify:*", ZB_RISK_HIGH,
	 "see each call of the tool %s and rewrite it",
	 "calls of %s stay as they are"},
	{"protocol.intercept.tool_call", "block", ZB_RISK_SOME,
	 "see every tool call with its arguments, and stop it",
	 "it can stop no tool call"},
	{"protocol.intercept.before_agent_start", "replace", ZB_RISK_GRAVE,
	 "rewrite the system prompt: what the model takes itself and you for",
	 "the system prompt stays as it is"},
	{"protocol.intercept.assistant_message", "replace", ZB_RISK_GRAVE,
	 "rewrite the model's answers: you read what the model did not say",
	 "answers stay as they are"},
	{"protocol.intercept.*", "replace", ZB_RISK_HIGH,
	 "see and rewrite what goes on at %s", "that stays as it is"},
	{"protocol.intercept.*", "*", ZB_RISK_SOME,
	 "see everything about %s, and stop it", "it can stop none"},
	{"protocol.submit", "true", ZB_RISK_HIGH,
	 "write to the agent in your name, and so have it use its tools",
	 "what it submits does not reach the agent"},
	{"protocol.slash", "*", ZB_RISK_HIGH, "run your slash command %s",
	 "it cannot run %s"},
	{"protocol.event_content", "true", ZB_RISK_HIGH,
	 "read what you and the model say and what tools return, in the "
	 "events that it gets",
	 "its events come without content"},
	{"protocol.events", "*", ZB_RISK_SOME,
	 "be told of each %s (without what is said)",
	 "it does not learn of %s"},
	{"protocol.panels", "any", ZB_RISK_SOME,
	 "open a panel unasked: it takes the keyboard while it is open",
	 "its panels open only when you called for it"},
	{"protocol.prompt", "*", ZB_RISK_SOME,
	 "answer its commands with a prompt to the model", "those fail"},
	{"protocol.insert", "*", ZB_RISK_SOME, "put text into your input line",
	 "that fails"},
	{"protocol.on_failure", "block", ZB_RISK_SOME,
	 "stop what it watches whenever it fails itself",
	 "what it watches goes on when it fails"},
	{"protocol.on_failure", "*", ZB_RISK_LOW,
	 "let what it watches go on when it fails", "that is stopped"},
	{"protocol.*", "true", ZB_RISK_LOW, "use the agent's %s",
	 "that part of it does not work"},
	{"net.connect", "*:*", ZB_RISK_GRAVE,
	 "talk to any host: what it can read can be anywhere", "no network"},
	{"net.connect", "*", ZB_RISK_HIGH,
	 "talk to %s, and send there whatever it can read",
	 "it cannot reach %s"},
	{"net.listen", "*", ZB_RISK_HIGH, "be reached from outside at %s",
	 "nobody reaches it"},
	{"net.unix", "*", ZB_RISK_HIGH,
	 "talk to the program behind %s, which runs outside the sandbox",
	 "it cannot reach that"},
	{"env.set", "*", ZB_RISK_LOW, "set the variable %s for itself",
	 "it has what zotbox sets"},
	{"fs.deny", "*", ZB_RISK_LOW, "be kept from %s", "it may get at that"},
	{"fs.state", "beside", ZB_RISK_LOW,
	 "keep its own files beside its code (in a private copy)",
	 "it keeps them apart"},
	{"limits.*", "*", ZB_RISK_LOW, "use more of the machine: %s",
	 "it has to do with less"},
	{"ledger", "writes", ZB_RISK_SOME,
	 "have less of what it is refused written down",
	 "all of it is written down"},
	{"ledger", "*", ZB_RISK_LOW, "another ledger: %s", "the ledger stays"},
};

/* Does @s fit @pattern, which may end in "*"? @rest: what the star stands
 * for, else "". */
static bool fits(const char *pattern, const char *s, const char **rest)
{
	size_t n = strlen(pattern);

	*rest = "";
	if (!n || pattern[n - 1] != '*')
		return !strcmp(pattern, s);
	if (strncmp(pattern, s, n - 1) != 0)
		return false;
	*rest = s + n - 1;
	return true;
}

/* A name as long as it is hides nothing at its end, where it says what it is
 * of: what is too long is cut in the middle. */
static void add_shown(struct zb_buf *b, const char *s)
{
	size_t n = strlen(s), tail = n - MAX_SHOWN / 2;

	if (n <= MAX_SHOWN) {
		zb_text_escape(b, s, n, 0);
		return;
	}
	while (tail < n && ((unsigned char)s[tail] & 0xC0) == 0x80)
		tail++;
	zb_text_escape(b, s, n, MAX_SHOWN / 2);
	zb_text_escape(b, s + tail, n - tail, 0);
}

/* @text with %s replaced. */
static char *fill(const char *text, const char *what)
{
	const char *at = strstr(text, "%s");
	struct zb_buf b = {0};

	if (!at)
		return zb_strdup(text);
	zb_buf_add(&b, text, (size_t)(at - text));
	add_shown(&b, what);
	zb_buf_adds(&b, at + 2);
	return zb_buf_steal(&b);
}

/* net.connect "*:*" is no pattern of ours but a value of theirs. */
static bool row_fits(const struct row *r, const char *key, const char *value,
		     const char **what)
{
	const char *rest;

	if (!strcmp(r->value, "*:*")) {
		*what = value;
		return !strcmp(key, r->key) && !strncmp(value, "*:", 2);
	}
	if (!fits(r->key, key, &rest) || !fits(r->value, value, what))
		return false;
	/* What differs from row to row: the value, or the end of the key. */
	if (!**what || *rest)
		*what = *rest ? rest : value;
	return true;
}

static int say_row(struct zb_ask *out, const char *key, const char *value)
{
	for (size_t i = 0; i < ZB_ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		zb_auto(free) char *both = NULL;
		const char *what;

		if (!row_fits(r, key, value, &what))
			continue;
		if (!strncmp(key, "limits.", 7))
			both = zb_strf("%s %s", key + 7, value);
		out->risk = r->risk;
		out->does = fill(r->does, both ? both : what);
		out->without = fill(r->without, both ? both : what);
		return out->does && out->without ? 0 : ZB_ELIMIT;
	}
	out->risk = ZB_RISK_HIGH;
	out->does = zb_strf("something this version has no words for");
	out->without = zb_strdup("nobody can say what fails");
	return out->does && out->without ? 0 : ZB_ELIMIT;
}

/* ---- the environment ----------------------------------------------------- */

static int say_env(struct zb_ask *out, const char *value)
{
	const char *does = "read the variable %s of your environment";

	out->risk = ZB_RISK_SOME;
	if (!strcmp(value, "*")) {
		out->risk = ZB_RISK_GRAVE;
		does = "read your whole environment, with every key and token "
		       "in it";
	} else if (zb_env_looks_secret(value) || strchr(value, '*')) {
		out->risk = ZB_RISK_HIGH;
		does = strchr(value, '*')
			       ? "read every variable %s of your environment"
			       : "read the variable %s of your environment, "
				 "which looks like a key or password";
	}
	out->does = fill(does, value);
	out->without = fill("%s is not set for it", value);
	return out->does && out->without ? 0 : ZB_ELIMIT;
}

/* ---- paths --------------------------------------------------------------- */

static void add_count(struct zb_buf *b, const struct zb_reach *r)
{
	zb_buf_addf(b, "%s%llu file%s", r->more ? "more than " : "",
		    (unsigned long long)r->files, r->files == 1 ? "" : "s");
	if (!r->secrets)
		return;
	zb_buf_addf(b, ", %s%llu of them with names of keys or passwords",
		    r->more ? "at least " : "", (unsigned long long)r->secrets);
	if (r->example) {
		zb_buf_adds(b, " (");
		zb_text_escape(b, r->example, strlen(r->example), 80);
		zb_buf_adds(b, r->secrets > 1 ? "...)" : ")");
	}
}

/* ": 214 files, ...", ": your whole home directory, ...". */
static void add_reach(struct zb_buf *b, const char *value,
		      const struct zb_reach *r)
{
	if (r->leads_to) {
		zb_buf_adds(b, ", which is a link to ");
		add_shown(b, r->leads_to);
	}
	if (r->all)
		zb_buf_adds(b, ": your whole home directory");
	if (r->keeper)
		zb_buf_addf(b, "%s zot's own files, with its credentials",
			    r->all ? ", and" : ":");
	if (r->kind == ZB_REACH_DIR) {
		zb_buf_adds(b, r->all || r->keeper ? "; " : ": ");
		add_count(b, r);
	} else if (r->kind == ZB_REACH_FILE && r->secrets) {
		zb_buf_adds(b, ": its name is one of keys or passwords");
	} else if (r->kind == ZB_REACH_ABSENT) {
		zb_buf_adds(b, ": not there now, but what is put there later");
	} else if (!strncmp(value, "${project}", 10)) {
		zb_buf_adds(b, value[10] ? ", in each project that you start "
					   "zot in"
					 : ": everything in each project that "
					   "you start zot in");
	}
}

static enum zb_risk path_risk(const char *value, const struct zb_reach *r,
			      bool write)
{
	if (r->all || r->keeper || (write && (r->runs || is_run_later(value))))
		return ZB_RISK_GRAVE;
	if (write || r->secrets ||
	    zb_looks_like_credentials(zb_path_name(value)))
		return ZB_RISK_HIGH;
	return ZB_RISK_SOME;
}

/* @value without what only makes it longer: "//", "/./", "/" at its end. */
static char *plain(const char *value)
{
	zb_auto(free) char *path = zb_path_join("/", value);

	return path ? zb_strdup(*value == '/' ? path : path + 1) : NULL;
}

static int say_path(struct zb_ask *out, const char *spelled,
		    const struct zb_reach *reach, bool write)
{
	static const struct zb_reach unknown;
	const struct zb_reach *r = reach ? reach : &unknown;
	zb_auto(free) char *value = plain(spelled);
	struct zb_buf b = {0};

	if (!value)
		return ZB_ELIMIT;
	out->risk = path_risk(value, r, write);
	zb_buf_adds(&b, write ? "change, replace and delete " : "read ");
	add_shown(&b, value);
	add_reach(&b, value, r);
	if (write && (is_run_later(value) || (r->runs && !*r->runs))) {
		zb_buf_adds(&b, "; what stands there is run later, outside "
				"the sandbox");
	} else if (write && r->runs) {
		zb_buf_adds(&b, "; what stands in ");
		add_shown(&b, r->runs);
		zb_buf_adds(&b, " is run later, outside the sandbox");
	}
	out->does = zb_buf_steal(&b);
	out->without = fill(write ? "%s cannot be changed"
				  : "%s does not exist for it",
			    value);
	return out->does && out->without ? 0 : ZB_ELIMIT;
}

static int say_exec(struct zb_ask *out, const char *value)
{
	out->risk = ZB_RISK_SOME;
	out->does =
		fill("start the program %s, inside the same sandbox", value);
	out->without = fill("%s is not found", value);
	return out->does && out->without ? 0 : ZB_ELIMIT;
}

int zb_ask_say(struct zb_ask *out, const char *key, const char *value,
	       const struct zb_reach *reach)
{
	int rc;

	*out = (struct zb_ask){0};
	if (!strcmp(key, "fs.read") || !strcmp(key, "fs.write"))
		rc = say_path(out, value, reach, key[3] == 'w');
	else if (!strcmp(key, "fs.exec"))
		rc = say_exec(out, value);
	else if (!strcmp(key, "env.pass"))
		rc = say_env(out, value);
	else
		rc = say_row(out, key, value);
	if (rc)
		zb_ask_done(out);
	return rc;
}
