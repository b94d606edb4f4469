#!/bin/sh
# Starts five temporary Redis nodes, shows locks on them (demo.lua), and always cleans up. `make
# demo` runs it with LUA, LUA_PATH and LUA_CPATH.
set -u
here=$(dirname "$0")
. "$here/../build-aux/nodes.sh"

demo=
clean_up() {
  trap '' INT TERM HUP
  [ -z "$demo" ] || kill -TERM "$demo" 2>/dev/null
  nodes_stop
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

nodes_start 5 || exit 1
set --
for port in $node_ports; do
  pid=$(echo "$node_pids" | cut -d ' ' -f $(($# + 2)))
  set -- "$@" "$port:$pid"
done
# In the background, because only a waiting shell handles signals at once.
"${LUA:-lua}" "$here/demo.lua" "$@" &
demo=$!
wait "$demo"
status=$?
demo=
exit "$status"
