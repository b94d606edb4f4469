-- Debian has copas for Lua 5.1 and 5.2, where spec/all_luas.sh has no busted: LuaJIT runs these.
if not rawget(_G, "jit") then return end

local behaviour = require "spec.behaviour"
local driver = require "spec.copas_driver"
local helper = require "spec.helper"

local core = require "redlock.core"
local redlock = require "redlock.copas"

describe("redlock.copas", function()
  local farm

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)
  driver.farm = function() return farm end
  driver.describe, driver.it = describe, it

  local run = driver.run

  behaviour("waiting in a thread of copas", driver)

  it("error_in_serving_thread_stops_no_waiter", function()
    farm:reset()
    local client, ended, calls, printed = redlock.new(farm.addresses, { node_timeout = 20000 }), 0, 0, {}
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
end)
