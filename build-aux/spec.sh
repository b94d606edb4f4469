#!/bin/sh
# Runs spec files with busted on one Lua version:
#
#     spec.sh VERSION FILE...          VERSION is 5.4, 5.5 or jit; 5.1 for specs of the fake
#
# Environment: BUILD [build], LUA (another interpreter), SPEC_WRAPPER (a command in front of it).
set -u
version=$1
shift
build=${BUILD:-build}
# Where build-aux/newer_lua.sh has unpacked a Lua that this system does not have.
export PATH="$PATH:$PWD/build/other-luas/$version"
if [ "$version" = jit ]; then lua=luajit; else lua=lua$version; fi
busted=$(command -v busted) || {
  echo 'no busted; `make setup` can help'
  exit 1
}
export LUA_VERSION="$version" LUA="${LUA:-$lua}" BUILD="$build"
export REDLOCK_SPEC_LUA="$LUA" LUA_PATH='lua/?.lua;lua/?/init.lua;spec/?.lua;;' LUA_CPATH="$build/$version/?.so;;"
# shellcheck disable=SC2086
exec ${SPEC_WRAPPER:-} "$LUA" "$busted" -o plainTerminal "$@"
