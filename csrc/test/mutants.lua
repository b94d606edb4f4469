-- The files that the mutation run (build-aux/mutants.lua) changes, and their tests. The first rule
-- whose "files", a Lua pattern, a path has is for it. The tests are run in this order, those that
-- bear the name of the file first, until one fails. "none" is the reason why the files of a rule
-- are left out.
--
-- SPDX-License-Identifier: MIT

-- Returns the unit tests of the folders |...| of csrc/test/unit, without those that need a Lua.
local function units(...)
  local list = {}
  for _, folder in ipairs({ ... }) do
    for name in io.popen("ls csrc/test/unit/" .. folder):lines() do
      local test = name:match("^(.*_test)%.c$")
      list[#list + 1] = test and not test:find("^rl_lua_") and "unit " .. test or nil
    end
  end
  return list
end

local function specs(version, ...)
  local list = {}
  for _, names in ipairs({ ... }) do
    for name in names:gmatch("%S+") do
      list[#list + 1] = ("spec %s spec/%s_spec.lua"):format(version, name)
    end
  end
  return list
end

local function rule(files, ...)
  local one = { files = files }
  for _, tests in ipairs({ ... }) do
    for _, test in ipairs(type(tests) == "table" and tests or { tests }) do
      one[#one + 1] = test
    end
  end
  return one
end

local CORE = units("base", "options", "wire", "node", "lock", "wait", "lease", "lifecycle", "operator", "core")
local DRIVER = units("os", "net", "client", "api", "core", "cli")
local INTEGRATION = { "integration loop_test", "integration resolver_thread_test", "integration client_thread_test",
  "integration linger_test", "integration hostile_test", "integration process_test", "integration nodes_test",
  "integration first_lock_test", "integration unresponsive_test", "integration fork_test",
  "integration watchdog_thread_test", "integration auto_extend_test", "integration stress_thread_test",
  "integration login_test", "integration lead_test" }
local LUA = "options option_table messages redlock on_lost close gc cqueues cqueues_on_lost interrupt auto_extend "
  .. "reentry "
  .. "integration/keys integration/nodes integration/access integration/lease integration/conditions"
local LUA_UNITS = { "lua 5.4 rl_lua_result_test", "lua 5.4 rl_lua_host_test" }
local LUA_MEMORY = "lua 5.4 rl_lua_oom_test"
local NGINX = "nginx/phase nginx/request nginx/timers nginx/owner nginx/node nginx/client nginx/worker nginx/on_lost "
  .. "nginx/released nginx/reentry nginx/idle nginx/examples nginx/behaviour"

return {
  { files = "^csrc/core/.*rl_address", none = "it reads configuration, and is fuzzed" },
  { files = "^csrc/core/.*rl_error%.c$", none = "it is a table" },
  { files = "^lua/redlock/types%.lua$", none = "it is read by editors only" },
  { files = "^lua/resty/", none = "it is an alias" },
  rule("^csrc/core/", "simulator 1 60", CORE, "simulator 61 540"),
  rule("^csrc/driver/", DRIVER, INTEGRATION,
    specs("5.4", "redlock interrupt close on_lost auto_extend gc integration/lease")),
  rule("^csrc/binding/rl_lua_nginx_owner", "lua 5.4 rl_lua_nginx_owner_test", specs("jit", NGINX), LUA_MEMORY),
  rule("^csrc/binding/rl_lua_nginx", "lua 5.4 rl_lua_nginx_wait_test", specs("jit", NGINX), LUA_MEMORY),
  rule("^csrc/binding/", LUA_UNITS, specs("5.4", LUA), specs("jit", "nginx/behaviour nginx/client nginx/owner"),
    LUA_MEMORY),
  rule("^lua/redlock/nginx", specs("jit", NGINX)),
  rule("^lua/redlock/loop", specs("5.4", "loop luv cqueues_on_lost cqueues reentry options gc examples"),
    specs("jit", "copas"), "luas 5.1"),
  rule("^lua/redlock/luv", specs("5.4", "luv examples"), "luas 5.1"),
  rule("^lua/redlock/copas", specs("jit", "copas examples"), "luas 5.1"),
  rule("^lua/redlock/cqueues", specs("5.4", "cqueues_on_lost cqueues reentry options gc examples")),
  rule("^lua/redlock/section", specs("5.4", "redlock cqueues"), specs("jit", "redlock"), "luas 5.1"),
  rule("^lua/", specs("5.4", LUA), specs("jit", "nginx/behaviour nginx/client nginx/owner")),
}
