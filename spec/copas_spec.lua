-- Debian has copas for Lua 5.1 and 5.2, where spec/all_luas.sh has no busted: LuaJIT runs these.
if not rawget(_G, "jit") then return end

local copas = require "copas"

local behaviour = require "spec.behaviour"
local calls_behaviour = require "spec.calls_behaviour"
local helper = require "spec.helper"
local loop_behaviour = require "spec.loop_behaviour"

local core = require "redlock.core"
local redlock = require "redlock.copas"

describe("redlock.copas", function()
  local farm

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)

  -- Other threads go on meanwhile. Copas 1 has no timers: this one is always ready.
  local function yield()
    local asked = false
    copas.receive({
      getfd = function() return 0 end,
      dirty = function() return true end,
      close = function() end,
      receive = function()
        if asked then return "" end
        asked = true
        return nil, "timeout"
      end,
    })
  end

  local function sleep(seconds)
    local until_when = helper.now() + seconds
    repeat yield() until helper.now() >= until_when
  end

  -- Runs the functions in threads until they have ended.
  local function run(...)
    local deadline, left, failure = helper.now() + 9, select("#", ...), nil
    for index = 1, select("#", ...) do
      local fn = select(index, ...)
      copas.addthread(function()
        local ok, err = xpcall(fn, debug.traceback)
        left = left - 1
        if not ok then failure = failure or err end
      end)
    end
    while left > 0 and not failure and helper.now() < deadline do copas.step(0.02) end
    if failure then error(failure, 0) end
    if left > 0 then error("the threads did not come to an end", 0) end
  end

  behaviour("waiting in a thread of copas", {
    new = redlock.new,
    run = run,
    pump = function(client) client.handle:process() end,
    idle = function() sleep(0.005) end,
    farm = function() return farm end,
    describe = describe,
    it = it,
  })

  calls_behaviour("calls", {
    new = redlock.new,
    run = run,
    farm = function() return farm end,
    describe = describe,
    it = it,
  })

  loop_behaviour("many in one loop", {
    new = redlock.new,
    run = run,
    spawn = copas.addthread,
    sleep = sleep,
    farm = function() return farm end,
    describe = describe,
    it = it,
  })

  it("an error in the thread that looks after the client stopped all that waited", function()
    farm:reset()
    local client, ended, calls, printed = redlock.new(farm.addresses, { node_timeout = 1000 }), 0, 0, {}
    local process, print_it = core.client_methods.process, print
    core.client_methods.process = function(handle)
      calls = calls + 1
      if calls == 8 then error("interrupted!", 0) end
      return process(handle)
    end
    _G.print = function(text) printed[#printed + 1] = tostring(text) end -- what copas does with errors
    local workers = {}
    for index = 1, 10 do
      workers[index] = function()
        for _ = 1, 10 do assert(assert(client:acquire("r" .. index)):release()) end
        ended = ended + 1
      end
    end
    local ok, err = pcall(run, unpack(workers))
    _G.print, core.client_methods.process = print_it, process
    assert(ok, err)
    assert.are.equal(10, ended)
    assert.are.same({ "interrupted!" }, printed)
    run(function() client:close() end)
  end)

  it("has all methods of the lock that blocks but start()", function()
    local client = redlock.new(farm.addresses)
    local lock = client:lock("r")
    for name in pairs(core.lock_methods) do
      assert.are.equal(name == "start" and "nil" or "function", type(lock[name]), name)
    end
    run(function() client:close() end)
  end)
end)

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
    local deadline, left, failure = helper.now() + 9, select("#", ...), nil
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
    new = module.new,
    run = run,
    pump = function(client) client.handle:process() end,
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

  it("the loop has nothing left to do after a close", function()
    run(function()
      local client = module.new(farm.addresses)
      assert(assert(client:acquire("r")):release())
      client:close()
    end)
    helper.eventually(function()
      newer.step(0)
      return newer.finished()
    end, "the loop to end")
  end)
end)
