--- A client that only one request has used, or that nobody uses: when its clock and its connections end, what they
--- leave, and how they come back.

if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local server = require "spec.nginx.server"

-- What a request does first. It is the first of its worker, so that its state may last for no other.
local MAKE = [[
  local redlock = require("redlock")
  local function new(given)
    local client = redlock.new(addresses, given)
    kept.client = client
    return client
  end
  local function use(client) assert(client:acquire("used")):release() end
  local function is_up(client) return client:nodes()[1].state == "up" end
  local function make_connected(given)
    local client = new(given)
    repeat use(client) until is_up(client)
    return client
  end
  local function await_end(client)
    for _ = 1, 500 do
      if not is_up(client) then return true end
      ngx.sleep(0.01)
    end
    error("the client's connections stay")
  end
]]

describe("a client that only one request has used", function()
  local farm, nginx

  setup(function() farm = helper.farm(3) end)
  teardown(function() farm:shut() end)

  before_each(function()
    farm:reset()
    helper.limit(30)
  end)

  after_each(function()
    for _, node in ipairs(farm) do
      node:continue()
      node:command("CONFIG", "SET", "min-replicas-to-write", 0)
    end
    if nginx then nginx:stop() end
    nginx = nil
  end)

  -- What the first request of a worker prints.
  local function said_by_first(text, more)
    nginx = server.start {
      addresses = farm.addresses,
      server = "location / { content_by_lua_block {" .. MAKE .. text .. "} }" .. (more or ""),
    }
    return select(2, nginx:get("/"))
  end

  it("stays connected for as long as it is used every now and then", function()
    assert.are.equal("stayed", said_by_first [[
      for try = 1, 5 do -- On a machine that stands still for 200 ms it may end.
        local client, ended = make_connected({ prefix = try .. ":" }), false
        for _ = 1, 12 do
          use(client)
          ngx.sleep(0.05)
          ended = ended or not is_up(client)
        end
        if not ended then return ngx.print("stayed") end
      end
      ngx.print("ended")
    ]])
    assert.are.equal("", nginx:complaints())
  end)

  it("ends within a second when it is used no more", function()
    assert.are.equal("soon", said_by_first [[
      for try = 1, 5 do
        local client = make_connected({ prefix = try .. ":" })
        ngx.update_time()
        local began = ngx.now()
        await_end(client)
        ngx.update_time()
        if ngx.now() - began < 0.8 then return ngx.print("soon") end
      end
      ngx.print("late")
    ]])
    assert.are.equal("", nginx:complaints())
  end)

  it("keeps a lease again when it had ended", function()
    assert.are.equal("true\n", said_by_first [[
      local client = make_connected()
      await_end(client)
      local lock = assert(client:acquire("again", { ttl = 1000, auto_extend = true, owner = "worker" }))
      ngx.sleep(1.6)
      ngx.say(tostring(lock:is_held()))
      lock:release()
    ]])
    assert.are.equal("", nginx:complaints())
  end)

  it("says that its close was not confirmed, though it had ended before", function()
    assert.are.equal("held", said_by_first([[
      local client = make_connected({ ttl = 60000 })
      await_end(client)
      kept.lock = assert(client:acquire("held", { owner = "worker" }))
      ngx.print("held")
    ]], [[
      location /close { content_by_lua_block { ngx.print(select(3, kept.client:close())) } }
    ]]))
    helper.eventually(function() return farm:count("held") == 3 end)
    for _, node in ipairs(farm) do node:stop() end
    assert.are.equal("unavailable", select(2, nginx:get("/close")))
    assert.are.equal("", nginx:complaints())
  end)

  local ADMIN = [[
    local function refuse(count)
      local admin = ngx.socket.tcp()
      assert(admin:connect(addresses[3]:match("^(.*):(%d+)$")))
      assert(admin:send("CONFIG SET min-replicas-to-write " .. count .. "\r\n"))
      assert(admin:receive() == "+OK")
      admin:close()
    end
  ]]

  it("releases with its next use what a node would not release before it ended", function()
    assert.are.equal("ended", said_by_first(ADMIN .. [[
      local client = make_connected({ ttl = 60000 })
      local left = assert(client:acquire("left", { owner = "worker" }))
      repeat ngx.sleep(0.01) until left:votes()[3].vote == "granted"
      refuse(1)
      left:release()
      await_end(client)
      ngx.print("ended")
    ]], [[
      location /use { content_by_lua_block { ngx.print(tostring(kept.client:acquire("other"):release())) } }
    ]]))
    farm[3]:command("CONFIG", "SET", "min-replicas-to-write", 0)
    assert.are.equal(1, farm:count("left"))
    assert.are.equal("true", select(2, nginx:get("/use")))
    farm:eventually_free("left", 5)
    assert.are.equal("", nginx:complaints())
  end)
end)
