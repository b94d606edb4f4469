--- Notifications of scripts that block.

local notify_behaviour = require "spec.notify_behaviour"
local helper = require "spec.helper"
local redlock = require "redlock"

local farm

notify_behaviour("notifications of blocking calls", {
  blocks = true,
  new = redlock.new,
  run = function(fn) fn() end,
  farm = function() return farm end,
  describe = function(title, fn)
    describe(title, function()
      setup(function() farm = helper.farm(5) end)
      teardown(function() farm:shut() end)
      fn()
    end)
  end,
  it = it,
})
