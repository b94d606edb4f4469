--- The nginx configurations of the pages, each run as it is but for its port and its nodes.

if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local page = require "spec.page"
local server = require "spec.nginx.server"

describe("nginx configurations of pages", function()
  local farm, nginx

  setup(function() farm = helper.farm(3) end)
  teardown(function() farm:shut() end)
  before_each(function() farm:reset() end)

  after_each(function()
    if nginx then nginx:stop() end
    nginx = nil
  end)

  local function start(path)
    local found
    for _, block in ipairs(page.blocks(path)) do
      if block.language == "nginx" then
        assert(not found, path .. " has several configurations")
        found = block
      end
    end
    local file = helper.directory .. "/page.conf"
    helper.write_file(file, assert(found, path .. " has no configuration").text)
    nginx = server.start_example(file, farm.addresses)
  end

  for _, path in ipairs { "README.md", "docs/openresty.md" } do
    it(path .. " answers 200, 423, 500 and 503", function()
      start(path)
      helper.unless_stalled(30, function()
        farm:reset()
        local status, body = nginx:get("/order?id=42")
        assert.are.equal(200, status)
        assert.are.equal("order 42 is done\n", body)
      end)
      farm:eventually_free("orders:42")
      for _, node in ipairs(farm) do node:command("SET", "orders:42", "the token of another client") end
      helper.unless_stalled(30, function()
        local status, body = nginx:get("/order?id=42")
        assert.are.equal(423, status)
        assert.is_nil(body:find(farm.addresses[1], 1, true), body)
      end)
      farm:reset()
      helper.eventually(function() -- Deletes the keys while the function runs.
        local request = nginx:request("/order?id=44")
        pcall(helper.eventually, function() return farm:count("orders:44") == 3 end, "the lock", 0.1)
        for _, node in ipairs(farm) do node:command("DEL", "orders:44") end
        return request:finish() == 500
      end, "the answer of a lost lease")
      farm[1]:kill()
      farm[2]:kill()
      local status, body = nginx:get("/order?id=43")
      assert.are.equal(503, status)
      assert.is_nil(body:find("127.0.0.1", 1, true), body)
    end)
  end
end)
