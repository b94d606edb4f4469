--- A client that only one request has used, or that nobody uses: when its clock and its connections
--- end, what they leave, and how they come back.

if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local server = require "spec.nginx.server"

-- What a request does first. It is the first of its worker, so that its state may last for no
-- other.
local MAKE = [[
  local redlock = require("redlock")
  local function new(given)
    given = given or {}
    given.node_timeout = given.node_timeout or 20000
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
    for _ = 1, 4000 do
      if not is_up(client) then return true end
      ngx.sleep(0.01)
    end
    error("the client's connections stay")
  end
]]

-- Connections count as idle after 300 ms instead of 10 s.
local SHORT_IDLE = [[
  local nginx = require("redlock.core").nginx
  local new = nginx.new
  function nginx.new(client) return new(client, 300) end
]]

describe("a client that only one request has used", function()
  local farm, nginx

  setup(function() farm = helper.farm(3) end)
  teardown(function() farm:shut() end)

  before_each(function()
    farm:reset()
  end)

  after_each(function()
    for _, node in ipairs(farm) do
      node:continue()
      node:command("ACL", "SETUSER", "default", "+del")
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

  it("client_in_use_stays_connected", function()
    assert.are.equal("stayed", said_by_first [[
      for try = 1, 50 do -- On a machine that stands still for 200 ms it may end.
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

  it("idle_client_disconnects_within_a_second", function()
    assert.are.equal("soon", said_by_first [[
      for try = 1, 50 do
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

  it("client_auto_extends_after_it_had_disconnected", function()
    assert.are.equal("true\n", said_by_first [[
      local client = make_connected()
      await_end(client)
      local lock = assert(client:acquire("again", { ttl = 60000, auto_extend = { every = 100 }, owner = "worker" }))
      local left = lock:remaining()
      ngx.sleep(0.6)
      local function grows()
        for _ = 1, 1000 do
          local now = lock:remaining()
          if now > left then return true end
          left = now
          ngx.sleep(0.01)
        end
      end
      ngx.say(tostring(grows()))
      lock:release()
    ]])
    assert.are.equal("", nginx:complaints())
  end)

  it("close_of_disconnected_client_reports_missing_confirmation", function()
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
    local function let(rule)
      local admin = ngx.socket.tcp()
      assert(admin:connect(addresses[3]:match("^(.*):(%d+)$")))
      assert(admin:send("ACL SETUSER default " .. rule .. "\r\n"))
      assert(admin:receive() == "+OK")
      admin:close()
    end
  ]]

  it("collected_client_releases_on_node_that_refused_before", function()
    assert.are.equal("refused", said_by_first(ADMIN .. [[
      local client = make_connected({ ttl = 60000 })
      local left = assert(client:acquire("left", { owner = "worker" }))
      repeat ngx.sleep(0.01) until left:votes()[3].vote == "granted"
      let("-del")
      left:release()
      ngx.sleep(0.5)
      ngx.print("refused")
    ]], "location /drop { content_by_lua_block {" .. ADMIN .. [[
      let("+del")
      kept.client = nil
      collectgarbage() collectgarbage()
    } }]]))
    helper.eventually(function()
      assert.are.equal(200, (nginx:get("/drop"))) -- Its clock may have had it until now.
      return farm:count("left") == 0
    end, "the key left to be gone")
    assert.are.equal("", nginx:complaints())
  end)

  it("collection_of_closed_client_does_not_block_worker", function()
    local said = said_by_first([[
      local client = make_connected({ ttl = 60000 })
      kept.lock = assert(client:acquire("held", { owner = "worker" }))
      repeat ngx.sleep(0.01) until kept.lock:votes()[3].vote == "granted"
      ngx.print("held")
    ]], [[
      location /drop {
        content_by_lua_block {
          kept.lock:release()
          local code = select(3, kept.client:close())
          kept.lock, kept.client = nil, nil
          ngx.sleep(0.05) -- Its connections end.
          ngx.update_time()
          local began = ngx.now()
          collectgarbage() collectgarbage()
          ngx.update_time()
          ngx.print(code, ngx.now() - began < 0.08 and " soon" or " late")
        }
      }
    ]])
    for _ = 1, 50 do -- On a machine that stands still it takes longer.
      assert.are.equal("held", said)
      farm[3]:stop()
      said = select(2, nginx:get("/drop"))
      farm[3]:continue()
      if said == "unavailable soon" then break end
      farm:eventually_free("held")
      said = select(2, nginx:get("/"))
    end
    assert.are.equal("unavailable soon", said)
    assert.are.equal("", nginx:complaints())
  end)

  it("next_use_releases_on_node_that_refused_before", function()
    assert.are.equal("ended", said_by_first(ADMIN .. [[
      local client = make_connected({ ttl = 60000 })
      local left = assert(client:acquire("left", { owner = "worker" }))
      repeat ngx.sleep(0.01) until left:votes()[3].vote == "granted"
      let("-del")
      left:release()
      await_end(client)
      ngx.print("ended")
    ]], [[
      location /use { content_by_lua_block { ngx.print(tostring(kept.client:acquire("other"):release())) } }
    ]]))
    farm[3]:command("ACL", "SETUSER", "default", "+del")
    assert.are.equal(1, farm:count("left"))
    assert.are.equal("true", select(2, nginx:get("/use")))
    farm:eventually_free("left")
    assert.are.equal("", nginx:complaints())
  end)

  it("close_releases_on_node_that_refused_before", function()
    assert.are.equal("ended", said_by_first(ADMIN .. [[
      local client = make_connected({ ttl = 60000 })
      local left = assert(client:acquire("left", { owner = "worker" }))
      repeat ngx.sleep(0.01) until left:votes()[3].vote == "granted"
      let("-del")
      left:release()
      await_end(client)
      ngx.print("ended")
    ]], [[
      location /close { content_by_lua_block { ngx.print(tostring(kept.client:close())) } }
    ]]))
    farm[3]:command("ACL", "SETUSER", "default", "+del")
    assert.are.equal(1, farm:count("left"))
    assert.are.equal("true", select(2, nginx:get("/close")))
    farm:eventually_free("left")
    assert.are.equal("", nginx:complaints())
  end)
end)

describe("a worker that only holds a lock", function()
  local farm, nginx

  setup(function() farm = helper.farm(3) end)
  teardown(function() farm:shut() end)
  after_each(function() nginx:stop() end)

  -- Counts the steps of the core, which are the clock's while no request calls.
  local INIT = SHORT_IDLE .. [[
    local native = require("redlock.core").nginx
    local advance = native.advance
    steps = 0
    function native.advance(...)
      steps = steps + 1
      return advance(...)
    end
    client = require("redlock").new(addresses, { owner = "worker", ttl = 60000, node_timeout = 20000 })
  ]]

  local function said(text)
    nginx = server.start {
      addresses = farm.addresses,
      init = INIT,
      server = "location / { content_by_lua_block {" .. text .. "} }",
    }
    return select(2, nginx:get("/"))
  end

  it("worker_checks_for_dropped_locks_often", function()
    assert.are.equal("often", said [[
      kept.lock = assert(client:acquire("held"))
      ngx.sleep(0.5) -- for what is late
      for _ = 1, 30 do -- On a machine that stands still it looks less often.
        local before = steps
        ngx.sleep(0.5)
        if steps - before >= 5 then return ngx.print("often") end
      end
      ngx.print("seldom")
    ]])
    assert.are.equal("", nginx:complaints())
  end)

  it("idle_connections_are_kept_alive", function()
    assert.are.equal("held", said [[
      kept.lock = assert(client:acquire("held"))
      ngx.print("held")
    ]])
    local function asked(node)
      return tonumber(farm[node]:command("INFO", "commandstats"):match("cmdstat_client|setname:calls=(%d+)") or 0)
    end
    helper.eventually(function() return asked(1) >= 1 and asked(2) >= 1 and asked(3) >= 1 end)
    for node = 1, 3 do
      local before = asked(node)
      helper.eventually(function() return asked(node) > before end)
    end
    assert.are.equal("", nginx:complaints())
  end)

  it("idle_worker_stops_collecting_garbage", function()
    assert.are.equal("rests", said [[
      kept.lock = assert(client:acquire("held"))
      for _ = 1, 30 do
        local began = os.clock()
        ngx.sleep(1)
        if os.clock() - began < 0.01 then return ngx.print("rests") end
      end
      ngx.print("works")
    ]])
    assert.are.equal("", nginx:complaints())
  end)
end)

describe("a worker whose idle connections a NAT has forgotten", function()
  local farm, nginx, nat, accepted

  setup(function()
    farm = helper.farm(3)
    local words, addresses = { helper.directory }, {}
    for index, node in ipairs(farm) do
      local port = helper.free_port()
      addresses[index] = "127.0.0.1:" .. port
      words[2 * index], words[2 * index + 1] = tostring(port), tostring(node.port)
    end
    nat = helper.start_file("spec/nginx/nat.lua", helper.directory .. "/nat.out", unpack(words)) -- luacheck: ignore
    function accepted()
      local file = io.open(helper.directory .. "/accepted")
      local text = file and file:read("*a")
      if file then file:close() end
      return tonumber(text)
    end
    helper.eventually(accepted, "the NAT")
    nginx = server.start {
      addresses = addresses,
      init = SHORT_IDLE .. [[client = require("redlock").new(addresses, { node_timeout = 20000, retry_count = 0 })]],
      server = [[location / { content_by_lua_block {
        local lock, message = client:acquire("r")
        local up = 0
        for _, node in ipairs(client:nodes()) do up = up + (node.state == "up" and 1 or 0) end
        ngx.print(lock and tostring(lock:release()) .. " " .. up or message)
      } }]],
    }
  end)

  teardown(function()
    nginx:stop()
    os.execute("kill " .. nat)
    farm:shut()
  end)

  it("first_request_after_idle_connections_were_dropped_is_granted", function()
    helper.eventually(function() return select(2, nginx:get("/")) == "true 3" end, "all nodes to be connected")
    helper.write_file(helper.directory .. "/forget", "")
    helper.eventually(function() return accepted() == 0 end, "the NAT to forget them")
    helper.eventually(function() return accepted() >= 3 end, "the idle worker to connect again")
    assert.are.equal("true", select(2, nginx:get("/")):sub(1, 4))
    assert.are.equal("", nginx:complaints())
  end)
end)
