--- Locks: acquire, extend, and what their keys are.

local assert = require "luassert"
local helper = require "spec.helper"

return function(behaviour)
  local test = behaviour.test
  local once = behaviour.once
  local failure = behaviour.failure
  local eventually_on_all = behaviour.eventually_on_all
  local eventually_free = behaviour.eventually_free
  local driver = behaviour.driver
  local PATIENCE = behaviour.patience

  test("acquire_sets_one_token_on_all_nodes", function(client, _, farm)
    local lock = client:new_lock("orders:42", { ttl = 60000 })
    assert.are.equal(0, lock:remaining())
    assert.is_false(lock:is_held())
    assert.is_nil(lock:token())
    local validity = assert(lock:acquire())
    assert.is_true(validity > 30000 and validity <= 60000 - 600 - 2, "validity " .. validity)
    assert.are.equal(math.floor(validity), validity)
    assert.is_true(lock:remaining() > 30000 and lock:remaining() <= validity)
    assert.is_true(lock:is_held())
    assert.is_truthy(lock:token():match("^%x+$"))
    assert.are.equal(40, #lock:token())
    eventually_on_all(lock)
    local left = farm[1]:command("PTTL", "orders:42")
    assert.is_true(left > 30000 and left <= 60000, "pttl " .. left)
    assert.are.equal("orders:42", lock:resource())
    assert.are.equal(60000, lock:ttl())
  end)

  once("margin_counts_keys_that_may_vanish_before_a_second_holder", function(client, _, farm)
    local lock = client:new_lock("m", { ttl = 60000 })
    local function margin_becomes(margin, event)
      helper.eventually(function()
        driver.pump(client)
        return lock:margin() == margin
      end, event)
    end
    assert.is_nil(lock:margin())
    for _, method in ipairs { "acquire", "extend" } do
      farm[5]:stop()
      assert(lock[method](lock))
      margin_becomes(1, "the votes of four nodes")
      farm[5]:continue()
      margin_becomes(2, "the late vote")
    end
    eventually_on_all(lock)
    farm[1]:command("DEL", "m")
    farm[2]:command("DEL", "m")
    assert.are.equal(2, lock:margin()) -- Nobody has asked them since.
    assert(lock:extend())
    assert.is_true(lock:margin() >= 0)
    eventually_on_all(lock)
    margin_becomes(2, "the nodes to be healed")
    assert(lock:release())
    assert.is_nil(lock:margin())
  end)

  test("second_acquire_is_taken", function(client, other, farm)
    local lock = assert(client:acquire("r")) -- kept until the end: garbage is released
    failure("taken", other:acquire("r"))
    eventually_on_all(lock)
    local second = other:new_lock("r")
    failure("taken", second:acquire())
    local votes = second:votes()
    assert.are.equal(5, #votes)
    local taken = 0
    for index, vote in ipairs(votes) do
      assert.are.equal(farm.addresses[index], vote.node)
      if vote.vote == "taken" then taken = taken + 1 end
    end
    assert.is_true(taken >= 3)
    assert.is_false(second:is_held())
    assert(lock:release())
    assert(second:acquire())
  end)

  test("new_client_acquires_extends_and_releases", function(_, _, farm)
    for round = 1, 3 do
      local cold = driver.new(farm.addresses, { ttl = 60000, node_timeout = PATIENCE })
      local lock = assert(cold:acquire("r" .. round))
      assert.is_true(farm:count("r" .. round, lock:token()) >= 3)
      assert(lock:extend(90000))
      assert.is_true(lock:remaining() > 60000)
      assert(lock:release())
      assert.is_true(farm:count("r" .. round) <= 2)
      cold:close()
      eventually_free("r" .. round)
    end
  end)

  test("check_inspect_and_force_release_raise_at_callers_line", function(client)
    local lock = client:new_lock("r")
    local long = ("x"):rep(5000)
    for text, fn in pairs({
      ["lock:check() needs a lock before the colon, got nil"] = function() lock.check() end,
      ["'r' is not held"] = function() lock:check() end,
      ["resource is too long: it has 5000 bytes"] = function() local seen = client:inspect(long) return seen end,
      ["resource is too long: it has 5000"] = function() local n = client:force_release(long, "t") return n end,
      ["client:inspect() needs a client before the colon, got a string"] = function() client.inspect("r") end,
      ["client:force_release() needs a client before the colon, got a string"] = function()
        client.force_release("r", "t")
      end,
    }) do
      local ok, err = pcall(fn)
      assert.is_false(ok)
      assert.is_truthy(err:find("acquire.lua:%d+: redlock: ") and err:find(text, 1, true), err)
    end
  end)

  test("acquire_of_held_lock_returns_held", function(client)
    local lock = assert(client:acquire("r"))
    local token = lock:token()
    failure("held", lock:acquire())
    assert.are.equal(token, lock:token())
    assert.is_true(lock:is_held())
  end)

  test("extend_prolongs_the_lease_and_never_shortens_it", function(client, _, farm)
    local lock = assert(client:acquire("r", { ttl = 30000 }))
    eventually_on_all(lock)
    local validity = assert(lock:extend(90000))
    assert.is_true(validity > 60000 and validity < 90000, "validity " .. validity)
    assert.is_true(lock:remaining() > 60000)
    local extended = 0
    for index = 1, 5 do
      if farm[index]:command("PTTL", "r") > 60000 then extended = extended + 1 end
    end
    assert.is_true(extended >= 3, "extended on " .. extended)
    assert(lock:extend())
    assert.is_true(lock:remaining() > 60000, "an extend must not shorten the lease")
  end)

  test("extend_of_lost_lock_returns_lost", function(client, _, farm)
    local lock = assert(client:acquire("r", { ttl = 60000 }))
    eventually_on_all(lock)
    for index = 1, 3 do farm[index]:command("SET", "r", "somebody else") end
    failure("lost", lock:extend(90000))
    assert.are.equal(0, lock:remaining())
    assert.is_false(lock:is_held())
    failure("lost", lock:extend(90000))
    failure("lost", lock:release())
    assert.are.equal("somebody else", farm[1]:command("GET", "r"))
    failure("not_held", lock:release())
  end)

  test("tostring_shows_state_and_no_token", function(client, other)
    local lock = client:new_lock("orders:42")
    assert.are.equal("redlock.lock orders:42 (not held)", tostring(lock))
    assert(lock:acquire())
    assert.is_truthy(tostring(lock):match("^redlock%.lock orders:42 %(held, %d+ ms left%)$"))
    assert.is_nil(tostring(lock):find(lock:token(), 1, true))
    local up = 0
    for _, node in ipairs(client:nodes()) do up = up + (node.state == "up" and 1 or 0) end
    assert.is_true(up >= 3)
    assert.are.equal(("redlock.client (%d of 5 nodes connected)"):format(up), tostring(client))
    assert(lock:release())
    assert.are.equal("redlock.lock orders:42 (not held)", tostring(lock))
    client:close()
    assert.are.equal("redlock.lock orders:42 (not held)", tostring(lock))
    assert.is_truthy(tostring(other:new_lock("a\0b\27\\")):find("a\\x00b\\x1b\\x5c", 1, true))
    assert.are.equal("redlock.lock \\x1f ~\\x7f (not held)", tostring(other:new_lock("\31 ~\127")))
    assert.is_truthy(#tostring(other:new_lock(("x"):rep(4000))) < 200)
    assert.is_truthy(tostring(client):match("^redlock%.client %(%d of 5 nodes connected%)$"))
  end)

  once("lock_works_after_script_flush", function(client, _, farm)
    local lock = assert(client:acquire("r"))
    for index = 1, 5 do farm[index]:command("SCRIPT", "FLUSH") end
    assert(lock:extend())
    for index = 1, 5 do farm[index]:command("SCRIPT", "FLUSH") end
    assert(lock:release())
    eventually_free("r")
  end)
end
