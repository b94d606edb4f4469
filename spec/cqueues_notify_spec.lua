-- Notifications of waiters in coroutines of cqueues, many of which share one loop.

-- The pcall of PUC Lua 5.1 cannot be yielded across, which is what with() would have to do.
if _VERSION == "Lua 5.1" and not rawget(_G, "jit") then return end

local notify_behaviour = require "spec.notify_behaviour"
local driver = require "spec.cqueues_driver"
local helper = require "spec.helper"
local loop_behaviour = require "spec.loop_behaviour"
local sentinel_behaviour = require "spec.sentinel_behaviour"

describe("redlock.cqueues", function()
  local farm

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)
  driver.farm = function() return farm end
  driver.describe, driver.it = describe, it

  notify_behaviour("notifications", driver)
  loop_behaviour("many in one controller", driver)
  sentinel_behaviour("fail-over by Sentinels", driver)
end)
