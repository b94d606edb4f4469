--- Releases, waited for or not, and close().

local assert = require "luassert"
local helper = require "spec.helper"

local unpack = table.unpack or unpack -- luacheck: ignore

return function(behaviour)
  local test = behaviour.test
  local failure = behaviour.failure
  local eventually_on_all = behaviour.eventually_on_all
  local eventually_free = behaviour.eventually_free
  local driver = behaviour.driver
  local PATIENCE = behaviour.patience

  test("second_release_returns_not_held", function(client)
    local lock = assert(client:acquire("r"))
    assert.is_true((lock:release()))
    assert.are.equal(0, lock:remaining())
    assert.is_nil(lock:token())
    eventually_free("r")
    failure("not_held", lock:release())
    failure("not_held", lock:extend())
  end)

  -- Polls for the result: what the first call that is not "pending" returned.
  local function eventually_result(lock)
    local results
    helper.eventually(function()
      driver.pump(behaviour.client)
      results = { lock:result() }
      return results[3] ~= "pending"
    end, "the release to have a result")
    return unpack(results, 1, 3)
  end

  test("release_without_waiting_frees_the_lock", function(client)
    for round = 1, 20 do
      local lock = assert(client:acquire("r"))
      assert.is_true((lock:release({ wait = false })))
      assert.are.equal(0, lock:remaining())
      assert.is_false(lock:is_held())
      assert.is_nil(lock:token())
      if round % 2 == 0 then assert.is_true((eventually_result(lock))) end
    end
    eventually_free("r")
    local lock = assert(client:acquire("r"))
    assert.is_true((lock:release({ wait = true })))
    failure("not_held", lock:release({ wait = false }))
  end)

  test("lock_is_acquired_again_after_release_without_waiting", function(client)
    local lock = client:new_lock("r")
    for _ = 1, 50 do
      assert(lock:acquire())
      assert.is_true((lock:release({ wait = false })))
    end
    assert(lock:acquire())
    eventually_on_all(lock)
    assert.is_true(lock:is_held())
  end)

  test("release_waits_for_earlier_release_without_waiting", function(client)
    local lock = assert(client:acquire("r"))
    assert.is_true((lock:release({ wait = false })))
    assert.is_true((lock:release()))
    failure("not_held", lock:release())
    eventually_free("r")
  end)

  test("result_of_release_without_waiting_reports_loss", function(client, _, farm)
    local lock = assert(client:acquire("r"))
    eventually_on_all(lock)
    for index = 1, 5 do farm[index]:command("SET", "r", "somebody else") end
    assert.is_true((lock:release({ wait = false })))
    failure("lost", eventually_result(lock))
  end)

  test("release_without_waiting_ignores_hanging_nodes", function(client, _, farm)
    local lock = assert(client:acquire("r"))
    eventually_on_all(lock)
    for index = 1, 5 do farm[index]:stop() end
    local before = helper.now()
    assert.is_true((lock:release({ wait = false })))
    assert.is_true(helper.now() - before < PATIENCE / 2000)
    for index = 1, 5 do farm[index]:continue() end
    eventually_free("r")
  end)

  test("collected_lock_after_release_without_waiting_leaves_no_key", function(client)
    for index = 1, 50 do
      local lock = assert(client:acquire("r" .. index))
      lock:release({ wait = false })
    end
    collectgarbage()
    for index = 1, 50 do eventually_free("r" .. index) end
  end)

  test("release_options_are_checked", function(client)
    local lock = assert(client:acquire("r"))
    local function complaint(given)
      local ok, err = pcall(function() lock:release(given) end)
      assert.is_false(ok)
      assert.is_truthy(err:find("release.lua:%d+: redlock: "), err)
      return err
    end
    assert.is_truthy(complaint({ wait = 5 }):find("option 'wait' must be true or false, got 5", 1, true))
    assert.is_truthy(complaint({ ttl = 5 }):find("unknown option 'ttl'", 1, true))
    assert.is_truthy(complaint(5):find("options must be a table", 1, true))
    assert.is_true(lock:is_held())
  end)

  test("closed_client_releases_and_refuses", function(client, other)
    local lock = assert(client:acquire("r"))
    local idle = client:new_lock("idle")
    local handed = assert(assert(client:acquire("handed")):detach())
    assert.is_true((client:close()))
    eventually_free("r")
    assert.is_true((client:close()))
    assert.are.equal(0, lock:remaining())
    failure("closed", lock:acquire())
    failure("closed", idle:acquire())
    failure("closed", client:acquire("r"))
    failure("closed", client:new_lock("r"))
    failure("closed", client:with("r", function() error("must not run") end))
    local _, message, code = client:attach(handed)
    assert.are.same({ "the client has been closed", "closed" }, { message, code })
    assert(assert(other:attach(handed)):release())
    assert(other:acquire("r"))
  end)
end
