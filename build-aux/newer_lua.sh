#!/bin/sh
# Unpacks Lua 5.5, busted and the modules of the specs from Debian's newest suite, for systems
# without a package of Lua 5.5. Compiles luv and cqueues for it, whose packages are for older
# versions.
#
#     newer_lua.sh --get                 gets all that once
#     newer_lua.sh --headers             prints the directory of Lua's headers
#     newer_lua.sh --run PROGRAM [...]   runs a program that was linked with Lua's library
#
# The Makefile, build-aux/spec.sh and spec/all_luas.sh use build/other-luas/5.5. --get needs
# apt-get and a network, a C compiler, libuv and OpenSSL.
set -u
cd "$(dirname "$0")/.." || exit 1
tree=$PWD/build/other-luas/5.5

get() {
  mkdir -p build/other-luas
  exec 8>build/other-luas/lock
  flock 8 || return 1
  [ ! -e "$tree/complete" ] || return 0
  sh build-aux/debian_tree.sh --get "$tree" sid lua5.5 liblua5.5-dev lua-busted lua-filesystem lua-system lua-term \
    lua-socket lua-posix m4 || return 1
  sh build-aux/debian_tree.sh --get-source "$tree/source" sid lua-luv lua-cqueues || return 1
  libraries=$(cd "$tree/root/usr/lib" && echo "$PWD"/*/lua/5.5)
  # The tree has headers of another C library, too.
  mkdir -p "$tree/include" "$tree/modules" &&
    cp "$tree"/root/usr/include/lua5.5/*.h "$tree"/root/usr/include/*/lua5.5-*.h "$tree/include" || return 1
  sh build-aux/debian_tree.sh --wrap "$tree" lua5.5 usr/bin/lua5.5 "$(paths "$tree/root/usr/share/lua/5.5" "$libraries")" &&
    sh build-aux/debian_tree.sh --wrap "$tree" m4 usr/bin/m4 &&
    sh build-aux/debian_tree.sh --wrap "$tree" run '' && loops && touch "$tree/complete"
}

# Prints lines that add the modules of the directories $1 and $2 to the paths of Lua.
paths() {
  echo "LUA_PATH=\"\${LUA_PATH:-;;};$1/?.lua;$1/?/init.lua;$tree/modules/?.lua\""
  echo "LUA_CPATH=\"\${LUA_CPATH:-;;};$2/?.so;$tree/modules/?.so\""
  echo 'export LUA_PATH LUA_CPATH'
}

loops() {
  cc=${CC:-cc}
  # shellcheck disable=SC2046,SC2086
  (cd "$tree"/source/lua-luv-* && $cc -O1 -fPIC -shared -I"$tree/include" -Isrc -o "$tree/modules/luv.so" src/luv.c \
    $(pkg-config --cflags --libs libuv)) || return 1
  # What cqueues of 2020 calls, and Lua 5.5 has no longer.
  cat >"$tree/source/casts.h" <<'END'
#define lua_pushunsigned(L, n) lua_pushinteger(L, (lua_Integer)(n))
#define lua_tounsignedx(L, i, is) ((lua_Unsigned)lua_tointegerx(L, i, is))
#define lua_tounsigned(L, i) lua_tounsignedx(L, i, NULL)
#define luaL_checkunsigned(L, a) ((lua_Unsigned)luaL_checkinteger(L, a))
#define luaL_optunsigned(L, a, d) ((lua_Unsigned)luaL_optinteger(L, a, (lua_Integer)(d)))
END
  (
    cd "$tree"/source/cqueues-* || exit 1
    sed -i 's/LUA_VERSION_NUM > 504/LUA_VERSION_NUM > 505/' vendor/compat53/c-api/compat-5.3.h
    env -u MAKEFLAGS -u MAKELEVEL PATH="$tree:$PATH" make all5.4 CC="$cc -O1" LUA54_CPPFLAGS="-I$tree/include" \
      CPPFLAGS="-I$tree/include -include $tree/source/casts.h" >make.log 2>&1 || {
      cat make.log
      exit 1
    }
    mkdir -p "$tree/modules/cqueues" && cp src/5.4/cqueues.so "$tree/modules/_cqueues.so" &&
      cp src/cqueues.lua "$tree/modules" && cp src/auxlib.lua src/condition.lua src/errno.lua src/signal.lua \
      src/socket.lua "$tree/modules/cqueues"
  )
}

case ${1:-} in
--get) get ;;
--headers) echo "$tree/include" ;;
--run)
  shift
  exec "$tree/run" "$@"
  ;;
*)
  echo "newer_lua.sh: it needs --get, --headers or --run PROGRAM" >&2
  exit 1
  ;;
esac
