#!/bin/sh
# Runs spec/all_luas.lua with each version given: "5.1 5.2 5.3 5.4 5.5 jit" without arguments.
#
#     spec/all_luas.sh [version...]
#
# The modules are taken from $REDLOCK_BUILD/<version>/redlock/core.so ("build" if unset) and ./lua.
# Three throw-away redis-servers are started for it, and stopped in the end.
set -eu
cd "$(dirname "$0")/.."
build=${REDLOCK_BUILD:-build}
# Where build-aux/newer_lua.sh has unpacked a Lua that this system does not have.
PATH=$PATH:$PWD/build/other-luas/5.5
[ $# -gt 0 ] || set -- 5.1 5.2 5.3 5.4 5.5 jit

directory=$(mktemp -d)
pids=
clean_up() {
  for pid in $pids; do kill -KILL "$pid" 2>/dev/null || :; done
  rm -rf "$directory"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

# A port is free if a server can be started on it; there are enough to try. They lie below those of
# csrc/test/lib/port.h.
addresses=
port=$((5000 + $$ % 5000))
for node in 1 2 3; do
  tries=0
  while :; do
    port=$((port + 1))
    tries=$((tries + 1))
    [ $tries -le 50 ] || { echo "no redis-server could be started" >&2; exit 1; }
    "${REDLOCK_TEST_SERVER:-redis-server}" --port $port --bind 127.0.0.1 --save '' --appendonly no --daemonize no \
      --dir "$directory" >"$directory/$node.log" 2>&1 &
    pid=$!
    waited=0
    while kill -0 $pid 2>/dev/null && ! grep -q 'Ready to accept' "$directory/$node.log"; do
      waited=$((waited + 1))
      [ $waited -le 6000 ] || break
      sleep 0.01
    done
    if grep -q 'Ready to accept' "$directory/$node.log"; then break; fi
    kill -KILL $pid 2>/dev/null || :
  done
  pids="$pids $pid"
  addresses="$addresses 127.0.0.1:$port"
done

failed=0
for version in "$@"; do
  case $version in
    jit) lua=luajit ;;
    *) lua=lua$version ;;
  esac
  if ! env -u LUA_PATH_5_2 -u LUA_CPATH_5_2 -u LUA_PATH_5_3 -u LUA_CPATH_5_3 -u LUA_PATH_5_4 -u LUA_CPATH_5_4 \
    -u LUA_PATH_5_5 -u LUA_CPATH_5_5 \
    LUA_PATH="./lua/?.lua;;" LUA_CPATH="$build/$version/?.so;;" \
    timeout 200 "$lua" spec/all_luas.lua $addresses; then
    echo "FAILED with $lua" >&2
    failed=1
  fi
done
exit $failed
