#!/bin/sh
# The pure library must need nothing from the system: every undefined symbol is
# its own, or on the allow-list beside this file.
set -u
echo "1..2"
lib=${ZB_BUILD:-.}/libzbpure.a
allow=${ZB_SRC:-.}/tests/unit/purity.allow
if [ -n "${ZB_SANITIZED-}" ]; then
	echo "ok 1 - # SKIP sanitizers add symbols of their own"
	echo "ok 2 - # SKIP"
	exit 0
fi
symbols() { ${ZB_NM:-nm} -u "$1" 2>/dev/null | awk 'NF == 2 && $1 == "U" {print $2}' | sed 's/@.*//' | sort -u; }
defined=$(${ZB_NM:-nm} --defined-only "$lib" 2>/dev/null | awk 'NF == 3 {print $3}' | sort -u)
foreign() { symbols "$1" | grep -vxF "$defined" | grep -vxFf "$allow"; }
bad=$(foreign "$lib")
if [ -z "$bad" ]; then
	echo "ok 1 - libzbpure.a needs no system call"
else
	echo "not ok 1 - libzbpure.a needs: $(echo "$bad" | tr '\n' ' ')"
fi
# The test itself can fail: an object that opens a file is caught.
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
printf '#include <fcntl.h>\nint zb_impure(void);\nint zb_impure(void) { return open("/", 0); }\n' >"$tmp/x.c"
if ${ZB_CC:-cc} -c -o "$tmp/x.o" "$tmp/x.c" && [ -n "$(foreign "$tmp/x.o")" ]; then
	echo "ok 2 - an open() would be caught"
else
	echo "not ok 2 - an open() was not caught"
fi
