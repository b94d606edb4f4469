--- Servers that are up, and cannot do what they are asked for, or lose their connections.

local helper = require "spec.helper"
local redlock = require "redlock"
local support = require "spec.integration.support"

local failure = support.failure

describe("servers", function()
  local farm, client

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)
  before_each(function()
    for _, node in ipairs(farm) do
      assert(node:command("REPLICAOF", "NO", "ONE"))
      for name, value in pairs { maxmemory = 0, timeout = 0, ["min-replicas-to-write"] = 0 } do
        assert(node:command("CONFIG", "SET", name, value))
      end
    end
    farm:reset()
    client = support.warm(farm, redlock.new(farm.addresses, support.once))
  end)
  after_each(function() client:close() end)

  -- With a condition on two nodes it locks; on three it tells why not; without it, it locks again.
  local function minority_and_majority(impose, lift, text)
    impose(farm[1])
    impose(farm[2])
    assert(assert(client:acquire("r")):release())
    support.free(farm, client, "r")
    impose(farm[3])
    local lock = client:new_lock("r")
    helper.eventually(function() -- An attempt may fail before one of the three has answered.
      local message = failure("unavailable", lock:acquire())
      for index = 1, 3 do
        local vote = lock:votes()[index]
        if vote.vote ~= "error" or not vote.error:find(text, 1, true) then return false end
        support.contains(message, farm.addresses[index] .. ": " .. text)
      end
      return true
    end, "three nodes to vote " .. text)
    for index = 1, 3 do lift(farm[index]) end
    support.warm(farm, client)
    assert(lock:acquire())
    support.on_nodes(farm, client, lock)
    assert(lock:release())
    support.free(farm, client, "r")
  end

  it("node_without_memory_votes_OOM", function()
    minority_and_majority(
      function(node) assert(node:command("CONFIG", "SET", "maxmemory", "1")) end,
      function(node) assert(node:command("CONFIG", "SET", "maxmemory", "0")) end,
      "OOM command not allowed")
  end)

  it("node_without_memory_releases", function()
    local lock = assert(client:acquire("r"))
    support.on_nodes(farm, client, lock)
    for _, node in ipairs(farm) do assert(node:command("CONFIG", "SET", "maxmemory", "1")) end
    local released, message = lock:release()
    for _, node in ipairs(farm) do assert(node:command("CONFIG", "SET", "maxmemory", "0")) end
    assert.is_true(released, message)
    support.free(farm, client, "r")
  end)

  it("replica_votes_READONLY", function()
    local master = helper.farm(1)
    minority_and_majority(
      function(node)
        assert(node:command("REPLICAOF", "127.0.0.1", master[1].port))
        assert.is_truthy(node:command("INFO", "replication"):find("role:slave", 1, true))
      end,
      function(node) assert(node:command("REPLICAOF", "NO", "ONE")) end,
      "READONLY")
    master:shut()
  end)

  it("node_without_replicas_votes_NOREPLICAS", function()
    minority_and_majority(
      function(node) assert(node:command("CONFIG", "SET", "min-replicas-to-write", "1")) end,
      function(node) assert(node:command("CONFIG", "SET", "min-replicas-to-write", "0")) end,
      "NOREPLICAS")
  end)

  it("loading_node_votes_LOADING_until_it_has_loaded", function()
    local slow = helper.farm(1, "--dbfilename slow.rdb")
    local node = slow[1]
    node:command("EVAL", "for i = 1, 2000 do redis.call('set', 'key' .. i, i) end", "0")
    assert(node:command("SAVE"))
    node:kill()
    node.arguments = node.arguments .. " --key-load-delay 300 --loading-process-events-interval-bytes 1024"
    node:restart()
    local loading = redlock.new(slow.addresses, support.once)
    support.contains(failure("unavailable", loading:acquire("r")), "LOADING")
    helper.eventually(function() return node:command("DBSIZE") == 2000 end, "the node to have loaded")
    assert(assert(loading:acquire("r")):release())
    loading:close()
    slow:shut()
  end)

  it("client_reconnects_to_node_that_closes_idle_connections", function()
    for _, node in ipairs(farm) do assert(node:command("CONFIG", "SET", "timeout", "1")) end
    for _, node in ipairs(farm) do
      helper.eventually(function() return support.connections(node) == 0 end, "the node to close it")
    end
    local lock = assert(client:acquire("r", support.once))
    for _, node in ipairs(farm) do
      helper.eventually(function() return support.connections(node) == 0 end, "the node to close it")
    end
    assert(lock:extend())
    for _, node in ipairs(farm) do
      helper.eventually(function() return support.connections(node) == 0 end, "the node to close it")
    end
    assert(lock:release())
    for _, node in ipairs(farm) do assert(node:command("CONFIG", "SET", "timeout", "0")) end
    support.free(farm, client, "r")
  end)

  it("cut_connections_cost_one_attempt", function()
    local patient = support.warm(farm, redlock.new(farm.addresses,
      { retry_delay = 20, retry_jitter = 10, node_timeout = 5000, wait = 30000 }))
    for round = 1, 5 do
      for _, node in ipairs(farm) do node:command("CLIENT", "KILL", "TYPE", "normal") end
      local lock = assert(patient:acquire("r" .. round))
      for _, node in ipairs(farm) do node:command("CLIENT", "KILL", "TYPE", "normal") end
      -- What was under way is not known, but nothing is lost: it may be asked for again.
      helper.eventually(function() return lock:extend() end, "the lock to be extended")
      for _, node in ipairs(farm) do node:command("CLIENT", "KILL", "TYPE", "normal") end
      lock:release()
      support.free(farm, patient, "r" .. round)
    end
    patient:close()
  end)

  it("paused_node_is_like_a_hanging_node", function()
    for index = 1, 2 do assert(farm[index]:command("CLIENT", "PAUSE", "500", "ALL")) end
    helper.within(300, function() assert(assert(client:acquire("r")):release()) end)
    helper.unless_stalled(100, function()
      -- A node that is paused hears this when it goes on.
      for index = 1, 3 do assert(farm[index]:command("CLIENT", "PAUSE", "700", "ALL")) end
      helper.within(400, function() failure("unavailable", client:acquire("r2", { node_timeout = 100 })) end)
    end)
    support.free(farm, client, "r")
    support.free(farm, client, "r2")
    assert(assert(client:acquire("r2")):release())
  end)
end)
