--- Who waits in nginx is called: what has to do with requests, workers and timers. The rest is in
--- behaviour_spec.lua.

if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local server = require "spec.nginx.server"

local LOCATIONS = [[
  lua_check_client_abort on;

  location /lock {
    content_by_lua_block {
      local from = ngx.var.arg_client == "other" and other or client
      local began = socket.gettime()
      local lock, err, code = from:acquire(ngx.var.arg_name, { wait = tonumber(ngx.var.arg_wait) })
      if not lock then return ngx.print(code, code ~= "taken" and ": " .. err or "") end
      local waited = socket.gettime() - began
      while ngx.var.arg_keep and kept[ngx.var.arg_keep] do ngx.sleep(0.002) end
      if ngx.var.arg_hold then ngx.sleep(ngx.var.arg_hold / 1000) end
      local gone = socket.gettime()
      ngx.print(lock:release() and string.format("%.6f %.6f %.3f", began + waited, gone, waited))
    }
  }

  location /own {
    content_by_lua_block {
      local own = require("redlock").new(addresses, { node_timeout = 30000 })
      local lock, err, code = own:acquire("own", { wait = 60000 })
      if not lock then return ngx.print(code, ": ", err) end
      ngx.sleep(0.002)
      ngx.print(tostring(lock:release()))
    }
  }

  location /set { content_by_lua_block { kept[ngx.var.arg_name] = ngx.var.arg_value } }

  location /nodes {
    content_by_lua_block {
      for _, node in ipairs(client:nodes()) do ngx.say(tostring(node.notifies), " ", node.notify_error or "") end
    }
  }

  location /asked { content_by_lua_block { ngx.print(kept.asked or "") } }
]]

local SOON = 20 -- seconds, in which no client has polled

