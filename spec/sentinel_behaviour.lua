--- A loop of coroutines with a sentinel:// address: a fail-over, and Sentinels that hang.
---
--- sentinel_behaviour(title, { new = , run = , spawn = , sleep = , describe = , it = }): as for
--- spec/loop_behaviour.lua.

local assert = require "luassert"
local helper = require "spec.helper"
local witness = require "witness"

local STALL = 250 -- ms; a look-up that blocks the loop takes half a second for each Sentinel

return function(title, driver)
  local servers, sentinels

  local function begin()
    servers = helper.farm(2, "--repl-diskless-sync-delay 0")
    servers[2]:command("REPLICAOF", "127.0.0.1", servers[1].port)
    sentinels = helper.sentinels(3, servers[1].port)
    for _, sentinel in ipairs(sentinels) do
      helper.eventually(function()
        local text = sentinel:command("INFO", "sentinel")
        return text and text:find("status=ok,.*,slaves=1,sentinels=3")
      end, "a Sentinel to know all others", 90)
    end
  end

  local function finish()
    sentinels:shut()
    servers:shut()
  end

  local function new()
    return driver.new({ "sentinel://" .. table.concat(sentinels.addresses, ",") .. "/mymaster" },
      { node_timeout = 20000, ttl = 60000 })
  end

  -- Runs `fn` beside a ticker. Returns the longest time in milliseconds between two ticks, without
  -- the delay by the scheduler.
  local function with_ticker(fn)
    local longest, over = 0, false
    driver.spawn(function()
      local last = witness.now()
      while not over do
        driver.sleep(0.005)
        local now = witness.now()
        longest = math.max(longest, now - last - witness.delay(last))
        last = now
      end
    end)
    fn()
    over = true
    return longest
  end

  local function test(name, fn)
    driver.it(name, function()
      helper.limit(300)
      assert(witness.start(), "no thread for the witness")
      begin()
      local ok, err = pcall(driver.run, fn)
      finish()
      if not ok then error(err, 0) end
    end)
  end

  driver.describe(title, function()
    test("client_follows_the_master_that_sentinels_name", function()
      local client = new()
      assert(assert(client:acquire("r", { wait = 60000 })):release())
      servers[1]:kill()
      local lock, longest
      longest = with_ticker(function() lock = assert(client:acquire("r", { wait = 80000 })) end)
      assert.are.equal(lock:token(), servers[2]:command("GET", "r"))
      assert.is_true(longest < STALL, ("the loop stood still for %.1f ms"):format(longest))
      assert(lock:release())
      client:close()
    end)

    test("hanging_sentinels_do_not_block_the_loop", function()
      for _, sentinel in ipairs(sentinels) do sentinel:stop() end
      local client = new()
      local lock, err, code
      local longest = with_ticker(function() lock, err, code = client:acquire("r", { wait = 2000 }) end)
      assert.is_nil(lock)
      assert.are.equal("unavailable", code)
      assert.is_truthy(err:find("mymaster", 1, true) or err:find("sentinel://", 1, true), err)
      assert.is_true(longest < STALL, ("the loop stood still for %.1f ms"):format(longest))
      for _, sentinel in ipairs(sentinels) do sentinel:continue() end
      assert(assert(client:acquire("r", { wait = 80000 })):release())
      client:close()
    end)
  end)
end
