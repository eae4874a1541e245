/* sid.c - security identifiers of AppContainers and capabilities. Windows
 * makes them from names by SHA-256, so a plan can name them on any system. A
 * launcher compares with what the API says and refuses on a difference. */
#include "appcontainer.h"

#include "cleanup.h"

#include <nettle/sha2.h>
#include <string.h>

/* SHA-256 over @name in UTF-16LE, letters as @upper or lower case. Names are
 * ASCII: those of extensions, and Microsoft's. */
static void digest(const char *name, bool upper,
		   uint8_t out[SHA256_DIGEST_SIZE])
{
	struct sha256_ctx ctx;

	sha256_init(&ctx);
	for (; *name; name++) {
		uint8_t unit[2] = {(uint8_t)*name, 0};

		if (upper && *name >= 'a' && *name <= 'z')
			unit[0] = (uint8_t)(*name - 'a' + 'A');
		if (!upper && *name >= 'A' && *name <= 'Z')
			unit[0] = (uint8_t)(*name - 'A' + 'a');
		sha256_update(&ctx, sizeof(unit), unit);
	}
	sha256_digest(&ctx, SHA256_DIGEST_SIZE, out);
}

/* @prefix and the first @n little-endian words of @hash. */
static void print(char out[ZB_SID_MAX], const char *prefix, const uint8_t *hash,
		  unsigned n)
{
	size_t len = (size_t)snprintf(out, ZB_SID_MAX, "%s", prefix);

	for (unsigned i = 0; i < n; i++, hash += 4) {
		uint32_t word = (uint32_t)hash[0] | (uint32_t)hash[1] << 8 |
				(uint32_t)hash[2] << 16 |
				(uint32_t)hash[3] << 24;

		len += (size_t)snprintf(out + len, ZB_SID_MAX - len, "-%lu",
					(unsigned long)word);
	}
}

void zb_appcontainer_sid(const char *name, char out[ZB_SID_MAX])
{
	uint8_t hash[SHA256_DIGEST_SIZE];

	digest(name, false, hash);
	print(out, "S-1-15-2", hash, 7);
}

void zb_capability_sid(const char *name, char out[ZB_SID_MAX])
{
	static const char *const legacy[] = {"internetClient",
					     "internetClientServer",
					     "privateNetworkClientServer"};
	uint8_t hash[SHA256_DIGEST_SIZE];

	for (unsigned i = 0; i < ZB_ARRAY_LEN(legacy); i++) {
		if (strcmp(name, legacy[i]) != 0)
			continue;
		snprintf(out, ZB_SID_MAX, "S-1-15-3-%u", i + 1);
		return;
	}
	digest(name, true, hash);
	print(out, "S-1-15-3-1024", hash, 8);
}

void zb_appcontainer_name(const struct zb_plan *plan,
			  char out[ZB_AC_NAME_MAX + 1])
{
	uint8_t hash[SHA256_DIGEST_SIZE];
	const char *home = plan->zot_home ? plan->zot_home : "";
	struct sha256_ctx ctx;
	size_t len;

	/* SIDs know no case and a name may be cut short below: the hash keeps
	 * apart what they would not, also the same name under two homes. */
	sha256_init(&ctx);
	sha256_update(&ctx, strlen(home) + 1, (const uint8_t *)home);
	sha256_update(&ctx, strlen(plan->name), (const uint8_t *)plan->name);
	sha256_digest(&ctx, SHA256_DIGEST_SIZE, hash);
	len = (size_t)snprintf(out, ZB_AC_NAME_MAX + 1, "zotbox.%.40s.",
			       plan->name);
	for (unsigned i = 0; i < 8; i++)
		len += (size_t)snprintf(out + len, ZB_AC_NAME_MAX + 1 - len,
					"%02x", hash[i]);
}
