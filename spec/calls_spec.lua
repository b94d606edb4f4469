--- Who waits is called: scripts that block.

local calls_behaviour = require "spec.calls_behaviour"
local helper = require "spec.helper"
local redlock = require "redlock"

local farm

calls_behaviour("calls, waiting in a blocking call", {
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
