--- Owners: a lock of a request or a timer is released when that ends, however it ends, within a
--- second and without the garbage collector. Beside a large heap, and beside requests that leave
--- the worker no idle moment, the collector would come long after.

if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local server = require "spec.nginx.server"

local HTTP = "lua_check_client_abort on;"

local INIT = [[
  client = require("redlock").new(addresses, { ttl = 60000, node_timeout = 30000 })
  of_worker = require("redlock").new(addresses,
    { ttl = 60000, node_timeout = 30000, prefix = "worker:", owner = "worker" })
  -- The heap of a worker that does something.
  ballast = {}
  for index = 1, 400000 do ballast[index] = { index } end
  collectgarbage()
  collectgarbage()
]]

local LOCATIONS = [[
  location /busy { content_by_lua_block { client:with("busy:" .. ngx.var.connection, function() end) } }

  location /end {
    content_by_lua_block {
      local how, name = ngx.var.arg_how, ngx.var.arg_name
      local hold = tonumber(ngx.var.arg_hold or "0")
      client:with(name, { hold_at_least = hold }, function()
        if how == "nothing" then return ngx.exit(200) end -- with() would release
        if how == "error" then kept.lock = assert(client:acquire(name .. ":2")) error("on purpose") end
        if how == "exit" then ngx.exit(403) end
        if how == "redirect" then ngx.redirect("/elsewhere") end
        if how == "exec" then ngx.exec("/jumped") end
        if how == "named" then ngx.exec("@named") end
        if how == "abort" then ngx.sleep(3600) end
      end)
    }
  }
  location /jumped { content_by_lua_block { ngx.print("jumped") } }
  location @named { return 200 "named"; }

  # Memory may run out at any of these places, too.
  location /unreadable {
    content_by_lua_block {
      for nth = 1, 6 do
        local lock, reads = client:new_lock("unreadable"), 0
        local ok, err = pcall(function()
          assert(lock:acquire(setmetatable({}, { __index = function(_, name)
            if name ~= "owner" then return nil end
            reads = reads + 1
            if reads == nth then error("no more", 0) end
            return "worker"
          end })))
        end)
        kept[nth] = lock
        if ok then assert(lock:release()) else ngx.say(nth, " ", err, " ", tostring(lock)) end
      end
    }
  }
  # The lock object is kept, so that the collector can do nothing.
  location /forget {
    content_by_lua_block { kept.lock = assert(client:acquire(ngx.var.arg_name)) }
  }
  location /kept {
    content_by_lua_block {
      local function say(...)
        local one, message, code = ...
        ngx.say(tostring(one), " ", tostring(message), " ", tostring(code))
      end
      say(kept.lock:is_held())
      say(kept.lock:remaining())
      say(kept.lock:extend())
      say(kept.lock:release())
      ngx.say(tostring(kept.lock))
      ngx.say((select(2, pcall(kept.lock.check, kept.lock)):gsub("^.-redlock: ", "")))
      ngx.say(kept.lock:acquire() and "acquired", " ", tostring(kept.lock:release()))
    }
  }

  location /sub {
    content_by_lua_block {
      ngx.location.capture("/forget?name=sub")
      ngx.print(tostring(kept.lock:is_held()))
    }
  }

  location /thread {
    content_by_lua_block {
      ngx.thread.spawn(function()
        kept.lock = assert(client:acquire("thread"))
        ngx.sleep(0.2)
        kept.held = kept.lock:is_held()
      end)
      ngx.print("main ends")
    }
  }

  location /killed {
    content_by_lua_block {
      local thread = ngx.thread.spawn(function()
        kept.lock = assert(client:acquire("killed"))
        ngx.sleep(3600)
      end)
      repeat ngx.sleep(0.002) until kept.lock and kept.lock:is_held()
      ngx.thread.kill(thread)
    }
  }

  # What a request has no more when it ends is not given back then.
  location /ended {
    content_by_lua_block {
      local name = ngx.var.arg_how
      if name == "several" then name = { name, "another" } end
      kept.lock = client:new_lock(name, { retry_count = 0 })
      local ok = kept.lock:acquire()
      ngx.print(tostring(ok and kept.lock:release()))
    }
  }
  location /check { content_by_lua_block { ngx.print((select(2, pcall(kept.lock.check, kept.lock)))) } }

  location /weak {
    content_by_lua_block {
      kept.lock = assert(client:acquire("weak", { node_timeout = 300, wait = 60000 }))
      kept.go = nil
      repeat ngx.sleep(0.005) until kept.go
      ngx.print(select(3, kept.lock:extend()), " ", tostring(kept.lock:is_held()))
    }
  }
  location /go { content_by_lua_block { kept.go = true } }

  location /timer {
    content_by_lua_block {
      local function work(_, name) kept.lock = assert(client:acquire(name)) end
      assert(ngx.timer.at(0, work, "timer"))
    }
  }

  location /log {
    content_by_lua_block { ngx.ctx.lock = assert(client:acquire("log")) ngx.print("content") }
    log_by_lua_block { kept.log = tostring(ngx.ctx.lock:is_held()) .. " " .. tostring(ngx.ctx.lock:release()) }
  }
  location /logged { content_by_lua_block { ngx.print(kept.log) } }

  location /worker {
    content_by_lua_block {
      local by = ngx.var.arg_by
      if by == "client" then
        kept.lock = assert(of_worker:acquire("client"))
      elseif by == "call" then
        kept.lock = assert(client:acquire("call", { owner = "worker" }))
      elseif by == "lock" then
        kept.lock = client:new_lock("lock", { owner = "worker" })
        assert(kept.lock:acquire())
      elseif by == "acquire" then
        kept.lock = client:new_lock("acquire")
        assert(kept.lock:acquire({ owner = "worker" }))
      elseif by == "given" then
        kept.lock = assert(client:acquire("given"))
        ngx.print(tostring(kept.lock:hand_over("worker")))
      end
    }
  }
  location /back {
    content_by_lua_block { ngx.print(tostring(kept.lock:hand_over("request"))) }
  }
  location /wrong {
    content_by_lua_block {
      ngx.say(select(2, pcall(client.acquire, client, "x", { owner = "me" })))
      ngx.say(select(2, pcall(function() client:new_lock("x"):hand_over("nobody") end)))
      ngx.say(select(2, pcall(function() client:new_lock("x").hand_over("worker") end)))
      ngx.say(select(2, client:new_lock("x"):hand_over("worker")), " ",
        select(3, client:new_lock("x"):hand_over("worker")))
    }
  }
  location /late {
    content_by_lua_block { kept.lock = assert(client:acquire("late", { owner = "worker" })) }
    log_by_lua_block {
      local ok, message, code = kept.lock:hand_over("request")
      kept.late = tostring(ok) .. " " .. tostring(message) .. " " .. tostring(code)
    }
  }
  location /late_said { content_by_lua_block { ngx.print(tostring(kept.late)) } }
  location /release { content_by_lua_block { ngx.print(tostring(kept.lock:release())) } }
]]

