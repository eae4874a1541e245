/* sockaddr.c - addresses of sockets as policy and ledger see them. */
#include "config.h"

#include "platform/linux/sockaddr.h"

#include "cleanup.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static const struct {
	int family;
	const char *name;
} families[] = {
	{AF_UNSPEC, "AF_UNSPEC"},   {AF_UNIX, "AF_UNIX"},
	{AF_INET, "AF_INET"},	    {AF_INET6, "AF_INET6"},
	{AF_NETLINK, "AF_NETLINK"}, {AF_PACKET, "AF_PACKET"},
	{AF_ALG, "AF_ALG"},	    {AF_VSOCK, "AF_VSOCK"},
	{AF_KEY, "AF_KEY"},	    {AF_BLUETOOTH, "AF_BLUETOOTH"},
	{AF_CAN, "AF_CAN"},	    {AF_TIPC, "AF_TIPC"},
	{AF_RDS, "AF_RDS"},	    {AF_X25, "AF_X25"},
	{AF_AX25, "AF_AX25"},	    {AF_NFC, "AF_NFC"},
	{AF_KCM, "AF_KCM"},	    {AF_XDP, "AF_XDP"},
};

const char *zb_family_name(int family, char room[24])
{
	for (size_t i = 0; i < ZB_ARRAY_LEN(families); i++)
		if (families[i].family == family)
			return families[i].name;
	snprintf(room, 24, "family %d", family);
	return room;
}

static void show_v4(struct zb_addr *out, struct in_addr a)
{
	char text[INET_ADDRSTRLEN];
	uint32_t n = ntohl(a.s_addr);

	inet_ntop(AF_INET, &a, text, sizeof(text));
	snprintf(out->text, sizeof(out->text), "%s:%u", text, out->port);
	out->loopback = n == INADDR_ANY || n >> 24 == 127;
}

static void show_v6(struct zb_addr *out, const struct in6_addr *a)
{
	char text[INET6_ADDRSTRLEN];
	struct in_addr v4;

	if (IN6_IS_ADDR_V4MAPPED(a)) {
		memcpy(&v4, &a->s6_addr[12], sizeof(v4));
		show_v4(out, v4);
		return;
	}
	inet_ntop(AF_INET6, a, text, sizeof(text));
	snprintf(out->text, sizeof(out->text), "[%s]:%u", text, out->port);
	out->loopback = IN6_IS_ADDR_LOOPBACK(a) || IN6_IS_ADDR_UNSPECIFIED(a);
}

static bool decode_inet(const void *raw, size_t len, struct zb_addr *out)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	out->kind = ZB_ADDR_INET;
	if (out->family == AF_INET) {
		if (len < sizeof(v4))
			return false;
		memcpy(&v4, raw, sizeof(v4));
		out->port = ntohs(v4.sin_port);
		show_v4(out, v4.sin_addr);
		return true;
	}
	/* The scope id at the end may be left out (RFC 2133). */
	if (len < offsetof(struct sockaddr_in6, sin6_scope_id))
		return false;
	memset(&v6, 0, sizeof(v6));
	memcpy(&v6, raw, len < sizeof(v6) ? len : sizeof(v6));
	out->port = ntohs(v6.sin6_port);
	show_v6(out, &v6.sin6_addr);
	return true;
}

static bool decode_unix(const void *raw, size_t len, struct zb_addr *out)
{
	const size_t head = offsetof(struct sockaddr_un, sun_path);
	const char *path = (const char *)raw + head;
	size_t n = len - head;

	if (len > sizeof(struct sockaddr_un))
		return false;
	if (!n) {
		out->kind = ZB_ADDR_UNNAMED;
		return true;
	}
	memcpy(out->text, path, n);
	if (path[0]) {
		out->kind = ZB_ADDR_PATH;
		out->text[n] = '\0';
		return true;
	}
	out->kind = ZB_ADDR_ABSTRACT;
	for (size_t i = 0; i < n; i++)
		if (!out->text[i])
			out->text[i] = '@';
	out->text[n] = '\0';
	return true;
}

bool zb_addr_decode(const void *raw, size_t len, struct zb_addr *out)
{
	sa_family_t family;

	memset(out, 0, sizeof(*out));
	if (len < sizeof(family))
		return false;
	memcpy(&family, raw, sizeof(family));
	out->family = family;
	switch (family) {
	case AF_UNSPEC:
		out->kind = ZB_ADDR_NONE;
		return true;
	case AF_INET:
	case AF_INET6:
		return decode_inet(raw, len, out);
	case AF_UNIX:
		return decode_unix(raw, len, out);
	default:
		out->kind = ZB_ADDR_OTHER;
		return true;
	}
}
