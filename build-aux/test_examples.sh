#!/usr/bin/env bash
# Runs the C examples against nodes of its own. Called by `make examples-test`, which says where
# everything is: BUILD, LUA_VERSION, LUA_PATH. Those in Lua are run by spec/examples_spec.lua.
set -u
. "$(dirname "$0")/nodes.sh"
trap nodes_stop EXIT
trap 'exit 130' INT TERM HUP
failed=0
output=

# Runs a command; it must succeed, and print a line that matches the pattern.
expect() {
  local name=$1 pattern=$2
  shift 2
  output=$(timeout 120 "$@" 2>&1)
  local status=$?
  if [ "$status" -eq 0 ] && grep -qE "$pattern" <<<"$output"; then
    echo "ok - $name"
  else
    printf '%s\n' "$output"
    echo "not ok - $name (exit status $status, wanted: $pattern)"
    failed=1
  fi
}

refuse() {
  local name=$1 pattern=$2
  shift 2
  output=$(timeout 120 "$@" 2>&1)
  local status=$?
  if [ "$status" -eq 1 ] && grep -qE "$pattern" <<<"$output"; then
    echo "ok - $name"
  else
    printf '%s\n' "$output"
    echo "not ok - $name (exit status $status, wanted: 1 and $pattern)"
    failed=1
  fi
}

no_keys() {
  local port keys
  for port in $node_ports; do
    keys=$(redis-cli -p "$port" dbsize)
    if [ "$keys" != 0 ]; then
      echo "not ok - $1 left $keys keys on node $port"
      failed=1
      return
    fi
  done
  echo "ok - $1 left no key"
}

nodes_start 3 || exit 1
addresses=()
for port in $node_ports; do addresses+=("127.0.0.1:$port"); done

expect 'plain takes, extends and gives back' '^released, valid for 0\.0 ms' "$BUILD/examples/plain" "${addresses[@]}"
grep -c ': granted' <<<"$output" | grep -qE '^[23]$' || { echo "not ok - plain shows a majority of grants"; failed=1; }
no_keys plain
refuse 'plain says what is wrong with a node' . "$BUILD/examples/plain" '127.0.0.1:99999'
for port in $node_ports; do redis-cli -p "$port" set orders:42 somebody-else >/dev/null; done
refuse 'plain is refused a taken lock' '\(taken\)' "$BUILD/examples/plain" "${addresses[@]}"
for port in $node_ports; do redis-cli -p "$port" del orders:42 >/dev/null; done

expect 'poll_loop has 64 locks in flight' '^64 tasks held their locks 1280 times' "$BUILD/examples/poll_loop" "${addresses[@]}"
no_keys poll_loop

expect 'epoll_loop extends its lock' '^released after 5 extensions' "$BUILD/examples/epoll_loop" "${addresses[@]}"
no_keys epoll_loop

expect 'lua_host hands its client to a script' '^released' \
  "$BUILD/$LUA_VERSION/examples/lua_host" examples/c/lua_host.lua "${addresses[@]}"
no_keys lua_host

exit "$failed"
