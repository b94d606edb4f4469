--- Minimum hold: a release before hold_at_least is over keeps the keys until then.

local assert = require "luassert"
local helper = require "spec.helper"

return function(behaviour)
  local test = behaviour.test
  local failure = behaviour.failure
  local eventually_on_all = behaviour.eventually_on_all
  local eventually_free = behaviour.eventually_free
  local driver = behaviour.driver

  -- The remaining life of the key on a node, in ms.
  local function left(index, key)
    return behaviour.farm[index]:command("PTTL", key or "r")
  end

  -- The keys on all nodes live for `most` ms at most, and at least for all of it but two minutes.
  local function eventually_kept(client, most, key)
    helper.eventually(function()
      driver.pump(client)
      for index = 1, 5 do
        local found = left(index, key)
        if found > most or found < most - 120000 then return false end
      end
      return true
    end, "the keys to be kept for " .. most .. " ms")
  end

  test("release_keeps_lock_until_hold_at_least_is_over", function(client, other)
    local lock = assert(client:acquire("r", { ttl = 90000, hold_at_least = 600000 }))
    eventually_on_all(lock)
    assert.is_true(lock:release())
    assert.is_false(lock:is_held())
    assert.are.equal(0, lock:remaining())
    eventually_kept(client, 606063) -- the drift of such a life more
    failure("taken", other:acquire("r"))
    failure("taken", client:acquire("r"))
    failure("not_held", lock:release())
    failure("not_held", lock:extend())
  end)

  test("release_shortens_a_lease_that_is_longer_than_hold_at_least", function(client, other)
    local lock = assert(client:acquire("r", { ttl = 900000, hold_at_least = 100 }))
    eventually_on_all(lock)
    assert.is_true(lock:release())
    local next_one = assert(other:acquire("r", { wait = 60000, retry_delay = 20, ttl = 90000 }))
    assert.is_true(next_one:is_held())
    assert.is_true(next_one:release())
  end)

  test("release_after_hold_at_least_frees_lock", function(client)
    local lock = assert(client:acquire("r", { ttl = 900000, hold_at_least = 1 }))
    eventually_on_all(lock)
    helper.pass(0.02)
    assert.is_true(lock:release())
    eventually_free("r")
  end)

  test("release_without_waiting_keeps_lock", function(client)
    local lock = assert(client:acquire("r", { ttl = 90000, hold_at_least = 600000 }))
    eventually_on_all(lock)
    assert.is_true(lock:release { wait = false })
    eventually_kept(client, 606063)
  end)

  test("with_keeps_lock_after_its_function_has_failed", function(client)
    local ok = pcall(client.with, client, "r", { ttl = 90000, hold_at_least = 600000 }, function(lock)
      eventually_on_all(lock)
      error("the work has failed")
    end)
    assert.is_false(ok)
    eventually_kept(client, 606063)
  end)

  test("collected_lock_is_kept", function(client)
    do
      local lock = assert(client:acquire("r", { ttl = 90000, hold_at_least = 600000 }))
      eventually_on_all(lock)
    end
    helper.eventually(function()
      collectgarbage()
      driver.pump(client)
      return left(1) > 90000 and left(2) > 90000 and left(3) > 90000
    end, "the keys of the collected lock to be kept")
  end)

  test("closed_client_keeps_lock", function(client, other)
    local lock = assert(client:acquire("r", { ttl = 90000, hold_at_least = 600000 }))
    eventually_on_all(lock)
    client:close()
    assert.is_false(lock:is_held())
    eventually_kept(other, 606063)
  end)

  test("several_resources_are_kept_together", function(client, other)
    local lock = assert(client:acquire({ "a", "b" }, { ttl = 90000, hold_at_least = 600000, fence = true }))
    assert.is_true(lock:fence() > 0)
    assert.is_true(lock:release())
    failure("taken", other:acquire("a"))
    failure("taken", other:acquire("b"))
    helper.eventually(function()
      driver.pump(client)
      return left(1, "a") > 90000 and left(1, "b") > 90000
    end, "both keys to be kept")
  end)

  test("kept_slot_of_a_semaphore_stays_taken", function(client, other)
    local short = assert(client:acquire("s", { ttl = 90000, permits = 2, hold_at_least = 600000 }))
    local plain = assert(client:acquire("s", { ttl = 90000, permits = 2 }))
    assert.is_true(short:release())
    failure("taken", other:acquire("s", { permits = 2 }))
    assert.is_true(plain:release())
    local third = assert(other:acquire("s", { ttl = 90000, permits = 2, wait = 60000 }))
    assert.is_true(third:release())
  end)

  test("last_release_of_owner_keeps_lock", function(client, other)
    local outer = assert(client:acquire("r", { ttl = 90000, reentrant = "me" }))
    local inner = assert(client:acquire("r", { ttl = 90000, reentrant = "me", hold_at_least = 600000 }))
    eventually_on_all(outer)
    assert.is_true(inner:release())
    assert.is_true(outer:is_held())
    assert.is_true(outer:release())
    failure("taken", other:acquire("r"))
    eventually_kept(client, 606063)
  end)

  test("attached_lock_is_kept_for_the_rest_of_hold_at_least", function(client, other)
    local lock = assert(client:acquire("r", { ttl = 90000, hold_at_least = 600000 }))
    eventually_on_all(lock)
    local attached = assert(other:attach(assert(lock:detach())))
    eventually_on_all(attached, nil, other)
    assert.is_true(attached:release())
    eventually_kept(other, 606100)
  end)

  test("option_of_attach_replaces_hold_at_least", function(client, other)
    local lock = assert(client:acquire("r", { ttl = 90000, hold_at_least = 600000 }))
    eventually_on_all(lock)
    local attached = assert(other:attach(assert(lock:detach()), { hold_at_least = 0 }))
    assert.is_true(attached:release())
    eventually_free("r")
  end)

  test("force_release_frees_a_kept_lock", function(client, other)
    local lock = assert(client:acquire("r", { ttl = 90000, hold_at_least = 600000 }))
    eventually_on_all(lock)
    assert.is_true(lock:release())
    eventually_kept(client, 606063)
    assert(other:force_release("r", "any"))
    eventually_free("r")
  end)

  test("failed_acquire_keeps_no_keys", function(client, other)
    local held = assert(other:acquire("b", { ttl = 900000 }))
    eventually_on_all(held, nil, other)
    failure("taken", client:acquire({ "a", "b" }, { ttl = 90000, hold_at_least = 600000 }))
    eventually_free("a")
  end)
end
