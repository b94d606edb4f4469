#!/usr/bin/env bash
# Runs the C examples with temporary nodes. `make examples-test` calls it with BUILD, LUA_VERSION
# and LUA_PATH. spec/examples_spec.lua runs the Lua examples.
set -u
. "$(dirname "$0")/nodes.sh"
trap nodes_stop EXIT
trap 'exit 130' INT TERM HUP
failed=0
output=

# Examples use default time limits, which a slow machine may exceed: then they run again.
tries=6

# attempt name status pattern command...: the command must end with the status, and print a line
# that matches the pattern.
attempt() {
  local name=$1 wanted=$2 pattern=$3 status try
  shift 3
  for try in $(seq "$tries"); do
    output=$(timeout 120 "$@" 2>&1)
    status=$?
    if [ "$status" -eq "$wanted" ] && grep -qE "$pattern" <<<"$output"; then
      echo "ok - $name"
      return
    fi
    [ "$try" -eq "$tries" ] || echo "# repeated: $name"
  done
  printf '%s\n' "$output"
  echo "not ok - $name (exit status $status, wanted: $wanted and $pattern)"
  failed=1
}

expect() {
  local name=$1
  shift
  attempt "$name" 0 "$@"
}

refuse() {
  local name=$1
  shift
  attempt "$name" 1 "$@"
}

no_keys() {
  local port keys polls=0
  for port in $node_ports; do
    until keys=$(redis-cli -p "$port" dbsize) && [ "$keys" = 0 ]; do
      polls=$((polls + 1))
      if [ "$polls" -gt 100 ]; then
        echo "not ok - $1 left $keys keys on node $port"
        failed=1
        return
      fi
      sleep 0.02
    done
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

refuse 'the program of docs/loops.md says that there is no node' '^the client has no nodes' "$BUILD/examples/loops_page"
expect 'on_lost stops threads whose lease is lost' '^stopped after' "$BUILD/examples/on_lost" "${addresses[@]}"
grep -qE '^lost: (max_hold|expired)' <<<"$output" || { echo "not ok - on_lost reports the loss"; failed=1; }
no_keys on_lost

expect 'one_node_test sees a free, a taken and a lost lock' '^ok - unreachable: unavailable' "$BUILD/examples/one_node_test" \
  "${addresses[0]}"
no_keys one_node_test

expect 'poll_loop has 64 locks in flight' '^64 tasks held their locks 1280 times' "$BUILD/examples/poll_loop" "${addresses[@]}"
no_keys poll_loop

expect 'epoll_loop extends its lock' '^released after 5 extensions' "$BUILD/examples/epoll_loop" "${addresses[@]}"
no_keys epoll_loop

expect 'what docs/loops.md shows works' '^released' "$BUILD/examples/loops_page" "${addresses[@]}"
no_keys loops_page

expect 'libuv_loop runs twenty tasks' '^20 of 20 tasks are done' "$BUILD/examples/libuv_loop" "${addresses[@]}"
no_keys libuv_loop
refuse 'libuv_loop ends without nodes' '^0 of 20 tasks' "$BUILD/examples/libuv_loop" 127.0.0.1:1

expect 'libevent_loop keeps its lease' '^held for longer than its ttl' "$BUILD/examples/libevent_loop" "${addresses[@]}"
no_keys libevent_loop
refuse 'libevent_loop ends without nodes' 'unavailable|refused' "$BUILD/examples/libevent_loop" 127.0.0.1:1

# A holder is stopped during its work. Its lease expires, and another holder writes. Then the first
# holder continues and writes: its output and the contents of the store must match the patterns.
late_write() {
  local try
  for try in $(seq "$tries"); do
    late_write_once "$@" && break
    [ "$try" -eq "$tries" ] || echo "# repeated: $1"
  done
  if [ "$late" = 1 ]; then
    echo "ok - $1"
  else
    cat "$nodes_directory/first"
    printf '%s\n' "$output"
    echo "not ok - $1"
    failed=1
  fi
}

late_write_once() {
  local says=$2 has=$3 program=$4 store=$5
  local first=$nodes_directory/first input=$nodes_directory/input pid polls=0 port
  rm -f "$input" "$first"
  mkfifo "$input"
  "$program" $store first "${addresses[@]}" <>"$input" >"$first" 2>&1 &
  pid=$!
  until grep -sq '^holding' "$first"; do
    polls=$((polls + 1))
    [ "$polls" -lt 500 ] || break
    sleep 0.02
  done
  kill -STOP "$pid"
  echo 'go on' >"$input"
  for port in $node_ports; do
    until [ "$(redis-cli -p "$port" exists report:daily)" = 0 ] || [ "$polls" -ge 500 ]; do
      polls=$((polls + 1))
      sleep 0.02
    done
  done
  output=$(echo 'go on' | timeout 60 "$program" $store second "${addresses[@]}" 2>&1)
  grep -q '^stored$' <<<"$output" || polls=500
  grep -q ' T ' "/proc/$pid/stat" || polls=500
  kill -CONT "$pid"
  wait "$pid"
  late=0
  if [ "$polls" -lt 500 ] && grep -q "^$says" "$first" && grep -q "^the store has: $has\$" "$first"; then
    late=1
  fi
  [ "$late" = 1 ]
}

late_write 'fenced_sqlite refuses the late write of a holder that was stopped' 'refused' second \
  "$BUILD/examples/fenced_sqlite" "$nodes_directory/reports.db"
late_write 'without the comparison the late write would get through' 'stored' first \
  "$BUILD/examples/unfenced_sqlite" "$nodes_directory/reports.db"
lock_ports=$node_ports
nodes_start 1 || exit 1
store_port=${node_ports##* }
node_ports=$lock_ports
late_write 'fenced_redis refuses the late write of a holder that was stopped' 'refused' second \
  "$BUILD/examples/fenced_redis" "127.0.0.1 $store_port"
late_write 'without the script the late write would get through' 'stored' first \
  "$BUILD/examples/unfenced_redis" "127.0.0.1 $store_port"
for port in $node_ports; do redis-cli -p "$port" flushall >/dev/null; done # The counters of the tokens.

expect 'lua_host hands its client to a script' '^released' \
  "$BUILD/$LUA_VERSION/examples/lua_host" examples/c/lua_host.lua "${addresses[@]}"
no_keys lua_host

exit "$failed"
