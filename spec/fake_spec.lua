--- redlock.fake has the behaviour of the library: the shared chapters, and specs of the library,
--- run against it on its own clock.
---
--- Nothing here needs a server or a C module.

local fake = require "redlock.fake"
local helper = require "spec.fake_helper"

-- Each chapter keeps the helper with which it was loaded, so no chapter outlives its spec.
local function forget_chapters()
  for name in pairs(package.loaded) do
    if name:find("^spec%.behaviour%.") then package.loaded[name] = nil end
  end
end

-- Another spec in the same process needs the modules that are replaced here.
local replaced = {}
for _, name in ipairs { "redlock", "spec.helper", "spec.behaviour" } do
  replaced[name] = package.loaded[name] or false
end
package.loaded.redlock, package.loaded["spec.helper"], package.loaded["spec.behaviour"] = fake, helper, nil
local behaviour = require "spec.behaviour"

-- A chapter of another spec, such as spec/luv_spec.lua in the same process.
package.loaded["spec.behaviour.detach"] = function() error("this chapter has another helper") end
forget_chapters()

teardown(function()
  forget_chapters()
  for name, module in pairs(replaced) do package.loaded[name] = module or nil end
end)

-- Tests that the fake cannot pass, with the reason.
local NO_SCRIPTS = "the fake has no scripts"
local NEVER_FORGETS = "nodes of the fake never forget, so its guard excludes none"
local NO_RECORD = "the fake keeps no record of the guard on its nodes"
local NO_SERVER = "nodes of the fake have no settings and no users to examine"
local NO_CORE = "the test is about redlock.core, which is C"
local ITS_NODE_REFUSES = "its node refuses connections; nodes of the fake answer"
local ON_ITS_CLOCK = "on_lost of the fake runs when its clock passes the loss, not in the next call"

behaviour("redlock.fake", {
  blocks = true,
  new = fake.new,
  run = function(fn) fn() end,
  pump = function(client) client:process() end,
  idle = function() fake:advance(5) end,
  farm = function() return helper.farm(5) end,
  describe = describe,
  it = it,
  skip = {
    lock_works_after_script_flush = NO_SCRIPTS,
    lock_on_several_resources_works_after_script_flush = NO_SCRIPTS,
    guard_quarantines_new_nodes_until_bootstrap = NEVER_FORGETS,
    guard_quarantines_flushed_node_for_max_ttl = NEVER_FORGETS,
    guard_reports_clients_with_different_options = NO_RECORD,
    node_after_swapdb_says_how_to_recover_and_recovers_so = NO_RECORD,
    doctor_finds_only_persistence_on_healthy_nodes = NO_SERVER,
    doctor_reports_unreachable_evicting_refusing_nodes_and_endless_keys = NO_SERVER,
    doctor_reports_missing_rights_of_ACL = NO_SERVER,
    wrong_password_ends_campaign = NO_SERVER,
  },
})

-- Runs a spec of the library against the fake, without the tests of `skip`.
local function reuse(path, skip)
  local skipped = {}
  local environment = setmetatable({
    it = function(title, fn)
      if skip[title] then skipped[title] = true else it(title, fn) end
    end,
  }, { __index = getfenv and getfenv(1) or _ENV }) -- luacheck: ignore 113
  local chunk
  if setfenv then -- luacheck: ignore 113
    chunk = setfenv(assert(loadfile(path)), environment) -- luacheck: ignore 113
  else
    chunk = assert(loadfile(path, "t", environment))
  end
  chunk()
  teardown(function()
    for title in pairs(skip) do assert(skipped[title], path .. " has no test " .. title) end
  end)
end

describe("redlock.fake with", function()
  reuse("spec/options_spec.lua", {
    client_that_blocks_nginx_worker_is_refused = NO_CORE,
    core_functions_survive_wrong_arguments = NO_CORE,
    client_works_after_wrong_arguments = ITS_NODE_REFUSES,
    wrong_list_of_nodes_is_raised = "fake.new() without nodes makes three",
    dot_instead_of_colon_is_raised = "the message names the type of a lock, which is a table",
  })

  reuse("spec/messages_spec.lua", {
    client_module_used_directly_raises_no_internal_error = NO_CORE,
    bootstrap_names_no_resource_that_its_caller_did_not_write = ITS_NODE_REFUSES,
    server_under_two_names_is_reported = "each name of the fake is a node of its own",
  })

  reuse("spec/on_lost_spec.lua", {
    next_call_of_any_function_runs_on_lost = ON_ITS_CLOCK,
    error_of_on_lost_is_written_to_stderr_with_traceback = "the test runs a program with servers",
    pollfd_is_readable_after_operation_ended = "the fake has no descriptor",
  })
end)
