local helper = require "spec.helper"
local redlock = require "redlock"
local support = require "spec.integration.support"

local failure = support.failure

describe("nodes", function()
  local farm

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)
  before_each(function() farm:reset() end)

  for count = 1, 5 do
    local majority = math.floor(count / 2) + 1

    it("lock_is_on_all_nodes_and_excludes_other_clients: " .. count, function()
      local addresses = support.first(farm.addresses, count)
      local client = support.warm(farm, redlock.new(addresses, support.once))
      local other = redlock.new(addresses, support.once)
      local lock = assert(client:acquire("r"))
      support.on_nodes(farm, client, lock, count)
      failure("taken", other:acquire("r"))
      assert(lock:extend())
      assert(lock:release())
      support.free(farm, client, "r")
      assert(other:acquire("r"))
      client:close()
      other:close()
    end)

    it("lock_works_without_a_minority: " .. count, function()
      local client = redlock.new(support.first(farm.addresses, count), support.once)
      for index = 1, count - majority do farm[index]:kill() end
      local lock = assert(client:acquire("r"))
      assert(lock:extend())
      support.on_nodes(farm, client, lock, majority)
      assert(lock:release())
      client:close()
    end)

    it("lock_is_unavailable_without_a_majority: " .. count, function()
      local client = redlock.new(support.first(farm.addresses, count), support.once)
      local gone = count - majority + 1
      for index = 1, gone do farm[index]:kill() end
      local before = helper.now()
      local message = failure("unavailable", client:acquire("r"))
      assert.is_true(helper.now() - before < 10)
      for index = 1, gone do
        support.contains(message, farm.addresses[index] .. ": Connection refused")
      end
      for index = 1, gone do farm[index]:restart() end
      support.all_up(client)
      support.free(farm, client, "r")
      local lock = assert(client:acquire("r"))
      support.on_nodes(farm, client, lock, count)
      client:close()
    end)
  end

  it("votes_report_the_reply_of_each_node", function()
    local client = support.warm(farm, redlock.new(farm.addresses, { retry_count = 0, node_timeout = 20000 }))
    farm[2]:command("SET", "r", "somebody")
    farm[3]:kill()
    farm[4]:stop()
    farm[5]:stop()
    local votes
    helper.unless_stalled(30, function()
      farm[1]:command("DEL", "r")
      local lock = client:new_lock("r", { node_timeout = 80 })
      failure("unavailable", lock:acquire())
      votes = lock:votes()
      local expected = { "granted", "taken" }
      for index, vote in ipairs(expected) do
        assert.are.equal(vote, votes[index].vote)
        assert.are.equal(farm.addresses[index], votes[index].node)
        assert.is_true(votes[index].latency >= 0 and votes[index].latency < 80)
      end
    end)
    assert.is_truthy(votes[3].vote == "error" or votes[3].vote == "unknown")
    assert.is_string(votes[3].error)
    for index = 4, 5 do
      assert.are.equal("unknown", votes[index].vote)
      assert.is_truthy(votes[index].error:find("no reply within %d+ ms"))
      assert.is_nil(votes[index].latency)
      farm[index]:continue()
    end
    client:close()
  end)

  it("hanging_nodes_delay_no_acquire", function()
    local client = support.warm(farm, redlock.new(farm.addresses, { retry_count = 0, node_timeout = 20000 }))
    farm[1]:stop()
    farm[2]:stop()
    local slowest = 0
    for round = 1, 50 do
      local before = helper.now()
      local lock = assert(client:acquire("r" .. round))
      assert(lock:release())
      slowest = math.max(slowest, helper.now() - before)
    end
    assert.is_true(slowest < 10, "took " .. slowest)
    farm[1]:continue()
    farm[2]:continue()
    support.pump(client, function()
      return farm[1]:command("DBSIZE") == 0 and farm[2]:command("DBSIZE") == 0
    end, "late keys to be gone")
    support.warm(farm, client)
    support.on_nodes(farm, client, assert(client:acquire("again")))
    client:close()
  end)
end)
