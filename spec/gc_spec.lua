local unpack = table.unpack or unpack

local helper = require "spec.helper"
local redlock = require "redlock"

describe("garbage", function()
  local farm

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)
  before_each(function() farm:reset() end)

  local unpack = table.unpack or unpack -- luacheck: ignore

  local PATIENT = { node_timeout = 20000, ttl = 60000 }

  local function ignore() end

  -- LuaJIT takes what an earlier call left on the stack for alive, so that is written over first.
  local function collect()
    ignore(unpack({}, 1, 200))
    collectgarbage()
    collectgarbage()
  end

  -- All nodes are connected and know the scripts, so that a round reaches all of them at once.
  local function new_client(options)
    options = options or {}
    options.node_timeout = options.node_timeout or 20000
    local client = redlock.new(farm.addresses, options)
    helper.warm(client, farm, client.process)
    return client
  end

  -- A collector that finds many locks at once may leave some of them for the next call.
  local function eventually_empty(client)
    helper.eventually(function()
      client:process()
      for _, node in ipairs(farm) do
        if node:command("DBSIZE") ~= 0 then return false end
      end
      return true
    end, "all keys to be gone")
  end

  -- In a function of its own, so that nothing of it stays in a register. It keeps the lock until
  -- all nodes have it: a collector that comes earlier would release it, and they never would. The
  -- loop that waits must not know the lock: when it is long, LuaJIT compiles it, and keeps alive
  -- what it was compiled for.
  local function drop_held_lock(client, name)
    local lock = assert(client:acquire(name))
    local token = lock:token()
    helper.eventually(function()
      client:process()
      return farm:count(name, token) == 5
    end, "the key " .. name .. " on all five nodes")
    assert.is_true(lock:is_held())
  end

  -- Collects while the nodes at `indexes` hang. The time of a collection without locks depends on
  -- the machine and what else it does, and is measured first, by the caller; a node that hangs
  -- would cost its time-out.
  local function collect_while_they_hang(indexes, usual)
    for _, index in ipairs(indexes) do farm[index]:stop() end
    local before = helper.now()
    collect()
    local took = helper.now() - before
    for _, index in ipairs(indexes) do farm[index]:continue() end
    assert.is_true(took < usual + 10, ("collecting took %.3f s, %.3f s without nodes that hang"):format(took, usual))
  end

  local function seconds_of_collecting()
    local before = helper.now()
    collect()
    return helper.now() - before
  end

  it("collected_lock_is_released_without_another_call", function()
    local client = new_client()
    drop_held_lock(client, "r")
    collect()
    farm:eventually_free("r")
    client:close()
  end)

  it("collection_does_not_wait_for_hanging_nodes", function()
    local client = new_client(PATIENT)
    local usual = seconds_of_collecting()
    for index = 1, 10 do drop_held_lock(client, "r" .. index) end
    collect_while_they_hang({ 1, 2, 3, 4, 5 }, usual)
    for index = 1, 10 do farm:eventually_free("r" .. index) end
    client:close()
  end)

  it("client_is_dropped_before_its_lock", function()
    local lock = assert(redlock.new(farm.addresses, PATIENT):acquire("r"))
    collect()
    assert(lock:extend())
    assert.is_true(lock:is_held())
    assert(lock:release())
    lock = assert(redlock.new(farm.addresses, PATIENT):acquire("r"))
    assert.is_true(lock:is_held())
    lock = nil -- luacheck: ignore
    collect()
    farm:eventually_free("r")
  end)

  it("cycles_and_shuffled_orders_are_collected", function()
    for round = 1, 20 do
      local client = redlock.new(farm.addresses, PATIENT)
      local first = assert(client:acquire("a" .. round))
      local holder = { client = client, lock = first }
      holder.self = holder
      holder[assert(client:acquire("b" .. round))] = client
      assert(holder.self.lock:is_held())
      if round % 2 == 0 then client:close() end
    end
    collect()
    for round = 1, 20 do
      farm:eventually_free("a" .. round)
      farm:eventually_free("b" .. round)
    end
  end)

  it("abandoned_operation_leaves_no_key", function()
    local client = redlock.new(farm.addresses, PATIENT)
    local lock = client:new_lock("r")
    assert(lock:start("acquire"))
    client:process()
    lock = nil -- luacheck: ignore
    collect()
    local again
    helper.eventually(function()
      again = client:acquire("r")
      return again
    end)
    assert(again:release())
    farm:eventually_free("r")
    client:close()
  end)

  it("collected_client_releases_without_blocking", function()
    local function drop()
      local client = redlock.new(farm.addresses, PATIENT)
      assert(client:acquire("r"))
    end
    local usual = seconds_of_collecting()
    drop()
    collect_while_they_hang({ 1, 2, 3 }, usual)
    local other = redlock.new(farm.addresses, PATIENT)
    helper.eventually(function()
      other:process() -- any call looks after what collected clients left behind
      return farm:count("r") == 0
    end)
    other:close()
  end)

  -- Sets the pause of the collector and its multiplier of steps, in percent. Returns a function
  -- that restores them.
  local function set_collector(pause, stepmul)
    if _VERSION < "Lua 5.5" then
      pause, stepmul = collectgarbage("setpause", pause), collectgarbage("setstepmul", stepmul)
    else
      pause, stepmul = collectgarbage("param", "pause", pause), collectgarbage("param", "stepmul", stepmul)
    end
    return function() set_collector(pause, stepmul) end
  end

  it("locks_work_with_the_most_eager_collector", function()
    local client = new_client()
    local restore = set_collector(0, 10000)
    for round = 1, 100 do
      local lock = assert(client:acquire("r" .. round))
      assert(#lock:votes() == 5)
      assert(tostring(lock))
      if round % 3 == 0 then assert(lock:release()) end
      if round % 7 == 0 then client:nodes() end
    end
    restore()
    collect()
    eventually_empty(client)
    client:close()
  end)

  it("locks_work_with_a_collection_every_few_instructions", function()
    local client = redlock.new(farm.addresses, PATIENT)
    local co = coroutine.create(function()
      for round = 1, 5 do
        local lock = assert(client:acquire("r" .. round))
        assert(lock:votes())
        assert(client:nodes())
        assert(not client:acquire("r" .. round, { wait = 0 }))
      end
    end)
    debug.sethook(co, function() collectgarbage() end, "", 7)
    local ok, err = coroutine.resume(co)
    debug.sethook(co)
    debug.sethook() -- in LuaJIT a hook is for all coroutines
    assert.is_true(ok, err)
    co = nil -- luacheck: ignore
    collect()
    eventually_empty(client)
    client:close()
  end)

  local HOLD = [[
    local redlock = require "redlock"
    local client = redlock.new({ ... })
    local lock = assert(client:acquire("r", { ttl = 120000 }))
    kept = { lock, client }
  ]]

  local function run(ending, client_options)
    local text = HOLD:gsub("{ %.%.%. }", "%0, " .. (client_options or "{ node_timeout = 20000 }"))
    return helper.run_script(text .. ending, unpack(farm.addresses))
  end

  it("end_of_program_releases", function()
    local output, ok = run("")
    assert.is_true(ok, output)
    farm:eventually_free("r")
  end)

  -- As far as 100 ms suffice.
  it("end_of_program_releases_hundreds_of_locks", function()
    helper.unless_stalled(20, function()
      farm:reset()
      local output, ok = run([[
        for index = 1, 300 do
          kept[#kept + 1] = assert(client:acquire("many" .. index, { ttl = 120000 }))
        end
      ]])
      assert.is_true(ok, output)
      helper.eventually(function()
        for _, node in ipairs(farm) do
          if node:command("DBSIZE") ~= 0 then return false end
        end
        return true
      end, "all keys to be gone", 2)
    end)
  end)

  it("end_of_program_by_error_releases", function()
    local output, ok = run("error('the end')")
    assert.is_false(ok)
    assert.is_truthy(output:find("the end", 1, true), output)
    farm:eventually_free("r")
  end)

  -- Lua 5.1 ignores the second argument.
  if _VERSION ~= "Lua 5.1" or rawget(_G, "jit") then
    it("os_exit_that_closes_the_state_releases", function()
      local output, ok = run("os.exit(0, true)")
      assert.is_true(ok, output)
      farm:eventually_free("r")
    end)
  end

  it("os_exit_leaves_lock_to_its_ttl", function()
    local output, ok = run("os.exit(0)")
    assert.is_true(ok, output)
    local kept = 0
    for _, node in ipairs(farm) do
      if node:command("PTTL", "r") > 30000 then kept = kept + 1 end
    end
    assert.is_true(kept >= 3, "a majority has the key")
  end)

  it("end_of_program_waits_briefly_for_hanging_nodes", function()
    local before = helper.now()
    local output, ok = run([[
      for _, address in ipairs { ... } do
        local info = io.popen("redis-cli -p " .. address:match("%d+$") .. " info server"):read("*a")
        local pid = info:match("process_id:(%d+)")
        os.execute("kill -STOP " .. pid)
      end
    ]])
    for _, node in ipairs(farm) do node.stopped = true end
    farm:reset()
    assert.is_true(ok, output)
    assert.is_true(helper.now() - before < 10, helper.now() - before) -- of 20 s
  end)

  it("objects_of_module_loaded_twice_are_of_one_class", function()
    local output, ok = helper.run_script([[
      local first = require "redlock"
      for name in pairs(package.loaded) do
        if name:match("^redlock") then package.loaded[name] = nil end
      end
      local second = require "redlock"
      assert(first ~= second)
      local lock = assert(first.new({ ... }, { node_timeout = 20000 }):acquire("r"))
      local other = second.new({ ... }):new_lock("r")
      assert(other.release(lock))
    ]], unpack(farm.addresses))
    assert.is_true(ok, output)
  end)

  it("finalizers_use_module_while_state_closes", function()
    local output, ok = helper.run_script([[
      local function old(fn)
        if newproxy then
          local proxy = newproxy(true)
          getmetatable(proxy).__gc = fn
          return proxy
        end
        return setmetatable({}, { __gc = fn })
      end
      local addresses = { ... }
      kept = old(function()
        local lock = package.loaded.redlock.new(addresses, { node_timeout = 20000 }):acquire("late")
        if lock then lock:release() end
        local another = package.loaded.redlock.new(addresses)
        io.write("finalized ", tostring(another ~= nil), "\n")
      end)
      local redlock = require "redlock"
      client = redlock.new(addresses, { node_timeout = 20000 })
      lock = assert(client:acquire("r"))
    ]], unpack(farm.addresses))
    assert.is_true(ok, output)
    assert.is_truthy(output:find("finalized true", 1, true), output)
    farm:eventually_free("r")
    farm:eventually_free("late")
  end)

  -- What the library keeps for an object is more than what Lua sees of it.
  local function peak_of_garbage(statement)
    local output, ok = helper.run_script([[
      local redlock = require "redlock"
      local function peak()
        local file = assert(io.open("/proc/self/status"))
        local text = file:read("*a")
        file:close()
        return tonumber(text:match("VmHWM:%s*(%d+)"))
      end
      local nodes = {}
      for index = 1, 5 do nodes[index] = "127.0.0.1:" .. index end
      local client = redlock.new(nodes)
      local heap = {}
      for index = 1, 12 * 1024 do heap[index] = ("x"):rep(1000) .. index end
      collectgarbage()
      collectgarbage()
      local before = peak()
      ]] .. statement .. [[
      io.write("grown ", peak() - before, "\n")
      assert(client and heap[1])
    ]])
    assert.is_true(ok, output)
    return tonumber(output:match("grown (%d+)")) / 1024
  end

  -- A sanitizer keeps what is freed.
  if not os.getenv("REDLOCK_TEST_SANITIZER") then
    it("garbage_locks_keep_little_memory", function()
      local grown = peak_of_garbage('for index = 1, 100000 do client:new_lock("r" .. index) end')
      assert.is_true(grown < 60, "grown by " .. grown .. " MB")
    end)

    it("dropped_clients_do_not_pile_up", function()
      local grown = peak_of_garbage('for _ = 1, 5000 do redlock.new(nodes) end')
      assert.is_true(grown < 60, "grown by " .. grown .. " MB")
    end)
  end

  it("stopped_collector_stays_stopped", function()
    local output, ok = helper.run_script([[
      local client = require("redlock").new({ "127.0.0.1:1" })
      collectgarbage()
      collectgarbage("stop")
      local gone = setmetatable({ {} }, { __mode = "v" })
      for index = 1, 20000 do client:new_lock("r" .. index) end
      assert(gone[1], "it has run")
    ]])
    assert.is_true(ok, output)
  end)
end)
