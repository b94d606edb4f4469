--- What is left of a lock that was released: little memory, and whatever it may still be asked.

if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local server = require "spec.nginx.server"

local INIT = [[
  client = require("redlock").new(addresses, { owner = "worker", node_timeout = 30000 })

  -- What the C library has given out. LuaJIT has an allocator of its own.
  local ffi = require "ffi"
  ffi.cdef [=[
    struct redlock_spec_mallinfo {
      size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
    };
    struct redlock_spec_mallinfo mallinfo2(void);
  ]=]
  function in_use() return tonumber(ffi.C.mallinfo2().uordblks) end
]]

local LOCATIONS = [[
  location /many {
    content_by_lua_block {
      local function some(from)
        for index = from, 4000, 20 do
          local lock = assert(client:acquire("many:" .. index))
          assert(lock:release())
          kept[#kept + 1] = lock
        end
      end
      local before = in_use()
      local threads = {}
      for index = 1, 20 do threads[index] = ngx.thread.spawn(some, index) end
      for index = 1, 20 do assert(ngx.thread.wait(threads[index])) end
      ngx.print((in_use() - before) / 2000)
    }
  }

  location /sent {
    content_by_lua_block {
      local function take(index)
        local lock = assert(client:acquire("sent:" .. index))
        assert(lock:release({ wait = false }))
        return lock
      end
      local before = in_use()
      for index = 1, 2000 do kept[#kept + 1] = take(index) end
      ngx.sleep(0.1)
      ngx.print((in_use() - before) / 2000)
    }
  }
  # Released where nothing may wait.
  location /filtered {
    content_by_lua_block {
      kept.before, kept.some = in_use(), {}
      for index = 1, 2000 do kept.some[index] = assert(client:acquire("filtered:" .. index)) end
      ngx.print("filtered")
    }
    header_filter_by_lua_block { for _, lock in ipairs(kept.some) do assert(lock:release()) end }
  }
  location /used {
    content_by_lua_block {
      ngx.sleep(0.1)
      ngx.print((in_use() - kept.before) / 2000)
    }
  }
  location /heard {
    content_by_lua_block {
      for _, ask in ipairs { "release", "result" } do
        local lock = assert(client:acquire("heard"))
        assert(lock:release({ wait = false }))
        ngx.sleep(0.1)
        ngx.say(tostring(lock[ask](lock)), " ", select(3, lock:extend()), " ", tostring(lock:acquire() > 3000))
        ngx.say(tostring(lock:release()), " ", select(3, lock:release()))
      end
    }
  }
  # The objects are garbage, and the collector does not come.
  location /refused {
    content_by_lua_block {
      kept.holder = kept.holder or assert(client:acquire("refused"))
      collectgarbage()
      collectgarbage("stop")
      local before = in_use()
      for _ = 1, 2000 do
        assert(select(3, client:with("refused", { retry_count = 0 }, function() end)) == "taken")
      end
      local used = (in_use() - before) / 2000
      collectgarbage("restart")
      ngx.print(used)
    }
  }

  location /asked {
    content_by_lua_block {
      local lock = client:new_lock("a name, of course", { ttl = 64321 })
      assert(lock:acquire())
      assert(lock:release())
      ngx.say(lock:resource(), " ", lock:ttl(), " ", tostring(lock:token()), " ", lock:remaining(), " ",
        tostring(lock:is_held()))
      ngx.say(tostring(lock))
      local function votes()
        local seen = {}
        for _, vote in ipairs(lock:votes()) do
          seen[#seen + 1] = vote.vote .. (vote.latency and " " or " never ") .. (vote.error or "")
        end
        return table.concat(seen, ",")
      end
      ngx.say(select(2, votes():gsub("granted ", "")), " granted")
      ngx.say(select(2, lock:extend()), " ", select(3, lock:release()))
      for _ = 1, 3 do
        ngx.say(lock:acquire() > 30000, " ", tostring(lock:extend(90000) > 60000), " ", tostring(lock:release()))
      end
      -- A node is gone: its reason is dropped, and its missing vote stays.
      assert(lock:acquire())
      kept.lock, kept.votes = lock, votes
    }
  }
  location /missing {
    content_by_lua_block {
      ngx.say(tostring(kept.lock:release()))
      ngx.say((kept.votes():gsub("granted [^,]*", "granted")))
    }
  }
  location /several {
    content_by_lua_block {
      local lock = assert(client:acquire({ "first", "second" }))
      assert(lock:release())
      ngx.say(table.concat(lock:resources(), " and "))
      assert(lock:acquire())
      local other = client:new_lock("second", { retry_count = 0 })
      ngx.say(select(3, other:acquire()))
      assert(lock:release())
      ngx.say(tostring(other:acquire() ~= nil), " ", tostring(other:release()))
    }
  }
  location /hold {
    content_by_lua_block {
      kept.held = assert(client:acquire("held"))
      repeat ngx.sleep(0.01) until kept.held:votes()[5].vote == "granted"
    }
  }
  location /give {
    content_by_lua_block {
      ngx.print(tostring(kept.held:release()), " ")
      local vote = kept.held:votes()[5]
      ngx.print(vote.vote, " ", tostring(vote.error))
    }
  }
  location /closed {
    content_by_lua_block {
      local other = require("redlock").new(addresses, PATIENT)
      local lock = assert(other:acquire("x"))
      lock:release()
      ngx.say(tostring(other:close()), " ", tostring(lock), " ", select(3, lock:acquire()), " ",
        select(3, lock:release()))
    }
  }
]]

describe("a lock that was released", function()
  local farm, nginx

  setup(function()
    farm = helper.farm(5)
    nginx = server.start {
      addresses = farm.addresses,
      init = INIT,
      server = LOCATIONS,
    }
  end)

  teardown(function()
    nginx:stop()
    farm:shut()
  end)

  before_each(function()
    farm:reset()
  end)

  -- What nodes of a slow machine answer late is kept for a while, too: then it is asked again.
  local function frees(path, use)
    local unseen
    for _ = 1, 10 do
      if use then use() end
      unseen = tonumber((select(2, nginx:get(path))))
      if unseen < 150 then return end
    end
    error(unseen .. " bytes for each lock", 2)
  end

  it("released_lock_keeps_no_unseen_memory", function()
    frees("/many")
    assert.are.equal("", nginx:complaints())
  end)

  it("release_without_waiting_frees_memory_and_keeps_result", function()
    frees("/sent")
    assert.are.equal(("true not_held true\ntrue not_held\n"):rep(2), select(2, nginx:get("/heard")))
    assert.are.equal("", nginx:complaints())
  end)

  it("release_in_phase_without_waiting_frees_memory", function()
    frees("/used", function() assert.are.equal("filtered", select(2, nginx:get("/filtered"))) end)
    assert.are.equal("", nginx:complaints())
  end)

  it("refused_with_frees_memory", function()
    frees("/refused")
    assert.are.equal("", nginx:complaints())
  end)

  it("released_lock_keeps_its_resources", function()
    local _, body = nginx:get("/several")
    assert.are.equal("first and second\ntaken\ntrue true\n", body)
    assert.are.equal("", nginx:complaints())
  end)

  it("released_lock_reports_no_vote_of_silent_node", function()
    assert.are.equal(200, (nginx:get("/hold")))
    farm[5]:stop()
    assert.are.equal("true unknown nil", select(2, nginx:get("/give")))
    farm[5]:continue()
    farm:eventually_free("held")
    assert.are.equal("", nginx:complaints())
  end)

  it("released_lock_answers_as_before", function()
    nginx:get("/many")
    local _, body = nginx:get("/asked")
    assert.are.equal("a name, of course 64321 nil 0 false\nredlock.lock a name, of course (not held)\n"
      .. "3 granted\n'a name, of course': the lock is not held not_held\n"
      .. ("true true true\n"):rep(3), body)
    farm[5]:kill()
    _, body = nginx:get("/missing")
    assert.is_truthy(body:find("^true\n"), body)
    assert.is_true(select(2, body:gsub("granted", "")) >= 3, body)
    assert.are.equal("true redlock.lock x (not held) closed closed\n", select(2, nginx:get("/closed")))
    assert.are.equal("", nginx:complaints(server.NODE_IS_GONE, server.CONNECTION_BROKE))
  end)
end)
