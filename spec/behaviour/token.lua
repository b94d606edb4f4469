--- Tokens: fencing tokens, and those that the caller gives.

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

  once("each_acquire_has_a_new_token", function(client)
    local lock = client:new_lock("r")
    assert(lock:acquire())
    local first = lock:token()
    assert(lock:release())
    assert(lock:acquire())
    assert.are_not.equal(first, lock:token())
  end)

  test("each_grant_has_a_greater_fence", function(client, other)
    local last = 0
    for i = 1, 6 do
      local lock = assert((i % 2 == 0 and client or other):acquire("r", { fence = true, ttl = 20000 }))
      local fence = lock:fence()
      assert.are.equal("number", type(fence))
      assert.are.equal(("%d"):format(fence), ("%.0f"):format(fence))
      assert.are.equal(0, fence % 1)
      assert.is_true(fence > last and fence < 2 ^ 53, tostring(fence))
      if math.type then assert.are.equal("integer", math.type(fence)) end -- luacheck: ignore
      last = fence
      assert(lock:extend(10000))
      assert.are.equal(fence, lock:fence())
      assert(lock:release())
      assert.is_nil(lock:fence())
      eventually_free("r")
    end
  end)

  once("fence_exceeds_the_greatest_of_all_nodes", function(client, other, farm)
    local future = math.floor(helper.now()) * 1000000 + 5000000
    for i, node in ipairs({ 2, 4, 5 }) do
      farm[node]:command("SET", "r:redlock-fence", ("%.0f"):format(future + i - 1))
    end
    local lock = assert(client:acquire("r", { fence = true }))
    local fence = lock:fence()
    assert.is_true(fence > future and fence <= future + 3, tostring(fence))
    local confirmed = 0
    for node = 1, 5 do
      if tonumber(farm[node]:command("GET", "r:redlock-fence") or 0) >= fence then confirmed = confirmed + 1 end
    end
    assert.is_true(confirmed >= 3)
    assert(lock:release())
    eventually_free("r")
    assert.is_true(assert(other:acquire("r", { fence = true })):fence() > fence)
  end)

  once("attached_lock_keeps_its_fence", function(client, other)
    local lock = assert(client:acquire("r", { fence = true }))
    local fence = lock:fence()
    eventually_on_all(lock)
    local attached = assert(other:attach(assert(lock:detach())))
    assert.are.equal(fence, attached:fence())
    assert(attached:release())
    eventually_free("r")
    local plain = assert(client:acquire("r"))
    assert.is_nil(plain:fence())
    eventually_on_all(plain)
    local text = assert(plain:detach())
    local ok, err = pcall(other.attach, other, text, { fence = true })
    assert.is_false(ok)
    assert.is_truthy(err:find("was acquired without a fencing token", 1, true), err)
  end)

  test("caller_supplied_token_has_any_bytes", function(client, other)
    local token = "order 42\0\255 \r\n" .. ("x"):rep(200)
    local lock = assert(client:acquire("r", { token = token, ttl = 30000 }))
    assert.are.equal(token, lock:token())
    eventually_on_all(lock)
    assert(lock:extend(60000))
    assert.are.equal(token, other:inspect("r").holder)
    assert(lock:release())
    eventually_free("r")
    assert(lock:acquire())
    assert.are.equal(40, #lock:token())
    assert(lock:release())
    assert(lock:acquire({ token = "once more" }))
    assert.are.equal("once more", lock:token())
    assert(lock:release())
    assert.are.same({ true, "in a section" }, { client:with("r", { token = "in a section" }, function(own)
      return own:token()
    end) })
    eventually_free("r")
  end)

  -- As LockTake, LockExtend and LockRelease of StackExchange.Redis: SET NX PX, and scripts that
  -- compare.
  once("caller_supplied_token_is_shared_with_another_library", function(client, _, farm)
    for index = 1, 5 do farm[index]:command("SET", "r", "theirs", "PX", "60000", "NX") end
    failure("taken", client:acquire("r", { token = "theirs", wait = 0 }))
    assert.is_true(farm:count("r", "theirs") >= 3) -- and keeps its majority
    for index = 1, 5 do farm[index]:command("DEL", "r") end
    local lock = assert(client:acquire("r", { token = "ours" }))
    eventually_on_all(lock)
    assert.are.equal("$-1", farm[1]:command("SET", "r", "theirs", "PX", "60000", "NX") or "$-1")
    for index = 1, 5 do
      assert.are.equal(1, farm[index]:command("EVAL", "if redis.call('get',KEYS[1])==ARGV[1] then "
        .. "return redis.call('del',KEYS[1]) end return 0", "1", "r", "ours"))
    end
    failure("lost", lock:extend())
  end)

  test("caller_supplied_token_is_tried_once_and_checked", function(client, other, farm)
    local held = assert(other:acquire("r"))
    local before = helper.now()
    local patient = driver.new(farm.addresses, { retry_count = 50, retry_delay = 60000, node_timeout = PATIENCE })
    failure("taken", patient:acquire("r", { token = "mine" }))
    assert.is_true(helper.now() - before < 30)
    patient:close()
    assert.is_true(held:is_held())
    local function complaint(fn)
      local ok, err = pcall(fn)
      assert.is_false(ok)
      assert.is_truthy(err:find("token.lua:%d+: redlock: "), err)
      return err
    end
    for _, wrong in ipairs { "", ("x"):rep(257), "any", 5 } do
      local given = { token = wrong }
      assert.is_truthy(complaint(function() client:acquire("r", given) end):find("option 'token' must", 1, true))
      local message = complaint(function() client:new_lock("r"):acquire(given) end)
      assert.is_truthy(message:find("option 'token' must", 1, true))
      assert.is_truthy(complaint(function() client:with("r", given, error) end):find("option 'token' must", 1, true))
    end
    for _, given in ipairs { { token = "x", wait = 5 }, { token = "x", retry_count = 1 } } do
      assert.is_truthy(complaint(function() client:acquire("r", given) end):find("does not go with 'token'", 1, true))
      assert.is_truthy(complaint(function() client:new_lock("r"):acquire(given) end):find("not go with", 1, true))
      assert.is_truthy(complaint(function() client:with("r", given, error) end):find("not go with", 1, true))
    end
    assert.is_truthy(complaint(function() client:new_lock("r", { token = "x" }) end)
      :find("option 'token' can only be given to an acquire", 1, true))
  end)
end
