/* jail.c - where a path of the sandbox leads.
 *
 * All lookups start from the descriptor of the sandbox's / that the stage
 * handed over, with RESOLVE_IN_ROOT: a directory opened on the host would let
 * ".." walk up to the host's /. RESOLVE_NO_MAGICLINKS, because what lies
 * behind /proc/self means us here and them there.
 *
 * A grant is recognised by the id of its mount: a string can be made to look
 * like another (a directory renamed, a link), a mount cannot. Two limits:
 * places that share a mount (an empty directory made for the sandbox) are
 * known by their path, and below a carved place the patterns need the path as
 * well. There the mount must be seen where the plan put it, and where the file
 * system takes several spellings for one name (case, short names), only the
 * one that stands on the disk can be judged. */
#include "config.h"

#include "platform/linux/jail.h"

#include "cleanup.h"
#include "fdutil.h"
#include "path_match.h"
#include "platform/linux/peer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#define MAX_AGAIN   200 /* renames elsewhere disturb a lookup with ".." */
#define DELETED	    " (deleted)"
#define AUTOFS	    0x0187
#define INSIDE	    (RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS)
#define STATX_WANTS (STATX_TYPE | STATX_MODE | STATX_INO)

/* File systems whose lookups ask somebody else. */
static const unsigned long slow_types[] = {
	0x65735546, /* FUSE */ 0x6969,	   /* NFS */
	0xff534d42, /* CIFS */ 0xfe534d42, /* SMB2 */
	0x01021997, /* 9P */ 0x00c36400,   /* Ceph */
	0x5346414f, /* AFS */ 0x786f4256,  /* vboxsf */
	0x01161970, /* GFS2 */ 0x7461636f, /* OCFS2 */
	AUTOFS,				   /* or worse */
};

/* File systems where one file answers to several spellings of its name. */
static const unsigned long folding_types[] = {
	0x4d44,	    /* FAT: also short names */
	0x2011BAB0, /* exFAT */
	0x5346544e, /* NTFS */
	0x7366746e, /* NTFS3 */
	0x482b,	    /* HFS+ */
	0x4244,	    /* HFS */
	0x2fc12fc1, /* ZFS, if so made */
};

int zb_jail_open(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = {
		.flags = flags | O_PATH | O_CLOEXEC,
		.resolve = resolve,
	};

	for (int i = 0;; i++) {
		int fd =
			(int)syscall(SYS_openat2, dir, path, &how, sizeof(how));

		if (fd >= 0)
			return fd;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return -errno;
		if (i == MAX_AGAIN)
			return -EACCES;
		if (i > 4)
			sched_yield();
	}
}

/* Fill what statx(2) knows. Return: false if even that fails. */
static bool look(int fd, struct zb_spot *f, bool *mount_root)
{
	struct statx sx;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		  STATX_WANTS | STATX_MNT_ID, &sx) ||
	    !(sx.stx_mask & STATX_MNT_ID))
		return false;
	f->mode = sx.stx_mode;
	f->mnt = sx.stx_mnt_id;
	f->ino = sx.stx_ino;
	f->dev = makedev(sx.stx_dev_major, sx.stx_dev_minor);
	if (mount_root)
		*mount_root = sx.stx_attributes & STATX_ATTR_MOUNT_ROOT;
	return true;
}

static int by_id(const void *a, const void *b)
{
	const struct zb_jail_mount *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

const struct zb_jail_mount *zb_jail_mount(const struct zb_jail *j, uint64_t id)
{
	struct zb_jail_mount key = {.id = id};

	return bsearch(&key, j->mounts, j->n_mounts, sizeof(key), by_id);
}

int zb_jail_place(const struct zb_jail *j, uint64_t id)
{
	const struct zb_jail_mount *m = zb_jail_mount(j, id);

	return m ? m->place : -1;
}

bool zb_jail_folds(const struct zb_jail *j, uint64_t id)
{
	const struct zb_jail_mount *m = zb_jail_mount(j, id);

	return m && m->folds;
}

static bool is_type(int fd, const unsigned long *types, size_t n)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned long)fs.f_type == types[i])
			return true;
	return false;
}

