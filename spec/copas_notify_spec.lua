-- Notifications of waiters in threads of copas, many of which share one loop.

-- Debian has copas for Lua 5.1 and 5.2, where spec/all_luas.sh has no busted: LuaJIT runs these.
if not rawget(_G, "jit") then return end

local notify_behaviour = require "spec.notify_behaviour"
local driver = require "spec.copas_driver"
local helper = require "spec.helper"
local loop_behaviour = require "spec.loop_behaviour"
local sentinel_behaviour = require "spec.sentinel_behaviour"

describe("redlock.copas", function()
  local farm

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)
  driver.farm = function() return farm end
  driver.describe, driver.it = describe, it

  notify_behaviour("notifications", driver)
  loop_behaviour("many in one loop", driver)
  sentinel_behaviour("fail-over by Sentinels", driver)
end)