describe("a lock belongs to the request that took it", function()
  local farm, nginx

  setup(function()
    farm = helper.farm(5)
    nginx = server.start { addresses = farm.addresses, http = HTTP, init = INIT, server = LOCATIONS }
  end)

  teardown(function()
    nginx:stop()
    farm:shut()
  end)

  before_each(function()
    farm:reset()
  end)

  local function quiet(...)
    assert.are.equal("", nginx:complaints(...))
  end

  -- A worker that is never idle for long: a request begins a lock every few milliseconds.
  local function gone_within_a_second(name)
    helper.within(1000, function()
      helper.eventually(function()
        nginx:get("/busy")
        return farm:count(name) == 0
      end, "the lock of a request that has ended to be released")
    end)
  end

  it("error_while_acquire_begins_leaves_no_owner", function()
    local status, body = nginx:get("/unreadable")
    assert.are.equal(200, status)
    assert.is_truthy(body:find("2 no more redlock.lock unreadable (not held)", 1, true), body)
    assert.is_nil(body:find("acquiring", 1, true), body)
    assert.are.equal(0, farm:count("unreadable"))
    quiet()
  end)

  for _, how in ipairs { "nothing", "error", "exit", "redirect", "exec", "named" } do
    it("end_of_request_inside_with_releases_within_a_second: " .. how, function()
      nginx:get("/end?name=" .. how .. "&how=" .. how)
      gone_within_a_second(how)
      quiet("on purpose")
    end)
  end

  it("error_in_request_releases_lock_that_is_still_referenced", function()
    nginx:get("/end?name=erring&how=error")
    gone_within_a_second("erring:2")
    quiet("on purpose")
  end)

  it("request_of_gone_browser_releases", function()
    local request = nginx:request("/end?name=abort&how=abort")
    helper.eventually(function() return farm:count("abort") == 5 end, "the lock")
    request:abort()
    gone_within_a_second("abort")
    quiet()
  end)

  it("request_of_gone_browser_keeps_lock_until_hold_at_least_is_over", function()
    local request = nginx:request("/end?name=short&how=abort&hold=600000")
    helper.eventually(function() return farm:count("short") == 5 end, "the lock")
    request:abort()
    helper.eventually(function()
      local kept = 0
      for index = 1, 5 do kept = kept + (farm[index]:command("PTTL", "short") > 500000 and 1 or 0) end
      return kept == 5
    end, "the keys to be kept")
    quiet()
  end)

  it("end_of_request_releases_after_failed_extend", function()
    local request = nginx:request("/weak")
    helper.eventually(function() return farm:count("weak") == 5 end, "the lock")
    for index = 3, 5 do farm[index]:stop() end
    nginx:get("/go")
    local _, said = request:finish()
    for index = 3, 5 do farm[index]:continue() end
    assert.are.equal("unavailable true", said)
    gone_within_a_second("weak")
    quiet()
  end)

  it("message_names_end_of_request_only_for_its_locks", function()
    for _, node in ipairs(farm) do node:command("SET", "taken", "somebody else") end
    for how, said in pairs { taken = "nil", released = "true", several = "true" } do
      assert.are.equal(said, select(2, nginx:get("/ended?how=" .. how)))
      helper.pass(0.3) -- The clock looks every 50 ms, or every 250.
      local checked = select(2, nginx:get("/check"))
      assert.is_truthy(checked:find("redlock: '" .. how .. "[%w ]*' is not held$"), checked)
    end
    quiet()
  end)

  it("idle_worker_releases_lock_of_dead_request", function()
    nginx:get("/end?name=idle&how=exit")
    farm:eventually_free("idle")
    quiet()
  end)

  it("end_of_timer_releases", function()
    nginx:get("/timer")
    helper.eventually(function() return farm:count("timer") > 0 end, "the lock")
    gone_within_a_second("timer")
    quiet()
  end)

  it("lock_of_light_thread_is_held_until_request_ends", function()
    nginx:get("/thread")
    gone_within_a_second("thread")
    quiet()
  end)

  it("lock_of_killed_light_thread_ends_with_request", function()
    nginx:get("/killed")
    gone_within_a_second("killed")
    quiet()
  end)

  it("lock_of_subrequest_is_held_until_main_request_ends", function()
    assert.are.equal("true", select(2, nginx:get("/sub")))
    gone_within_a_second("sub")
    quiet()
  end)

  it("lock_is_held_and_released_in_log_phase", function()
    assert.are.equal("content", select(2, nginx:get("/log")))
    helper.eventually(function() return select(2, nginx:get("/logged")) == "true true" end, "the log phase")
    gone_within_a_second("log")
    quiet()
  end)

  it("kept_lock_object_reports_end_of_its_request", function()
    nginx:get("/forget?name=forgotten")
    farm:eventually_free("forgotten")
    local said = "'forgotten': the lock was released when the request that took it ended"
    assert.are.equal("false nil nil\n0 nil nil\nnil " .. said .. " not_held\nnil " .. said .. " not_held\n"
      .. "redlock.lock forgotten (not held)\n"
      .. "'forgotten' is not held any more: it was released when the request that took it ended\nacquired true\n",
      (select(2, nginx:get("/kept")):gsub(" %(see owner[^)]*%)", "")))
    quiet()
  end)

  for _, by in ipairs { "client", "lock", "call", "acquire", "given" } do
    it("owner_worker_keeps_lock_beyond_request: " .. by, function()
      local name = by == "client" and "worker:client" or by
      nginx:get("/worker?by=" .. by)
      helper.eventually(function() return farm:count(name) == 5 end, "the lock")
      helper.pass(0.2, function()
        nginx:get("/busy")
        assert.are.equal(5, farm:count(name))
      end)
      assert.are.equal("true", select(2, nginx:get("/release")))
      farm:eventually_free(name)
      quiet()
    end)
  end

  it("hand_over_gives_lock_to_request", function()
    nginx:get("/worker?by=call")
    assert.are.equal("true", select(2, nginx:get("/back")))
    gone_within_a_second("call")
    quiet()
  end)

  it("hand_over_in_log_phase_does_not_crash", function()
    for _ = 1, 5 do
      nginx:get("/late")
      helper.eventually(function() return select(2, nginx:get("/late_said")) ~= "nil" end, "the log phase")
      assert.are.equal('nil lock:hand_over("request"): no request ends after phase log; use "worker" unavailable',
        (select(2, nginx:get("/late_said"))))
      assert.are.equal("true", select(2, nginx:get("/release")))
    end
    quiet()
  end)

  it("unknown_owner_and_hand_over_of_free_lock_are_refused", function()
    local _, body = nginx:get("/wrong")
    local function said(text) return body:find(text, 1, true) end
    assert.is_truthy(said("option 'owner' must be \"request\" or \"worker\", got a string"), body)
    assert.is_truthy(said("lock:hand_over(): owner must be \"request\" or \"worker\", got a string"), body)
    assert.is_truthy(said("lock:hand_over() needs a lock before the colon, got a string"), body)
    assert.is_truthy(said("'x': the lock is not held not_held"), body)
    quiet()
  end)
end)

