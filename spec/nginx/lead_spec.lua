--- client:lead() in workers that exit, and in phases that cannot wait.

if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local server = require "spec.nginx.server"

local LOCATIONS = [[
  location /campaign {
    content_by_lua_block {
      local done = ngx.shared.done
      assert(ngx.timer.at(0, function()
        done:set("begun", true)
        local ok, message, code = client:lead("r", { wait = 600000 }, function() done:set("led", true) end)
        done:set("result", tostring(ok) .. " " .. tostring(code) .. " " .. tostring(message))
      end))
    }
  }
  location /killed {
    content_by_lua_block {
      local thread = ngx.thread.spawn(function() client:lead("r", error) end)
      ngx.sleep(0.01)
      ngx.say(tostring(ngx.thread.kill(thread)))
    }
  }
  location /done { content_by_lua_block { ngx.print(tostring(ngx.shared.done:get(ngx.var.arg_name))) } }
  location /blocking {
    content_by_lua_block {
      local blocking = require("redlock.nginx_blocking").new(addresses, { node_timeout = 20000 })
      local ok, fence = blocking:lead("b", function(term) return "resign", term:fence() end)
      local leader, message, code = blocking:leader("b")
      blocking:close()
      ngx.print(tostring(ok), " ", fence > 0, " ", tostring(leader), " ", code)
    }
  }
  location /misuse {
    content_by_lua_block {
      local _, one = pcall(function() client:lead("r", { owner = "worker" }, error) end)
      local _, other = pcall(function() client:lead("r") end)
      ngx.print(one, "\n", other)
    }
  }
  location /log {
    content_by_lua_block { ngx.print("body") }
    log_by_lua_block {
      local ok, message, code = client:lead("r", error)
      ngx.shared.done:set("log", tostring(ok) .. " " .. tostring(code) .. " " .. tostring(message))
    }
  }
]]

describe("lead() inside nginx", function()
  local farm, nginx

  setup(function() farm = helper.farm(3) end)
  teardown(function() farm:shut() end)

  before_each(function()
    farm:reset()
    nginx = server.start {
      http = "lua_shared_dict done 1m;",
      init = ("addresses = { '%s', '%s', '%s' } "
        .. "client = require('resty.redlock').new(addresses, { node_timeout = 20000 })"):format(
        farm.addresses[1], farm.addresses[2], farm.addresses[3]),
      server = LOCATIONS,
    }
  end)
  after_each(function() nginx:stop() end)

  local function done(name) return select(2, nginx:get("/done?name=" .. name)) end

  -- The old worker would otherwise wait for ten minutes.
  it("exiting_worker_ends_its_campaign", function()
    for index = 1, 3 do farm[index]:command("SET", "r", "another client", "PX", "1000000") end
    nginx:get("/campaign")
    helper.eventually(function() return done("begun") == "true" end, "the campaign to begin")
    nginx:reload()
    helper.eventually(function() return done("result") ~= "nil" end, "the end of the campaign")
    assert.is_truthy(done("result"):find("^nil cancelled "), done("result"))
    assert.are.equal("nil", done("led"))
    assert.are.equal("", nginx:complaints())
  end)

  -- The light thread that watches the worker would otherwise keep the request for ever.
  it("request_ends_after_its_campaign_was_killed", function()
    for index = 1, 3 do farm[index]:command("SET", "r", "another client", "PX", "1000000") end
    assert.are.equal("1\n", (select(2, nginx:get("/killed"))))
    assert.are.equal("", nginx:complaints())
  end)

  it("blocking_client_leads", function()
    assert.are.equal("true true nil not_held", select(2, nginx:get("/blocking")))
  end)

  it("wrong_arguments_of_lead_in_nginx_are_raised", function()
    local texts = select(2, nginx:get("/misuse"))
    local at = "content_by_lua[^\n]*:%d+: redlock: "
    assert.is_truthy(texts:find(at .. "option 'owner' of client:lead%(%) is always request"), texts)
    assert.is_truthy(texts:find("\n" .. at .. "lead%(%) needs a function to run, got nil"), texts)
  end)

  it("lead_in_phase_that_cannot_wait_is_refused", function()
    nginx:get("/log")
    helper.eventually(function() return done("log") ~= "nil" end, "the log phase")
    assert.is_truthy(done("log"):find("^nil unavailable client:lead%(%) must wait, .* phase log"), done("log"))
  end)
end)
