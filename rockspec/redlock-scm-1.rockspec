rockspec_format = "3.0"
package = "redlock"
version = "scm-1"
-- For `luarocks make` in a checkout, which fetches nothing. A published rock needs its address here.
source = {
   url = "git+file://.",
}
description = {
   summary = "Distributed lock over independent Redis or Valkey masters",
   detailed = [[
The Redlock algorithm for Lua 5.1 to 5.5 and LuaJIT, on a C core: a majority of
N independent masters decides, and every lock says how long it is still valid.]],
   license = "MIT",
   labels = { "redis", "valkey", "lock", "distributed" },
}
dependencies = {
   "lua >= 5.1, < 5.6",
}
external_dependencies = {
   HIREDIS = {
      header = "hiredis/hiredis.h",
      library = "hiredis",
   },
}
build = {
   type = "make",
   build_target = "luarocks-build",
   install_target = "luarocks-install",
   -- LuaRocks has no optional dependencies. So TLS is built if pkg-config, or OPENSSL_DIR, OPENSSL_INCDIR and
   -- OPENSSL_LIBDIR in the environment, find an OpenSSL; TLS=1 in the environment requires it.
   -- The same in both passes: the build notices changed flags and would compile again.
   variables = {
      CC = "$(CC)",
      CFLAGS = "$(CFLAGS)",
      LIBFLAG = "$(LIBFLAG)",
      LUA_INCDIR = "$(LUA_INCDIR)",
      HIREDIS_INCDIR = "$(HIREDIS_INCDIR)",
      HIREDIS_LIBDIR = "$(HIREDIS_LIBDIR)",
   },
   install_variables = {
      INSTALL_LMOD = "$(LUADIR)",
      INSTALL_CMOD = "$(LIBDIR)",
   },
}
