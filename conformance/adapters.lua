-- The libraries of the suite. |nodes| = 1: the library locks on one node. |prefix|: the library's
-- prefix of keys. |extends| = false: it has no extend.
--
-- SPDX-License-Identifier: MIT

local LUA = "lua5.4"
local build = os.getenv("BUILD") or "build"
local DEBIAN_PYTHON = { PYTHONPATH = build .. "/interop/python/root/usr/lib/python3/dist-packages" }
local NODE = { "node", "conformance/adapters/node.mjs" }
local PYTHON = { "/usr/bin/python3", "conformance/adapters/python.py" }
local PHP = { "php", "conformance/adapters/symfony.php" }

local function lua(...) return { LUA, "conformance/adapters/" .. (...), select(2, ...) } end
local function with(command, ...)
  local words = { table.unpack(command) }
  for _, word in ipairs { ... } do words[#words + 1] = word end
  return words
end

local adapters = {
  -- Ours, and the small one that shows what a correct library needs.
  { name = "redlock", title = "redlock", command = lua "redlock.lua", own = true },
  { name = "redlock-guard", title = "redlock, guard", command = lua("redlock.lua", "guard"),
    own = true },
  { name = "plain", title = "plain", command = lua "plain.lua", own = true },
}

local function library(entry) table.insert(adapters, entry) end

library { name = "redlock4", title = "node-redlock 4", from = "npm", command = with(NODE, "redlock4") }
library { name = "redlock5", title = "node-redlock 5", from = "npm",
  command = with(NODE, "redlock5") }
library { name = "sesamecare", title = "@sesamecare-oss/redlock", from = "npm",
  command = with(NODE, "sesamecare") }
library { name = "universal", title = "redlock-universal", from = "npm",
  command = with(NODE, "universal") }
library { name = "semaphore", title = "redis-semaphore", from = "npm",
  command = with(NODE, "semaphore"), prefix = "mutex:", extends = false }
library { name = "redis-kit", title = "@redis-kit/lock", from = "npm",
  command = with(NODE, "redis-kit") }
library { name = "symfony", title = "Symfony Lock", from = "Debian", command = PHP }
library { name = "aioredlock", title = "aioredlock", from = "Debian",
  command = with(PYTHON, "aioredlock"),
  environment = DEBIAN_PYTHON }
library { name = "redis-py", title = "redis-py", from = "Debian", command = with(PYTHON, "redis-py"),
  environment = DEBIAN_PYTHON, nodes = 1 }
library { name = "simple-redis-mutex", title = "simple-redis-mutex", from = "npm",
  command = with(NODE, "simple-redis-mutex"), prefix = "@simple-redis-mutex:lock-", nodes = 1, interop = true }
library { name = "redisson", title = "Redisson's commands", from = "commands",
  command = lua("commands.lua", "redisson"), nodes = 1, interop = true }
library { name = "locktake", title = "StackExchange.Redis' commands", from = "commands",
  command = lua("commands.lua", "locktake"), nodes = 1, interop = true }
library { name = "setnx", title = "SETNX with a timestamp", from = "commands",
  command = lua("commands.lua", "setnx"), nodes = 1, extends = false, interop = true }

return adapters
