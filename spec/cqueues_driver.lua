--- cqueues as a driver of spec/behaviour.lua.

local cqueues = require "cqueues"
local helper = require "spec.helper"
local redlock = require "redlock.cqueues"

local driver = {
  new = redlock.new,
  pump = require("redlock.loop_turn").process, -- reports losses, which a release would discard
  idle = function() cqueues.sleep(0.005) end,
  spawn = function(fn) cqueues.running():wrap(fn) end,
  sleep = cqueues.sleep,
  blocks_outside = true,
}

--- Runs the functions in coroutines until they have ended.
function driver.run(...)
  local controller = cqueues.new()
  for index = 1, select("#", ...) do controller:wrap((select(index, ...))) end
  local deadline = helper.now() + 100
  while not controller:empty() do
    local ok, err = controller:step(1)
    if not ok then error(err, 0) end
    if helper.now() > deadline then error("the coroutines did not come to an end", 0) end
  end
end

return driver
