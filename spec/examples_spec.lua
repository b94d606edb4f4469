local helper = require "spec.helper"

describe("examples", function()
  local farm

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)
  before_each(function() farm:reset() end)

  local function runs(path, ...)
    local output, ok = helper.run_file(path, (table.unpack or unpack)(farm.addresses))
    assert.is_true(ok, path .. ": " .. output)
    for _, text in ipairs { ... } do
      assert.is_truthy(output:find(text, 1, true), path .. " does not say " .. text .. ": " .. output)
    end
    helper.eventually(function() return farm[1]:command("DBSIZE") == 0 end, "no key to be left")
  end

  it("script.lua", function() runs("examples/script.lua", "acquired", "released") end)

  it("with.lua", function() runs("examples/with.lua", "the total is 42") end)

  it("cqueues_twenty.lua", function() runs("examples/cqueues_twenty.lua", "20 of 20") end)

  if _VERSION == "Lua 5.4" then
    it("close.lua", function() runs("examples/close.lua", "held inside", "free outside") end)
  end

  it("script.lua says what is wrong when nobody is there", function()
    local output, ok = helper.run_file("examples/script.lua", "127.0.0.1:" .. helper.free_port())
    assert.is_false(ok)
    assert.is_truthy(output:find("unavailable", 1, true), output)
  end)
end)
