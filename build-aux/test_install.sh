#!/usr/bin/env bash
# Runs `make install` into a temporary directory, as packagers and users do. Builds and runs
# programs with the installed files: with pkg-config, shared and static, and from Lua.
set -u
MAKE=${MAKE:-make}
CC=${CC:-cc}
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

cd "$root" || exit 1
prefix=$scratch/prefix
for version in 5.4 5.1 jit; do
  try "make install LUA_VERSION=$version" "$MAKE" install PREFIX="$prefix" LUA_VERSION=$version
done
# OpenResty has one directory for Lua files and modules.
site=$scratch/openresty/site/lualib
try 'make install-lua-files for OpenResty' "$MAKE" install-lua-files LUA_VERSION=jit INSTALL_LMOD="$site" INSTALL_CMOD="$site"
try 'make install DESTDIR' "$MAKE" install DESTDIR="$scratch/stage" PREFIX=/usr LIBDIR=/usr/lib/multi LUA_VERSION=5.4
for file in bin/redlock include/redlock.h lib/libredlock.a lib/libredlock.so lib/libredlock.so.0 lib/pkgconfig/redlock.pc \
  lib/libredlock-lua5.4.a lib/libredlock-lua5.1.a lib/libredlock-luajit.a share/lua/5.4/redlock.lua share/lua/5.1/redlock.lua \
  lib/lua/5.4/redlock/core.so lib/lua/5.1/redlock/core.so \
  include/redlock_tls.h lib/libredlock_tls.a lib/libredlock_tls.so lib/libredlock_tls.so.0 lib/pkgconfig/redlock_tls.pc \
  lib/lua/5.4/redlock/tls.so lib/lua/5.1/redlock/tls.so \
  share/man/man1/redlock.1 share/bash-completion/completions/redlock share/zsh/site-functions/_redlock \
  share/fish/vendor_completions.d/redlock.fish; do
  try "$file is installed" test -r "$prefix/$file"
done
try 'the manual page is readable' sh -c "mandoc -T utf8 '$prefix/share/man/man1/redlock.1' | grep -q 'run a command under a lock'"
try 'bash loads the completion' bash -c ". '$prefix/share/bash-completion/completions/redlock' && complete -p redlock"
try 'DESTDIR goes before PREFIX' test -r "$scratch/stage/usr/lib/multi/pkgconfig/redlock.pc"
try 'and into no file' grep -q '^libdir=/usr/lib/multi$' "$scratch/stage/usr/lib/multi/pkgconfig/redlock.pc"

nodes_start 1 || exit 1
node="127.0.0.1:${node_ports# }"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
cd "$scratch" || exit 1
cp "$root/examples/c/plain.c" "$root/examples/c/lua_host.c" "$root/examples/c/lua_host.lua" .

# The flags are lists.
# shellcheck disable=SC2046
{
  try_again 'the tool runs a command under a lock' "$prefix/bin/redlock" -n "$node" run installed -- true
  try 'shared: compiles' $CC -o shared plain.c $(pkg-config --cflags --libs redlock) -Wl,-rpath,"$prefix/lib"
  try 'shared: uses the shared library' sh -c 'readelf -d shared | grep -q "NEEDED.*libredlock.so.0"'
  try_again 'shared: runs' ./shared "$node"
  sed 's/-lredlock/-l:libredlock.a/' "$PKG_CONFIG_PATH/redlock.pc" >static.pc
  try 'static: compiles' $CC -o static plain.c $(pkg-config --cflags --static --libs ./static.pc)
  try 'static: needs no libredlock.so' sh -c '! readelf -d static | grep -q "NEEDED.*libredlock"'
  try_again 'static: runs' ./static "$node"
  try 'a Lua host: compiles' $CC -o lua_host lua_host.c -I"$prefix/include" -L"$prefix/lib" -lredlock-lua5.4 \
    $(pkg-config --cflags --libs lua5.4) -lhiredis -pthread
  try_again 'a Lua host: runs' env LUA_PATH="$prefix/share/lua/5.4/?.lua" ./lua_host lua_host.lua "$node"
}

