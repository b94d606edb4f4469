local helper = require "spec.helper"

describe("examples", function()
  local farm

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)
  before_each(function() farm:reset() end)

  -- An example gives its nodes the 100 ms of the defaults.
  local function runs(path, ...)
    local texts = { ... }
    helper.unless_stalled(30, function()
      farm:reset()
      local output, ok = helper.run_file(path, (table.unpack or unpack)(farm.addresses))
      assert.is_true(ok, path .. ": " .. output)
      for _, text in ipairs(texts) do
        assert.is_truthy(output:find(text, 1, true), path .. " does not say " .. text .. ": " .. output)
      end
    end)
    helper.eventually(function() return farm[1]:keys_left() == 0 end, "no key to be left")
  end

  it("script.lua", function() runs("examples/script.lua", "acquired", "released") end)

  it("with.lua", function() runs("examples/with.lua", "the total is 42") end)

  it("cqueues_twenty.lua", function() runs("examples/cqueues_twenty.lua", "20 of 20") end)

  it("luv_twenty.lua", function() runs("examples/luv_twenty.lua", "at one time: 20", "20 of 20", "20 times") end)

  it("snippets_of_loops_md_run", function()
    local file = assert(io.open("docs/loops.md"))
    local program = assert(file:read("*a"):match("\n```lua\n(.-)```\n"))
    file:close()
    helper.unless_stalled(30, function()
      farm:reset()
      local output, ok = helper.run_script(program, (table.unpack or unpack)(farm.addresses))
      assert.is_true(ok, output)
      assert.are.equal(("done\n"):rep(20), output .. "\n")
    end)
  end)

  if rawget(_G, "jit") then -- Debian has copas for Lua 5.1 and 5.2
    it("copas_twenty.lua", function()
      runs("examples/copas_twenty.lua", "at one time: 20", "20 of 20", "20 times")
    end)
  end

  if _VERSION == "Lua 5.4" then
    it("close.lua", function() runs("examples/close.lua", "held inside", "free outside") end)
  end

  it("script_lua_reports_unreachable_nodes", function()
    local output, ok = helper.run_file("examples/script.lua", "127.0.0.1:" .. helper.free_port())
    assert.is_false(ok)
    assert.is_truthy(output:find("unavailable", 1, true), output)
  end)
end)
