--- nginx runs only so many timers at once, and keeps only so many. A client's clock and its
--- connections need some: without them nothing can be locked, but budgets hold, each caller learns
--- why, and all is well again when there are timers.

if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local server = require "spec.nginx.server"

local INIT = [[
  clients = {}
  for index = 1, 100 do
    clients[index] = require("redlock").new(addresses, {
      prefix = index .. ":", retry_delay = 20, retry_jitter = 0, node_timeout = 100,
    })
  end
  client = clients[1]

  -- Takes all the timers that nginx runs at once, or all that it keeps.
  function block(running, pending)
    kept.blocked = true
    local function stay() repeat ngx.sleep(0.01) until not kept.blocked end
    for _ = 1, running or 0 do assert(ngx.timer.at(0, stay)) end
    for _ = 1, pending or 0 do assert(ngx.timer.at(3600, stay)) end
    ngx.sleep(0.05)
  end
]]

local LOCATIONS = [[
  location /running { content_by_lua_block { block(4) } }
  location /one { content_by_lua_block { block(1) } }
  location /keep {
    content_by_lua_block {
      local lock = assert(client:acquire("kept", {
        ttl = 60000, auto_extend = { every = 100 }, owner = "worker", wait = 30000,
      }))
      local left = lock:remaining()
      for _ = 1, 3000 do
        ngx.sleep(0.01)
        local now = lock:remaining()
        if now > left then
          lock:release()
          return ngx.print("extended")
        end
        left = now
      end
    }
  }
  location /wakes {
    content_by_lua_block {
      local code
      for index = 1, 100 do code = select(3, client:acquire("wake:" .. index, { wait = 5 })) end
      ngx.print(code)
    }
  }
  location /pending { content_by_lua_block { block(0, 4) } }
  location /unblock { content_by_lua_block { kept.blocked = nil } }
  location /lock {
    content_by_lua_block {
      local lock, err, code = client:acquire("name", { wait = tonumber(ngx.var.arg_wait) })
      ngx.say(code or "held", ": ", err or "")
      ngx.say(client:nodes()[3].error or "-")
      if lock then lock:release() end
    }
  }
  location /all {
    content_by_lua_block {
      for index = 1, 100 do
        local _, _, code = clients[index]:acquire("name", { wait = 20 })
        if code ~= "unavailable" then return ngx.say(index, " ", code or "held") end
      end
      ngx.say("unavailable")
    }
  }
]]

describe("nginx without timers", function()
  local farm, nginx

  setup(function() farm = helper.farm(3) end)
  teardown(function() farm:shut() end)

  before_each(function()
    farm:reset()
  end)

  after_each(function()
    if nginx then nginx:stop("TERM") end
    nginx = nil
  end)

  local function start(limits)
    nginx = server.start { addresses = farm.addresses, http = limits, init = INIT, server = LOCATIONS }
  end

  -- What a request says within so many milliseconds.
  local function said_within(bound, path)
    local body
    helper.within(bound, function() body = select(2, nginx:get(path)) end)
    return body
  end

  local function quiet()
    assert.are.equal("", nginx:complaints("lua_max_running_timers are not enough"))
  end

  it("budget_of_100_ms_is_kept_without_timers", function()
    start("lua_max_running_timers 4;")
    nginx:get("/running")
    -- A slow machine says first that there was no connection in time.
    helper.eventually(function()
      local body = said_within(300, "/lock?wait=100")
      local why = "\nnginx has not run the timer: raise lua_max_running_timers or worker_conn%a+\n$"
      return body:find("^unavailable: .*lua_max_running_timers") and body:find(why)
    end, "the reason")
    quiet()
  end)

  it("node_timeout_is_kept_without_timers", function()
    start("lua_max_running_timers 4;")
    nginx:get("/running")
    -- A slow machine says first that there was no connection in time.
    helper.eventually(function()
      return said_within(800, "/lock"):find("^unavailable: .*lua_max_running_timers")
    end, "the reason")
    quiet()
  end)

  it("hundred_clients_without_timers_keep_their_budgets", function()
    start("lua_max_running_timers 4;")
    nginx:get("/running")
    local body = said_within(6000, "/all")
    assert.are.equal("unavailable\n", body)
    quiet()
  end)

  it("nodes_reports_missing_timers", function()
    start("lua_max_pending_timers 4;")
    nginx:get("/pending")
    -- A slow machine says first that there was no connection in time.
    helper.unless_stalled(20, function()
      local body = said_within(300, "/lock?wait=100")
      assert.is_truthy(body:find("^unavailable: .*nginx gives no timer: too many pending timers"), body)
      assert.is_truthy(body:find("\nnginx gives no timer: too many pending timers\n$"), body)
    end)
    quiet()
  end)

  it("lease_is_extended_again_when_timers_return", function()
    start("lua_max_running_timers 4;")
    nginx:get("/running")
    assert.is_truthy(select(2, nginx:get("/lock?wait=500")):find("^unavailable: "))
    nginx:get("/unblock")
    assert.is_truthy(select(2, nginx:get("/lock?wait=40000")):find("^held: "))
    assert.are.equal("extended", select(2, nginx:get("/keep")))
    quiet()
  end)

  it("connection_without_timer_is_retried_by_clock", function()
    start("lua_max_running_timers 3;")
    assert.are.equal(200, (nginx:get("/one")))
    local _, body = nginx:get("/lock?wait=400")
    assert.is_truthy(body:find(
      "\nnginx has not run the timer: raise lua_max_running_timers or worker_conn%a+\n$"), body)
    assert.are.equal("unavailable", select(2, nginx:get("/wakes")))
    quiet()
  end)

  it("client_recovers_within_budget_of_waiter", function()
    start("lua_max_running_timers 4;")
    nginx:get("/running")
    local waiting = nginx:request("/lock?wait=60000")
    helper.eventually(function() return nginx:complaints() ~= "" end, "nginx to be out of timers")
    nginx:get("/unblock")
    assert.is_truthy(select(2, waiting:finish()):find("^held: "))
    assert.is_truthy(select(2, nginx:get("/lock?wait=60000")):find("^held: "))
    farm:eventually_free("1:name")
  end)
end)

