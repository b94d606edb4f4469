-- on_lost in scripts: when it runs, which one runs, and the effect of its errors. The behaviour of
-- all drivers is in spec/behaviour.lua.

local helper = require "spec.helper"
local redlock = require "redlock"

describe("on_lost in a script", function()
  local unpack = table.unpack or unpack -- luacheck: ignore
  local farm

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)
  before_each(function() farm:reset() end)

  local function new_client(options)
    options = options or {}
    options.node_timeout, options.ttl = options.node_timeout or 20000, options.ttl or 60000
    local client = redlock.new(farm.addresses, options)
    helper.warm(client, farm, client.process)
    return client
  end

  -- Calls nothing of the module.
  local let_pass = helper.pass

  -- A lock whose lease is so short that a slow machine may not even grant it.
  local function acquire_short(client, name, options)
    options = options or {}
    options.ttl = options.ttl or 60
    return helper.eventually(function() return (client:acquire(name, options)) end, "a short lease")
  end

  it("next_call_of_any_function_runs_on_lost", function()
    local client = new_client()
    for _, call in ipairs {
      function(lock) return lock:remaining() end,
      function(lock) return lock:is_held() end,
      function(lock) return lock:lost() end,
      function() return client:nodes() end,
      function() return client:process() end,
      function() return client:acquire("other" .. helper.now()) end,
    } do
      local reasons = {}
      local lock = acquire_short(client, "r", { on_lost = function(_, reason) reasons[#reasons + 1] = reason end })
      let_pass(0.1)
      assert.are.same({}, reasons)
      call(lock)
      assert.are.same({ "expired" }, reasons)
      call(lock)
      assert.are.same({ "expired" }, reasons)
      farm:eventually_free("r")
    end
    client:close()
  end)

  it("on_lost_of_call_overrides_lock_and_client", function()
    helper.unless_stalled(20, function()
      farm:reset()
      local by
      local function of(name)
        return function(lock, reason) by = name .. " " .. lock:resource() .. " " .. reason end
      end
      local client = new_client({ on_lost = of "client" })
      local function reported(lock)
        helper.eventually(function() return lock:remaining() == 0 and by end)
        local reported_by = by
        by = nil
        return reported_by
      end
      local plain = client:new_lock("plain", { ttl = 60 })
      assert(plain:acquire())
      assert.are.equal("client plain expired", reported(plain))
      local own = client:new_lock("own", { ttl = 60, on_lost = of "lock" })
      assert(own:acquire())
      assert.are.equal("lock own expired", reported(own))
      assert(own:acquire({ on_lost = of "call" }))
      assert.are.equal("call own expired", reported(own))
      assert(own:acquire())
      assert.are.equal("lock own expired", reported(own))
      by = nil
      assert(own:start("acquire", { on_lost = of "start" }))
      helper.eventually(function()
        client:process()
        return own:is_held() or by
      end)
      assert.are.equal("start own expired", reported(own))
      client:close()
    end)
  end)

  it("on_lost_uses_its_lock", function()
    helper.unless_stalled(20, function()
      farm:reset()
      local client, lock = new_client(), nil
      local held_again
      lock = acquire_short(client, "r", {
        on_lost = function(lost)
          held_again = lost == lock and lost:acquire({ ttl = 60000, on_lost = function() held_again = nil end })
        end,
      })
      let_pass(0.1)
      assert.is_true(lock:is_held())
      assert.is_true(held_again > 0)
      assert(lock:release())
      assert.is_true(held_again > 0)
      client:close()
    end)
  end)

  it("on_lost_does_not_nest", function()
    local client, inside, reported = new_client(), 0, 0
    local function on_lost(lock)
      assert.are.equal(0, inside)
      inside = inside + 1
      lock:is_held()
      client:process()
      inside, reported = inside - 1, reported + 1
    end
    local locks = {}
    for index = 1, 3 do locks[index] = acquire_short(client, "r" .. index, { on_lost = on_lost }) end
    let_pass(0.1)
    client:nodes()
    assert.are.equal(3, reported)
    assert.are.equal(0, inside)
    assert.are.equal(3, #locks)
    client:close()
  end)

  -- Where tables have finalizers. That of the younger object is called first, and the lock is in no
  -- weak table then.
  if _VERSION ~= "Lua 5.1" then
    it("finalizer_runs_no_on_lost_of_collected_lock", function()
      local client, finalized = new_client(), false
      local function drop()
        local lock = acquire_short(client, "r", { on_lost = function() finalized = "reported" end })
        let_pass(0.1)
        setmetatable({ lock }, { __gc = function() finalized = #client:nodes() end })
      end
      drop()
      collectgarbage()
      collectgarbage()
      assert.are.equal(5, finalized)
      client:close()
    end)
  end

  it("error_of_on_lost_is_written_to_stderr_with_traceback", function()
    local output, ok = helper.run_script([[
      local client = require("redlock").new({ ... }, { wait = 60000 })
      local function broken() error("oops") end
      local lock = assert(client:acquire("r", { ttl = 100, on_lost = function() broken() end }))
      -- What is left is reported in whole milliseconds, so that it ends a little before the lease.
      while lock:is_held() or select(2, lock:lost()) < 2 do end
      print("free: " .. tostring(client:acquire("other"):release()))
      print(lock:lost())
    ]], unpack(farm.addresses))
    assert.is_true(ok, output)
    assert.is_truthy(output:find("redlock: error in on_lost: .-script%.lua:2: oops\nstack traceback:"), output)
    assert.is_truthy(output:find("free: true", 1, true), output)
    assert.is_truthy(output:find("expired", 1, true), output)
  end)

  it("error_while_acquire_begins_leaves_nothing_in_flight", function()
    local client = new_client({ ttl = 20000 })
    for nth = 1, 6 do
      local lock, reads = client:new_lock("r"), 0
      -- Memory may run out at any of these places, too.
      local ok, err = pcall(function()
        assert(lock:acquire(setmetatable({}, { __index = function(_, name)
          if name ~= "on_lost" then return nil end
          reads = reads + 1
          if reads == nth then error("no more", 0) end
          return print
        end })))
      end)
      assert.is_true(ok or err == "no more")
      assert.are.equal(ok, lock:is_held())
      assert.are.equal(ok or nil, (lock:release()))
      farm:eventually_free("r")
      assert(lock:acquire())
      assert(lock:release())
      farm:eventually_free("r")
    end
    client:close()
  end)

  it("on_lost_does_not_keep_its_lock_alive", function()
    local client = new_client()
    local function drop()
      local box = {}
      box.lock = assert(client:acquire("r", { auto_extend = true, on_lost = function() return box.lock end }))
      box.other = client:new_lock("other", { on_lost = function() return box.other end })
      assert(box.other:acquire({ on_lost = function() return box end }))
    end
    drop()
    helper.eventually(function()
      collectgarbage()
      client:process()
      return farm:count("r") == 0 and farm:count("other") == 0
    end, "the locks to be collected")
    client:close()
  end)

  it("on_lost_ignores_released_closed_and_dropped_locks", function()
    helper.unless_stalled(30, function()
      farm:reset()
      local called
      local client = new_client({ on_lost = function(lock) called = lock:resource() end })
      assert(assert(client:acquire("released", { ttl = 80 })):release())
      do
        local dropped = assert(client:acquire("dropped", { ttl = 80 }))
        assert(dropped:is_held())
      end
      collectgarbage()
      collectgarbage()
      local closed = assert(client:acquire("closed", { ttl = 80 }))
      client:close()
      let_pass(0.12)
      assert.are.equal(0, closed:remaining())
      assert.is_nil(called)
    end)
  end)

  it("on_lost_and_auto_extend_are_checked", function()
    local client = redlock.new(farm.addresses)
    for _, case in ipairs {
      { { on_lost = 3 }, "option 'on_lost' must be a function, got 3" },
      { { on_lost = {} }, "option 'on_lost' must be a function, got a table" },
      { { on_event = print }, "option 'on_event' can only be given to redlock.new()" },
      { { auto_extend = 1 }, "option 'auto_extend' must be true, false or { every = ms, max_hold = ms }, got 1" },
      { { auto_extend = { each = 1 } }, "option 'auto_extend' has an unknown 'each'; it must be true, false or" },
      { { auto_extend = { every = -1 } }, "option 'auto_extend' has a 'every' that must be an integer >= 0" },
      { { auto_extend = { max_hold = "1" } }, "option 'auto_extend' has a 'max_hold' that must be an integer" },
      { { watchdog = true }, "did you mean 'auto_extend'?" },
      { { max_hold = 1000 }, "options 'extend_every' and 'max_hold' need option 'auto_extend'" },
      { { extend_every = 100, auto_extend = false }, "need option 'auto_extend'" },
    } do
      local line = debug.getinfo(1, "l").currentline + 1
      local ok, message = pcall(function() client:new_lock("r", case[1]) end)
      assert.is_false(ok)
      assert.is_truthy(message:find("on_lost_spec.lua:" .. line .. ": redlock: ", 1, true), message)
      assert.is_truthy(message:find(case[2], 1, true), message)
    end
    assert.is_truthy(client:new_lock("r", { on_lost = setmetatable({}, { __call = function() end }) }))
    assert.is_truthy(client:new_lock("r", { auto_extend = {} }))
    assert.is_truthy(client:new_lock("r", { max_hold = 0 }))
    client:close()
    client = redlock.new(farm.addresses, { max_hold = 60000 }) -- for locks that keep themselves
    assert.is_truthy(client:new_lock("r", { ttl = 1000 }))
    client:close()
  end)

  it("pollfd_is_readable_after_operation_ended", function()
    local client = new_client({ on_lost = print })
    local first = client:new_lock("first")
    assert(first:start("acquire"))
    local others = {} -- whose start reads what has come
    helper.eventually(function()
      others[#others + 1] = client:new_lock("other" .. #others)
      assert(others[#others]:start("acquire"))
      return select(3, first:result()) ~= "pending"
    end)
    for _ = 1, 3 do
      assert.is_number(client:pollfd())
      assert.are.equal(0, client:timeout())
    end
    local source = { getfd = function() return client:pollfd() end, dirty = function() return false end }
    local readable = require("socket").select({ source }, nil, 40)
    assert.are.equal(source, readable[1])
    client:process()
    assert.are.equal(first, client:next_ended())
    client:close()
  end)

  it("zero_overrides_max_hold_and_extend_every_of_client", function()
    helper.unless_stalled(300, function()
      farm:reset()
      local client = new_client { ttl = 1000, node_timeout = 800, auto_extend = { every = 50, max_hold = 1100 } }
      local free = assert(client:acquire("free", { max_hold = 0 }))
      local apart = assert(client:acquire("apart", { auto_extend = { every = 0, max_hold = 0 } }))
      local bound = assert(client:acquire("bound"))
      let_pass(1.3)
      assert.are.same({ "nil", "nil" }, { tostring((free:lost())), tostring((apart:lost())) })
      assert.are.equal("max_hold", (bound:lost()))
      client:close()
    end)
  end)

  it("check_returns_rest_of_lease_or_raises_at_callers_line", function()
    local client = redlock.new(farm.addresses, { node_timeout = 20000 })
    local lock = client:new_lock("orders:42")
    local ok, message = pcall(function() lock:check() end)
    assert.is_false(ok)
    assert.is_truthy(message:find("on_lost_spec%.lua:%d+: redlock: 'orders:42' is not held$"), message)
    assert(lock:acquire({ ttl = 60000 }))
    assert.is_true(lock:check() > 30000)
    assert(lock:release())
    assert.is_false((pcall(lock.check, lock)))
    assert.is_false((pcall(lock.check)))
    client:close()
  end)
end)
