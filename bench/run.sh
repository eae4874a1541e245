#!/bin/sh
# make bench: every figure in one go, in a throw-away HOME. Quiet machine wanted:
# the load is printed before and after; read ratios, not microseconds.
set -eu
build=${ZB_BUILD:?} src=${ZB_SRC:?}
rounds=${ZB_ROUNDS:-30}
work=$(mktemp -d "${TMPDIR:-/tmp}/zotbox-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
HOME=$work/home ZOT_HOME=$work/home/zot
export HOME ZOT_HOME
unset XDG_STATE_HOME NODE_EXTRA_CA_CERTS || :
mkdir -p "$HOME"
cd "$HOME"

# extension NAME EXEC-JSON ARGS-JSON [PROGRAM]: a directory that is one.
extension() {
	mkdir -p "$work/$1"
	[ -z "${4-}" ] || cp "$4" "$work/$1/"
	printf '{"name":"%s","exec":%s,"args":%s}\n' "$1" "$2" "$3" >"$work/$1/extension.json"
}

echo "$(uname -sr), $(getconf _NPROCESSORS_ONLN) CPUs, load $(cut -d' ' -f1-3 /proc/loadavg), as $(id -un)"
extension hello '"./bench-hello"' '[]' "$build/bench-hello"
extension python '"/usr/bin/python3"' '["-c","print(1)"]'
set -- "a static hello" "$work/hello" "/usr/bin/python3 -c print" "$work/python"
if command -v node >/dev/null; then
	extension node '"node"' '["-e","console.log(1)"]'
	set -- "$@" "node -e console.log" "$work/node"
fi
"$build/bench-starts" "$rounds" "$@"

extension opens '"./bench-opens"' '["/etc/passwd"]' "$build/bench-opens"
"$build/bench-watched" "$work/opens"

extension echo '"./bench-echo"' '[]' "$build/bench-echo"
"$build/zotbox" ext install "$work/echo" </dev/null >/dev/null 2>&1
cd "$ZOT_HOME/extensions/echo"
"$build/bench-roundtrip" "$build/bench-echo" "$build/bench-byteproxy" "$build/zotbox" wrap echo 2>"$work/wrap.err" ||
	{ cat "$work/wrap.err" && exit 1; }
"${PYTHON3:-python3}" "$src/bench/alive.py" 20 "$build/zotbox" wrap echo
echo
echo "load at the end $(cut -d' ' -f1-3 /proc/loadavg)"
