-- Auto-extended leases inside nginx, and on_lost in a timer of its own. The behaviour of all
-- drivers is in spec/behaviour.lua.

if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local server = require "spec.nginx.server"

local INIT = [[
  client = require("redlock").new(addresses, { ttl = 60000, owner = "worker", node_timeout = 20000 })
  losses = {}
  function notes(lock, reason)
    ngx.sleep(0.001) -- It may wait.
    losses[#losses + 1] = lock:resource() .. " " .. reason .. " " .. ngx.get_phase()
    kept.since = select(2, lock:lost())
  end
  function broken() error("oops") end
  do
    local count = 0
    function count_loss() count = count + 1 end
    function counted() return count end
  end
  waited, timers, most_in_a_timer = 0, 0, 0
  function waits()
    local of_timer = ngx.ctx
    of_timer.reported = (of_timer.reported or 0) + 1
    if of_timer.reported == 1 then timers = timers + 1 end
    most_in_a_timer = math.max(most_in_a_timer, of_timer.reported)
    ngx.sleep(0.3)
    waited = waited + 1
  end
  function logs(lock, reason) ngx.log(ngx.NOTICE, "reported: ", lock:resource(), " ", reason) end
]]

local LOCATIONS = [[
  location /worker {
    content_by_lua_block { kept.lock = assert(client:acquire("worker", { ttl = 300, on_lost = notes, wait = 60000 })) }
  }
  location /kept {
    content_by_lua_block { kept.lock = assert(client:acquire("kept", {
      ttl = tonumber(ngx.var.arg_ttl), node_timeout = tonumber(ngx.var.arg_timeout), auto_extend = { every = 30 },
      on_lost = notes, wait = 60000,
    })) }
  }
  location /request {
    content_by_lua_block {
      local options = { owner = "request", auto_extend = { every = 30 }, on_lost = notes }
      kept.lock = assert(client:acquire("request", options))
    }
  }
  location /broken {
    content_by_lua_block { kept.lock = assert(client:acquire("broken", { ttl = 100, on_lost = broken, wait = 60000 })) }
  }
  location /many {
    content_by_lua_block {
      kept.many = {}
      local function some(from)
        for index = from, 300, 30 do
          kept.many[index] = assert(client:acquire("many:" .. index, { ttl = 1000, on_lost = waits, wait = 60000 }))
        end
      end
      local threads = {}
      for index = 1, 30 do threads[index] = ngx.thread.spawn(some, index) end
      for index = 1, 30 do assert(ngx.thread.wait(threads[index])) end
    }
  }
  location /waited { content_by_lua_block { ngx.print(waited) } }
  location /timers { content_by_lua_block { ngx.print(timers, " ", most_in_a_timer) } }
  location /running {
    content_by_lua_block {
      local lock = assert(client:acquire("nothing lost"))
      lock:release()
      ngx.sleep(0.8)
      local before = ngx.timer.running_count()
      lock = assert(client:acquire("nothing lost", { ttl = 60000, on_lost = notes }))
      ngx.sleep(0.1)
      ngx.print(ngx.timer.running_count() - before, " ", tostring(lock:release()))
      local reported = false
      assert(lock:acquire({ ttl = 50, on_lost = function() reported = true end, wait = 60000 }))
      ngx.sleep(1.2)
      ngx.print(" ", tostring(reported), " ", ngx.timer.running_count() - before)
    }
  }
  # What the function is given in a request that is killed, and what another keeps where that was.
  location /killed {
    content_by_lua_block {
      local how = ngx.var.arg_how
      kept.lock = nil
      local own, list = "own", { "list" }
      local function helps(reason) return own .. " " .. reason end
      local function tells(_, reason)
        losses[#losses + 1] = list[1] .. " " .. helps(reason)
        count_loss()
      end
      local on_lost = how == "callable" and setmetatable({}, { __call = function(_, ...) tells(...) end }) or tells
      local function take()
        local lock = assert(client:new_lock("killed", {
          ttl = 400, wait = 60000, on_lost = how ~= "call" and on_lost or nil,
        }))
        if how == "handed over" then
          assert(lock:acquire({ owner = "request" }))
          assert(lock:hand_over("worker"))
        else
          assert(lock:acquire(how == "call" and { on_lost = on_lost } or nil))
        end
        kept.lock = lock
        ngx.sleep(0.001)
      end
      if how == "light thread" then
        local thread = ngx.thread.spawn(function()
          take()
          ngx.sleep(3600)
        end)
        repeat ngx.sleep(0.002) until kept.lock
        ngx.thread.kill(thread)
        ngx.exit(200)
      end
      take()
      ngx.exit(200)
    }
  }
  location /others {
    content_by_lua_block {
      local function fill()
        local a, b, c, d, e, f, g, h = "another's", { "another's" }, "another's", error, error, 1, 2, 3
        ngx.sleep(0.5)
        return function() return a, b, c, d, e, f, g, h end
      end
      fill()
    }
  }
  location /shares {
    content_by_lua_block {
      local stop
      local lock = assert(client:acquire("shares", {
        ttl = 300, wait = 60000, on_lost = function(_, reason) stop = reason end,
      }))
      local began = ngx.now()
      while not stop and ngx.now() < began + 40 do ngx.sleep(0.01) end
      ngx.print(tostring(stop), " ", tostring(lock:is_held()))
    }
  }
  location /counted { content_by_lua_block { ngx.print(counted()) } }
  location /ending {
    content_by_lua_block {
      kept.lock = assert(client:acquire("ending", {
        ttl = 2500, auto_extend = { every = 100 }, on_lost = logs, wait = 60000,
      }))
      kept.plain = assert(client:acquire("plain", { ttl = 60000, on_lost = logs }))
      while not ngx.worker.exiting() do ngx.sleep(0.01) end
      local began = ngx.now()
      while kept.lock:is_held() and ngx.now() < began + 40 do ngx.sleep(0.01) end
      ngx.print((kept.lock:lost()), " ", math.floor((ngx.now() - began) * 1000))
    }
  }
  location /ending_request {
    content_by_lua_block {
      local lock = assert(client:acquire("of a request", {
        ttl = 2000, owner = "request", auto_extend = { every = 50 }, wait = 60000,
      }))
      while not ngx.worker.exiting() do ngx.sleep(0.01) end
      ngx.sleep(2.5)
      ngx.print(tostring(lock:is_held()))
    }
  }
  location /losses { content_by_lua_block { ngx.print(table.concat(losses, ", ")) losses = {} } }
  location /since { content_by_lua_block { ngx.print(kept.since) } }
  location /release {
    content_by_lua_block { ngx.print(tostring(kept.lock:release()), " ", tostring(kept.lock:lost())) }
  }
]]

describe("auto-extended leases in nginx", function()
  local farm, nginx

  setup(function()
    farm = helper.farm(5)
    nginx = server.start { addresses = farm.addresses, init = INIT, server = LOCATIONS }
  end)
  teardown(function()
    nginx:stop()
    farm:shut()
  end)
  before_each(function() farm:reset() end)

  local function get(path)
    local status, body = nginx:get(path)
    assert.are.equal(200, status, body)
    return body
  end

  local function eventually_reported(expected)
    local said
    helper.eventually(function()
      said = get("/losses")
      return said ~= ""
    end, expected)
    assert.are.equal(expected, said)
  end

  it("on_lost_runs_promptly_without_a_request", function()
    helper.unless_stalled(50, function()
      get("/worker")
      helper.pass(0.6)
      assert.are.equal("worker expired timer", get("/losses"))
      local since = tonumber(get("/since"))
      assert.is_true(since < 150, "reported after " .. since .. " ms")
    end)
    assert.are.equal("", nginx:complaints())
  end)

  it("lease_of_worker_is_extended_without_a_request", function()
    get("/kept")
    helper.eventually(function() return farm:count("kept") == 5 end, "the lease")
    -- The nodes store a lease that ends later: what is left grows.
    for _ = 1, 3 do
      local left = farm[1]:command("PTTL", "kept")
      helper.eventually(function()
        local now = farm[1]:command("PTTL", "kept")
        local grown = now > left
        left = now
        return grown
      end, "the lease to be extended")
    end
    assert.are.equal("", get("/losses"))
    assert.are.equal("true nil", get("/release"))
    farm:eventually_free("kept")
    assert.are.equal("", nginx:complaints())
  end)

  it("end_of_request_releases_lease_without_loss", function()
    get("/request")
    farm:eventually_free("request")
    helper.pass(0.3)
    assert.are.equal(0, farm:count("request"))
    assert.are.equal("", get("/losses"))
    assert.are.equal("", nginx:complaints())
  end)

  it("on_lost_reports_unavailable_and_then_expired_in_nginx", function()
    helper.unless_stalled(200, function()
      farm:reset()
      get("/losses")
      get("/kept?ttl=1000&timeout=100")
      for index = 1, 3 do farm[index]:stop() end
      eventually_reported("kept unavailable timer")
      eventually_reported("kept expired timer")
      for index = 1, 3 do farm[index]:continue() end
      helper.pass(0.2)
      assert.are.equal("", get("/losses"))
    end)
  end)

  it("error_of_on_lost_is_logged", function()
    get("/broken")
    helper.eventually(function() return nginx:read("error.log"):find("error in on_lost: .-oops") end, "the log")
    assert.is_truthy(nginx:read("error.log"):find("stack traceback:", 1, true))
    nginx:complaints()
  end)

  it("on_lost_reports_each_of_many_leases", function()
    get("/many")
    helper.eventually(function() return get("/waited") == "300" end, "all to be reported")
    local timers, most = get("/timers"):match("^(%d+) (%d+)$")
    assert.is_true(tonumber(timers) >= 2 and tonumber(timers) <= 30, timers .. " timers")
    assert.is_true(tonumber(most) <= 250, most .. " losses in one timer")
    assert.are.equal("", nginx:complaints())
  end)

  it("on_lost_needs_no_timer_before_a_loss", function()
    helper.unless_stalled(50, function() assert.are.equal("0 true true 0", get("/running")) end)
    assert.are.equal("", nginx:complaints())
  end)

  it("on_lost_does_not_read_variables_of_another_request", function()
    local counted = 0
    for _, how in ipairs { "exit", "call", "callable", "handed over", "light thread" } do
      assert.are.equal(200, (nginx:request("/killed?how=" .. how:gsub(" ", "%%20"))):finish())
      local others = {}
      for index = 1, 10 do others[index] = nginx:request("/others") end
      for index = 1, 10 do assert.are.equal(200, (others[index]:finish())) end
      eventually_reported("list own expired")
      assert.are.equal("", nginx:complaints(), how)
      counted = counted + 1
      assert.are.equal(tostring(counted), get("/counted"))
    end
  end)

  it("on_lost_shares_variables_with_running_request", function()
    assert.are.equal("expired false", get("/shares"))
  end)

  -- In these two the configuration is loaded again.
  it("lease_of_request_is_extended_while_worker_exits", function()
    helper.unless_stalled(500, function()
      local request = nginx:request("/ending_request")
      helper.eventually(function() return farm:count("of a request") == 5 end, "the lease")
      nginx:signal("HUP")
      assert.are.equal("true", select(2, request:finish()))
    end)
    assert.are.equal("", nginx:complaints())
  end)

  it("exiting_worker_reports_that_it_stops_extending", function()
    helper.unless_stalled(50, function() -- The request may see late that the worker ends.
      farm:reset()
      local request = nginx:request("/ending")
      helper.eventually(function() return farm:count("ending") == 5 end, "the lease")
      nginx:signal("HUP")
      local code, kept = select(2, request:finish()):match("^(%S+) (%d+)$")
      assert.are.equal("expired", code)
      assert.is_true(tonumber(kept) > 2700, "kept for " .. kept .. " ms")
    end)
    assert.is_truthy(nginx:read("error.log"):find("reported: ending unavailable", 1, true))
    assert.is_falsy(nginx:read("error.log"):find("reported: plain", 1, true))
    assert.are.equal("", nginx:complaints())
  end)
end)