describe("a worker that ends", function()
  local farm, nginx

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)

  local function start()
    farm:reset()
    nginx = server.start {
      addresses = farm.addresses,
      http = HTTP,
      init = INIT,
      server = [[
        location / {
          content_by_lua_block {
            local name = ngx.var.arg_name
            client:with(name, function()
              client:acquire(name .. ":2")
              local seconds = tonumber(ngx.var.arg_sleep)
              if seconds then ngx.sleep(seconds) end
              while not (seconds or ngx.worker.exiting()) do ngx.sleep(0.01) end
              if ngx.var.arg_how == "error" then error("on purpose") end
              ngx.exit(200)
            end)
          }
        }
      ]],
    }
  end

  before_each(start)
  after_each(function() nginx:stop() end)

  local function free(seconds)
    helper.eventually(function()
      for _, node in ipairs(farm) do
        if node:command("DBSIZE") ~= 0 then return false end
      end
      return true
    end, "all keys to be gone", seconds)
  end

  local function begin(count, sleep, how)
    local requests = {}
    for index = 1, count do
      requests[index] = nginx:request("/?name=" .. index .. "&sleep=" .. sleep .. "&how=" .. (how or ""))
    end
    helper.eventually(function() return farm[1]:command("DBSIZE") == 2 * count end, "all locks")
    return requests
  end

  it("worker_ended_by_TERM_releases_locks_of_requests", function()
    -- A worker that ends at once waits for its nodes for 100 ms.
    helper.unless_stalled(50, function()
      nginx:stop("TERM")
      start()
      local requests = begin(50, 1000)
      nginx:stop("TERM")
      free(2)
      for index = 1, 50 do requests[index]:abort() end
    end)
    assert.are.equal("", nginx:complaints(server.CONNECTION_BROKE))
  end)

  it("worker_ended_by_QUIT_completes_its_requests", function()
    local requests = begin(50, "until_exit")
    nginx:stop("QUIT")
    free()
    for index = 1, 50 do assert.are.equal(200, (requests[index]:finish())) end
    assert.are.equal("", nginx:complaints())
  end)

  it("worker_keeps_no_lock_of_hundreds_of_dead_requests", function()
    for round = 1, 10 do
      local requests = {}
      for index = 1, 80 do
        requests[index] = nginx:request("/?name=" .. round .. "." .. index .. "&sleep=0.001&how="
          .. (index % 2 == 0 and "error" or ""))
      end
      for index = 1, 80 do
        if index % 3 == 0 then requests[index]:abort() else requests[index]:finish() end
      end
    end
    free()
    assert.are.equal("", nginx:complaints("on purpose"))
  end)
end)
