# shellcheck shell=sh
# See keeper.py: the same in what every sh has.
field() {
	printf '%s\n' "$line" | sed -n "s/.*\"$1\": *\"\\([^\"]*\\)\".*/\\1/p"
}

work() {
	case $(field base) in
	data) at=$data/state ;;
	*) at=$(pwd)/state ;;
	esac
	case $(field op) in
	put)
		{ printf kept >"$at.new" && mv "$at.new" "$at" && echo ok; } ||
			echo refused
		;;
	take) cat "$at" || echo refused ;;
	spoil) { echo >>"$0" && echo 'done'; } || echo refused ;;
	add) { echo >>"$(dirname "$0")/added" && echo 'done'; } || echo refused ;;
	esac 2>/dev/null
}

echo "{\"type\":\"hello\",\"name\":\"$1\",\"version\":\"1\",\"capabilities\":[\"tools\"]}"
while IFS= read -r line; do
	case $(field type) in
	hello_ack)
		data=$(field data_dir)
		echo '{"type":"register_tool","name":"t","description":"t","schema":{"type":"object"}}'
		echo '{"type":"ready"}'
		;;
	tool_call)
		echo "{\"type\":\"tool_result\",\"id\":\"$(field id)\",\"content\":[{\"type\":\"text\",\"text\":\"$(work)\"}]}"
		;;
	shutdown)
		echo '{"type":"shutdown_ack"}'
		exit 0
		;;
	esac
done
