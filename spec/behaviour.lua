--- The behaviour that every driver of the module has, whatever it waits with. The chapters are in
--- spec/behaviour.
---
--- behaviour(title, driver) declares the specs. The driver is a table:
---
---     new(addresses, options)  makes a client
---     run(fn)                  calls a function where clients may be used
---     pump(client)             lets a client do what it can do without waiting
---     idle(client)             lets time pass as the driver's programs do
---     farm()                   returns five nodes
---     describe, it             busted's, which only spec files are given
---     blocks                   true for the driver that blocks, which also runs `once` tests
---     chapters                 names of chapters; all if not given
---     skip                     titles of tests that this driver cannot pass, with the reason

local assert = require "luassert"
local helper = require "spec.helper"

local CHAPTERS = {
  "acquire", "release", "detach", "token", "operator", "lease", "nodes", "options", "several", "with", "reentrant",
  "label", "permits", "stats", "lead", "hold",
}

-- Node timeout of clients whose nodes answer, or whose timeout must not end while the test runs.
local PATIENCE = 30000

-- Adds the checks that several chapters use.
local function add_checks(behaviour)
  local driver = behaviour.driver

  function behaviour.failure(code, ...)
    local result, message, got = ...
    assert.is_nil(result)
    assert.is_string(message)
    assert.are.equal(code, got)
    assert.is_true(#message > 0)
    return message
  end

  -- An acquire is over when a majority has granted; the others get the key when they are connected.
  function behaviour.eventually_on_all(lock, key, from)
    helper.eventually(function()
      driver.pump(from or behaviour.client)
      assert.is_true(lock:is_held())
      return behaviour.farm:count(key or lock:resource(), lock:token()) == 5
    end, "all nodes to have the key")
  end

  -- The last millisecond counts as none, but an extend can still come in time in it.
  function behaviour.run_out(lock)
    helper.eventually(function() return lock:remaining() == 0 end)
    helper.pass(0.002)
    assert.are.equal(0, lock:remaining())
  end

  function behaviour.eventually_free(key)
    helper.eventually(function()
      driver.pump(behaviour.client)
      driver.pump(behaviour.other)
      return behaviour.farm:count(key) == 0
    end, "the key " .. key .. " to be gone")
  end
end

-- Declares the tests of one chapter by `behaviour.test`. `behaviour.once` declares those that do
-- not depend on the driver. Each gets two clients and the farm, which helpers of the chapters find
-- in `behaviour`, too.
local function chapter(driver, name)
  local behaviour = { driver = driver, patience = PATIENCE }

  function behaviour.warm(cold, prefix)
    helper.warm(cold, behaviour.farm, driver.pump, prefix)
  end

  function behaviour.test(title, fn)
    if driver.skip and driver.skip[title] then
      driver.skipped[title] = true
      return
    end
    driver.it(title, function()
      local farm = driver.farm()
      farm:reset()
      driver.run(function()
        local client = driver.new(farm.addresses, { retry_count = 0, node_timeout = PATIENCE })
        local other = driver.new(farm.addresses, { retry_count = 0, node_timeout = PATIENCE })
        behaviour.client, behaviour.other, behaviour.farm = client, other, farm
        behaviour.warm(client)
        behaviour.warm(other)
        fn(client, other, farm)
        for _, node in ipairs(farm) do
          if node.stopped then node:continue() end
        end
        client:close()
        other:close()
        behaviour.client, behaviour.other = nil, nil
      end)
    end)
  end

  behaviour.once = driver.blocks and behaviour.test or function() end

  add_checks(behaviour)
  require("spec.behaviour." .. name)(behaviour)
end

return function(title, driver)
  driver.skipped = {}
  driver.describe(title, function()
    for _, name in ipairs(driver.chapters or CHAPTERS) do chapter(driver, name) end
    for name in pairs(driver.skip or {}) do assert(driver.skipped[name], "no such test to skip: " .. name) end
  end)
end
