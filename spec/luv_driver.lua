--- luv as a driver of spec/behaviour.lua.

local helper = require "spec.helper"
local redlock = require "redlock.luv"
local uv = require "luv"

local driver = {
  new = redlock.new,
  pump = require("redlock.loop_turn").process, -- reports losses, which a release would discard
  spawn = function(fn) coroutine.wrap(fn)() end,
}

function driver.sleep(seconds)
  local thread, timer = coroutine.running(), uv.new_timer()
  timer:start(math.floor(seconds * 1000), 0, function()
    timer:close()
    assert(coroutine.resume(thread))
  end)
  coroutine.yield()
end

--- Runs the functions in coroutines until they have ended, and then the loop until it ends by
--- itself.
function driver.run(...)
  local deadline, left, failure = helper.now() + 100, select("#", ...), nil
  local function guarded(fn)
    return function()
      local ok, err = xpcall(fn, debug.traceback)
      left = left - 1
      if not ok then failure = failure or err end
    end
  end
  for index = 1, select("#", ...) do coroutine.wrap(guarded((select(index, ...))))() end
  local tick = uv.new_timer()
  tick:start(20, 20, function() end)
  while left > 0 and not failure and helper.now() < deadline do uv.run("once") end
  tick:close()
  uv.run("nowait") -- completes each close, without which luv 1.44 crashes when the state ends
  if failure then error(failure, 0) end
  if left > 0 then error("the coroutines did not come to an end", 0) end
  local until_when = helper.now() + 60
  while uv.run("nowait") and helper.now() < until_when do end
  if uv.loop_alive() then error("the loop does not end", 0) end
end

function driver.idle()
  driver.sleep(0.005)
end

return driver
