--- Option credentials in nginx: its function may wait.

if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local server = require "spec.nginx.server"

describe("credentials in nginx", function()
  local farm, nginx

  setup(function() farm = helper.farm(3) end)
  teardown(function() farm:shut() end)

  before_each(function()
    for _, node in ipairs(farm) do
      node:command("ACL", "SETUSER", "token", "reset", "on", ">s3cr3t-1", "~*", "+@all")
    end
  end)

  after_each(function()
    if nginx then nginx:stop() end
    nginx = nil
  end)

  local SERVER = [[
    location /lock { content_by_lua_block {
      local lock, err, code = client:acquire("name", {
        ttl = 60000, node_timeout = tonumber(ngx.var.arg_timeout) or 20000, retry_count = 0,
      })
      if not lock then return ngx.say(code, ": ", err) end
      ngx.say(tostring(lock:extend() ~= nil), " ", tostring(lock:release()))
    } }
    location /nodes { content_by_lua_block {
      for _, node in ipairs(client:nodes()) do ngx.say(node.state, " ", node.error or "") end
      ngx.say("asked ", asked)
    } }
    location /token { content_by_lua_block { ngx.sleep(0.02) ngx.print(kept.token or "s3cr3t-1") } }
    location /set { content_by_lua_block {
      kept.token, kept.mode, kept.port = ngx.var.arg_token, ngx.var.arg_mode, ngx.var.arg_port
    } }
  ]]

  local function start(body, main)
    nginx = server.start {
      addresses = farm.addresses,
      init = [[
        asked = 0
        client = require("redlock").new(addresses, { credentials = function(node, index)
          asked = asked + 1
          ]] .. body .. [[
        end })
      ]],
      server = SERVER,
      main = main,
    }
  end

  local FETCH = [[
    local socket = ngx.socket.tcp()
    socket:settimeout(20000)
    assert(socket:connect("127.0.0.1", kept.port))
    socket:send("GET /token HTTP/1.0\r\n\r\n")
    local answer = assert(socket:receive("*a"))
    socket:close()
    return "token", answer:match("\r\n\r\n(.*)$")
  ]]

  local function get(path)
    local _, body = nginx:get(path)
    return body
  end

  local function eventually_nodes(pattern)
    helper.eventually(function()
      get("/lock?timeout=1000")
      local _, count = get("/nodes"):gsub(pattern, "")
      return count == 3
    end, "all nodes to say " .. pattern .. ", not " .. get("/nodes"))
  end

  it("function_fetches_token_by_HTTP", function()
    start("if not kept.port then error('no port yet', 0) end " .. FETCH)
    assert.is_truthy(get("/lock?timeout=1000"):find("unavailable: .*it got no credentials: no port yet"))
    get("/set?port=" .. nginx.port)
    eventually_nodes("up ")
    assert.are.equal("true true\n", get("/lock"))
  end)

  it("next_connection_uses_changed_token", function()
    start('return "token", kept.token or "s3cr3t-1"')
    assert.are.equal("true true\n", get("/lock"))
    eventually_nodes("up ")
    assert.is_truthy(get("/nodes"):find("asked 3", 1, true))
    get("/set?token=s3cr3t-2")
    for _, node in ipairs(farm) do
      node:command("ACL", "SETUSER", "token", "resetpass", ">s3cr3t-2")
      node:command("CLIENT", "KILL", "USER", "token")
    end
    eventually_nodes("up ")
    assert.are.equal("true true\n", get("/lock"))
    assert.is_nil(nginx:read("error.log"):find("s3cr3t", 1, true))
  end)

  -- For how long the worker has used the processor, in hundredths of a second.
  local function ticks()
    local user, system = nginx:stat(nginx:workers()[1]):match("%) %a" .. (" %-?%d+"):rep(10) .. " (%d+) (%d+)")
    return tonumber(user) + tonumber(system)
  end

  it("hanging_function_is_called_once_and_reported", function()
    start('while kept.mode ~= "go" do ngx.sleep(0.05) end return "token", "s3cr3t-1"')
    assert.is_truthy(get("/lock"):find("its credentials did not arrive in time", 1, true))
    for _ = 1, 3 do assert.is_truthy(get("/lock?timeout=200"):find("unavailable", 1, true)) end
    assert.is_truthy(get("/nodes"):find("asked 3", 1, true), get("/nodes"))
    get("/set?mode=hang")
    local before = ticks()
    helper.pass(2)
    local used = ticks() - before -- One that looked every millisecond would have used 4.
    assert.is_true(used < 3 or server.sanitized, "a worker that waits used " .. used .. " ticks")
    get("/set?mode=go")
    eventually_nodes("up ")
    assert.are.equal("true true\n", get("/lock"))
  end)

  it("function_that_ends_its_timer_is_called_again", function()
    start('if kept.mode ~= "go" then ngx.exit(500) end return "token", "s3cr3t-1"')
    assert.is_truthy(get("/lock"):find("its credentials did not arrive in time", 1, true))
    get("/set?mode=go")
    eventually_nodes("up ")
  end)

  it("exiting_worker_and_closed_client_ignore_hanging_function", function()
    nginx = server.start {
      addresses = farm.addresses,
      init = [[
        client = require("redlock").new(addresses, { credentials = function() ngx.sleep(1000) end })
        closed = require("redlock").new(addresses, { credentials = function() ngx.sleep(1000) end })
      ]],
      server = [[
        location /both { content_by_lua_block {
          client:acquire("r", { node_timeout = 50, retry_count = 0 })
          closed:acquire("r", { node_timeout = 50, retry_count = 0 })
          closed:close()
          ngx.say(ngx.timer.running_count() >= 6)
        } }
        location /timers { content_by_lua_block { ngx.say(ngx.timer.running_count()) } }
      ]],
    }
    assert.are.equal("true\n", get("/both"))
    helper.eventually(function() return tonumber(get("/timers")) <= 4 end, "the timers of the closed client")
    nginx:reload()
  end)

  it("error_and_wrong_result_of_function_are_reported", function()
    start([[
      if kept.mode == "go" then return "token", "s3cr3t-1" end
      if index == 1 then error("no network", 0) end
      return {}
    ]])
    assert.is_truthy(get("/lock?timeout=1000"):find("unavailable", 1, true))
    local nodes = get("/nodes")
    assert.is_truthy(nodes:find("down it got no credentials: no network", 1, true), nodes)
    assert.is_truthy(nodes:find("must return a password, or a username and a password", 1, true), nodes)
    get("/set?mode=go")
    eventually_nodes("up ")
  end)

  -- What LuaJIT has compiled may hold what it was compiled for.
  it("function_is_collected_with_its_client", function()
    nginx = server.start {
      init = "require('jit').off()",
      addresses = farm.addresses,
      server = [[
        location /make { content_by_lua_block {
          gone = gone or setmetatable({}, { __mode = "v" })
          local client
          client = require("redlock").new(addresses, { credentials = function()
            return client and "token", "s3cr3t-1"
          end })
          gone[1] = client
          assert(client:acquire("r", { node_timeout = 20000 })):release()
          ngx.say("made")
        } }
        location /gone { content_by_lua_block {
          collectgarbage() collectgarbage()
          ngx.say(gone[1] == nil and "gone" or tostring(gone[1]))
          for index, node in ipairs(gone[1] and gone[1]:nodes() or {}) do
            ngx.say(index, " ", node.state, " ", tostring(node.error))
          end
        } }
      ]],
    }
    assert.are.equal("made\n", get("/make"))
    helper.eventually(function() return get("/gone") == "gone\n" end, "the client to be collected")
  end)
end)
