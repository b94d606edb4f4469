--- copas as a driver of spec/behaviour.lua.

local copas = require "copas"
local helper = require "spec.helper"
local redlock = require "redlock.copas"

local driver = {
  new = redlock.new,
  pump = require("redlock.loop_turn").process, -- reports losses, which a release would discard
  spawn = copas.addthread,
}

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

function driver.sleep(seconds)
  local until_when = helper.now() + seconds
  repeat yield() until helper.now() >= until_when
end

--- Runs the functions in threads until they have ended.
function driver.run(...)
  local deadline, left, failure = helper.now() + 100, select("#", ...), nil
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

function driver.idle()
  driver.sleep(0.005)
end

return driver
