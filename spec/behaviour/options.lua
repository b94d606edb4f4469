--- Options, wherever they are given; and how long an acquire tries.

local assert = require "luassert"
local helper = require "spec.helper"

return function(behaviour)
  local test = behaviour.test
  local failure = behaviour.failure
  local eventually_on_all = behaviour.eventually_on_all
  local eventually_free = behaviour.eventually_free
  local driver = behaviour.driver
  local once = behaviour.once
  local PATIENCE = behaviour.patience

  test("acquire_waits_for_its_budget", function(client, other)
    local held = assert(other:acquire("r", { ttl = 90000 }))
    local took
    helper.eventually(function() -- On a slow machine the budget may end before the nodes have answered.
      local before = helper.now()
      local lock, _, code = client:acquire("r", { wait = 100, retry_delay = 20, retry_jitter = 10 })
      took = helper.now() - before
      assert.is_nil(lock)
      return code == "taken"
    end, "the lock to be refused")
    assert.is_true(took > 0.03 and took < 30, "took " .. took)
    assert(held:release())
    helper.unless_stalled(50, function() held = assert(other:acquire("r", { ttl = 100 })) end)
    local lock = assert(client:acquire("r", { wait = 60000, retry_delay = 20, retry_jitter = 10 }))
    assert.is_true(lock:is_held())
    assert.is_false(held:is_held()) -- and was not collected before its time
  end)

  test("acquire_makes_retry_count_attempts", function(client, other)
    local held = assert(other:acquire("r", { ttl = 90000 }))
    local before = helper.now()
    failure("taken", client:acquire("r", { retry_count = 2, retry_delay = 50, retry_jitter = 0 }))
    local took = helper.now() - before
    assert.is_true(took > 0.095 and took < 30, "took " .. took)
    before = helper.now()
    failure("taken", client:acquire("r", { wait = 0, retry_delay = 60000 }))
    assert.is_true(helper.now() - before < 30)
    assert.is_true(held:is_held())
  end)

  -- Where options are taken: each function makes a client, and returns it with a function that
  -- acquires "r" and then lets `look` look at the lock. `given` is what counts; `wider` stands at
  -- the scopes around.
  local places = {
    ["redlock.new"] = function(given)
      local own = driver.new(behaviour.farm.addresses, given)
      return own, function(look)
        local lock, _, code = own:acquire("r")
        if lock then return look(lock) end
        return code
      end
    end,
    ["client:new_lock"] = function(given, wider)
      local own = driver.new(behaviour.farm.addresses, wider)
      return own, function(look)
        local lock = own:new_lock("r", given)
        local validity, _, code = lock:acquire()
        if validity then return look(lock) end
        return code
      end
    end,
    ["client:acquire"] = function(given, wider)
      local own = driver.new(behaviour.farm.addresses, wider)
      return own, function(look)
        local lock, _, code = own:acquire("r", given)
        if lock then return look(lock) end
        return code
      end
    end,
    ["client:with"] = function(given, wider)
      local own = driver.new(behaviour.farm.addresses, wider)
      return own, function(look)
        local ok, seen, code = own:with("r", given, look)
        return ok and seen or code
      end
    end,
    ["lock:acquire"] = function(given, wider)
      local own = driver.new(behaviour.farm.addresses, wider)
      return own, function(look)
        local lock = own:new_lock("r", wider)
        local validity, _, code = lock:acquire(given)
        if validity then return look(lock) end
        return code
      end
    end,
  }

  -- Nodes that answer have the time for that.
  local function patiently(options)
    options.node_timeout = options.node_timeout or PATIENCE
    return options
  end

  local function everywhere(option, given, wider, check, declare)
    patiently(given)
    patiently(wider)
    local declared = declare or test
    declared(option .. "_applies_wherever_it_is_set", function()
      for place, make in pairs(places) do
        local own, attempt = make(given, wider)
        local before = helper.now()
        check(place, attempt, function() return helper.now() - before end, own)
        own:close()
        eventually_free("r")
      end
    end)
  end

  local function everywhere_once(option, given, wider, check)
    everywhere(option, given, wider, check, once)
  end

  local function within(low, value, high, place)
    assert.is_true(value > low and value <= high, place .. ": " .. tostring(value))
  end

  -- A lock that is there before, so that the attempts fail; what counts is how long they take.
  local function refused(low, high)
    return function(place, attempt)
      local held = assert(behaviour.other:acquire("r", { ttl = 90000 }))
      local took
      helper.eventually(function() -- On a slow machine a budget may end before the nodes have answered.
        local began, code = helper.now(), attempt(error)
        took = helper.now() - began
        return code == "taken"
      end, "the lock to be refused, " .. place)
      within(low, took, high, place)
      assert(held:release())
    end
  end

  everywhere("ttl", { ttl = 90000 }, { ttl = 20000 }, function(place, attempt)
    within(30000, attempt(function(lock) return lock:remaining() end), 90000, place)
  end)

  everywhere_once("drift_factor", { drift_factor = 0.5, ttl = 60000 }, { drift_factor = 0.1, ttl = 60000 },
    function(place, attempt)
      within(15000, attempt(function(lock) return lock:remaining() end), 30000, place)
    end)

  everywhere_once("lock_delay", { lock_delay = 60000, ttl = 30000 }, { lock_delay = 100 },
    function(place, attempt, _, own)
      within(60000, attempt(function(lock)
        assert.is_true(lock:remaining() <= 30000)
        eventually_on_all(lock, nil, own)
        local left = behaviour.farm[1]:command("PTTL", "r")
        assert.is_true(lock:is_held()) -- and was no garbage meanwhile
        return left
      end), 90000, place)
    end)

  everywhere_once("hold_at_least", { hold_at_least = 600000, ttl = 30000 }, { hold_at_least = 100 },
    function(place, attempt, _, own)
      within(500000, attempt(function(lock)
        eventually_on_all(lock, nil, own)
        assert.is_true(lock:release())
        return behaviour.farm[1]:command("PTTL", "r")
      end), 606063, place)
      for index = 1, 5 do behaviour.farm[index]:command("DEL", "r") end
    end)

  everywhere_once("node_timeout", { node_timeout = 60, retry_count = 0 }, { node_timeout = 60000 },
    function(place, attempt, took)
      for index = 1, 3 do behaviour.farm[index]:stop() end
      assert.are.equal("unavailable", attempt(error), place)
      within(0.05, took(), 30, place)
      for index = 1, 3 do behaviour.farm[index]:continue() end
    end)

  everywhere_once("retry_count", { retry_count = 2, retry_delay = 40, retry_jitter = 0 }, { retry_count = 0 },
    refused(0.075, 30))

  everywhere_once("retry_delay", { retry_count = 1, retry_delay = 60, retry_jitter = 0 }, { retry_delay = 60000 },
    refused(0.055, 30))

  everywhere_once("retry_jitter", { retry_count = 2, retry_delay = 30, retry_jitter = 0 }, { retry_jitter = 60000 },
    refused(0.055, 30))

  everywhere_once("wait", { wait = 80, retry_delay = 10, retry_jitter = 0 }, { wait = 60000 }, refused(0.03, 30))

  test("acquire_options_apply_to_one_call", function(client)
    local lock = client:new_lock("r", { ttl = 10000 })
    assert.is_true(assert(lock:acquire({ ttl = 80000 })) > 30000)
    assert.are.equal(10000, lock:ttl())
  end)
end