describe("an operation for which nginx gave no timer", function()
  local farm, nginx

  setup(function() farm = helper.farm(3) end)
  teardown(function() farm:shut() end)
  after_each(function() nginx:stop("TERM") end)

  it("operation_without_timer_leaves_nothing_to_next_request", function()
    nginx = server.start {
      addresses = farm.addresses,
      http = "lua_max_pending_timers 4;",
      init = [[client = require("redlock").new(addresses, { ttl = 60000 })]],
      server = [[
        location / {
          content_by_lua_block {
            local function stay() end
            repeat until not ngx.timer.at(0.2, stay)
            local first = client:new_lock("first")
            ngx.say(select(3, first:acquire({ wait = 0 })))
            ngx.sleep(0.4)
            -- The object of the first is still there, and waits in the same place.
            local lock, message, code = client:acquire("second", { wait = 60000, node_timeout = 1000 })
            ngx.say(tostring(lock and lock:is_held()), " ", tostring(message), " ", tostring(code))
            ngx.say(lock and tostring(lock:release()), " ", tostring(first:is_held()))
          }
        }
      ]],
    }
    assert.are.equal("unavailable\ntrue nil nil\ntrue false\n", select(2, nginx:get("/")))
    farm:eventually_free("first")
    farm:eventually_free("second")
    assert.are.equal("", nginx:complaints())
  end)
end)

describe("a loss for which nginx gave no timer", function()
  local farm, nginx

  setup(function() farm = helper.farm(3) end)
  teardown(function() farm:shut() end)
  after_each(function() nginx:stop("TERM") end)

  -- How often in a second |complaint| comes into the log while the clock is woken all the time.
  local function complained_in_a_second(limits, hold, complaint)
    if nginx then nginx:stop("TERM") end
    nginx = server.start {
      addresses = farm.addresses,
      http = limits,
      init = INIT,
      server = LOCATIONS .. [[
        location /hold {
          content_by_lua_block {
            local function on_lost(_, reason) kept.reported = reason end
            kept.lock = assert(client:acquire("lost", {
              ttl = 300, owner = "worker", on_lost = on_lost, wait = 30000,
            }))
            block(]] .. hold .. [[)
          }
        }
        location /wake { content_by_lua_block { assert(client:acquire("other", { wait = 60000 })):release() } }
        location /reported { content_by_lua_block { ngx.print(tostring(kept.reported)) } }
      ]],
    }
    assert.are.equal(200, (nginx:get("/hold")))
    local lost_at = helper.now() + 0.3
    helper.eventually(function()
      nginx:get("/wake")
      return helper.now() > lost_at + 1
    end)
    assert.are.equal("nil", select(2, nginx:get("/reported")))
    return select(2, nginx:read("error.log"):gsub(complaint, "")) / (helper.now() - lost_at)
  end

  it("loss_is_reported_when_timers_return", function()
    local complaint = "lua_max_running_timers are not enough"
    helper.unless_stalled(100, function()
      local count = complained_in_a_second("lua_max_running_timers 5;", "1", complaint)
      assert.is_true(count > 0 and count <= 6, count .. " timers")
    end)
    nginx:get("/unblock")
    helper.eventually(function() return select(2, nginx:get("/reported")) == "expired" end, "to be reported")
    assert.are.equal("", nginx:complaints(complaint))
  end)

  it("missing_timer_is_logged_four_times_a_second", function()
    local complaint = "nginx gives no timer for on_lost, which runs later; raise lua_max_running_timers: "
      .. "too many pending timers"
    helper.unless_stalled(100, function()
      local count = complained_in_a_second("lua_max_pending_timers 4;", "0, 4", complaint)
      assert.is_true(count > 0 and count <= 6, count .. " warnings")
    end)
    assert.are.equal("", nginx:complaints(complaint))
  end)
end)

