-- A script whose lease keeps itself, whatever the script does.

local helper = require "spec.helper"

local unpack = table.unpack or unpack -- luacheck: ignore

describe("a script with auto_extend", function()
  local farm

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)
  before_each(function() farm:reset() end)

  -- Another process that asks all the time until there is a file. Returns a function that ends it, and tells how
  -- often it was granted.
  local function rival()
    local path, output, done = helper.directory .. "/rival.lua", helper.directory .. "/rival.txt",
      helper.directory .. "/rival.done"
    os.remove(done)
    helper.write_file(output, "")
    helper.write_file(path, string.format([[
      io.stdout:setvbuf("no")
      local client = require("redlock").new({ ... }, { retry_count = 0, ttl = 1000 })
      local granted, asked = 0, 0
      io.write("begun\n")
      repeat
        if client:acquire("r") then granted = granted + 1 end
        asked = asked + 1
        local file = io.open(%q)
      until file
      client:close()
      io.write("granted ", granted, " of ", asked, "\n")
    ]], done))
    local pid = helper.start_file(path, output, unpack(farm.addresses))
    finally(function() os.execute("kill -KILL " .. pid .. " 2>/dev/null") end)
    local function written()
      local file = assert(io.open(output))
      local all = file:read("*a")
      file:close()
      return all
    end
    helper.eventually(function() return written():find("begun", 1, true) end, "the rival to begin")
    return function()
      helper.write_file(done, "")
      helper.eventually(function() return written():find("granted", 1, true) end, "the rival to end")
      local granted, asked = written():match("granted (%d+) of (%d+)")
      assert.is_true(tonumber(asked) > 50, written())
      return tonumber(granted)
    end
  end

  local function compute(seconds)
    local sum, ending = 0, helper.now() + seconds
    repeat for i = 1, 10000 do sum = sum + i end until helper.now() > ending
    return sum
  end

  it("loses its lease neither in a loop, nor in os.execute, nor to the collector", function()
    helper.limit(30)
    local client = require("redlock").new(farm.addresses)
    local lock = assert(client:acquire("r", { ttl = 900, auto_extend = true }))
    local granted = rival()
    compute(1.5)
    os.execute("sleep 1.5")
    farm[5]:stop()
    for _ = 1, 20 do
      for _ = 1, 10 do client:lock("garbage") end
      collectgarbage()
      compute(0.05)
    end
    assert.is_true(lock:is_held())
    assert.is_nil(lock:lost())
    assert.are.equal(0, granted())
    farm[5]:continue()
    assert.is_true(lock:release())
    client:close()
  end)

  it("ends, and leaves nothing, however it ends", function()
    for _, ending in ipairs { "", "os.exit(0)", "os.exit(0, true)", "client:close()", "lock:release()" } do
      local output, ok = helper.run_script([[
        local client = require("redlock").new({ ... })
        local lock = assert(client:acquire("ended", { ttl = 900, auto_extend = true }))
        io.write("held ")
      ]] .. ending, unpack(farm.addresses))
      assert.is_true(ok, ending .. ": " .. tostring(output))
      helper.eventually(function() return farm:count("ended") == 0 end, "the key to go after " .. ending)
    end
  end)
end)
