#!/bin/sh
# Starts five throw-away Redis nodes, shows locks on them (demo.lua), and cleans up, whatever
# happens. `make demo` runs it. LUA, LUA_PATH and LUA_CPATH say with which Lua, and where the module
# is.
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
# In the background, because only a waiting shell hears signals at once.
"${LUA:-lua}" "$here/demo.lua" "$@" &
demo=$!
wait "$demo"
status=$?
demo=
exit "$status"