describe("a client whose clock gets no timer", function()
  local farm, nginx

  setup(function() farm = helper.farm(3) end)
  teardown(function() farm:shut() end)
  after_each(function() nginx:stop("TERM") end)

  -- nginx refuses timers while kept.refused counts how often the clock, which has one argument, has
  -- asked; only that when kept.connects.
  local REFUSE = [[
    local timer_at = ngx.timer.at
    ngx.timer.at = function(delay, run, ...)
      local is_clock = select("#", ...) == 1
      if not kept.refused or kept.connects and not is_clock then return timer_at(delay, run, ...) end
      if is_clock then kept.refused = kept.refused + 1 end
      return nil, "too many pending timers"
    end
    client = require("redlock").new(addresses, { retry_delay = 20, retry_jitter = 0, node_timeout = 100 })
  ]]

  local function said(text)
    nginx = server.start {
      addresses = farm.addresses,
      init = REFUSE,
      server = "location / { content_by_lua_block {" .. text .. "} }",
    }
    return select(2, nginx:get("/"))
  end

  it("clock_asks_for_timer_four_times_a_second", function()
    helper.unless_stalled(100, function()
      if nginx then nginx:stop("TERM") end
      local count = tonumber(said [[
        kept.refused = 0
        client:acquire("name", { wait = 1000 })
        ngx.print(kept.refused)
      ]])
      assert.is_true(count >= 1 and count <= 6, count .. " timers")
    end)
    assert.are.equal("", nginx:complaints())
  end)

  it("lease_is_extended_without_clock_timer", function()
    assert.are.equal("true true true", said [[
      kept.refused, kept.connects = 0, true
      local options = { ttl = 60000, auto_extend = { every = 100 }, owner = "worker", wait = 30000 }
      local lock = assert(client:acquire("kept", options))
      local left = lock:remaining()
      for _ = 1, 3000 do
        ngx.sleep(0.01)
        local now = lock:remaining()
        if now > left then break end
        left = now
      end
      local asked = kept.refused
      ngx.sleep(0.4)
      ngx.print(tostring(lock:is_held()), " ", tostring(lock:release()), " ", tostring(asked == kept.refused))
    ]])
    assert.are.equal("", nginx:complaints())
  end)

  -- Only the clock looks who has ended.
  it("lock_of_request_is_released_without_clock_timer", function()
    assert.are.equal("held", said [[
      kept.refused, kept.connects = 0, true
      assert(client:acquire("left", { ttl = 60000, wait = 30000 }))
      ngx.print("held")
    ]])
    farm:eventually_free("left")
    assert.are.equal("", nginx:complaints())
  end)

  it("unused_client_closes_at_once_without_timer", function()
    local seen
    helper.unless_stalled(100, function()
      if nginx then nginx:stop("TERM") end
      seen = said [[
      kept.refused = 0
      local code = select(3, client:acquire("name", { wait = 50 }))
      ngx.update_time()
      local began = ngx.now()
      local closed = client:close()
      ngx.update_time()
      ngx.print(code, " ", tostring(closed), " ", tostring(ngx.now() - began < 0.8))
    ]]
      assert.are.equal("unavailable true true", seen)
    end)
    assert.are.equal("", nginx:complaints())
  end)
end)
