-- The stand-in has no need of it, but the copas of Debian is for Lua 5.1 and 5.2: LuaJIT runs these.
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
