-- Which files the mutation run (build-aux/mutants.lua) changes, and by which tests. The first rule whose
-- "files", a Lua pattern, a path has is for it. The tests are run in this order, those that bear the name of
-- the file first, until one fails. "none" tells why the files of a rule are left out.
--
-- SPDX-License-Identifier: MIT

local function units(...)
  local list = {}
  for _, names in ipairs({ ... }) do
    for name in names:gmatch("%S+") do
      list[#list + 1] = "unit rl_" .. name .. "_test"
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

local CORE = "lock_acquire lock_extend lock_release lock_nodes lock_retry core node quorum validity option_table "
  .. "options attempt backoff launch late release lock_unheard renew inspect doctor finding force time "
  .. "timers token reply lock operation vote regression message command buffer reentry attach handover "
  .. "given loss resource lock_several ballot fence node_clock guard guard_clock clock_watch record margin call "
  .. "call_pace call_oom line listener login bootstrap sha1 oom"
local DRIVER = "client client_wait keeper keeper_thread handle poll pump turn socket linger same_server fork "
  .. "resolver_thread entropy clock event mutex mutex_thread thread handle_inspect handle_doctor handle_attach "
  .. "handle_bootstrap stream stream_reset route semaphore_thread semaphore_made_thread client_wait_launch_thread "
  .. "suspend_thread oom"
local INTEGRATION = { "integration loop_test", "integration resolver_test", "integration client_thread_test",
  "integration clients_thread_test",
  "integration leaving_test", "integration hostile_test", "integration process_test", "integration nodes_test",
  "integration first_lock_test", "integration silence_test", "integration child_test",
  "integration keeper_thread_test", "integration renew_test" }
local LUA = "options option_table messages redlock lost close gc cqueues cqueues_lost interrupt keeper reentry "
  .. "integration/keys integration/nodes integration/access integration/lease integration/conditions"
local LUA_UNITS = { "lua 5.4 rl_lua_result_test", "lua 5.4 rl_lua_host_test" }
local LUA_MEMORY = "lua 5.4 rl_lua_oom_test"
local NGINX = "nginx/phase nginx/request nginx/timers nginx/owner nginx/node nginx/client nginx/worker nginx/lost "
  .. "nginx/rest nginx/reentry nginx/idle nginx/examples nginx/behaviour"

return {
  { files = "^csrc/core/.*rl_address", none = "it reads configuration, and is fuzzed" },
  { files = "^csrc/core/.*rl_error%.c$", none = "it is a table" },
  { files = "^lua/redlock/types%.lua$", none = "it is read by editors only" },
  { files = "^lua/resty/", none = "it is an alias" },
  rule("^csrc/core/", "simulator 1 60", units(CORE), "simulator 61 540"),
  rule("^csrc/driver/", units(DRIVER), INTEGRATION,
    specs("5.4", "redlock interrupt close lost keeper gc integration/lease")),
  rule("^csrc/binding/rl_lua_nginx_owner", "lua 5.4 rl_lua_nginx_owner_test", specs("jit", NGINX), LUA_MEMORY),
  rule("^csrc/binding/rl_lua_nginx", "lua 5.4 rl_lua_nginx_wait_test", specs("jit", NGINX), LUA_MEMORY),
  rule("^csrc/binding/", LUA_UNITS, specs("5.4", LUA), specs("jit", "nginx/behaviour nginx/client nginx/owner"),
    LUA_MEMORY),
  rule("^lua/redlock/nginx", specs("jit", NGINX)),
  rule("^lua/redlock/loop", specs("5.4", "loop luv cqueues_lost cqueues reentry options gc examples"),
    specs("jit", "copas"), "luas 5.1"),
  rule("^lua/redlock/luv", specs("5.4", "luv examples"), "luas 5.1"),
  rule("^lua/redlock/copas", specs("jit", "copas examples"), "luas 5.1"),
  rule("^lua/redlock/cqueues", specs("5.4", "cqueues_lost cqueues reentry options gc examples")),
  rule("^lua/redlock/section", specs("5.4", "redlock cqueues"), specs("jit", "redlock"), "luas 5.1"),
  rule("^lua/", specs("5.4", LUA), specs("jit", "nginx/behaviour nginx/client nginx/owner")),
}
