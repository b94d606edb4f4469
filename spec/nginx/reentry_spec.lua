--- Re-entrance inside nginx: the owner is the request, or the timer, with all its light threads.

if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local server = require "spec.nginx.server"

local INIT = [[
  client = require("redlock").new(addresses, { ttl = 60000, retry_count = 0, node_timeout = 20000, reentrant = true })
  of_worker = require("redlock").new(addresses,
    { ttl = 60000, retry_count = 0, node_timeout = 20000, reentrant = true, owner = "worker" })
  blocking = require("redlock.nginx_blocking").new(addresses,
    { ttl = 60000, retry_count = 0, node_timeout = 20000, reentrant = true })
]]

local LOCATIONS = [[
  location /threads {
    content_by_lua_block {
      local outer = assert(client:acquire("threads"))
      local inner
      local thread = ngx.thread.spawn(function()
        inner = assert(client:acquire("threads"))
        ngx.sleep(0.01)
        return inner:token() == outer:token()
      end)
      local _, same = ngx.thread.wait(thread)
      assert(outer:release())
      ngx.say(tostring(same), " ", tostring(outer:is_held()), " ", tostring(inner:is_held()))
      assert(inner:release())
    }
  }
  # Clients that share their connections.
  location /clients {
    content_by_lua_block {
      local function new()
        return require("redlock").new(addresses,
          { ttl = 60000, retry_count = 0, node_timeout = 20000, reentrant = true, prefix = "clients:" })
      end
      local one, other = new(), new()
      for _, owner in ipairs { true, ("n"):rep(63) } do
        local outer = assert(one:acquire("name", { reentrant = owner }))
        local inner = assert(one:acquire("name", { reentrant = owner }))
        ngx.print(select(3, other:acquire("name", { reentrant = owner })), " ")
        assert(inner:release())
        assert(outer:release())
      end
      local lock = assert(other:acquire("name"))
      one:close()
      ngx.print(tostring(lock:is_held()), " ", tostring(lock:release()))
    }
  }
  location /hold {
    content_by_lua_block {
      kept.lock = assert(client:acquire("held"))
      local inner = assert(client:acquire("held"))
      kept.inside = true
      repeat ngx.sleep(0.002) until kept.go
      assert(inner:release())
      ngx.print(tostring(kept.lock:is_held()))
    }
  }
  location /other {
    content_by_lua_block { ngx.print(tostring((select(3, client:acquire(ngx.var.arg_name))))) }
  }
  location /go { content_by_lua_block { kept.go = true } }
  location /inside { content_by_lua_block { ngx.print(tostring(kept.inside)) } }
  location /is_held { content_by_lua_block { ngx.print(tostring(kept.lock:is_held())) } }

  # Nobody gives them back: the end of the request does.
  location /forget {
    content_by_lua_block {
      kept.outer = assert(client:acquire("forgotten"))
      kept.inner = assert(client:acquire("forgotten"))
      assert(kept.outer:acquire())
    }
  }
  location /mixed {
    content_by_lua_block {
      kept.lock = assert(of_worker:acquire("mixed"))
      kept.inner = assert(of_worker:acquire("mixed", { owner = "request" }))
    }
  }
  location /twice {
    content_by_lua_block {
      kept.lock = client:new_lock("twice")
      assert(kept.lock:acquire())
      assert(kept.lock:acquire())
      assert(kept.lock:release())
      ngx.print(tostring(kept.lock:is_held()))
    }
  }
  # Two requests with one owner's name and one lock object.
  location /share {
    content_by_lua_block {
      kept.shared = kept.shared or client:new_lock("shared", { reentrant = "job" })
      local validity, message, code = kept.shared:acquire()
      if not validity then return ngx.print(message, " ", code) end
      kept.inside = true
      repeat ngx.sleep(0.002) until kept.go
      ngx.print(tostring(kept.shared:is_held()), " ", tostring(kept.shared:release()))
    }
  }
  # One request holds by a lock object that others try, too.
  location /first {
    content_by_lua_block {
      kept.one = client:new_lock("one", { reentrant = ngx.var.arg_owner or false, ttl = tonumber(ngx.var.arg_ttl) })
      assert(kept.one:acquire({ wait = 60000 }))
      kept.inside = true
      repeat ngx.sleep(0.002) until kept.go
    }
  }
  location /second {
    content_by_lua_block {
      local ok, validity, message = pcall(kept.one.acquire, kept.one)
      ngx.print(ok and validity and "acquired" or tostring(message or validity))
    }
  }
  location /extend {
    content_by_lua_block {
      kept.inside = "extending"
      kept.one:extend()
    }
  }
  location /worker {
    content_by_lua_block {
      kept.lock = kept.lock or of_worker:new_lock("worker", { reentrant = "job" })
      assert(kept.lock:acquire({ owner = ngx.var.arg_owner }))
    }
  }
  # One of its light threads is killed while it acquires what the request holds.
  location /killed {
    content_by_lua_block {
      local lock = client:new_lock("killed")
      assert(lock:acquire({ ttl = 30000 }))
      local thread = ngx.thread.spawn(function() lock:acquire({ ttl = 60000 }) end)
      ngx.thread.kill(thread)
      local began = ngx.now()
      repeat ngx.sleep(0.002) until lock:remaining() > 40000 or not lock:is_held() or ngx.now() > began + 40
      ngx.sleep(tonumber(ngx.var.arg_after))
      ngx.print(tostring(lock:is_held()), " ", tostring(lock:release()), " ", tostring(lock:is_held()))
    }
  }
  location /timer {
    content_by_lua_block {
      assert(ngx.timer.at(0, function()
        client:with("timer", function()
          kept.timer = client:with("timer", function() return true end)
        end)
      end))
    }
  }
  location /block {
    content_by_lua_block {
      kept.lock = assert(blocking:acquire("blocked"))
      ngx.print(tostring((select(3, blocking:acquire("blocked")))))
    }
  }
  location /enter {
    content_by_lua_block { ngx.print(tostring((select(3, blocking:acquire("blocked"))))) }
  }
  location /timed { content_by_lua_block { ngx.print(tostring(kept.timer)) } }
]]

