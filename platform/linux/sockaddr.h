/* sockaddr.h - addresses of sockets as policy and ledger see them. No
 * effects: bytes that a stranger filled in, decoded and printed. */
#ifndef ZB_SOCKADDR_H
#define ZB_SOCKADDR_H

#include "buf.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Longest printed form: '@' and an abstract name, or "[v6]:PORT". */
#define ZB_ADDR_TEXT (sizeof(((struct sockaddr_un *)0)->sun_path) + 2)

enum zb_addr_kind {
	ZB_ADDR_NONE,	  /* no family: dissolves an association */
	ZB_ADDR_INET,	  /* v4 or v6; @loopback, @port */
	ZB_ADDR_PATH,	  /* AF_UNIX by path */
	ZB_ADDR_ABSTRACT, /* AF_UNIX by name */
	ZB_ADDR_UNNAMED,  /* AF_UNIX without either */
	ZB_ADDR_OTHER,
};

struct zb_addr {
	enum zb_addr_kind kind;
	int family;
	bool loopback; /* of the host or namespace it is used in; 0.0.0.0 and
			  :: count, as they do for connect(2) */
	uint16_t port;
	/* "1.2.3.4:80", "[::1]:80", a path, "@name" (a NUL in it as '@'). A
	 * v4 address mapped into v6 is shown as the v4 one. */
	char text[ZB_ADDR_TEXT];
};

/* Decode @len bytes at @raw. Return: false if too short for its family. */
bool zb_addr_decode(const void *raw, size_t len, struct zb_addr *out);
/* "AF_INET" or "family 40". */
const char *zb_family_name(int family, char room[24]);

#endif
