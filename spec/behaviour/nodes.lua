--- Nodes that are gone, that hang, and that are back.

local assert = require "luassert"
local helper = require "spec.helper"

return function(behaviour)
  local test = behaviour.test
  local once = behaviour.once
  local failure = behaviour.failure
  local warm = behaviour.warm
  local eventually_on_all = behaviour.eventually_on_all
  local eventually_free = behaviour.eventually_free
  local driver = behaviour.driver
  local PATIENCE = behaviour.patience

  once("quorum_of_four_rejects_three_grants", function(client, _, farm)
    local careful = driver.new(farm.addresses, { retry_count = 0, node_timeout = PATIENCE, quorum = 4 })
    warm(careful)
    local lost = assert(careful:acquire("q", { ttl = 60000 }))
    eventually_on_all(lost, "q", careful)
    farm[1]:command("DEL", "q")
    farm[2]:command("DEL", "q")
    failure("lost", lost:extend()) -- Four were needed, and three are left.
    assert.is_nil(lost:margin())
    farm[1]:kill()
    local lock = assert(careful:acquire("p", { ttl = 60000 }))
    assert.are.equal(2, lock:margin())
    farm[2]:kill()
    failure("unavailable", lock:extend())
    assert.are.equal(2, lock:margin()) -- The old deadline stands.
    local message = failure("unavailable", careful:acquire("r"))
    assert.is_truthy(message:find("of 5 nodes granted it (4 needed)", 1, true), message)
    local now_free
    helper.eventually(function() -- Nobody has waited for the release of what failed.
      driver.pump(careful)
      now_free = client:acquire("r")
      return now_free
    end, "three of five to be a majority again")
    now_free:release()
    careful:close()
  end)

  once("message_names_unreachable_nodes", function(client, _, farm)
    for index = 3, 5 do farm[index]:kill() end
    local lock = client:new_lock("r")
    local message = failure("unavailable", lock:acquire())
    for index = 3, 5 do
      assert.is_truthy(message:find(farm.addresses[index], 1, true), message)
    end
    local votes = lock:votes()
    assert.is_truthy(votes[5].vote == "error" or votes[5].vote == "unknown")
    for index, node in ipairs(client:nodes()) do
      assert.are.equal(farm.addresses[index], node.node)
      assert.is_truthy(node.state == "up" or node.state == "connecting" or node.state == "down")
      if index >= 3 then assert.are_not.equal("up", node.state) end
    end
    eventually_free("r")
    local down = helper.eventually(function()
      driver.pump(client)
      local node = client:nodes()[5]
      return node.state == "down" and node
    end)
    assert.is_string(down.error)
  end)

  test("lock_works_without_two_nodes_and_uses_them_when_they_return", function(client, _, farm)
    farm[1]:kill()
    farm[2]:kill()
    local lock = assert(client:acquire("r"))
    assert(lock:release())
    farm[1]:restart()
    farm[2]:restart()
    helper.eventually(function()
      local again = client:acquire("r")
      driver.pump(client)
      local all = again and farm:count("r", again:token()) == 5
      if again then again:release() end
      return all
    end, "all five nodes to be used again")
  end)

  test("hanging_node_delays_no_operation", function(client, _, farm)
    farm[5]:stop()
    local lock = client:new_lock("r")
    local before = helper.now()
    assert(lock:acquire())
    assert(lock:extend())
    assert(lock:release())
    assert.is_true(helper.now() - before < PATIENCE / 2000)
    farm[5]:continue()
    eventually_free("r")
  end)

  test("attempt_ends_at_node_timeout", function(client, _, farm)
    for index = 1, 3 do farm[index]:stop() end
    local lock = client:new_lock("r", { node_timeout = 50 })
    local before = helper.now()
    failure("unavailable", lock:acquire())
    local took = helper.now() - before
    assert.is_true(took > 0.04 and took < PATIENCE / 2000, "took " .. took)
    assert.are.equal("unknown", lock:votes()[1].vote)
    for index = 1, 3 do farm[index]:continue() end
    eventually_free("r")
  end)
end
