local behaviour = require "spec.behaviour"
local driver = require "spec.cqueues_driver"
local helper = require "spec.helper"

local cqueues = require "cqueues"
local socket = require "socket"
local core = require "redlock.core"
local redlock = require "redlock.cqueues"

-- The pcall of PUC Lua 5.1 cannot be yielded across, which is what with() would have to do.
if _VERSION == "Lua 5.1" and not rawget(_G, "jit") then return end

describe("redlock.cqueues", function()
  local farm

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)
  driver.farm = function() return farm end
  driver.describe, driver.it = describe, it

  local run = driver.run

  it("interrupt_in_credentials_function_ends_the_program", function()
    local client = redlock.new(farm.addresses, { credentials = function() error("interrupted!", 0) end })
    local controller = cqueues.new()
    controller:wrap(function() client:acquire("r") end)
    local ok, err = controller:loop(60)
    assert.is_falsy(ok)
    assert.are.equal("interrupted!", err)
  end)

  behaviour("waiting in a coroutine", driver)

  -- What `use` locks is decided by three nodes, and then the others go on. Returns whether they
  -- have done by themselves, once nothing is called on the client any more, what `is_done` asks.
  local function serves_late_nodes(use, is_decided, is_done)
    farm[4]:stop()
    farm[5]:stop()
    run(use, function()
      repeat cqueues.sleep(0.001) until is_decided()
      farm[4]:continue()
      farm[5]:continue()
    end)
    local until_when = helper.now() + 0.5
    repeat until is_done() or helper.now() > until_when
    return is_done()
  end

  it("first_acquire_reaches_all_nodes", function()
    local served = false
    for try = 1, 20 do -- On a machine that stands still for 100 ms they are too late.
      if served then break end
      local name, client = "r" .. try, redlock.new(farm.addresses, { retry_count = 0, node_timeout = 20000 })
      local lock = client:new_lock(name)
      served = served or serves_late_nodes(
        function() assert(lock:acquire()) end,
        function() return lock:is_held() end,
        function() return farm:count(name, lock:token()) == 5 end)
      run(function() client:close() end)
    end
    assert.is_true(served)
  end)

  it("extend_after_script_flush_reaches_all_nodes", function()
    local served = false
    for try = 1, 20 do
      if served then break end
      local name, client = "flushed" .. try, redlock.new(farm.addresses, { retry_count = 0, node_timeout = 20000 })
      local lock
      run(function() -- They know the script.
        lock = assert(client:acquire(name, { ttl = 40000 }))
        repeat assert(lock:extend()) until farm:count(name) == 5 and lock:votes()[4].vote == "granted"
          and lock:votes()[5].vote == "granted"
      end)
      for _, node in ipairs(farm) do node:command("SCRIPT", "FLUSH") end
      served = served or serves_late_nodes(
        function() assert(lock:extend(120000)) end,
        function() return lock:remaining() > 60000 end,
        function() return farm[4]:command("PTTL", name) > 60000 and farm[5]:command("PTTL", name) > 60000 end)
      run(function() client:close() end)
    end
    assert.is_true(served)
  end)

  it("misuse_is_raised_at_callers_line", function()
    local client = redlock.new(farm.addresses)
    local lock = client:new_lock("r")
    local bad = { ttl = -5 }
    local text = "option 'ttl' must be an integer >= 1 (milliseconds), got -5"
    for _, fn in ipairs {
      function() redlock.new(farm.addresses, bad) end,
      function() client:new_lock("r", bad) end,
      function() client:acquire("r", bad) end,
      function() client:with("r", bad, print) end,
      function() lock:acquire(bad) end,
    } do
      local ok, err = pcall(fn)
      local line = debug.getinfo(fn, "S").linedefined
      assert.is_false(ok)
      assert.are.equal("spec/cqueues_spec.lua:" .. line .. ": redlock: " .. text, (err:gsub("^%./", "")))
    end
    for _, fn in ipairs {
      function() lock.acquire() end,
      function() lock.release({}) end,
      function() lock.remaining(5) end,
      function() lock:extend(-1) end,
      function() lock.cancel() end,
    } do
      local ok, err = pcall(fn)
      local line = debug.getinfo(fn, "S").linedefined
      assert.is_false(ok)
      assert.is_truthy(err:find("cqueues_spec.lua:" .. line .. ": redlock: lock:", 1, true), err)
    end
  end)

  it("close_ignores_locks_that_await_their_finalizers", function()
    farm:reset()
    local client = redlock.new(farm.addresses, { ttl = 60000, node_timeout = 20000, retry_count = 0 })
    run(function()
      local lock = assert(client:acquire("r"))
      local handle = lock.handle -- the collector has it still when it has cleared the weak tables
      lock = nil -- luacheck: ignore
      collectgarbage()
      collectgarbage()
      assert.is_nil(next(client.by_id))
      assert.is_true(handle:is_held())
      assert.are.same({ true }, { client:close() })
      assert.is_false(handle:is_held())
    end)
    assert.are.equal(0, farm:count("r"))
  end)

  it("close_ignores_waiters_of_collected_controller", function()
    farm:reset()
    for _, node in ipairs(farm) do node:command("SET", "taken", "theirs") end
    local client = redlock.new(farm.addresses, { wait = 60000, node_timeout = 20000 })
    local function drop()
      local controller = cqueues.new()
      for _ = 1, 20 do controller:wrap(function() client:acquire("taken") end) end
      controller:wrap(function()
        cqueues.sleep(0.1)
        error("dropped", 0)
      end)
      assert.is_false((controller:loop(60)))
    end
    drop()
    collectgarbage()
    run(function() client:close() end)
    farm:reset()
  end)

  it("busy_lock_and_empty_lease_are_raised_at_callers_line", function()
    farm:reset()
    for index = 1, 3 do farm[index]:stop() end
    local client = redlock.new(farm.addresses, { retry_count = 0, node_timeout = 20000 })
    local lock = client:new_lock("r")
    local function mistake(fn, text)
      local ok, err = pcall(fn)
      local where = "cqueues_spec.lua:" .. debug.getinfo(fn, "S").linedefined .. ": redlock: "
      assert.is_false(ok)
      assert.is_truthy(err:find(where .. text, 1, true), err)
    end
    run(function()
      local busy = "'r' has an operation in flight"
      mistake(function() local got = lock:acquire({ ttl = 3 }) return got end, "option 'ttl' must be at least 4 ms")
      cqueues.running():wrap(function() lock:acquire() end)
      repeat cqueues.poll(0.001) until tostring(lock):find("acquiring", 1, true)
      mistake(function() local got = lock:acquire() return got end, busy)
      mistake(function() local got = lock:acquire({ wait = 5 }) return got end, busy)
      mistake(function() local got = lock:extend() return got end, busy)
      mistake(function() local got = lock:release() return got end, busy)
      for index = 1, 3 do farm[index]:continue() end
      client:close()
    end)
    farm:reset()
  end)

  it("coroutines_share_client_while_another_runs", function()
    farm:reset()
    local client = redlock.new(farm.addresses, { retry_count = 0, node_timeout = 20000 })
    local done, ticks, workers = 0, 0, {}
    for index = 1, 20 do
      workers[index] = function()
        for round = 1, 10 do
          local lock = assert(client:acquire("r" .. index .. ":" .. round))
          assert(lock:extend())
          assert(lock:release())
        end
        done = done + 1
      end
    end
    workers[21] = function()
      while done < 20 do
        ticks = ticks + 1
        cqueues.sleep(0.001)
      end
    end
    run((table.unpack or unpack)(workers))
    assert.are.equal(20, done)
    assert.is_true(ticks > 3, "ticks " .. ticks)
    helper.eventually(function() return farm[1]:command("DBSIZE") == 0 end)
    client:close()
  end)

  it("waiting_coroutine_does_not_block_another_when_nodes_hang", function()
    helper.unless_stalled(100, function()
      farm:reset()
      local client = redlock.new(farm.addresses, { retry_count = 0, node_timeout = 400 })
      local slow, quick
      run(function()
        helper.warm(client, farm, function() client.handle:process() end)
        for index = 1, 3 do farm[index]:stop() end
        local started = helper.now()
        cqueues.running():wrap(function()
          cqueues.sleep(0.01)
          quick = not slow
        end)
        assert.are.equal("unavailable", select(3, client:acquire("r")))
        slow = helper.now() - started
      end)
      for index = 1, 3 do farm[index]:continue() end
      assert.is_true(slow > 0.3, "slow " .. slow)
      assert.is_true(quick)
      client:close()
    end)
  end)

  it("idle_controller_blocks_no_other_controller", function()
    farm:reset()
    local client = redlock.new(farm.addresses, { retry_count = 0, node_timeout = 40000 })
    run(function() assert(assert(client:acquire("warm")):release()) end)
    local outer, outcome = cqueues.new(), nil
    for index = 1, 5 do farm[index]:stop() end
    outer:wrap(function() outcome = { client:acquire("outer") } end)
    assert(outer:step(0))
    for index = 1, 5 do farm[index]:continue() end
    local started = helper.now()
    run(function()
      for round = 1, 10 do
        local lock = assert(client:acquire("inner" .. round))
        assert(lock:release())
      end
    end)
    assert.is_true(helper.now() - started < 20, "took " .. helper.now() - started)
    assert.is_nil(outcome)
    helper.eventually(function()
      assert(outer:step(0))
      return outcome
    end)
    assert.is_true(outcome[1]:is_held())
    client:close()
  end)

  -- A controller that is closed while a coroutine waits in it for what another client has. The lock
  -- is kept.
  local function close_controller(client, other, options)
    local inner, lock = cqueues.new(), client:new_lock("r", options)
    local held = assert(other:acquire("r"))
    inner:wrap(function() lock:acquire() end)
    repeat inner:step(0) until tostring(lock):find("acquiring", 1, true)
    inner:close()
    assert(held:release())
    return lock
  end

  it("lease_granted_in_closed_controller_is_released", function()
    farm:reset()
    local client = redlock.new(farm.addresses, { node_timeout = 20000 })
    local other = redlock.new(farm.addresses, { node_timeout = 20000 })
    collectgarbage("stop")
    finally(function() collectgarbage("restart") end)
    for _, auto_extend in ipairs { true, false } do
      run(function()
        local lock = close_controller(client, other, { ttl = 60000, wait = 60000, auto_extend = auto_extend })
        helper.eventually(function()
          assert(assert(client:acquire("other")):release())
          return not tostring(lock):find("acquiring", 1, true) and not lock:is_held()
        end, "the lease to be given back")
      end)
      farm:eventually_free("r")
    end
    run(function()
      client:close()
      other:close()
    end)
  end)

  it("lease_that_a_resting_controller_does_not_take_is_not_extended", function()
    farm:reset()
    local client = redlock.new(farm.addresses, { node_timeout = 20000 })
    local other = redlock.new(farm.addresses, { node_timeout = 20000 })
    local inner, results = cqueues.new(), nil
    run(function()
      local held = assert(other:acquire("r"))
      local lock = client:new_lock("r", { ttl = 300, wait = 60000, auto_extend = true })
      inner:wrap(function() results = { lock:acquire() } end)
      repeat inner:step(0) until tostring(lock):find("acquiring", 1, true)
      assert(held:release())
      helper.eventually(function()
        assert(assert(client:acquire("other", { ttl = 60000 })):release())
        return lock.operation == "release"
      end, "the lease to be given back")
      repeat inner:step(0) until results -- It was alive, and gets its result.
      assert.is_nil(results[1])
      assert.are.equal("cancelled", results[3])
      client:close()
      other:close()
    end)
    farm:eventually_free("r")
  end)

  it("release_is_not_blocked_by_closed_controller", function()
    farm:reset()
    local client = redlock.new(farm.addresses, { node_timeout = 5000, ttl = 60000 })
    for _, name in ipairs { "acquire", "extend", "release" } do
      run(function()
        local inner, lock = cqueues.new(), client:new_lock("r")
        if name ~= "acquire" then assert(lock:acquire()) end
        for index = 3, 5 do farm[index]:stop() end
        inner:wrap(function() lock[name](lock) end)
        repeat inner:step(0) until lock.wait.waiting
        inner:close()
        local ok, _, code = lock:release({ wait = false })
        assert.are.equal(name == "acquire" and "not_held" or true, ok or code)
        helper.eventually(function()
          cqueues.sleep(0.001)
          return farm[1]:command("EXISTS", "r") == 0 and farm[2]:command("EXISTS", "r") == 0
        end, "the running nodes to be released")
        for index = 3, 5 do farm[index]:continue() end
      end)
      farm:eventually_free("r")
    end
    run(function() client:close() end)
  end)

  it("another_coroutine_cancels_and_closes", function()
    farm:reset()
    local client = redlock.new(farm.addresses, { retry_count = 0, node_timeout = 500 })
    local lock, codes, took, closing = client:new_lock("r", { node_timeout = 40000 }), {}, {}, nil
    for index = 1, 5 do farm[index]:stop() end
    local started = helper.now()
    run(function()
      codes[1] = select(3, lock:acquire())
      took[1] = helper.now() - started
    end, function()
      codes[2] = select(3, client:acquire("other", { node_timeout = 40000 }))
      took[2] = helper.now() - started
    end, function()
      cqueues.sleep(0.02)
      lock:cancel()
      cqueues.sleep(0.02)
      client:close() -- waits for the nodes
      closing = helper.now() - started
    end)
    assert.are.same({ "cancelled", "closed" }, codes)
    assert.is_true(took[1] < closing and took[2] < closing, "not ended at once")
    for index = 1, 5 do farm[index]:continue() end
    farm:eventually_free("r")
    farm:eventually_free("other")
  end)

  it("close_waits_for_outstanding_replies_up_to_node_timeout", function()
    farm:reset()
    local client = redlock.new(farm.addresses, { node_timeout = 40000 })
    run(function()
      assert(client:acquire("r"))
      local began = helper.now()
      assert.are.same({ true }, { client:close() })
      assert.are.same({ true }, { client:close() })
      assert.is_true(helper.now() - began < 20)
    end)
    client = redlock.new(farm.addresses, { node_timeout = 200 })
    run(function()
      assert(client:acquire("r", { node_timeout = 20000 }))
      for index = 1, 5 do farm[index]:stop() end
      local began = helper.now()
      local code = select(3, client:close())
      local took = helper.now() - began
      for index = 1, 5 do farm[index]:continue() end
      assert.are.equal("unavailable", code)
      assert.is_true(took < 15, took .. " s")
    end)
    farm:eventually_free("r")
  end)

  it("close_completes_release_of_another_coroutine", function()
    farm:reset()
    local client = redlock.new(farm.addresses, { node_timeout = 20000 })
    local released, closed
    run(function()
      local lock = assert(client:acquire("r"))
      cqueues.running():wrap(function() closed = client:close() end)
      released = { lock:release() }
    end)
    assert.are.same({ true }, released)
    assert.is_true(closed)
    farm:eventually_free("r")
  end)

  it("call_without_object_is_raised_at_callers_line", function()
    local client = redlock.new(farm.addresses)
    local lock = client:new_lock("r")
    local function misuse(text, fn)
      local ok, err = pcall(fn)
      local line = debug.getinfo(fn, "S").linedefined
      assert.is_false(ok)
      assert.are.equal("spec/cqueues_spec.lua:" .. line .. ": redlock: " .. text, (err:gsub("^%./", "")))
    end
    for _, name in ipairs { "close", "nodes", "new_lock", "acquire", "with" } do
      local text = "client:" .. name .. "() needs a client before the colon, got "
      misuse(text .. "nil", function() client[name]() end)
      misuse(text .. "a string", function() client[name]("r") end)
      misuse(text .. "a table", function() client[name]({}, "r", print) end)
      misuse(text .. "a redlock lock", function() client[name](lock, "r", print) end)
    end
    for _, name in ipairs { "acquire", "extend", "release", "cancel", "remaining", "votes" } do
      local text = "lock:" .. name .. "() needs a lock before the colon, got "
      misuse(text .. "nil", function() lock[name]() end)
      misuse(text .. "a redlock client", function() lock[name](client) end)
    end
    misuse("redlock.new() is called with a dot, not with a colon", function() redlock:new(farm.addresses) end)
    client:close()
  end)

  it("lease_taken_outside_a_controller_is_extended", function()
    helper.unless_stalled(300, function()
      farm:reset()
      local reasons = {}
      local client = redlock.new(farm.addresses, {
        ttl = 1000, node_timeout = 800, auto_extend = { every = 50 },
        on_lost = function(_, reason) reasons[#reasons + 1] = reason end,
      })
      local lock = assert(client:acquire("r"))
      local several = assert(client:acquire({ "s", "t" }, { auto_extend = { max_hold = 1100 } }))
      local text = assert(assert(client:acquire("handed")):detach())
      local handed = assert(client:attach(text))
      socket.sleep(1.3)
      assert.is_true(lock:is_held())
      assert.is_true(handed:is_held())
      assert.are.equal("max_hold", (several:lost()))
      assert.are.same({}, reasons)
      run(function()
        cqueues.sleep(0.3)
        assert.is_true(lock:is_held())
        assert(lock:release())
      end)
      assert.are.same({ "max_hold" }, reasons) -- by the first call that waited
      assert(handed:release())
      client:close()
    end)
  end)

  it("lease_acquired_in_controller_needs_no_watchdog", function()
    farm:reset()
    local function threads()
      local file = assert(io.open("/proc/self/status"))
      local count = tonumber(file:read("*a"):match("\nThreads:%s*(%d+)"))
      file:close()
      return count
    end
    local client = redlock.new(farm.addresses, { auto_extend = true, node_timeout = 20000 })
    local before = threads()
    run(function()
      local lock = assert(client:acquire("r"))
      assert.are.equal(before, threads())
      assert(lock:release())
      client:close()
    end)
  end)

  -- A coroutine of the program's own that waits in the client, and that nobody resumes.
  local function leave_one_waiting(client)
    coroutine.wrap(function() client:acquire("left") end)()
  end

  it("abandoned_coroutine_delays_no_other_call", function()
    farm:reset()
    local client = redlock.new(farm.addresses, { retry_count = 0, node_timeout = 20000 })
    run(function()
      assert(assert(client:acquire("warm")):release())
      leave_one_waiting(client)
      assert(assert(client:acquire("first")):release())
      local began = helper.now()
      for _ = 1, 5 do assert(assert(client:acquire("next")):release()) end
      assert.is_true(helper.now() - began < 15, "took " .. helper.now() - began)
    end)
    farm:reset()
  end)

  it("operation_after_cancelled_one_ends_at_once", function()
    farm:reset()
    local client = redlock.new(farm.addresses,
      { node_timeout = 20000, retry_delay = 40000, poll_interval = 40000, retry_jitter = 0 })
    local took
    run(function()
      assert(client:acquire("taken", { ttl = 120000 }))
      local lock = assert(client:acquire("r"))
      local other = client:new_lock("taken") -- It polls for all.
      cqueues.running():wrap(function() other:acquire({ wait = 60000 }) end)
      cqueues.sleep(0.1)
      for index = 1, 3 do farm[index]:stop() end
      cqueues.running():wrap(function() lock:extend() end)
      cqueues.sleep(0.02)
      lock:cancel()
      for index = 1, 3 do farm[index]:continue() end
      local began = helper.now()
      assert(lock:release())
      took = helper.now() - began
      other:cancel()
    end)
    assert.is_true(took < 20, "took " .. took)
    farm:reset()
  end)

  it("lock:extend(-5) blames lock:start()", function()
    local client = redlock.new(farm.addresses)
    local lock = client:new_lock("r")
    local function wrong() lock:extend(-5) end
    local ok, err = pcall(wrong)
    assert.is_false(ok)
    assert.is_truthy(err:find("cqueues_spec.lua:" .. debug.getinfo(wrong, "S").linedefined
      .. ": redlock: lock:extend(): ttl must be an integer >= 1 (milliseconds), got -5", 1, true), err)
    client:close()
  end)

  -- A coroutine is not resumed at once when its operation has ended: what then comes first can take
  -- longer than the lease. `take` acquires "late" in a coroutine of its own; what it returned is
  -- returned.
  local function taken_late(take)
    farm:reset()
    local client = redlock.new(farm.addresses, { retry_count = 0, node_timeout = 20000 })
    helper.warm(client, farm, function() client.handle:process() end)
    local late, results, poller
    local function find_late()
      for _, lock in pairs(client.by_id) do
        if lock:resource() == "late" then late = lock end
      end
      return late and core.pending(late.handle)
    end
    for index = 1, 3 do farm[index]:stop() end
    run(function()
      poller = client:new_lock("driver") -- who waits first polls for all
      assert(poller:acquire())
      helper.eventually(function()
        client.handle:process()
        return not core.pending(late.handle)
      end)
      helper.eventually(function() return late:remaining() == 0 end)
      assert(poller:release())
    end, function()
      while not (poller and core.pending(poller.handle)) do cqueues.sleep(0.001) end
      results = { take(client) }
    end, function()
      while not find_late() do cqueues.sleep(0.001) end
      for index = 1, 3 do farm[index]:continue() end
    end)
    helper.eventually(function()
      client.handle:process()
      return farm:count("late") == 0
    end, "the key late to be gone")
    client:close()
    return results
  end

  -- The lease of 300 ms must not end before the nodes that were stopped have granted it.
  for title, take in pairs {
    ["acquire_of_late_coroutine_returns_expired"] = function(client)
      return client:new_lock("late", { ttl = 300 }):acquire()
    end,
    ["client_acquire_of_late_coroutine_returns_expired"] = function(client)
      return client:acquire("late", { ttl = 300 })
    end,
  } do
    it(title, function()
      helper.unless_stalled(100, function()
        local results = taken_late(take)
        assert.is_nil(results[1])
        assert.are.equal("expired", results[3])
        assert.is_truthy(results[2]:find("'late'", 1, true), results[2])
      end)
    end)
  end

  it("waiter_of_cancelled_operation_gets_cancelled", function()
    farm:reset()
    local client = redlock.new(farm.addresses, { retry_count = 0, node_timeout = 20000 })
    local results, released = nil, nil
    run(function()
      local lock = assert(client:acquire("r"))
      for index = 1, 3 do farm[index]:stop() end
      cqueues.running():wrap(function() results = { lock:extend() } end)
      cqueues.sleep(0.02)
      lock:cancel()
      for index = 1, 3 do farm[index]:continue() end
      released = { lock:release() }
    end)
    assert.are.same({ true }, released)
    assert.is_nil(results[1])
    assert.are.equal("cancelled", results[3])
    farm:eventually_free("r")
    client:close()
  end)

  it("with_releases_while_another_coroutine_extends", function()
    farm:reset()
    local client = redlock.new(farm.addresses, { retry_count = 0, node_timeout = 20000 })
    local results, extended
    run(function()
      results = { client:with("r", function(lock)
        for index = 1, 3 do farm[index]:stop() end
        cqueues.running():wrap(function() extended = { lock:extend() } end)
        cqueues.sleep(0.02)
        for index = 1, 3 do farm[index]:continue() end
        return "done"
      end) }
    end)
    assert.are.same({ true, "done" }, results)
    assert.is_true(extended[1] == nil and extended[3] == "cancelled" or extended[1] > 0)
    farm:eventually_free("r")
    client:close()
  end)

  it("close_ends_operations_of_other_coroutines_with_closed", function()
    farm:reset()
    -- The second close must begin before the first one has waited for so long.
    local client = redlock.new(farm.addresses, { retry_count = 0, node_timeout = 2500, ttl = 120000 })
    local held = {}
    run(function()
      for index = 1, 3 do held[index] = assert(client:acquire("held" .. index, { node_timeout = 20000 })) end
    end)
    helper.eventually(function()
      client.handle:process()
      return farm:count("held3", held[3]:token()) == 5
    end)
    local seen = {}
    local function note(name, ...) seen[name] = { ... } end
    run(function()
      note("with", pcall(client.with, client, "with", { node_timeout = 20000 }, function()
        for index = 1, 5 do farm[index]:stop() end
        note("stopped", true)
        while not client.closing do cqueues.sleep(0.001) end
        error("the function's own", 0)
      end))
    end, function()
      while not seen.stopped do cqueues.sleep(0.001) end
      note("waiting extend", pcall(held[1].extend, held[1]))
    end, function()
      while not seen.stopped do cqueues.sleep(0.001) end
      note("waiting acquire", pcall(client.acquire, client, "other"))
    end, function()
      while not client.closing do cqueues.sleep(0.001) end
      note("extend", pcall(held[2].extend, held[2]))
      note("release", pcall(held[3].release, held[3]))
      note("acquire", pcall(held[3].acquire, held[3]))
      note("lock", pcall(client.new_lock, client, "another"))
      note("second close", pcall(client.close, client))
    end, function()
      while not seen.stopped do cqueues.sleep(0.001) end
      cqueues.sleep(0.02)
      note("close", client:close())
    end)
    for index = 1, 5 do farm[index]:continue() end
    assert.are.same({ false, "the function's own" }, seen.with)
    for _, name in ipairs { "waiting extend", "waiting acquire", "extend", "release", "acquire", "lock" } do
      local got = seen[name]
      assert.is_true(got[1], name .. ": " .. tostring(got[2]))
      assert.is_nil(got[2], name)
      assert.is_string(got[3], name)
      assert.are.equal("closed", got[4], name)
    end
    assert.is_truthy(seen.extend[3]:find("'held2'", 1, true), seen.extend[3])
    assert.are.equal("unavailable", seen.close[3])
    assert.are.same({ true, seen.close[1], seen.close[2], seen.close[3] }, seen["second close"])
    assert.is_true((client:close()))
    for index = 1, 3 do farm:eventually_free("held" .. index) end
  end)
end)
