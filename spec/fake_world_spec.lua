--- What redlock.fake has beside the API of redlock: clock, outcomes, losses, coroutines, worlds.

local fake = require "redlock.fake"

local function failure(code, ...)
  local result, message, got = ...
  assert.is_nil(result)
  assert.is_string(message)
  assert.are.equal(code, got)
  return message
end

describe("redlock.fake", function()
  local client, other

  before_each(function()
    fake:reset()
    client, other = fake.new(), fake.new()
  end)

  -- Runs fn() as in a program that has not loaded redlock, and that finds no C modules.
  local function in_new_program(fn)
    local kept, cpath = {}, package.cpath
    local function unload()
      for name in pairs(package.loaded) do
        if name:find("^redlock") then package.loaded[name] = nil end
      end
    end
    for name, module in pairs(package.loaded) do
      if name:find("^redlock") then kept[name] = module end
    end
    unload()
    package.cpath = ""
    local ok, err = pcall(fn)
    unload()
    package.cpath = cpath
    for name, module in pairs(kept) do package.loaded[name] = module end
    assert.is_true(ok, err)
  end

  it("injected_fake_replaces_redlock_without_C", function()
    in_new_program(function()
      package.loaded.redlock = require "redlock.fake"
      local redlock = require "redlock"
      local made = redlock.new({ "10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379" }, { ttl = 5000 })
      assert.are.same({ true, 4948 }, { made:with("r", function(lock) return lock:remaining() end) })
      assert.are.equal("10.0.0.2:6379", made:nodes()[2].node)
      assert.is_truthy(redlock.VERSION:find("^%d+%.%d+%.%d+$"))
      for _, name in ipairs { "core", "client", "lock", "options", "section", "loss" } do
        assert.is_nil(package.loaded["redlock." .. name], name)
      end
    end)
  end)

  it("module_loads_under_strict_lua", function()
    in_new_program(function()
      local kept = getmetatable(_G)
      setmetatable(_G, {
        __index = function(_, name) error("undeclared variable '" .. tostring(name) .. "'", 2) end,
        __newindex = function(_, name) error("undeclared variable '" .. tostring(name) .. "'", 2) end,
      })
      local ok, err = pcall(function() assert(assert(require("redlock.fake").new():acquire("r")):release()) end)
      setmetatable(_G, kept)
      assert.is_true(ok, err)
    end)
  end)

  it("every_function_of_types_lua_exists", function()
    local lock, seen = client:new_lock("r"), 0
    local inside_nginx, of = { hand_over = true }, { client = client, lock = lock, fake = fake }
    for line in io.lines("lua/redlock/types.lua") do
      local noun, name = line:match("^function (%a+):([%w_]+)%(")
      if of[noun or 0] and not inside_nginx[name] then
        assert.are.equal("function", type(of[noun][name]), noun .. ":" .. name)
        seen = seen + 1
      end
    end
    assert.is_true(seen >= 35, tostring(seen))
  end)

  it("advance_ends_leases_and_calls_on_lost", function()
    local reasons = {}
    local lock = assert(client:acquire("r", { ttl = 1000, on_lost = function(lost, reason)
      reasons[#reasons + 1] = lost:resource() .. " " .. reason
    end }))
    assert.are.equal(988, lock:remaining())
    fake:advance(500)
    assert.are.equal(488, lock:remaining())
    assert.are.same({}, reasons)
    fake:advance(500)
    assert.is_false(lock:is_held())
    assert.are.same({ "r expired" }, reasons)
    assert(other:acquire("r"))
    failure("expired", lock:release())
  end)

  it("advance_extends_automatically_until_max_hold", function()
    local lock = assert(client:acquire("free", { auto_extend = true }))
    local reason
    local bound = assert(client:acquire("bound", {
      auto_extend = { max_hold = 60000 }, on_lost = function(_, why) reason = why end,
    }))
    fake:advance(50000)
    assert.is_true(lock:is_held() and bound:is_held())
    failure("taken", other:acquire("free", { wait = 0 }))
    fake:advance(3600000)
    assert.is_true(lock:is_held())
    assert.are.equal("max_hold", reason)
    assert.are.equal("max_hold", (bound:lost()))
    assert(other:acquire("bound"))
  end)

  it("advance_of_a_year_is_like_many_small_steps", function()
    local function play(step, steps)
      local world = fake:world()
      local first, second = world.new(), world.new()
      local long = assert(first:acquire("long", { ttl = 1550, auto_extend = { every = 10 }, lock_delay = 300 }))
      local other_lock = assert(second:acquire({ "a", "b" }, { auto_extend = true }))
      local bound = assert(second:acquire("bound", { auto_extend = { max_hold = 60000 } }))
      assert(second:acquire("expiring", { ttl = 45000 }))
      local waited
      world:spawn(function() waited = select(3, first:acquire("long", { wait = 77777 })) end)
      for _ = 1, steps do world:advance(step) end
      assert.are.equal("taken", waited)
      assert.are.equal("max_hold", (bound:lost()))
      local seen = second:inspect("long")
      return { long:remaining() > 1480, other_lock:remaining() > 6500, seen.ttl >= 1790, seen.ttl <= 1850,
        first:stats().operations.auto_extend.ok, second:stats().operations.auto_extend.ok,
        first:stats().nodes[2].votes.granted, second:stats().nodes[1].latency.count, world:now() }
    end
    assert.are.same(play(7, 20000), play(140000, 1))
    local lock = assert(client:acquire("year", { ttl = 1000, auto_extend = true }))
    fake:advance(366 * 86400000)
    assert.is_true(lock:is_held())
    assert.is_true(client:stats().operations.auto_extend.ok > 90000000)
    fake:lose(lock)
    assert.is_false(lock:is_held())
  end)

  it("error_of_coroutine_cancels_the_call_that_waits", function()
    local held = assert(other:acquire("r"))
    fake:spawn(function()
      fake:advance(10)
      error("a failed assertion", 0)
    end)
    local lock = client:new_lock("r")
    local ok, err = pcall(lock.acquire, lock, { wait = 5000 })
    assert.is_false(ok)
    assert.is_truthy(err:find("^a failed assertion"), err)
    failure("cancelled", lock:result())
    assert(held:release())
    assert(lock:acquire())
  end)

  it("hand_over_exists_inside_nginx", function()
    in_new_program(function()
      rawset(_G, "ngx", { get_phase = function() return "content" end })
      local ok, err = pcall(function()
        local made = require("redlock.fake").new()
        local lock = assert(made:acquire("r", { owner = "worker" }))
        assert(lock:hand_over("request"))
        assert(lock:release())
        assert(select(3, lock:hand_over("worker")) == "not_held")
        assert(not pcall(lock.hand_over, lock, "nobody"))
      end)
      rawset(_G, "ngx", nil)
      assert.is_true(ok, err)
    end)
  end)

  it("blocked_acquire_of_script_advances_the_clock_and_ends", function()
    local held = assert(other:acquire("r", { auto_extend = true }))
    local before = fake:now()
    failure("taken", client:acquire("r", { wait = 3600000 }))
    assert.are.equal(3600000, fake:now() - before)
    assert.is_true(held:is_held())
    before = fake:now()
    failure("taken", client:acquire("r"))
    assert.are.equal(600, fake:now() - before)
    before = fake:now()
    failure("taken", client:acquire("r", { wait = 0 }))
    assert.are.equal(before, fake:now())
  end)

  it("blocked_acquire_gets_a_lock_whose_lease_expires", function()
    assert(other:acquire("r", { ttl = 2000 }))
    local before = fake:now()
    local lock = assert(client:acquire("r", { wait = 5000 }))
    assert.are.equal(2000, fake:now() - before)
    assert.are.equal(9898, lock:remaining())
  end)

  it("blocked_acquire_gets_a_lock_that_a_coroutine_releases", function()
    fake:spawn(function()
      local lock = assert(other:acquire("r"))
      fake:advance(100)
      lock:release()
    end)
    local before = fake:now()
    assert(client:acquire("r", { wait = 5000 }))
    assert.are.equal(100, fake:now() - before)
  end)

  it("waiters_get_the_lock_in_order", function()
    local held = assert(client:acquire("r"))
    local order = {}
    for index = 1, 4 do
      fake:spawn(function()
        local own = fake.new()
        local lock, _, code = own:acquire("r", { wait = index == 2 and 1000 or 60000 })
        order[#order + 1] = index .. " " .. (code or "held")
        if not lock then return end
        fake:advance(50)
        lock:release()
      end)
    end
    fake:advance(1500)
    assert.are.same({ "2 taken" }, order)
    held:release()
    failure("taken", client:acquire("r", { wait = 0 })) -- the first waiter has it
    fake:advance(50)
    assert.are.same({ "2 taken", "1 held", "3 held" }, order)
    fake:advance(100)
    assert.are.same({ "2 taken", "1 held", "3 held", "4 held" }, order)
    assert(client:acquire("r", { wait = 0 }))
  end)

  it("coroutine_that_finds_a_free_lock_does_not_wait", function()
    local ended
    local thread = fake:spawn(function(name)
      local lock = assert(client:acquire(name))
      assert(lock:extend())
      ended = lock:release()
    end, "r")
    assert.is_true(ended)
    assert.are.equal("dead", coroutine.status(thread))
  end)

  it("error_of_coroutine_is_raised_by_advance", function()
    fake:spawn(function()
      fake:advance(10)
      error("a failed assertion")
    end)
    fake:advance(5)
    local ok, err = pcall(fake.advance, fake, 5)
    assert.is_false(ok)
    assert.is_truthy(err:find("fake_world_spec.lua:%d+: a failed assertion\nstack traceback:"), err)
    assert.is_false((pcall(fake.spawn, fake, error, "at once")))
    fake:advance(100)
  end)

  it("foreign_coroutine_is_not_yielded", function()
    local held = assert(other:acquire("r"))
    local thread = coroutine.create(function() return (select(3, client:acquire("r", { wait = 100 }))) end)
    assert.are.same({ true, "taken" }, { coroutine.resume(thread) })
    assert.is_true(held:is_held())
  end)

  it("set_taken_refuses_acquires", function()
    local lock = assert(client:acquire("held"))
    fake:set("taken")
    local message = failure("taken", client:acquire("r", { wait = 1000 }))
    local text = "'r' is taken: 3 of 3 nodes hold it for another client: fake-1:6379"
    assert.is_truthy(message:find(text, 1, true), message)
    assert(lock:extend())
    assert(lock:release())
    local ran = false
    failure("taken", client:with("r", { wait = 0 }, function() ran = true end))
    assert.is_false(ran)
    fake:set(nil)
    assert(client:acquire("r"))
  end)

  it("set_unavailable_fails_all_operations", function()
    local lock, dropped = assert(client:acquire("r")), assert(client:acquire("dropped"))
    fake:set("unavailable")
    local before = fake:now()
    local message = failure("unavailable", client:acquire("s", { wait = 1000 }))
    assert.are.equal(1000, fake:now() - before)
    assert.is_truthy(message:find("0 of 3 nodes granted it (2 needed): fake-1:6379: ", 1, true), message)
    failure("unavailable", lock:extend())
    assert.is_true(lock:is_held())
    failure("unavailable", lock:release())
    failure("unavailable", dropped:release())
    assert.are.equal("unknown", other:inspect("r").nodes[1].state)
    fake:set(nil)
    assert(lock:release()) -- the call may be repeated
    assert(other:acquire("dropped")) -- and the client has released what was left
  end)

  it("set_works_for_one_resource", function()
    fake:set("unavailable", "down")
    fake:set("taken", "taken")
    failure("unavailable", client:acquire("down", { wait = 0 }))
    failure("taken", client:acquire({ "free", "taken" }, { wait = 0 }))
    assert(client:acquire("free"))
    fake:set(nil, "down")
    assert(client:acquire("down"))
    failure("taken", client:acquire("taken", { wait = 0 }))
  end)

  it("set_unavailable_warns_and_ends_auto_extended_lease", function()
    local reasons = {}
    local lock = assert(client:acquire("r", { ttl = 3000, auto_extend = true,
      on_lost = function(_, reason) reasons[#reasons + 1] = reason end }))
    fake:set("unavailable")
    fake:advance(1500)
    assert.are.same({ "unavailable" }, reasons)
    assert.are.equal("unavailable", (lock:lost()))
    fake:set(nil)
    fake:advance(3000)
    assert.is_nil((lock:lost()))
    fake:set("unavailable")
    fake:advance(6000)
    assert.are.same({ "unavailable", "unavailable", "expired" }, reasons)
  end)

  it("waiter_gets_the_lock_when_nodes_are_available_again", function()
    local got
    fake:set("unavailable")
    fake:spawn(function() got = client:acquire("r", { wait = 5000 }) end)
    fake:advance(1000)
    assert.is_nil(got)
    fake:set(nil)
    fake:advance()
    assert.is_true(got:is_held())
  end)

  it("lose_is_noticed_by_the_next_call_or_by_auto_extend", function()
    local _, _, code, result = client:with("r", function(lock)
      fake:lose(lock)
      assert.is_true(lock:is_held())
      assert(other:acquire("r")) -- now two clients hold it
      return "worked"
    end)
    assert.are.same({ "lost", "worked" }, { code, result })
    local reason
    local lock = assert(client:acquire("s", { auto_extend = true, on_lost = function(_, why) reason = why end }))
    fake:lose("s")
    assert.are.equal("lost", reason)
    assert.is_false(lock:is_held())
    assert.is_false((pcall(lock.check, lock)))
    fake:lose("nothing holds it")
  end)

  it("reset_ends_all_waits_although_on_event_makes_locks", function()
    local kept, ended = {}, 0
    local watched
    watched = fake.new(nil, { on_event = function(event)
      if event.event ~= "waited" then return end
      ended = ended + 1
      for index = 1, 40 do kept[#kept + 1] = watched:new_lock("of event " .. ended .. " " .. index) end
    end })
    local held = assert(client:acquire("r", { ttl = 60000 })) -- A collected lock would be released.
    for _ = 1, 20 do fake:spawn(function() return watched:acquire("r", { wait = 50000 }) end) end
    fake:advance(2000)
    fake:reset()
    assert.are.equal(20, ended)
    assert.is_false(held:is_held())
  end)

  it("reset_forgets_locks_coroutines_and_settings_and_keeps_clients", function()
    local lost, code = false, nil
    local lock = assert(client:acquire("r", { ttl = 1000, auto_extend = true, on_lost = function() lost = true end }))
    local waiting = fake:spawn(function() code = select(3, other:acquire("r", { wait = 9000 })) end)
    local started = other:new_lock("r")
    assert(started:start("acquire", { wait = 9000 }))
    local text = assert(assert(client:acquire("s")):detach())
    fake:set("unavailable")
    fake:reset()
    assert.is_false(lock:is_held())
    assert.is_nil((lock:lost()))
    failure("not_held", lock:release())
    failure("cancelled", started:result())
    failure("lost", client:attach(text))
    assert(lock:acquire())
    failure("taken", other:acquire("r", { wait = 0 }))
    assert.are.equal(1, client:stats().operations.acquire.ok)
    fake:advance(20000)
    assert.is_true(lock:is_held())
    assert.are.same({ false, nil }, { lost, code })
    assert.are.equal("suspended", coroutine.status(waiting))
    client:close()
    fake:reset()
    failure("closed", client:acquire("r"))
  end)

  it("worlds_share_nothing", function()
    local world = fake:world()
    local there = world.new()
    assert(client:acquire("r"))
    assert(there:acquire("r", { wait = 0 }))
    world:set("unavailable")
    world:advance(60000)
    failure("unavailable", there:acquire("s", { wait = 0 }))
    failure("taken", other:acquire("r", { wait = 0 }))
    fake:reset()
    failure("unavailable", there:acquire("s", { wait = 0 }))
    assert.is_nil(rawget(_G, "fake"))
  end)

  it("collected_lock_is_released", function()
    do
      local lock = assert(client:acquire("r", { auto_extend = true }))
      assert.is_true(lock:is_held())
    end
    collectgarbage()
    collectgarbage()
    assert(other:acquire("r", { wait = 0 }))
  end)

  it("operations_are_started_and_carried_on", function()
    local lock = client:new_lock("r")
    assert.is_nil(client:pollfd())
    assert(lock:start("acquire"))
    assert.are.equal("redlock.lock r (acquiring)", tostring(lock))
    assert.are.equal("pending", select(3, lock:result()))
    assert.are.equal(0, client:timeout())
    assert.is_nil(client:next_ended())
    assert(client:process())
    assert.are.equal(lock, client:next_ended())
    assert.is_nil(client:next_ended())
    assert.are.equal(9898, (lock:result()))
    local waiter = other:new_lock("r")
    assert(waiter:start("acquire", { wait = 500 }))
    other:process()
    assert.are.equal(0.5, other:timeout())
    assert.are.equal("pending", select(3, waiter:result()))
    assert(lock:start("release"))
    client:process()
    assert.is_true((lock:result()))
    assert.are.equal(waiter, other:next_ended())
    assert.are.equal(9898, (waiter:result()))
    assert(lock:start("acquire", { wait = 500 }))
    client:process()
    lock:cancel()
    failure("cancelled", lock:result())
    assert.is_true((waiter:release()))
  end)

  it("loop_that_only_takes_turns_ends", function()
    assert(other:acquire("r", { ttl = 60000 }))
    local lock, before = client:new_lock("r"), fake:now()
    assert(lock:start("acquire", { wait = 3000 }))
    while select(3, lock:result()) == "pending" do client:process() end
    failure("taken", lock:result())
    assert.are.equal(3000, fake:now() - before)
    for _ = 1, 1000 do client:process() end
    assert.are.equal(3000, fake:now() - before)
  end)

  it("result_of_lease_that_was_lost_meanwhile_is_lost", function()
    local lock = client:new_lock("r", { auto_extend = true })
    assert(lock:start("acquire"))
    client:process()
    fake:lose(lock)
    assert(failure("lost", lock:result()):find("'r' is lost: 3 of 3 nodes no longer have its token", 1, true))
    lock = client:new_lock("s", { ttl = 1000 })
    assert(lock:start("acquire"))
    client:process()
    fake:advance(1000)
    failure("expired", lock:result())
  end)

  it("nested_acquires_of_a_coroutine_share_the_lease", function()
    local mine = fake.new(nil, { reentrant = true })
    local outer = assert(mine:acquire("r"))
    local inner = assert(mine:acquire("r"))
    local code
    fake:spawn(function() code = select(3, mine:acquire("r", { wait = 100 })) end)
    fake:advance(100)
    assert.are.equal("taken", code)
    assert(outer:release())
    assert.is_true(inner:is_held())
    assert(inner:release())
  end)

  it("stats_count_operations_votes_and_losses", function()
    local lock = assert(client:acquire("r", { ttl = 1000, auto_extend = true }))
    fake:advance(700)
    failure("taken", other:acquire("r", { wait = 300 }))
    assert(lock:extend())
    local mine, theirs = client:stats(), other:stats()
    assert.are.equal(1, mine.operations.acquire.ok)
    assert.are.equal(1, mine.operations.extend.ok)
    assert.is_true(mine.operations.auto_extend.ok >= 2)
    assert.are.equal(0, mine.operations.release.ok)
    assert.are.same({ 1, 0, 2 }, { mine.held, mine.waiting, mine.quorum })
    assert.are.same({ 1, 0 }, { mine.acquire_time.count, mine.acquire_time.sum })
    assert.are.equal(1, theirs.operations.acquire.taken)
    assert.is_true(theirs.attempts >= 2 and theirs.nodes[1].votes.taken == theirs.attempts)
    assert.are.same({ 1, 0.3 }, { theirs.wait_time.count, theirs.wait_time.sum })
    assert.are.same({ le = math.huge, count = 1 }, theirs.wait_time.buckets[#theirs.wait_time.buckets])
    assert.are.equal(1, mine.nodes[3].connections)
    fake:lose(lock)
    fake:set("unavailable")
    assert(select(3, lock:release()) == "lost")
    assert.are.same({ expired = 0, lost = 1, max_hold = 0 }, client:stats().lost)
    assert.are.equal(1, client:stats().operations.release.lost)
    assert.are.equal(0, client:stats().held)
  end)

  it("on_event_reports_nodes_losses_and_long_waits", function()
    local events = {}
    local watched = fake.new({ "a" }, { on_event = function(event)
      assert.are.equal(0, event.ago)
      events[#events + 1] = table.concat({ event.event, event.node or event.resource,
        event.reason or event.waited and event.waited .. " s " .. event.result }, " ")
    end })
    local lock = assert(watched:acquire("r", { ttl = 3000, auto_extend = true }))
    assert.are.same({ "up a:6379" }, events)
    fake:set("unavailable")
    assert.are.equal("down", watched:nodes()[1].state)
    fake:advance(1500)
    assert.are.same({ "up a:6379", "down a:6379 the test has made it unavailable", "warned r unavailable" }, events)
    fake:set(nil)
    fake:advance(1500)
    fake:lose(lock)
    assert(fake.new({ "a" }):acquire("r", { ttl = 2500 }))
    assert(watched:acquire("r", { wait = 5000 }))
    assert.are.same({ "up a:6379", "lost r lost", "waited r 2.5 s ok" }, { events[4], events[5], events[6] })
    assert.are.equal(6, #events)
    assert.are.equal(1, watched:stats().warnings.unavailable)
  end)

  if _VERSION >= "Lua 5.4" then
    it("end_of_scope_releases", function()
      local run = assert(load([[
        local client = ...
        do local lock <close> = assert(client:acquire("r")) end
        return client:acquire("r", { wait = 0 })
      ]]))
      assert.is_truthy(run(client))
    end)
  end

  it("misuse_is_raised_at_callers_line", function()
    local function misuse(text, fn)
      local where = debug.getinfo(fn, "S")
      local ok, err = pcall(fn)
      assert.is_false(ok, "no error: " .. text)
      assert.are.equal(where.short_src .. ":" .. where.linedefined .. ": redlock: " .. text, err)
    end
    for _, time in ipairs { -1, "5", 0 / 0, math.huge, 366 * 86400000 + 1, {} } do
      misuse("fake:advance() takes milliseconds from 0 to 366 days", function() fake:advance(time) end)
    end
    misuse("fake:advance() is called with a colon", function() fake.advance(5) end)
    misuse('fake:set() takes "taken", "unavailable" or nil', function() fake:set("lost") end)
    misuse("fake:set() takes the name of a resource", function() fake:set("taken", client) end)
    misuse("fake:lose() takes a lock of the fake, or the name of a resource", function() fake:lose(client) end)
    misuse("fake:lose() takes a lock of the fake, or the name of a resource", function() fake:lose() end)
    misuse("fake:spawn() takes a function", function() fake:spawn(5) end)
    misuse("redlock.new() is called with a dot, not with a colon", function() fake:new() end)
    misuse("option 'ttl' must be an integer >= 1 (milliseconds), got -5", function() fake.new(nil, { ttl = -5 }) end)
    misuse("unknown option 'timeout' (did you mean 'wait', in milliseconds?)",
      function() client:acquire("r", { timeout = 5 }) end)
  end)
end)
