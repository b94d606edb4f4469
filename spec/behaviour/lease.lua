--- Leases that keep themselves, leases that run out, and on_lost.

local assert = require "luassert"
local helper = require "spec.helper"

return function(behaviour)
  local test = behaviour.test
  local once = behaviour.once
  local failure = behaviour.failure
  local run_out = behaviour.run_out
  local eventually_on_all = behaviour.eventually_on_all
  local eventually_free = behaviour.eventually_free
  local driver = behaviour.driver

  local function idle()
    driver.idle(behaviour.client)
  end

  -- The losses that a lock reports.
  local function reported(lock_options)
    local events = {}
    lock_options.on_lost = function(lock, reason)
      events[#events + 1] = { lock = lock, reason = reason, code = lock:lost() }
    end
    return events
  end

  local function eventually_reported(events, count)
    helper.eventually(function()
      idle()
      return #events >= count
    end, count .. " losses to be reported")
    assert.are.equal(count, #events)
  end

  test("auto_extend_prolongs_lease_and_excludes_other_clients", function(client, other, farm)
    local options = { ttl = 60000, auto_extend = { every = 30 } }
    local events = reported(options)
    local lock = assert(client:acquire("r", options))
    local token = lock:token()
    eventually_on_all(lock)
    -- The nodes store a lease that ends later, without a call: what is left grows.
    for _ = 1, 3 do
      local left = farm[1]:command("PTTL", "r")
      helper.eventually(function()
        idle()
        local now = farm[1]:command("PTTL", "r")
        local grown = now > left
        left = now
        return grown
      end, "the lease to be extended")
      failure("taken", other:acquire("r"))
      assert.is_true(lock:check() > 0)
    end
    assert.are.equal(token, lock:token())
    assert.is_nil((lock:lost()))
    assert(lock:release())
    assert(other:acquire("r"))
    assert.are.equal(0, #events)
    assert.is_nil((lock:lost()))
  end)

  test("on_lost_reports_lost_lease_once", function(client, _, farm)
    local options = { ttl = 60000, auto_extend = { every = 40 } }
    local events = reported(options)
    local lock = assert(client:acquire("r", options))
    eventually_on_all(lock)
    for index = 1, 3 do farm[index]:command("SET", "r", "somebody else") end
    eventually_reported(events, 1)
    assert.are.equal("lost", events[1].reason)
    assert.are.equal("lost", events[1].code)
    assert.are.equal(lock, events[1].lock)
    assert.is_false(lock:is_held())
    local code, since = lock:lost()
    assert.are.equal("lost", code)
    assert.is_true(since >= 0 and since < 60000)
    local line = debug.getinfo(1, "l").currentline + 1
    local ok, message = pcall(function() lock:check() end)
    assert.is_false(ok)
    local expected = "lease.lua:" .. line .. ": redlock: 'r' is not held any more"
    assert.is_truthy(message:find(expected, 1, true), message)
    assert.is_truthy(message:find("(lost)", 1, true), message)
    for index = 1, 3 do farm[index]:command("DEL", "r") end
    helper.pass(0.15, idle)
    eventually_free("r")
    assert.are.equal(1, #events)
    failure("lost", lock:release())
  end)

  once("max_hold_ends_the_lease_and_is_reported", function(client, _, farm)
    helper.unless_stalled(300, function()
      local options = { ttl = 1000, auto_extend = { every = 50, max_hold = 1100 } }
      local events = reported(options)
      local lock = assert(client:acquire("r", options))
      local began = helper.now()
      eventually_reported(events, 1)
      local held = helper.now() - began
      assert.are.equal("max_hold", events[1].reason)
      assert.is_true(held > 1, "held for " .. held)
      assert.are.equal("max_hold", (lock:lost()))
      helper.eventually(function() return farm:count("r") == 0 end)
      failure("expired", lock:release())
      assert.is_nil((lock:lost()))
    end)
  end)

  test("on_lost_reports_failing_extends_and_then_expiry", function(client, _, farm)
    helper.unless_stalled(100, function()
      for index = 1, 3 do farm[index]:continue() end
      helper.eventually(function()
        driver.pump(client)
        return farm:count("r") == 0
      end)
      local options = { ttl = 1000, node_timeout = 80, auto_extend = { every = 20 } }
      local events = reported(options)
      local lock = assert(client:acquire("r", options))
      helper.eventually(function()
        driver.pump(client)
        return farm:count("r", lock:token()) == 5 or not lock:is_held()
      end)
      for index = 1, 3 do farm[index]:stop() end
      eventually_reported(events, 1)
      assert.are.equal("unavailable", events[1].reason)
      eventually_reported(events, 2)
      assert.are.equal("expired", events[2].reason)
      assert.is_false(lock:is_held())
      for index = 1, 3 do farm[index]:continue() end
      helper.pass(0.1, idle)
      assert.is_false(lock:is_held())
      assert.are.equal(2, #events)
    end)
  end)

  test("on_lost_reports_expiry_without_auto_extend", function(client)
    local options = { ttl = 80 }
    local events = reported(options)
    local lock = client:new_lock("r", options)
    helper.eventually(function() return (lock:acquire()) end, "a lock of 80 ms")
    eventually_reported(events, 1)
    assert.are.equal("expired", events[1].reason)
    assert(lock:acquire({ ttl = 60000 }))
    assert.is_nil((lock:lost()))
    assert(lock:release())
    assert.are.equal(1, #events)
  end)

  test("operation_succeeds_while_auto_extend_is_in_flight", function(client)
    for round = 1, 10 do
      local lock = assert(client:acquire("r" .. round, { ttl = 60000, auto_extend = { every = 1 } }))
      idle()
      failure("held", lock:acquire())
      assert(lock:extend(70000))
      idle()
      assert.is_true(lock:is_held())
      assert(lock:release())
      failure("not_held", lock:release())
    end
    for round = 1, 10 do eventually_free("r" .. round) end
  end)

  test("expired_lease_is_free_for_another_client", function(client, other)
    local lock = helper.eventually(function() return (client:acquire("r", { ttl = 60 })) end, "a lock of 60 ms")
    run_out(lock)
    assert.is_false(lock:is_held())
    failure("expired", lock:extend())
    eventually_free("r")
    assert(other:acquire("r"))
  end)
end
