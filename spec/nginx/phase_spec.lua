--- Every phase of nginx: where a request may wait, calls wait; elsewhere an acquire says so, and a
--- release is sent all the same.

if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local server = require "spec.nginx.server"

-- Each location says in the body what it did, or leaves it in `kept` for /kept to tell.
local LOCATIONS = [[
  location /kept {
    content_by_lua_block { ngx.print(table.concat(kept, "\n")) for index = #kept, 1, -1 do kept[index] = nil end }
  }

  location /rewrite { rewrite_by_lua_block { ngx.print(both("rewrite")) ngx.exit(200) } }
  location /access { access_by_lua_block { ngx.print(both("access")) ngx.exit(200) } }
  location /content { content_by_lua_block { ngx.print(both("content")) } }

  location /balanced { proxy_pass http://chosen/content; }

  location /take { content_by_lua_block { kept.handed = assert(client:acquire("handed", { owner = "worker" })) } }
  location /handed {
    set_by_lua_block $by_set { return tostring(kept.handed:hand_over("request")) }
    content_by_lua_block { ngx.print("body") }
    header_filter_by_lua_block { ngx.ctx.by_header = tostring(kept.handed:hand_over("request")) }
    body_filter_by_lua_block { if ngx.arg[2] then ngx.ctx.by_body = tostring(kept.handed:hand_over("request")) end }
    log_by_lua_block {
      kept[#kept + 1] = table.concat({ ngx.var.by_set, ngx.ctx.by_header, ngx.ctx.by_body,
        tostring(kept.handed:hand_over("request")) }, " ")
    }
  }
  location /handed_by_balancer { proxy_pass http://handing/content; }

  location /set {
    set_by_lua_block $said { return neither() }
    content_by_lua_block { ngx.print(ngx.var.said) }
  }

  location /filters {
    content_by_lua_block {
      ngx.ctx.header, ngx.ctx.body = assert(client:acquire("header")), assert(client:acquire("body"))
      ngx.ctx.log, ngx.ctx.dropped = assert(client:acquire("log")), assert(client:acquire("dropped"))
      ngx.ctx.closed = assert(client:acquire("extended"))
      ngx.print("body")
    }
    header_filter_by_lua_block {
      kept[#kept + 1] = tostring(ngx.ctx.header:release()) .. " " .. neither()
    }
    body_filter_by_lua_block {
      if ngx.arg[2] then kept[#kept + 1] = tostring(ngx.ctx.body:release()) .. " " .. neither() end
    }
    log_by_lua_block {
      kept[#kept + 1] = tostring(ngx.ctx.log:release()) .. " " .. tostring(ngx.ctx.log:is_held()) .. " "
        .. select(3, ngx.ctx.log:release()) .. " " .. neither()
      kept[#kept + 1] = select(2, ngx.ctx.closed:extend())
      kept[#kept + 1] = select(2, client:attach("redlock1."))
      ngx.ctx.closed:release()
      ngx.ctx.dropped = nil
      collectgarbage()
    }
  }

  location /timers {
    content_by_lua_block {
      local function once() keep_both("once") end
      local function every(premature) if not premature then keep_both("every") end end
      assert(ngx.timer.at(0, once))
      if not kept_every then rawset(_G, "kept_every", ngx.timer.every(0.01, every)) end
      local seen
      for _ = 1, 3000 do
        ngx.sleep(0.01)
        seen = table.concat(kept, "\n")
        if seen:find("once: true true", 1, true) and seen:find("every: true true", 1, true) then
          return ngx.print("once every")
        end
      end
      ngx.print(seen)
    }
  }
]]

local INIT = [[
  client = require("redlock").new(addresses, PATIENT)

  -- What an acquire and a release say.
  function both(name)
    local lock, err, code = client:acquire(name)
    if not lock then return name .. ": " .. code .. ": " .. err end
    return name .. ": " .. tostring(lock:is_held()) .. " " .. tostring(lock:release())
  end

  -- Not in one statement: what is kept may change while both() waits.
  function keep_both(name)
    local said = both(name)
    kept[#kept + 1] = said
  end

  -- What an acquire says where nothing can wait.
  function neither()
    local lock, err, code = client:acquire("nothing")
    return lock and "acquired" or code .. ": " .. err
  end

  kept.init = neither()
]]

describe("redlock in the phases of nginx", function()
  local farm, nginx, tls_port

  -- A server of its own, whose handshakes have Lua in them.
  local function tls_server()
    local directory = helper.directory .. "/handshake"
    assert(os.execute(string.format("mkdir %s && openssl req -x509 -newkey ec "
      .. "-pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost "
      .. "-keyout %s/key.pem -out %s/certificate.pem >/dev/null 2>&1", directory, directory, directory)))
    tls_port = helper.free_port()
    return string.format([[
      server {
        listen 127.0.0.1:%d ssl;
        ssl_certificate %s/certificate.pem;
        ssl_certificate_key %s/key.pem;
        ssl_certificate_by_lua_block { keep_both("ssl_certificate") }
        server_rewrite_by_lua_block { keep_both("server_rewrite") }
        location / { return 200 "served"; }
      }
    ]], tls_port, directory, directory)
  end

  local BALANCER = [[
    upstream chosen {
      server 0.0.0.1;
      balancer_by_lua_block {
        kept[#kept + 1] = neither()
        require("ngx.balancer").set_current_peer("127.0.0.1", ngx.var.server_port)
      }
    }
  ]]

  local HANDING_BALANCER = [[
    upstream handing {
      server 0.0.0.1;
      balancer_by_lua_block {
        kept[#kept + 1] = tostring(kept.handed:hand_over("request"))
        require("ngx.balancer").set_current_peer("127.0.0.1", ngx.var.server_port)
      }
    }
  ]]

  setup(function()
    farm = helper.farm(3)
    nginx = server.start {
      http = BALANCER .. HANDING_BALANCER .. tls_server(),
      addresses = farm.addresses,
      init = INIT,
      init_worker = [[
        kept[#kept + 1] = kept.init
        kept[#kept + 1] = neither()
        kept[#kept + 1] = tostring(select(3, client:new_lock("x"):release()))
        assert(ngx.timer.at(0, function() keep_both("from init_worker") end))
      ]],
      server = LOCATIONS,
    }
  end)

  teardown(function()
    nginx:stop()
    farm:shut()
  end)

  local function refused(phase)
    return "unavailable: lock:acquire() must wait, and nginx allows no wait in phase " .. phase
      .. "; call it in an earlier phase or a timer"
  end

  it("init_refuses_to_wait_and_its_timer_waits", function()
    local said = ""
    helper.eventually(function()
      said = said .. select(2, nginx:get("/kept")) .. "\n"
      return said:find("from init_worker", 1, true)
    end)
    assert.are.equal(refused("init") .. "\n" .. refused("init_worker") .. "\nnot_held\nfrom init_worker: true true",
      (said:gsub("\n+", "\n"):gsub("%s+$", "")))
    assert.are.equal("", nginx:complaints())
  end)

  for _, phase in ipairs { "rewrite", "access", "content" } do
    it("phase_waits: " .. phase, function()
      assert.are.equal(phase .. ": true true", select(2, nginx:get("/" .. phase)))
      farm:eventually_free(phase)
      assert.are.equal("", nginx:complaints())
    end)
  end

  it("set_refuses_to_wait", function()
    assert.are.equal(refused("set"), select(2, nginx:get("/set")))
    assert.are.equal("", nginx:complaints())
  end)

  it("filters_and_log_release_without_waiting", function()
    nginx:get("/kept")
    assert.are.equal("body", select(2, nginx:get("/filters")))
    local said = ""
    helper.eventually(function()
      said = said .. select(2, nginx:get("/kept"))
      return said:find("phase log", 1, true)
    end)
    assert.are.equal("true " .. refused("header_filter") .. "\ntrue " .. refused("body_filter")
      .. "\ntrue false not_held " .. refused("log")
      .. "\nlock:extend() must wait, and nginx allows no wait in phase log; call it in an earlier phase or a timer"
      .. "\nclient:attach() must wait, and nginx allows no wait in phase log"
      .. "; call it in an earlier phase or a timer", said)
    for _, name in ipairs { "header", "body", "log", "dropped", "extended" } do farm:eventually_free(name) end
    assert.are.equal("", nginx:complaints())
  end)

  it("hand_over_works_in_every_phase", function()
    nginx:get("/kept")
    for path, said in pairs { ["/handed"] = "true true true nil", ["/handed_by_balancer"] = "true" } do
      nginx:get("/take")
      nginx:get(path)
      helper.eventually(function()
        local _, body = nginx:get("/kept")
        return body == said
      end, said)
      farm:eventually_free("handed")
    end
    assert.are.equal("", nginx:complaints())
  end)

  it("balancer_refuses_to_wait", function()
    nginx:get("/kept")
    assert.are.equal("content: true true", select(2, nginx:get("/balanced")))
    assert.are.equal(refused("balancer"), select(2, nginx:get("/kept")))
    assert.are.equal("", nginx:complaints())
  end)

  it("server_rewrite_and_ssl_certificate_wait", function()
    helper.eventually(function()
      nginx:get("/kept")
      local _, said = nginx:get("/kept")
      return said == ""
    end)
    local pipe = io.popen("curl -sk --max-time 60 https://127.0.0.1:" .. tls_port .. "/ 2>&1")
    local body = pipe:read("*a")
    pipe:close()
    assert.are.equal("served", body)
    local _, said = nginx:get("/kept")
    for _, phase in ipairs { "ssl_certificate", "server_rewrite" } do
      assert.is_truthy(said:find(phase .. ": true true", 1, true), said)
      farm:eventually_free(phase)
    end
    assert.are.equal("", nginx:complaints())
  end)

  it("timer_waits", function()
    assert.are.equal("once every", select(2, nginx:get("/timers")))
    assert.are.equal("", nginx:complaints())
  end)
end)