static bool is_slow(int fd)
{
	return is_type(fd, slow_types, ZB_ARRAY_LEN(slow_types));
}

/* The first letter of @name in the other case. Return: false if none. */
static bool flip(const char *name, char out[NAME_MAX + 1])
{
	size_t i = strcspn(name, "abcdefghijklmnopqrstuvwxyz"
				 "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

	if (!name[i] || strlen(name) > NAME_MAX)
		return false;
	strcpy(out, name);
	out[i] ^= 0x20;
	return true;
}

/* Does directory @fd take another spelling for one of its names? Asked of
 * what stands there; what asks somebody else may fold at any time. */
static bool is_folding(int fd)
{
	char other[NAME_MAX + 1];
	struct dirent *d;
	bool folds = is_slow(fd) ||
		     is_type(fd, folding_types, ZB_ARRAY_LEN(folding_types));
	int list = folds ? -1
			 : openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = list < 0 ? NULL : fdopendir(list);

	for (int i = 0; dir && !folds && i < 64 && (d = readdir(dir)); i++) {
		struct stat a, b;

		folds = flip(d->d_name, other) &&
			!fstatat(fd, d->d_name, &a, AT_SYMLINK_NOFOLLOW) &&
			!fstatat(fd, other, &b, AT_SYMLINK_NOFOLLOW) &&
			a.st_ino == b.st_ino && a.st_dev == b.st_dev;
	}
	if (dir)
		closedir(dir);
	else if (list >= 0)
		close(list);
	return folds;
}

static bool is_uniform(const struct zb_place *p)
{
	switch (p->kind) {
	case ZB_PLACE_SYSTEM:
	case ZB_PLACE_RUNTIME:
	case ZB_PLACE_EXTENSION:
	case ZB_PLACE_DATA:
	case ZB_PLACE_HOME:
	case ZB_PLACE_TMP:
	case ZB_PLACE_GRANT:
	case ZB_PLACE_TEXT:
		return !p->carved && !p->brokered;
	case ZB_PLACE_LINK:
	case ZB_PLACE_PIN:
	case ZB_PLACE_DIR:
	case ZB_PLACE_PROC:
	case ZB_PLACE_DEV:
		break;
	}
	return false;
}

static void describe(struct zb_jail_mount *m, const struct zb_place *p, int fd)
{
	const unsigned changes = ZB_MAY_WRITE | ZB_MAY_CREATE;

	m->carved = p->carved;
	m->folds = p->carved && is_folding(fd);
	m->uniform = is_uniform(p);
	m->steady = m->uniform && p->is_dir && !(p->rights & changes);
}

/* Note the mount that place @i stands on. A place that has none of its own
 * takes that of its parent away from the map: what is there can then be told
 * apart by path only. Return: false when out of memory. */
static bool add_mount(struct zb_jail *j, const struct zb_plan *plan, int i)
{
	const struct zb_place *p = &plan->places[i];
	struct zb_jail_mount m = {.place = i};
	struct zb_spot f;
	bool own;
	zb_auto(fd) int fd = -1;

	if (p->copied)
		return true; /* no mount of its own */
	fd = zb_jail_open(j->root, p->path, O_NOFOLLOW, INSIDE);
	if (fd < 0 || !look(fd, &f, &own) || S_ISLNK(f.mode))
		return true;
	if (p->shown) {
		j->files[j->n_files++] =
			(struct zb_jail_file){f.mnt, f.dev, f.ino, i};
		return true;
	}
	j->slow |= is_slow(fd);
	if (p->kind == ZB_PLACE_PROC)
		j->proc_dev = f.dev;
	for (size_t k = 0; k < j->n_mounts; k++)
		if (j->mounts[k].id == f.mnt) {
			j->mounts[k].place = -1;
			return true;
		}
	m.id = f.mnt;
	m.path = zb_strdup(p->path);
	if (!own)
		m.place = -1;
	describe(&m, p, fd);
	j->mounts[j->n_mounts++] = m;
	return m.path;
}

int zb_jail_init(struct zb_jail *j, const struct zb_plan *plan, int root,
		 struct zb_error *err)
{
	bool ok;

	*j = (struct zb_jail){.root = root};
	j->mounts = calloc(plan->n_places + 1, sizeof(*j->mounts));
	j->files = calloc(plan->n_places + 1, sizeof(*j->files));
	ok = j->mounts && j->files;
	for (size_t i = 0; ok && i < plan->n_places; i++)
		ok = add_mount(j, plan, (int)i);
	if (!ok) {
		zb_jail_done(j);
		return zb_fail(err, ZB_ELIMIT, "broker: out of memory");
	}
	qsort(j->mounts, j->n_mounts, sizeof(*j->mounts), by_id);
	return 0;
}

void zb_jail_done(struct zb_jail *j)
{
	for (size_t i = 0; i < j->n_mounts; i++)
		free(j->mounts[i].path);
	free(j->mounts);
	free(j->files);
	if (j->root >= 0)
		close(j->root);
	*j = (struct zb_jail){.root = -1};
}

void zb_fd_link(int fd, char out[ZB_FD_LINK])
{
	snprintf(out, ZB_FD_LINK, "/proc/self/fd/%d", fd);
}

bool zb_spot_same(const struct zb_spot *a, const struct zb_spot *b)
{
	return a->ino == b->ino && a->dev == b->dev && a->mnt == b->mnt;
}

/* Does @path name in the sandbox what @want describes? */
static bool names(const struct zb_jail *j, const char *path,
		  const struct zb_spot *want)
{
	struct zb_spot f;
	zb_auto(fd) int fd = zb_jail_open(j->root, path, O_NOFOLLOW,
					  INSIDE | RESOLVE_NO_SYMLINKS);

	return fd >= 0 && look(fd, &f, NULL) && zb_spot_same(&f, want);
}

/* The directory that @dirfd means to @tid, as a descriptor of ours. */
static int peer_dir(int tid, int dirfd)
{
	char link[64];
	int fd;

	if (dirfd != AT_FDCWD)
		return zb_peer_fd(tid, dirfd);
	snprintf(link, sizeof(link), "/proc/%d/cwd", tid);
	fd = open(link, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Its path inside, into @out, if that path leads to it. */
static int dir_name(const struct zb_jail *j, int fd, char *out)
{
	char link[ZB_FD_LINK];
	struct zb_spot base;
	ssize_t n;

	if (!look(fd, &base, NULL))
		return -EBADF;
	if (!S_ISDIR(base.mode))
		return -ENOTDIR;
	zb_fd_link(fd, link);
	n = readlink(link, out, PATH_MAX - 1);
	if (n <= 0 || n >= PATH_MAX - 1 || out[0] != '/')
		return -ENOENT;
	out[n] = '\0';
	return names(j, out, &base) ? 0 : -ENOENT;
}

int zb_spell(const struct zb_jail *j, int tid, int dirfd, const char *asked,
	     char *out)
{
	size_t n = strlen(asked), at;
	zb_auto(fd) int fd = -1;
	int rc;

	if (!n)
		return -ENOENT;
	if (asked[0] == '/') {
		memcpy(out, asked, n + 1);
		return 0;
	}
	fd = peer_dir(tid, dirfd);
	if (fd < 0)
		return fd;
	rc = dir_name(j, fd, out);
	if (rc)
		return rc;
	at = strlen(out);
	if (at == 1) /* "/" */
		at = 0;
	if (at + 1 + n >= PATH_MAX)
		return -ENAMETOOLONG;
	out[at] = '/';
	memcpy(out + at + 1, asked, n + 1);
	return 0;
}

void zb_spot_fd(const struct zb_jail *j, int fd, struct zb_spot *f)
{
	f->fd = fd;
	f->err = 0;
	f->place = -1;
	f->proc = false;
	f->path[0] = '\0';
	if (fd < 0) {
		f->err = -fd;
		f->fd = -1;
		return;
	}
	if (!look(fd, f, NULL)) {
		f->err = EACCES;
		close(fd);
		f->fd = -1;
		return;
	}
	f->proc = j->proc_dev && f->dev == j->proc_dev;
	f->place = zb_jail_place(j, f->mnt);
	for (size_t i = 0; f->place >= 0 && i < j->n_files; i++)
		if (j->files[i].ino == f->ino && j->files[i].dev == f->dev &&
		    j->files[i].mnt == f->mnt)
			f->place = j->files[i].place;
}

bool zb_is_plain(const char *path)
{
	const char *s = path;

	if (!path[0] || !path[1])
		return false;
	while (*s == '/') {
		size_t n = strcspn(++s, "/");

		if (!n || (n == 1 && *s == '.') || !strncmp(s, "..", n))
			return false;
		s += n;
	}
	return !*s;
}

/* A plain path that leads somewhere without a link is the canonical one. */
static bool find_plain(const struct zb_jail *j, const char *path, bool follow,
		       struct zb_spot *out)
{
	int fd;

	if (!zb_is_plain(path))
		return false;
	fd = zb_jail_open(j->root, path, follow ? 0 : O_NOFOLLOW,
			  INSIDE | RESOLVE_NO_SYMLINKS);
	if (fd < 0 && fd != -ENOENT)
		return false;
	zb_spot_fd(j, fd, out);
	memcpy(out->path, path, strlen(path) + 1);
	return true;
}

void zb_find(const struct zb_jail *j, const char *path, bool follow,
	     struct zb_spot *out)
{
	if (find_plain(j, path, follow, out))
		return;
	zb_spot_fd(j,
		   zb_jail_open(j->root, path, follow ? 0 : O_NOFOLLOW, INSIDE),
		   out);
}

/* Ask the kernel for the name of what @f holds. */
static int look_up_name(const struct zb_jail *j, struct zb_spot *f)
{
	const size_t mark = strlen(DELETED);
	char link[ZB_FD_LINK];
	ssize_t n;

	zb_fd_link(f->fd, link);
	n = readlink(link, f->path, sizeof(f->path) - 1);
	if (n <= 0 || n == (ssize_t)sizeof(f->path) - 1 || f->path[0] != '/') {
		f->path[0] = '\0';
		return -ENOENT;
	}
	f->path[n] = '\0';
	if ((size_t)n <= mark || strcmp(f->path + n - mark, DELETED) != 0 ||
	    names(j, f->path, f))
		return 0;
	f->path[0] = '\0';
	return -ENOENT;
}

/* Does directory @fd list exactly @name? */
static bool lists(int fd, const char *name, size_t len)
{
	int list = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = list < 0 ? NULL : fdopendir(list);
	struct dirent *d;
	bool yes = false;

	while (dir && !yes && (d = readdir(dir)))
		yes = !strncmp(d->d_name, name, len) && !d->d_name[len];
	if (dir)
		closedir(dir);
	else if (list >= 0)
		close(list);
	return yes;
}

/* Is @path, below @place, spelled as on the disk? */
static bool is_verbatim(const struct zb_jail *j, const char *place,
			const char *path)
{
	const char *s = path + strlen(place);
	char part[PATH_MAX];

	while (*s == '/') {
		size_t n = strcspn(++s, "/");
		zb_auto(fd) int dir = -1;

		memcpy(part, path, (size_t)(s - path));
		part[s - path] = '\0';
		dir = zb_jail_open(j->root, part, O_DIRECTORY,
				   INSIDE | RESOLVE_NO_SYMLINKS);
		if (dir < 0 || !lists(dir, s, n))
			return false;
		s += n;
	}
	return true;
}

int zb_spot_name(const struct zb_jail *j, struct zb_spot *f)
{
	const struct zb_jail_mount *m;

	if (!f->path[0] && look_up_name(j, f))
		return -ENOENT;
	m = f->place < 0 ? NULL : zb_jail_mount(j, f->mnt);
	if (!m || !m->carved)
		return 0;
	if (!zb_path_below(f->path, m->path) ||
	    (m->folds && !is_verbatim(j, m->path, f->path)))
		return -EACCES;
	return 0;
}

void zb_spot_done(struct zb_spot *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}
