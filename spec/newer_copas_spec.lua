-- The stand-in has no need of it, but the copas of Debian is for Lua 5.1 and 5.2: LuaJIT runs
-- these.
if not rawget(_G, "jit") then return end

local behaviour = require "spec.behaviour"
local helper = require "spec.helper"
local loop_behaviour = require "spec.loop_behaviour"

-- The same module over what copas has had since its second version.
describe("redlock.copas with a newer copas", function()
  local loaded = { copas = package.loaded.copas, module = package.loaded["redlock.copas"] }
  local newer = require "spec.newer_copas"
  package.loaded.copas, package.loaded["redlock.copas"] = newer, nil
  local module = require "redlock.copas"
  package.loaded.copas, package.loaded["redlock.copas"] = loaded.copas, loaded.module

  local farm

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)

  local function run(...)
    local deadline, left, failure = helper.now() + 100, select("#", ...), nil
    for index = 1, select("#", ...) do
      local fn = select(index, ...)
      newer.addthread(function()
        local ok, err = xpcall(fn, debug.traceback)
        left = left - 1
        if not ok then failure = failure or err end
      end)
    end
    while left > 0 and not failure and helper.now() < deadline do newer.step(0.02) end
    if failure then error(failure, 0) end
    if left > 0 then error("the threads did not come to an end", 0) end
  end

  behaviour("waiting in a thread", {
    chapters = { "acquire", "release", "lease", "with" },
    new = module.new,
    run = run,
    pump = require("redlock.loop_turn").process,
    idle = function() newer.pause(0.005) end,
    farm = function() return farm end,
    describe = describe,
    it = it,
  })

  loop_behaviour("many in one loop", {
    new = module.new,
    run = run,
    spawn = newer.addthread,
    sleep = newer.pause,
    farm = function() return farm end,
    describe = describe,
    it = it,
  })

  -- A thread that waits for what another client has, until it is removed. It is kept, as its lock
  -- is.
  local function remove_waiter(client, other, options)
    local held, kept = assert(other:acquire("r")), {}
    kept.thread = newer.addthread(function()
      kept.lock = client:new_lock("r", options)
      kept.lock:acquire()
    end)
    repeat newer.pause(0.001) until kept.lock and tostring(kept.lock):find("acquiring", 1, true)
    newer.removethread(kept.thread)
    assert(held:release())
    return kept
  end

  it("lease_granted_to_removed_thread_is_not_extended", function()
    farm:reset()
    local client = module.new(farm.addresses, { node_timeout = 20000 })
    local other = module.new(farm.addresses, { node_timeout = 20000 })
    run(function()
      local kept = remove_waiter(client, other, { ttl = 300, wait = 60000, auto_extend = true })
      helper.eventually(function()
        assert(assert(client:acquire("other", { ttl = 60000 })):release()) -- which would extend the lease
        return kept.lock.operation == "release"
      end, "the lease to be given back")
      client:close()
      other:close()
    end)
    farm:eventually_free("r")
  end)

  for _, name in ipairs { "acquire", "extend", "release" } do
    it("release_is_not_blocked_by_removed_thread_in_" .. name, function()
      farm:reset()
      local client = module.new(farm.addresses, { node_timeout = 2000, ttl = 60000, wait = 60000 })
      run(function()
        local lock = client:new_lock("r")
        if name ~= "acquire" then assert(lock:acquire()) end
        for index = 3, 5 do farm[index]:stop() end
        local thread = newer.addthread(function() lock[name](lock) end)
        repeat newer.pause(0.001) until lock.wait.waiting
        newer.removethread(thread)
        local ok, _, code = lock:release({ wait = false })
        if name == "acquire" then
          assert.are.equal("not_held", code)
        else
          assert.is_true(ok)
        end
        assert.are.equal(0, lock:remaining())
        helper.eventually(function()
          newer.pause(0.001)
          return farm[1]:command("EXISTS", "r") == 0 and farm[2]:command("EXISTS", "r") == 0
        end, "the running nodes to be released")
        for index = 3, 5 do farm[index]:continue() end
        client:close()
      end)
      farm:eventually_free("r")
    end)
  end

  it("loop_ends_after_close", function()
    run(function()
      local client = module.new(farm.addresses, { node_timeout = 20000 })
      assert(assert(client:acquire("r")):release())
      client:close()
    end)
    helper.eventually(function()
      newer.step(0)
      return newer.finished()
    end, "the loop to end")
  end)
end)
