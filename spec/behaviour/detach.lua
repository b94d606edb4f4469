--- detach() and attach(): a lock goes from one client to another.

local assert = require "luassert"
local helper = require "spec.helper"

return function(behaviour)
  local test = behaviour.test
  local once = behaviour.once
  local failure = behaviour.failure
  local eventually_on_all = behaviour.eventually_on_all
  local eventually_free = behaviour.eventually_free
  local driver = behaviour.driver

  test("detach_after_release_without_waiting_names_the_lock",
    function(client)
    local lock = assert(client:acquire("r"))
    assert(lock:release({ wait = false }))
    local message = failure("not_held", lock:detach())
    assert.is_truthy(message:find("'r'", 1, true), message)
    eventually_free("r")
  end)

  test("attach_refuses_wait_and_retry_count", function(client, other)
    local text = assert(assert(client:acquire("r")):detach())
    for name, value in pairs({ wait = 1000, retry_count = 5 }) do
      local ok, err = pcall(function() other:attach(text, { [name] = value }) end)
      assert.is_false(ok)
      local says = "detach.lua:%d+: redlock: option '" .. name .. "' does not go with client:attach"
      assert.is_truthy(err:find(says), err)
    end
    assert(assert(other:attach(text, { wait = 0, retry_count = 0 })):release())
  end)

  test("detach_and_attach_move_lock_to_another_client", function(client, other, farm)
    local lock = assert(client:acquire("r", { ttl = 30000 }))
    eventually_on_all(lock)
    local token = lock:token()
    local text = assert(lock:detach())
    assert.is_truthy(text:find("^[%w%.%-_]+$"), text)
    assert.are.equal(0, lock:remaining())
    assert.is_nil(lock:token())
    failure("not_held", lock:extend())
    failure("not_held", lock:release())
    failure("not_held", lock:detach())
    lock = nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    driver.pump(client)
    assert.are.equal(5, farm:count("r", token))
    failure("taken", client:acquire("r"))
    local taken = assert(other:attach(text))
    assert.are.equal("r", taken:resource())
    assert.are_not.equal(token, taken:token())
    assert.is_true(taken:remaining() > 10000 and taken:remaining() <= 30000)
    assert.are.equal(30000, taken:ttl())
    eventually_on_all(taken, nil, other)
    assert(taken:extend())
    failure("lost", client:attach(text))
    assert.is_true(taken:is_held())
    assert(taken:release())
    eventually_free("r")
    failure("lost", client:attach(text))
    eventually_free("r")
  end)

  once("attach_refuses_expired_or_force_released_lock",
    function(client, other, farm)
    local text
    helper.unless_stalled(100, function() text = assert(assert(client:acquire("r", { ttl = 200 })):detach()) end)
    helper.eventually(function() return farm:count("r") == 0 end)
    local message = failure("lost", other:attach(text))
    assert.is_truthy(message:find("no longer have its token", 1, true), message)
    text = assert(assert(client:acquire("r")):detach())
    other:force_release("r", "any")
    local lock = assert(other:acquire("r"))
    failure("lost", client:attach(text))
    assert(lock:extend())
  end)

  once("detach_and_attach_move_several_long_resources", function(client, other)
    for _, names in ipairs({ { "a", "b", "c" }, { ("x"):rep(4000), ("y"):rep(4000), ("z"):rep(4000) } }) do
      local lock = assert(client:acquire(names))
      for _, name in ipairs(names) do eventually_on_all(lock, name) end
      local text = assert(lock:detach())
      failure("not_held", lock:release())
      for _, name in ipairs(names) do failure("taken", other:acquire(name)) end
      local taken = assert(other:attach(text))
      assert.are.same(names, taken:resources())
      assert(taken:extend())
      failure("lost", client:attach(text))
      assert(taken:release())
      for _, name in ipairs(names) do eventually_free(name) end
    end
  end)

  once("attach_sets_nothing_on_node_that_lost_a_resource",
    function(client, other, farm)
    local names = { "a", "b", "c" }
    local lock = assert(client:acquire(names))
    for _, name in ipairs(names) do eventually_on_all(lock, name) end
    local text = assert(lock:detach())
    for index = 1, 3 do farm[index]:command("DEL", "b") end
    failure("lost", other:attach(text))
    eventually_free("b")
  end)

  once("attach_refuses_corrupt_text", function(client, other, farm)
    local lock = assert(client:acquire("r"))
    eventually_on_all(lock)
    local text = assert(lock:detach())
    for at = 1, #text, 7 do
      local byte = text:sub(at, at) == "A" and "B" or "A"
      failure("lost", other:attach(text:sub(1, at - 1) .. byte .. text:sub(at + 1)))
      failure("lost", other:attach(text:sub(1, at - 1)))
    end
    local function complaint(fn)
      local ok, err = pcall(fn)
      assert.is_false(ok)
      assert.is_truthy(err:find("detach.lua:%d+: redlock: "), err)
      return err
    end
    local refused = complaint(function() other:attach(5) end)
    assert.is_truthy(refused:find("takes the text that lock:detach() has returned", 1, true))
    local prefixed = driver.new(farm.addresses, { prefix = "x:" })
    assert.is_truthy(complaint(function() prefixed:attach(text) end):find("another prefix", 1, true))
    prefixed:close()
    local fewer = driver.new({ farm.addresses[1], farm.addresses[2] })
    assert.is_truthy(complaint(function() fewer:attach(text) end):find("another number of nodes", 1, true))
    fewer:close()
    assert(assert(other:attach(text, { ttl = 60000 })):remaining() > 20000)
  end)
end
