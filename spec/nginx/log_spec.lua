--- What nginx's error log says of nodes.

-- nginx has its own Lua, LuaJIT: the specs are run once.
if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local server = require "spec.nginx.server"

describe("error log of nginx", function()
  local farm, nginx

  setup(function() farm = helper.farm(3) end)
  teardown(function() farm:shut() end)

  before_each(function()
    farm:reset()
    nginx = server.start {
      addresses = farm.addresses,
      init = [[client = require("redlock").new(addresses, { node_timeout = 2000, wait = 20000 })]],
      server = [[location / { content_by_lua_block {
        ngx.print(tostring(client:with("name", function() return true end)))
      } }
      location /own { content_by_lua_block {
        local own = require("redlock").new(addresses, { node_timeout = 2000, wait = 20000, on_lost = function() end })
        kept.last = own -- One of them lives.
        ngx.print(tostring(own:with("name", function()
          ngx.sleep(0.05) -- All of its connections are made, or refused.
          return true
        end)))
      } }]],
    }
  end)
  after_each(function() nginx:stop() end)

  -- Lines of the log about the third node, with "down" or "up" in them.
  local function lines(word)
    local found = {}
    for line in nginx:read("error.log"):gmatch("[^\n]+") do
      if line:find("redlock: node " .. farm.addresses[3] .. " is " .. word, 1, true) then found[#found + 1] = line end
    end
    return found
  end

  local function serve(count)
    for _ = 1, count do assert.are.equal("true", select(2, nginx:get("/"))) end
  end

  it("node_that_is_killed_and_restarted_is_logged_once_each", function()
    serve(5)
    farm[3]:kill()
    serve(50)
    local down = helper.eventually(function() return lines("down")[1] end, "the line")
    assert.is_truthy(down:find("%[error%].* is down: %S+"), down)
    serve(50)
    farm[3]:restart()
    local up = helper.eventually(function()
      serve(1)
      return lines("up again")[1]
    end, "the line")
    assert.is_truthy(up:find("%[error%].* is up again, after %d+ s"), up)
    serve(50)
    assert.are.equal(1, #lines("down"))
    assert.are.equal(1, #lines("up again"))
  end)

  it("node_is_logged_once_for_all_clients_that_are_made_for_each_request", function()
    farm[3]:kill()
    for _ = 1, 20 do assert.are.equal("true", select(2, nginx:get("/own"))) end
    helper.eventually(function() return lines("down")[1] end, "the line")
    assert.are.equal(1, #lines("down"))
    farm[3]:restart()
    helper.eventually(function()
      assert.are.equal("true", select(2, nginx:get("/own")))
      return lines("up again")[1]
    end, "the line")
    for _ = 1, 5 do assert.are.equal("true", select(2, nginx:get("/own"))) end
    assert.are.equal(1, #lines("down"))
    assert.are.equal(1, #lines("up again"))
  end)

  it("node_that_hangs_is_logged_with_the_reason", function()
    serve(5)
    farm[3]:stop()
    local down = helper.eventually(function()
      serve(1)
      return lines("down")[1]
    end, "the line", 60)
    farm[3]:continue()
    assert.is_truthy(down:find("is down: .*no reply", 1) or down:find("is down: .*answer"), down)
    assert.are.equal(1, #lines("down"))
  end)

  it("node_that_comes_and_goes_is_logged_once_in_ten_seconds", function()
    local began = helper.now()
    for _ = 1, 3 do
      serve(5)
      farm[3]:kill()
      serve(5)
      helper.eventually(function() return lines("down")[1] end, "the line")
      farm[3]:restart()
      helper.eventually(function()
        serve(1)
        return lines("up again")[1]
      end, "the line")
    end
    local most = 1 + math.floor((helper.now() - began) / 10)
    assert.is_true(#lines("down") <= most, #lines("down") .. " lines, and " .. most .. " are allowed")
  end)
end)