describe("re-entrance in nginx", function()
  local farm, nginx

  setup(function() farm = helper.farm(3) end)
  teardown(function() farm:shut() end)

  before_each(function()
    farm:reset()
    nginx = server.start { addresses = farm.addresses, init = INIT, server = LOCATIONS }
    helper.eventually(function() return select(2, nginx:get("/other?name=warm")) == "nil" end)
  end)
  after_each(function() if nginx then nginx:stop() end end)

  local function get(path)
    local status, body = nginx:get(path)
    assert.are.equal(200, status)
    return body
  end

  local function eventually_free(key)
    helper.eventually(function() return farm:count(key) == 0 end, key .. " to be free")
  end

  it("client_does_not_enter_lock_of_another_client_that_shares_its_connections", function()
    assert.are.equal("taken taken true true", (select(2, nginx:get("/clients"))))
    assert.are.equal("", nginx:complaints())
  end)

  it("light_threads_of_a_request_are_one_owner", function()
    assert.are.equal("true false true\n", get("/threads"))
    eventually_free("threads")
  end)

  it("another_request_is_another_owner", function()
    local request = nginx:request("/hold")
    helper.eventually(function() return get("/inside") == "true" end)
    assert.are.equal("taken", get("/other?name=held"))
    get("/go")
    assert.are.equal("true", select(2, request:finish()))
    eventually_free("held")
  end)

  it("end_of_request_releases_nested_acquires", function()
    get("/forget")
    eventually_free("forgotten")
    assert.are.equal("true", get("/twice"))
    eventually_free("twice")
  end)

  it("end_of_request_leaves_lock_that_worker_shares", function()
    get("/mixed")
    for _ = 1, 20 do
      assert.are.equal("taken", get("/other?name=mixed"))
    end
    assert.are.equal("true", get("/is_held"))
    assert.is_true(farm:count("mixed") >= 2)
  end)

  -- nginx uses the coroutines of requests again.
  it("later_request_does_not_own_lock_of_blocking_client", function()
    assert.are.equal("nil", get("/block"))
    for _ = 1, 20 do
      assert.are.equal("taken", get("/enter"))
    end
  end)

  it("killed_nested_acquire_leaves_lock_to_request", function()
    for _, after in ipairs { "0", "1.2" } do
      assert.are.equal("true true false", get("/killed?after=" .. after))
      eventually_free("killed")
    end
  end)

  it("end_of_another_request_leaves_lease_of_shared_object", function()
    local request = nginx:request("/share")
    helper.eventually(function() return get("/inside") == "true" end)
    assert.are.equal("'shared': another request holds it by the same lock object; "
      .. "make a lock object for each request held",
      get("/share"))
    get("/other?name=warm") -- The end of that request is noticed.
    get("/go")
    assert.are.equal("true true", select(2, request:finish()))
    eventually_free("shared")
    get("/share")
    eventually_free("shared")
  end)

  local function hold_by_one_object(arguments)
    local request = nginx:request("/first" .. arguments)
    helper.eventually(function() return get("/inside") == "true" end)
    return request
  end

  it("message_of_plain_lock_names_no_other_request", function()
    local request = hold_by_one_object("")
    assert.are.equal("'one': the lock is held already", get("/second"))
    get("/go")
    assert.are.equal(200, (request:finish()))
  end)

  it("another_request_acquires_object_whose_lease_expired", function()
    local request = hold_by_one_object("?owner=job&ttl=50")
    helper.eventually(function() return get("/second") == "acquired" end, "the lease to run out")
    get("/go")
    assert.are.equal(200, (request:finish()))
    eventually_free("one")
  end)

  it("busy_object_is_reported_to_every_request", function()
    local request = hold_by_one_object("?owner=job")
    for _, node in ipairs(farm) do node:stop() end
    local extending = nginx:request("/extend")
    helper.eventually(function() return get("/inside") == "extending" end)
    local said = get("/second")
    for _, node in ipairs(farm) do node:continue() end
    assert.is_truthy(said:find("'one' has an operation in flight", 1, true), said)
    assert.are.equal(200, (extending:finish()))
    get("/go")
    assert.are.equal(200, (request:finish()))
    eventually_free("one")
  end)

  it("nested_acquire_of_request_leaves_lease_to_worker", function()
    get("/worker?owner=worker")
    get("/worker?owner=request")
    helper.pass(0.3, function() assert.are.equal("true", get("/is_held")) end)
    assert.are.equal(3, farm:count("worker"))
  end)

  it("timer_is_an_owner", function()
    get("/timer")
    helper.eventually(function() return get("/timed") == "true" end)
    eventually_free("timer")
  end)
end)
