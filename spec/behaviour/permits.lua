--- Semaphores: locks with several permits.

local assert = require "luassert"

return function(behaviour)
  local test = behaviour.test
  local once = behaviour.once
  local failure = behaviour.failure
  local POOL = { permits = 3, ttl = 90000, wait = 20000, retry_delay = 5, retry_jitter = 5 }
  local TRY = { permits = 3, ttl = 90000, wait = 0 }

  -- Acquires |count| slots. Returns the locks by slot.
  local function take(client, count)
    local slots = {}
    for _ = 1, count do
      local lock = assert(client:acquire("pool", POOL))
      local slot = lock:slot()
      assert.is_true(slot >= 1 and slot <= 3 and not slots[slot], "slot " .. tostring(slot))
      slots[slot] = lock
    end
    return slots
  end

  test("semaphore_admits_as_many_holders_as_permits", function(client, other)
    local slots = take(client, 3)
    local message = failure("taken", other:acquire("pool", TRY))
    assert.is_truthy(message:find("have no free slot of 3", 1, true), message)
    assert(slots[2]:release())
    assert.is_nil(slots[2]:slot())
    local lock = assert(other:acquire("pool", POOL))
    assert.are.equal(2, lock:slot())
    assert.is_truthy(lock:token():find("/3$"))
    assert(lock:extend(80000))
    for _, held in pairs({ slots[1], slots[3], lock }) do assert(held:release()) end
  end)

  test("try_finds_the_only_free_slot", function(client, other)
    for slot = 1, 3 do
      local slots = take(client, 3)
      assert(slots[slot]:release())
      behaviour.eventually_free("pool/" .. slot)
      local lock = assert(other:acquire("pool", TRY))
      assert.are.equal(slot, lock:slot())
      slots[slot] = lock
      for at, held in pairs(slots) do
        assert(held:release())
        behaviour.eventually_free("pool/" .. at)
      end
    end
  end)

  test("waiter_of_a_semaphore_gets_the_slot_that_is_released", function(client, other)
    local slots = take(client, 2)
    slots[3] = nil
    local short = assert(client:acquire("pool", { permits = 3, ttl = 400, wait = 20000 }))
    local lock = assert(other:acquire("pool", POOL))
    assert.are.equal("number", type(lock:slot()))
    assert.is_false(short:is_held())
    assert(lock:release())
    for _, held in pairs(slots) do assert(held:release()) end
  end)

  test("detached_semaphore_keeps_its_slot", function(client, other)
    local slots = take(client, 2)
    local slot, lock = next(slots)
    local text = assert(lock:detach())
    assert.is_nil(lock:slot())
    local attached = assert(other:attach(text))
    assert.are.equal(slot, attached:slot())
    assert.are.equal("pool", attached:resource())
    assert(attached:release())
  end)

  test("another_number_of_permits_is_named", function(client, other)
    local first = assert(client:acquire("pool", { permits = 1, ttl = 90000 }))
    local lock = assert(other:acquire("pool", { permits = 2, ttl = 90000, wait = 20000 }))
    assert.are.equal(2, lock:slot())
    local message = failure("taken", other:acquire("pool", { permits = 2, wait = 0 }))
    assert.is_truthy(message:find("another client uses permits = 1", 1, true), message)
    assert(first:release() and lock:release())
  end)

  test("inspect_shows_all_slots", function(client, other)
    local lock = assert(client:acquire("pool", POOL))
    local found = assert(other:inspect("pool", { permits = 3 }))
    assert.are.equal(3, #found.slots)
    assert.are.equal(1, found.held)
    assert.are.equal(lock:token(), found.slots[lock:slot()].holder)
    local _, wrong = pcall(other.inspect, other, "pool", { permits = 1025 })
    assert.is_truthy(tostring(wrong):find("permits", 1, true), wrong)
    assert(lock:release())
  end)

  once("label_follows_the_permits_in_the_token", function(client)
    local lock = assert(client:acquire("pool", { permits = 1024, label = "a b", ttl = 90000 }))
    assert.is_truthy(lock:token():find("/1024:a b$"), lock:token())
    local found = assert(client:inspect("pool/" .. lock:slot()))
    assert.are.equal("a b", found.label)
  end)

  once("semaphore_has_one_resource_and_no_supplied_token", function(client)
    local _, wrong = pcall(client.new_lock, client, { "a", "b" }, { permits = 2 })
    assert.is_truthy(tostring(wrong):find("a lock with several resources is no semaphore", 1, true), wrong)
    _, wrong = pcall(client.acquire, client, "a", { permits = 2, token = "mine" })
    assert.is_truthy(tostring(wrong):find("an acquire of a semaphore supplies no token", 1, true), wrong)
  end)

  once("lock_without_permits_has_no_slot", function(client)
    local lock = assert(client:acquire("pool", { ttl = 90000 }))
    assert.is_nil(lock:slot())
    local slot = assert(client:acquire("pool", { permits = 2, ttl = 90000 })) -- They exclude no semaphore.
    assert.is_true(lock:is_held() and slot:is_held())
  end)

  once("nested_acquire_shares_the_slot", function(client)
    local options = { permits = 2, ttl = 90000, reentrant = "job" }
    local outer = assert(client:acquire("pool", options))
    local inner = assert(client:acquire("pool", options))
    assert.are.equal(outer:slot(), inner:slot())
    assert(inner:release())
    assert.is_true(outer:is_held())
    assert(outer:release())
  end)

  once("owner_of_a_lock_holds_no_semaphore_of_that_name", function(client)
    local lock = assert(client:acquire("pool", { ttl = 90000, reentrant = "job" }))
    local slot = assert(client:acquire("pool", { permits = 2, ttl = 90000, reentrant = "job" }))
    assert.are.equal("number", type(slot:slot()))
    assert.is_nil(lock:slot())
    assert.are_not.equal(lock:token(), slot:token())
    failure("held", lock:acquire({ permits = 2, reentrant = "job" }))
    assert(lock:release())
    assert.is_true(slot:is_held())
    assert(slot:release())
  end)

  once("fence_of_a_slot_grows", function(client)
    local last = 0
    for _ = 1, 4 do
      local lock = assert(client:acquire("pool", { permits = 1, fence = true, ttl = 90000, wait = 20000 }))
      assert.is_true(lock:fence() > last)
      last = lock:fence()
      assert(lock:release())
    end
  end)

end
