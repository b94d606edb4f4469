local helper = require "spec.helper"
local redlock = require "redlock"
local support = require "spec.integration.support"

local failure = support.failure

describe("leases", function()
  local farm, client

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)
  before_each(function()
    farm:reset()
    client = support.warm(farm, redlock.new(farm.addresses, support.once))
  end)
  after_each(function() client:close() end)

  it("lease_expires_before_its_keys", function()
    local lock
    helper.unless_stalled(100, function()
      lock = assert(client:acquire("r", { ttl = 300 }))
      support.on_nodes(farm, client, lock)
    end)
    local seen = 0
    helper.eventually(function()
      local keys = farm:count("r")
      local remaining = lock:remaining() -- read later: whoever is gone by now was not counted on
      assert.is_true(keys == 5 or remaining == 0, keys .. " keys, " .. remaining .. " ms left")
      if remaining > 0 then seen = seen + 1 end
      return keys == 0
    end, "the keys to expire")
    assert.is_true(seen > 0)
    assert.is_false(lock:is_held())
    failure("expired", lock:extend())
    assert.are.equal(0, farm:count("r"))
    assert(client:acquire("r"))
  end)

  it("lock_delay_prolongs_keys_and_not_the_lease", function()
    local lock = assert(client:acquire("r", { ttl = 150, lock_delay = 60000, wait = 30000 }))
    assert.is_true(lock:remaining() <= 150)
    for _, node in ipairs(farm) do
      support.pump(client, function() return node:command("PTTL", "r") > 0 end, "the key")
      local left = node:command("PTTL", "r")
      assert.is_true(left > 10000 and left <= 60150, "pttl " .. left)
    end
    helper.eventually(function() return lock:remaining() == 0 end)
    assert.are.equal(5, farm:count("r"))
    local other = redlock.new(farm.addresses, support.once)
    failure("taken", other:acquire("r"))
    other:close()
  end)

  it("extend_keeps_lock_delay", function()
    local lock = assert(client:acquire("r", { ttl = 20000, lock_delay = 60000 }))
    support.on_nodes(farm, client, lock)
    local validity = assert(lock:extend(40000))
    assert.is_true(validity <= 40000)
    support.pump(client, function()
      for _, node in ipairs(farm) do
        local left = node:command("PTTL", "r")
        if left <= 80000 or left > 100000 then return false end
      end
      return true
    end, "the keys to live for ttl and lock delay")
  end)

  it("extend_restores_keys_on_nodes_that_lost_them", function()
    local lock = assert(client:acquire("r"))
    support.on_nodes(farm, client, lock)
    -- One that votes before the others have decided, and one that votes after.
    farm[1]:command("FLUSHALL")
    farm[5]:command("FLUSHALL")
    assert.are.equal(3, farm:count("r"))
    assert(lock:extend(120000))
    support.on_nodes(farm, client, lock)
    assert.is_true(farm[1]:command("PTTL", "r") > 60000)
    assert(lock:release())
    support.free(farm, client, "r")
  end)

  it("extend_does_not_overwrite_foreign_key", function()
    local lock = assert(client:acquire("r"))
    support.on_nodes(farm, client, lock)
    farm[1]:command("FLUSHALL")
    farm[2]:command("SET", "r", "somebody")
    assert(lock:extend())
    support.on_nodes(farm, client, lock, 4)
    assert.are.equal("somebody", farm[2]:command("GET", "r"))
  end)

  it("extend_does_not_restore_lock_that_a_majority_lost", function()
    local lock = assert(client:acquire("r"))
    support.on_nodes(farm, client, lock)
    for index = 1, 3 do farm[index]:command("FLUSHALL") end
    local message = failure("lost", lock:extend(60000))
    for index = 1, 3 do support.contains(message, farm.addresses[index]) end
    assert.is_false(lock:is_held())
    -- Nor by a second try, nor later; what is left of it is released.
    failure("lost", lock:extend(60000))
    support.all_up(client)
    support.free(farm, client, "r")
    for index = 1, 3 do assert.are.equal(false, farm[index]:command("GET", "r")) end
    failure("lost", lock:release())
    support.free(farm, client, "r")
  end)

  it("failed_extend_leaves_lease_as_it_was", function()
    local lock = assert(client:acquire("r", { ttl = 60000, node_timeout = 200, wait = 30000 }))
    support.on_nodes(farm, client, lock)
    for index = 1, 3 do farm[index]:stop() end
    local before = lock:remaining()
    failure("unavailable", lock:extend(120000))
    assert.is_true(lock:remaining() <= before and lock:remaining() > 10000)
    for index = 1, 3 do farm[index]:continue() end
    helper.eventually(function() return lock:extend(120000) end, "an extend")
    assert.is_true(lock:remaining() > 60000)
  end)

  it("dropped_locks_leave_no_key_under_load", function()
    local other = redlock.new(farm.addresses, support.once)
    for round = 1, 600 do
      -- Held, in flight, and held by a client that is garbage as well.
      assert(client:acquire("held" .. round, { ttl = 60000 }))
      if round % 3 == 0 then
        local pending = other:new_lock("pending" .. round, { ttl = 60000 })
        assert(pending:start("acquire"))
        other:process()
      end
    end
    collectgarbage()
    collectgarbage()
    for _, node in ipairs(farm) do
      helper.eventually(function()
        client:process()
        other:process()
        return node:command("DBSIZE") == 0
      end, "all keys to be gone")
      assert.is_truthy(node:command("INFO", "commandstats"):find("cmdstat_set:calls=%d%d%d"))
    end
    other:close()
  end)

  local function drop_clients(forget_scripts)
    for round = 1, 30 do
      local dropped = redlock.new(farm.addresses, support.once)
      assert(dropped:acquire("r" .. round, { ttl = 60000 }))
    end
    if forget_scripts then
      for _, node in ipairs(farm) do assert(node:command("SCRIPT", "FLUSH")) end
    end
    collectgarbage()
    collectgarbage()
    for _, node in ipairs(farm) do
      helper.eventually(function()
        client:process()
        return node:command("DBSIZE") == 0
      end, "all keys to be gone")
      helper.eventually(function()
        client:process()
        return support.connections(node) == 1
      end, "the connections to be gone")
    end
  end

  it("dropped_client_with_locks_leaves_no_key", function() drop_clients(false) end)

  it("dropped_client_leaves_no_key_on_node_without_script", function()
    drop_clients(true)
  end)
end)
