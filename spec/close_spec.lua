--- <close> exists in Lua 5.4 only, and other versions cannot even parse it.

if _VERSION == "Lua 5.1" or _VERSION == "Lua 5.2" or _VERSION == "Lua 5.3" then return end

assert(loadfile("spec/close_scope.lua", "t", _ENV))() -- luacheck: ignore
