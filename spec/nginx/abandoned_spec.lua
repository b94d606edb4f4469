--- Operations in nginx whose caller is gone: they block no other operation of their lock.

-- nginx has its own Lua, LuaJIT: the specs are run once.
if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local server = require "spec.nginx.server"

local LOCATIONS = [[
  location /warm {
    content_by_lua_block { ngx.print(tostring(client:with("warm", function() return true end))) }
  }

  # One light thread extends, another one works; the first is killed, and the lock released.
  location /idiom {
    content_by_lua_block {
      local failed, first = 0, nil
      for round = 1, 100 do
        local lock = assert(client:acquire("idiom:" .. round))
        local extender = ngx.thread.spawn(function()
          while true do lock:extend() end
        end)
        ngx.sleep(0.001 * (1 + round % 3))
        ngx.thread.kill(extender)
        local called, ok, err = pcall(lock.release, lock)
        if not called or not ok then
          failed, first = failed + 1, first or tostring(called and err or ok)
        end
      end
      ngx.print(failed, " failed: ", tostring(first))
    }
  }

  # Three of five nodes hang. kept.go is for the moment after the release.
  location /hang {
    content_by_lua_block {
      local lock = assert(client:acquire("hang", { ttl = 60000 }))
      kept.taken, kept.stopped = true, nil
      repeat ngx.sleep(0.002) until kept.stopped
      local extender = ngx.thread.spawn(lock.extend, lock)
      ngx.sleep(0.005)
      ngx.thread.kill(extender)
      local called, ok, _, code = pcall(lock.release, lock)
      ngx.print(tostring(called), " ", tostring(ok), " ", tostring(code), " ", lock:remaining())
    }
  }
  location /stopped {
    content_by_lua_block { kept.stopped = true }
  }
  location /taken {
    content_by_lua_block { ngx.print(tostring(kept.taken)) }
  }

  # The caller of the extend lives.
  location /alive {
    content_by_lua_block {
      local lock = assert(client:acquire("alive", { ttl = 60000 }))
      kept.taken, kept.stopped = true, nil
      repeat ngx.sleep(0.002) until kept.stopped
      local results
      local extender = ngx.thread.spawn(function() results = { lock:extend() } end)
      local sent, _, why = lock:release({ wait = false })
      assert(ngx.thread.wait(extender))
      ngx.print(tostring(sent), " ", tostring(why), " ", tostring(results[1]), " ", tostring(results[3]))
    }
  }

  # Light threads that are killed in each operation, before the same or another one.
  location /each {
    content_by_lua_block {
      local function killed(name, lock)
        local thread = ngx.thread.spawn(lock[name], lock)
        ngx.thread.kill(thread)
      end
      local said = {}
      local function note(...) said[#said + 1] = tostring((...)) .. "/" .. tostring((select(3, ...))) end
      local lock = client:new_lock("each", { ttl = 60000 })
      killed("acquire", lock)
      note(lock:release())
      assert(lock:acquire())
      killed("extend", lock)
      note(lock:extend() ~= nil)
      killed("extend", lock)
      note(lock:detach() ~= nil)
      for _, node in ipairs { "one", "two" } do
        lock = assert(client:acquire(node))
        killed("release", lock)
        note(lock:release())
      end
      lock = assert(client:acquire("three"))
      killed("release", lock)
      note(lock:acquire() ~= nil)
      note(lock:release())
      ngx.print(table.concat(said, " "))
    }
  }

  # Its acquire is in flight while it is released.
  location /busy {
    content_by_lua_block {
      local lock = client:new_lock("busy")
      local waiting = ngx.thread.spawn(lock.acquire, lock)
      for _, how in ipairs { { }, { wait = false } } do
        local _, err = pcall(function() lock:release(next(how) ~= nil and how or nil) end)
        ngx.say(err)
      end
      lock:cancel()
      ngx.thread.wait(waiting)
    }
  }

  # The first of two light threads that are woken in one step begins the next operation of the
  # other's lock.
  location /woken {
    content_by_lua_block {
      local wrong, go = {}, require("ngx.semaphore").new(0)
      for round = 1, 50 do
        local lock = client:new_lock("woken:" .. round)
        local got
        local other = ngx.thread.spawn(function()
          go:wait(5)
          got = { lock:acquire() }
        end)
        go:post(1)
        local first = assert(client:acquire("first:" .. round))
        local ok, err = pcall(lock.release, lock)
        if not ok and not err:find("in flight", 1, true) then wrong[#wrong + 1] = tostring(err) end
        assert(ngx.thread.wait(other))
        if type(got[1]) ~= "number" then wrong[#wrong + 1] = tostring(got[1]) .. ": " .. tostring(got[2]) end
        lock:release()
        assert(first:release())
      end
      ngx.print(#wrong, " ", tostring(wrong[1]))
    }
  }
]]

describe("killed callers in nginx", function()
  local farm, nginx

  setup(function()
    farm = helper.farm(5)
    nginx = server.start {
      addresses = farm.addresses,
      init = [[client = require("redlock").new(addresses, { node_timeout = 2000, wait = 20000 })]],
      server = LOCATIONS,
    }
  end)

  teardown(function()
    nginx:stop()
    farm:shut()
  end)

  before_each(function() farm:reset() end)

  it("killed_extend_does_not_block_release", function()
    assert.are.equal("0 failed: nil", (select(2, nginx:get("/idiom"))))
    assert.are.equal("", nginx:complaints())
  end)

  it("release_after_killed_extend_reaches_running_nodes_while_others_hang", function()
    local request = nginx:request("/hang")
    helper.eventually(function() return select(2, nginx:get("/taken")) == "true" end)
    helper.eventually(function() return farm:count("hang") == 5 end)
    for index = 3, 5 do farm[index]:stop() end
    nginx:get("/stopped")
    helper.eventually(function()
      return farm[1]:command("EXISTS", "hang") == 0 and farm[2]:command("EXISTS", "hang") == 0
    end, "the running nodes to be released")
    for index = 3, 5 do farm[index]:continue() end
    local _, body = request:finish()
    assert.are.equal("true true nil 0", body)
    farm:eventually_free("hang")
  end)

  it("release_ends_extend_of_living_caller", function()
    local request = nginx:request("/alive")
    helper.eventually(function() return select(2, nginx:get("/taken")) == "true" end)
    helper.eventually(function() return farm:count("alive") == 5 end)
    for index = 3, 5 do farm[index]:stop() end
    nginx:get("/stopped")
    local _, body = request:finish()
    for index = 3, 5 do farm[index]:continue() end
    assert.are.equal("true nil nil cancelled", body)
    farm:eventually_free("alive")
  end)

  it("release_of_busy_lock_blames_line_of_its_caller", function()
    for _, node in ipairs(farm) do node:command("SET", "busy", "theirs") end
    local _, body = nginx:get("/busy")
    local first, second = body:match("^([^\n]*)\n([^\n]*)\n$")
    assert.is_truthy(first and first:find("^content_by_lua.*'busy' has an operation in flight"), body)
    assert.are.equal(first, second)
    assert.are.equal("", nginx:complaints())
  end)

  it("killed_caller_blocks_no_operation_of_its_lock", function()
    local _, body = nginx:get("/each")
    assert.are.equal("nil/not_held true/nil true/nil true/nil true/nil true/nil true/nil", body)
    assert.are.equal("", nginx:complaints())
  end)

  it("woken_caller_gets_its_own_result_after_another_operation_began", function()
    assert.are.equal("0 nil", (select(2, nginx:get("/woken"))))
    assert.are.equal("", nginx:complaints())
  end)
end)