nodes_start_tls 1 || exit 1
tls_node="rediss://localhost:${node_ports##* }"
cat >tls.c <<'SOURCE'
#include <redlock_tls.h>
#include <stdio.h>
int main(int argc, char **argv) {
  char message[256] = "";
  redlock_settings settings = {0};
  redlock_client *client;
  redlock_lock *lock;
  settings.transport = redlock_tls();
  settings.tls_ca = argv[argc - 1];
  if (redlock_client_new(&client, &settings, message, sizeof message) != REDLOCK_OK ||
      redlock_client_add(client, argv[1], message, sizeof message) != REDLOCK_OK ||
      redlock_lock_new(&lock, client, "installed", 9, NULL) != REDLOCK_OK) {
    (void)fprintf(stderr, "%s\n", message);
    return 1;
  }
  int result = redlock_lock_acquire(lock, NULL, NULL);
  (void)fprintf(stderr, "%s\n", redlock_lock_message(lock));
  result = result == REDLOCK_OK ? redlock_lock_release(lock) : result;
  redlock_lock_free(lock);
  redlock_client_free(client);
  return result == REDLOCK_OK ? 0 : 1;
}
SOURCE
# shellcheck disable=SC2046
{
  try 'TLS, shared: compiles' $CC -o tls_shared tls.c $(pkg-config --cflags --libs redlock_tls) -Wl,-rpath,"$prefix/lib"
  try 'TLS, shared: uses both libraries' sh -c 'readelf -d tls_shared | grep -c "NEEDED.*libredlock" | grep -qx 2'
  try_again 'TLS, shared: runs' ./tls_shared "$tls_node" "$nodes_certificate"
  sed 's/-lredlock/-l:libredlock.a/' "$PKG_CONFIG_PATH/redlock.pc" >redlock.pc
  sed 's/-lredlock_tls/-l:libredlock_tls.a/' "$PKG_CONFIG_PATH/redlock_tls.pc" >redlock_tls.pc
  try 'TLS, static: compiles' $CC -o tls_static tls.c $(PKG_CONFIG_PATH=. pkg-config --cflags --static --libs redlock_tls)
  try 'TLS, static: needs no libredlock' sh -c '! readelf -d tls_static | grep -q "NEEDED.*libredlock"'
  try_again 'TLS, static: runs' ./tls_static "$tls_node" "$nodes_certificate"
  try 'without TLS nothing needs OpenSSL' sh -c '! readelf -d shared static | grep -E "NEEDED.*lib(ssl|crypto)"'
}

cat >script.lua <<'SCRIPT'
local redlock = require "redlock"
local where = package.searchpath and package.searchpath("redlock", package.path) or "?"
assert(where:find(arg[2], 1, true) == 1 or where == "?", where)
local lock = assert(redlock.new({ arg[1] }):acquire("installed"))
assert(lock:is_held() and lock:release())
SCRIPT
try_again 'Lua 5.4 loads and locks' env LUA_PATH="$prefix/share/lua/5.4/?.lua" LUA_CPATH="$prefix/lib/lua/5.4/?.so" \
  lua5.4 script.lua "$node" "$prefix"
cat >fake.lua <<'SCRIPT'
package.loaded.redlock = require "redlock.fake"
local lock = assert(require("redlock").new({ "a", "b", "c" }):acquire("installed"))
assert(lock:is_held() and lock:release())
SCRIPT
for lua in lua5.4 luajit; do
  version=5.4
  [ "$lua" = lua5.4 ] || version=5.1
  try "$lua loads the fake, without C modules" env LUA_PATH="$prefix/share/lua/$version/?.lua" LUA_CPATH=none "$lua" fake.lua
done
cat >tls.lua <<'SCRIPT'
local client = require("redlock").new({ arg[1] }, { tls = { ca = arg[2] } })
local lock = assert(client:acquire("installed"))
assert(lock:is_held() and lock:release())
SCRIPT
try_again 'Lua 5.4 loads TLS and locks' env LUA_PATH="$prefix/share/lua/5.4/?.lua" LUA_CPATH="$prefix/lib/lua/5.4/?.so" \
  lua5.4 tls.lua "$tls_node" "$nodes_certificate"
# Lua 5.1 and LuaJIT share a directory: the module that was installed last serves both.
for last in jit 5.1; do
  (cd "$root" && try "make install LUA_VERSION=$last, after the other" \
    "$MAKE" install PREFIX="$prefix" LUA_VERSION=$last; exit "$failed") || failed=1
  for lua in luajit lua5.1; do
    try_again "$lua loads and locks, LUA_VERSION=$last was installed last" env LUA_PATH="$prefix/share/lua/5.1/?.lua" \
      LUA_CPATH="$prefix/lib/lua/5.1/?.so" "$lua" script.lua "$node" "$prefix"
    try_again "$lua loads TLS and locks, LUA_VERSION=$last was installed last" env LUA_PATH="$prefix/share/lua/5.1/?.lua" \
      LUA_CPATH="$prefix/lib/lua/5.1/?.so" "$lua" tls.lua "$tls_node" "$nodes_certificate"
  done
done
try_again 'LuaJIT loads and locks as OpenResty would' env LUA_PATH="$site/?.ljbc;$site/?.lua" LUA_CPATH="$site/?.so" \
  luajit script.lua "$node" "$site"

cd "$root" || exit 1
for version in 5.4 5.1 jit; do
  try "make uninstall LUA_VERSION=$version" "$MAKE" uninstall PREFIX="$prefix" LUA_VERSION=$version
done
try 'nothing is left of it' test -z "$(find "$prefix" -type f -o -type l)"
exit "$failed"
