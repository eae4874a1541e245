#!/bin/sh
# make bench: every figure in one go, in a throw-away HOME. Quiet machine wanted:
# the load is printed before and after; read ratios, not microseconds.
# ZB_ROUNDS: of the starts. ZB_BENCH_WITH: a command to run each part with where
# others use the machine. "nice -n -20"; "chrt -r 1" is quieter, but then a
# notification cannot wake the broker on the CPU of the one that waits, and each
# costs three times as much.
set -eu
build=${ZB_BUILD:?} src=${ZB_SRC:?}
rounds=${ZB_ROUNDS:-30}
# Where a sandbox has a mount of its own (/tmp) no home lies.
work=$(mktemp -d /var/tmp/zotbox-bench.XXXXXX)
trap 'rm -rf "$work"' EXIT
HOME=$work/home ZOT_HOME=$work/home/zot ZB_BENCH_RESULTS=$work/results
export HOME ZOT_HOME ZB_BENCH_RESULTS
unset XDG_STATE_HOME NODE_EXTRA_CA_CERTS || :
mkdir -p "$HOME"
cd "$HOME"

# extension NAME EXEC-JSON ARGS-JSON [PROGRAM]: a directory that is one.
extension() {
	mkdir -p "$work/$1"
	[ -z "${4-}" ] || cp "$4" "$work/$1/"
	printf '{"name":"%s","exec":%s,"args":%s}\n' "$1" "$2" "$3" >"$work/$1/extension.json"
}

part() {
	# shellcheck disable=SC2086 # a command with its arguments
	${ZB_BENCH_WITH-} "$@"
}

# The targets: KEY, what it is, bar, ambitious bar.
targets() {
	cat <<-'END'
	hello_to_bwrap|start with every layer, of plain bwrap (x)|1.40|1.12
	python_to_bare|python3 -c print, every open watched, of bare (x)|2.00|1.15
	imports_to_bare|python3 with json, ssl, http.client, of bare (x)|1.50|1.08
	node_to_bare|node -e console.log, of bare (x)|1.40|1.05
	open|a watched open, of a bare one (x)|8.00|5.00
	open_etc|a watched open in a directory of few grants (x)|8.00|-
	added_200|round trip of 200 bytes, over a byte proxy (us)|5.00|2.00
	added_200_one_cpu|the same, all on one CPU (us)|5.00|2.00
	trip_10000|round trip of 10 kB, of a byte proxy (x)|1.50|-
	trip_1000000|round trip of 1 MB, of a byte proxy (x)|1.50|-
	memory_each|private memory, one of three (kB)|1024|150
	memory_alone|private memory, one alone (kB)|1024|-
	processes|processes|4|2
	carved_files|500 files changed where the broker does it, of HOME (x)|-|-
	carved_build|2000 files written and read there, of HOME (x)|-|-
	carved_commit|git commit of 50 files there, of HOME (x)|-|-
	death|kill -9 until all is gone, longest (ms)|100|-
	END
}

summary() {
	printf '\n%-54s %9s %8s %-8s %9s\n' summary measured bar '' ambitious
	targets | while IFS='|' read -r key what bar high; do
		awk -v key="$key" -v what="$what" -v bar="$bar" -v high="$high" '
			$1 == key { got = $2; seen = 1 }
			function met(limit) { return got <= limit + 0 ? "met" : "missed" }
			END {
				if (!seen)
					exit
				printf "  %-52s %9.2f %8s %-8s", what, got, bar, bar == "-" ? "" : met(bar)
				printf " %9s%s\n", high, high == "-" ? "" : " " met(high)
			}' "$ZB_BENCH_RESULTS"
	done
}

echo "$(uname -sr), $(getconf _NPROCESSORS_ONLN) CPUs, load $(cut -d' ' -f1-3 /proc/loadavg), as $(id -un)${ZB_BENCH_WITH+, with $ZB_BENCH_WITH}"
extension hello '"./bench-hello"' '[]' "$build/bench-hello"
extension python '"/usr/bin/python3"' '["-c","print(1)"]'
extension imports '"/usr/bin/python3"' '["-c","import json, ssl, http.client; print(1)"]'
set -- hello "a static hello" "$work/hello" \
	python "/usr/bin/python3 -c print" "$work/python" \
	imports "/usr/bin/python3 importing json, ssl, http.client" "$work/imports"
if command -v node >/dev/null; then
	extension node '"node"' '["-e","console.log(1)"]'
	set -- "$@" node "node -e console.log" "$work/node"
fi
part "$build/bench-starts" "$rounds" "$@"

extension opens '"./bench-opens"' "[\"$work/opens/extension.json\"]" "$build/bench-opens"
extension opens-etc '"./bench-opens"' '["/etc/passwd"]' "$build/bench-opens"
part "$build/bench-watched" open "a file of its own" "$work/opens"
part "$build/bench-watched" open_etc "/etc/passwd" "$work/opens-etc"

if command -v git >/dev/null; then
	mkdir "$work/project"
	git init -q "$work/project"
	extension changes '"./bench-work"' "[\"6\",\"~\",\"$work/project\"]" "$build/bench-work"
	printf '{"zotbox":1,"extends":"strict","fs":{"write":["%s","%s/.git"],"exec":["git"]}}\n' \
		"$work/project" "$work/project" >"$work/changes.json"
	part "$build/bench-changes" "$work/changes" "$work/project" "$work/changes.json"
fi

extension echo '"./bench-echo"' '[]' "$build/bench-echo"
"$build/zotbox" ext install "$work/echo" </dev/null >/dev/null 2>&1
cd "$ZOT_HOME/extensions/echo"
for cpus in "" one-cpu; do
	# shellcheck disable=SC2086 # none, or a word
	part "$build/bench-roundtrip" "$build/bench-echo" "$build/bench-byteproxy" "$build/zotbox" wrap echo $cpus 2>"$work/wrap.err" ||
		{ cat "$work/wrap.err" && exit 1; }
done
part "$build/bench-integrity" 20000 4000 5
part "${PYTHON3:-python3}" "$src/bench/alive.py" 20 "$build/zotbox" wrap echo
part "${PYTHON3:-python3}" "$src/bench/many.py" 100 "$build/zotbox"
summary
echo
echo "load at the end $(cut -d' ' -f1-3 /proc/loadavg)"
