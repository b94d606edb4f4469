#!/usr/bin/env bash
# Runs `luarocks make` without arguments and network into a temporary tree, for each Lua that
# LuaRocks supports. The installed module must work, and the source tree must stay clean.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/build-aux/nodes.sh"
scratch=$(mktemp -d) || exit 1
clean_up() {
  nodes_stop
  rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP
failed=0
cd "$root" || exit 1

try() {
  local name=$1
  shift
  if "$@" >"$scratch/output" 2>&1; then
    echo "ok - $name"
  else
    cat "$scratch/output"
    echo "not ok - $name"
    failed=1
  fi
}

# For programs with default time limits, which a slow machine may exceed: then they run again.
try_again() {
  local name=$1 tries
  shift
  for tries in 1 2 3 4 5; do
    if "$@" >"$scratch/output" 2>&1; then
      echo "ok - $name"
      return
    fi
    echo "# repeated: $name"
  done
  try "$name" "$@"
}

# All files except those in build/.
tree() {
  find . -path ./build -prune -o -path ./.git -prune -o -type f -print | sort
}

nodes_start 1 || exit 1
node="127.0.0.1:${node_ports# }"
before=$(tree)
for version in 5.4 5.1; do
  place=$scratch/$version
  try "luarocks make, Lua $version" luarocks --lua-version "$version" --tree "$place" make
  try_again "Lua $version loads and locks" env LUA_PATH="$place/share/lua/$version/?.lua" \
    LUA_CPATH="$place/lib/lua/$version/?.so" "lua$version" -e "
      local lock = assert(require('redlock').new({ '$node' }):acquire('rock'))
      assert(lock:release())"
done
try_again 'LuaJIT loads what was made for 5.1' env LUA_PATH="$scratch/5.1/share/lua/5.1/?.lua" \
  LUA_CPATH="$scratch/5.1/lib/lua/5.1/?.so" luajit -e "
    local lock = assert(require('redlock').new({ '$node' }):acquire('rock'))
    assert(lock:release())"
# What LuaRocks runs: that of Debian 12 knows no Lua 5.5.
place=$scratch/5.5
export PATH="$PATH:$PWD/build/other-luas/5.5"
try 'newer_lua.sh --get' sh build-aux/newer_lua.sh --get
for step in build install; do
  try "make luarocks-$step, Lua 5.5" "${MAKE:-make}" "luarocks-$step" LUA_INCDIR="$(sh build-aux/newer_lua.sh --headers)" \
    INSTALL_LMOD="$place/share/lua/5.5" INSTALL_CMOD="$place/lib/lua/5.5"
done
try_again 'Lua 5.5 loads and locks' env LUA_PATH="$place/share/lua/5.5/?.lua" LUA_CPATH="$place/lib/lua/5.5/?.so" lua5.5 -e "
    local lock = assert(require('redlock').new({ '$node' }):acquire('rock'))
    assert(lock:release())"
# OpenSSL is no dependency of the rock: it only enables TLS.
for version in 5.4 5.1; do
  try "Lua $version has TLS" test -r "$scratch/$version/lib/lua/$version/redlock/tls.so"
done
try 'luarocks make, without OpenSSL' env TLS=0 luarocks --lua-version 5.4 --tree "$scratch/without" make
try 'has no TLS' sh -c '! find "$0" -name "tls.so" | grep .' "$scratch/without"
try_again 'and loads and locks' env LUA_PATH="$scratch/without/share/lua/5.4/?.lua" \
  LUA_CPATH="$scratch/without/lib/lua/5.4/?.so" lua5.4 -e "
    local lock = assert(require('redlock').new({ '$node' }):acquire('rock'))
    assert(lock:release())"
if [ "$before" = "$(tree)" ]; then
  echo "ok - the source tree is as it was"
else
  echo "not ok - the source tree has changed:"
  diff <(echo "$before") <(tree)
  failed=1
fi
exit "$failed"