describe("notifications in nginx", function()
  local farm, nginx

  teardown(function() if farm then farm:shut() end end)

  after_each(function()
    if nginx then nginx:stop("TERM") end
    nginx = nil
  end)

  local function start(options, given)
    given = given or {}
    farm = farm or helper.farm(5)
    farm:reset()
    given.addresses = given.addresses or farm.addresses
    -- A request that ends within seconds has been notified: a client polls once a minute, however
    -- slow the machine is.
    given.init = [[
      socket = require "socket"
      local options = ]] .. (options or "{}") .. [[

      options.node_timeout, options.ttl = 30000, 120000
      options.retry_delay, options.poll_interval = options.retry_delay or 60000, options.poll_interval or 60000
      client = require("redlock").new(addresses, options)
      other = require("redlock").new(addresses, options)
    ]]
    given.server = LOCATIONS
    nginx = server.start(given)
    return nginx
  end

  local function take_on_all(key, ...)
    for _, node in ipairs(farm) do assert(node:command("SET", key, "somebody's", ...)) end
  end

  local function subscribers(node)
    local _, count = (node or farm[1]):command("CLIENT", "LIST"):gsub(" sub=1 ", "")
    return count
  end

  local function queued(key)
    return farm[1]:command("STRLEN", key .. ":redlock-queue") / 24
  end

  local function stands(key, count)
    helper.eventually(function() return queued(key) == (count or 1) end, "a queue")
  end

  local function commands(node)
    local sum = 0
    for name, calls in node:command("INFO", "commandstats"):gmatch("cmdstat_([^:]+):calls=(%d+)") do
      if name ~= "info" then sum = sum + calls end
    end
    return sum
  end

  local function at_once(count, path)
    local requests, bodies = {}, {}
    for index = 1, count do requests[index] = nginx:request(path) end
    for index = 1, count do
      local status, body = requests[index]:finish()
      assert.are.equal(200, status)
      bodies[index] = body
    end
    return bodies
  end

  -- When a request had the lock, when it gave it back, and for how long it had waited.
  local function had(body)
    local granted, released, waited = body:match("^([%d.]+) ([%d.]+) ([%d.]+)$")
    assert(granted, body)
    return tonumber(granted), tonumber(released), tonumber(waited)
  end

  local function warm()
    had(select(2, nginx:get("/lock?name=warm&wait=60000")))
    take_on_all("theirs")
    for _, node in ipairs(farm) do
      helper.eventually(function()
        local _, body = nginx:get("/lock?name=theirs&wait=200")
        return body == "taken" and subscribers(node) == 1
      end, "a second connection")
    end
    for _, node in ipairs(farm) do node:command("DEL", "theirs") end
  end

  local function quiet(...)
    assert.are.equal("", nginx:complaints(server.NODE_IS_GONE, server.CONNECTION_BROKE, ...))
  end

  it("two_hundred_waiting_requests_cost_as_much_as_one", function()
    start()
    warm()
    take_on_all("theirs")
    local function cost(count)
      local before = commands(farm[1])
      for _, body in ipairs(at_once(count, "/lock?name=theirs&wait=500")) do
        assert.is_truthy(body == "taken" or body:find("^unavailable"), body) -- which a slow machine says
      end
      return commands(farm[1]) - before
    end
    local one = cost(1)
    local many = cost(200)
    assert.is_true(many < 50 * one, many .. " commands, and " .. one .. " of one") -- not 200 times as many
    quiet()
  end)

  it("two_hundred_requests_hold_key_in_turn_for_a_few_commands", function()
    start()
    warm()
    local before, last = commands(farm[1]), 0
    local turns = {}
    for _, body in ipairs(at_once(200, "/lock?name=turn&wait=90000&hold=2")) do
      local granted, released = had(body)
      turns[#turns + 1] = { granted = granted, released = released }
    end
    local used = (commands(farm[1]) - before) / #turns
    table.sort(turns, function(a, b) return a.granted < b.granted end)
    for _, one in ipairs(turns) do
      assert.is_true(one.granted >= last)
      last = one.released
    end
    assert.is_true(used <= 20, used .. " commands")
    quiet()
  end)

  it("aborted_waiting_request_makes_way_at_once", function()
    start()
    warm()
    nginx:get("/set?name=hold&value=1")
    local holder = nginx:request("/lock?name=way&keep=hold&client=other")
    helper.eventually(function() return farm:count("way") == 5 end)
    local first = nginx:request("/lock?name=way&wait=90000")
    stands("way")
    local second = nginx:request("/lock?name=way&wait=90000")
    helper.eventually(function() return nginx:get("/nodes") == 200 end)
    first:abort()
    helper.pass(0.3)
    stands("way")
    nginx:get("/set?name=hold")
    local _, released = had(select(2, holder:finish()))
    local granted = had(select(2, second:finish()))
    assert.is_true(granted - released < SOON, granted - released)
    stands("way", 0)
    -- The last one who waits leaves the queue.
    take_on_all("way")
    local alone = nginx:request("/lock?name=way&wait=90000")
    stands("way")
    alone:abort()
    stands("way", 0)
    quiet()
  end)

  it("exiting_worker_serves_its_waiters", function()
    start("{ retry_delay = 200, poll_interval = 200 }")
    for _, how in ipairs { "reload", "stop" } do
      warm()
      take_on_all("late")
      local waiting = nginx:request("/lock?name=late&wait=90000")
      local behind = nginx:request("/lock?name=late&wait=90000")
      stands("late")
      for _, node in ipairs(farm) do node:command("PEXPIRE", "late", 700) end
      if how == "reload" then nginx:reload() else nginx:stop("QUIT") end
      had(select(2, waiting:finish()))
      had(select(2, behind:finish()))
      quiet()
    end
  end)

  it("client_per_request_leaves_no_subscriber", function()
    start()
    for _, body in ipairs(at_once(15, "/own")) do assert.are.equal("true", body) end
    quiet("clients were dropped")
    nginx:stop()
    nginx = nil
    for _, node in ipairs(farm) do
      helper.eventually(function() return subscribers(node) == 0 end, "the connections to end")
      helper.eventually(function()
        return node:command("EXISTS", "own", "own:redlock-queue") == 0
      end, "the keys to be gone")
    end
  end)

  it("client_polls_without_timers_for_second_connections", function()
    start("{ retry_delay = 20, retry_jitter = 10 }", { http = "lua_max_running_timers 8;" })
    take_on_all("short", "PX", "700")
    local _, body = nginx:get("/lock?name=short&wait=60000")
    local waited = select(3, had(body))
    assert.is_true(waited > 0.5 and waited < SOON, body)
    had(select(2, nginx:get("/lock?name=short&wait=0")))
    local _, nodes = nginx:get("/nodes")
    assert.is_truthy(nodes:find("nginx has not run the timer", 1, true), nodes)
    quiet("lua_max_running_timers are not enough")
  end)

  it("credentials_function_serves_second_connections_of_each_node", function()
    start([[{ credentials = function(node, index)
      kept.asked = (kept.asked or "") .. index .. (node == addresses[index] and "" or "?")
      ngx.sleep(0.01)
      return "token", "s3cr3t"
    end }]])
    for _, node in ipairs(farm) do
      node:command("ACL", "SETUSER", "token", "reset", "on", ">s3cr3t", "~*", "&*", "+@all")
    end
    warm()
    local _, asked = nginx:get("/asked")
    for index = 1, 5 do assert.are.equal(2, select(2, asked:gsub(index, "")), asked) end
    assert.are.equal(10, #asked)
    quiet()
  end)

  local function together(count, addresses, options, given)
    local nodes = farm
    given = given or {}
    given.addresses = addresses
    start(options, given)
    had(select(2, nginx:get("/lock?name=warm&wait=60000")))
    for _, node in ipairs(nodes) do node:command("SET", "theirs", "x") end
    helper.eventually(function()
      nginx:get("/lock?name=theirs&wait=200")
      local _, reported = nginx:get("/nodes")
      return select(2, reported:gsub("true \n", "")) == count
    end, "all nodes to be able to call")
    nginx:get("/set?name=hold&value=1")
    local holder = nginx:request("/lock?name=way&keep=hold&client=other")
    helper.eventually(function() return nodes:count("way") == count end)
    local waiting = nginx:request("/lock?name=way&wait=90000")
    helper.eventually(function() return nodes[count]:command("STRLEN", "way:redlock-queue") == 24 end)
    nginx:get("/set?name=hold")
    local _, released = had(select(2, holder:finish()))
    local granted = had(select(2, waiting:finish()))
    assert.is_true(granted - released < SOON, granted - released)
    quiet()
  end

  it("client_of_sixteen_nodes_is_notified", function()
    local five = farm
    farm = helper.farm(16)
    finally(function()
      farm:shut()
      farm = five
    end)
    together(16, farm.addresses)
  end)

  it("client_of_TLS_nodes_is_notified", function()
    local five, directory = farm, helper.directory .. "/calls-tls"
    os.execute("mkdir " .. directory .. " && cd " .. directory .. " && openssl req -x509 -newkey ec"
      .. " -pkeyopt ec_paramgen_curve:P-256 -nodes"
      .. " -days 2 -subj /CN=redis.test -addext subjectAltName=DNS:redis.test,IP:127.0.0.1 -keyout key -out cert"
      .. " >log 2>&1")
    local addresses = {}
    farm = nil
    for index = 1, 3 do
      local port = helper.free_port()
      local one = helper.farm(1, string.format("--tls-port %d --tls-cert-file %s/cert --tls-key-file %s/key"
        .. " --tls-ca-cert-file %s/cert --tls-auth-clients no", port, directory, directory, directory))
      farm = farm or one
      farm[index] = one[1]
      addresses[index] = "rediss://127.0.0.1:" .. port
    end
    finally(function()
      farm:shut()
      farm = five
    end)
    local http = "lua_ssl_trusted_certificate " .. directory .. "/cert;"
    together(3, addresses, "{ tls = { server_name = 'redis.test' } }", { http = http })
  end)
end)
