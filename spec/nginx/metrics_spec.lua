--- The figures of all workers of nginx: their sum, and what remains of ended workers.

-- nginx has its own Lua, LuaJIT: the specs are run once.
if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local metrics_text = require "spec.metrics_text"
local server = require "spec.nginx.server"

-- Each worker has figures of its own, which /use changes. So the sums are known exactly.
local INIT = [[
  figures = require "spec.figures"
  client = require("resty.redlock").new(addresses, PATIENT)
  fake = figures.of(unpack(addresses))
  require("redlock.core").client_methods.stats = function() return figures.copy(fake) end
  pages = require("redlock.nginx_pages").new("figures", client)
]]

local LOCATIONS = [[
  location = /use {
    content_by_lua_block {
      assert(client:acquire(ngx.worker.pid() .. ":" .. ngx.var.connection)):release()
      fake.attempts, fake.held = fake.attempts + 1, 3
      fake.nodes[1].votes.granted = fake.nodes[1].votes.granted + 2
      fake.acquire_time.count, fake.acquire_time.sum = fake.acquire_time.count + 1, fake.acquire_time.sum + 0.25
      for index = 5, #fake.acquire_time.buckets do
        fake.acquire_time.buckets[index].count = fake.acquire_time.buckets[index].count + 1
      end
      -- Stands still, so that another worker accepts the next connection.
      local stop = os.clock() + 0.005
      while os.clock() < stop do end
      ngx.print(ngx.worker.pid())
    }
  }
  location = /metrics { content_by_lua_block { pages:metrics() } }
  location = /stored { content_by_lua_block { ngx.print(ngx.shared.figures:get("redlock::attempts")) } }
  location = /set {
    content_by_lua_block {
      local figures = ngx.shared.figures
      figures:set(ngx.unescape_uri(ngx.var.arg_key), tonumber(ngx.var.arg_value) or ngx.unescape_uri(ngx.var.arg_value))
    }
  }
  location = /timers { content_by_lua_block { ngx.print(ngx.timer.running_count() + ngx.timer.pending_count()) } }
]]

describe("figures of nginx", function()
  local farm, nginx

  setup(function() farm = helper.farm(3) end)
  teardown(function() farm:shut() end)
  before_each(function() farm:reset() end)
  after_each(function()
    if nginx then nginx:stop() end
    nginx = nil
  end)

  local function start(given)
    given.addresses = given.addresses or farm.addresses
    given.http = (given.http or "lua_shared_dict figures 1m;")
    given.init = given.init or INIT
    given.server = LOCATIONS .. (given.server or "")
    nginx = server.start(given)
  end

  local function samples()
    local status, body = nginx:get("/metrics")
    assert.are.equal(200, status)
    return metrics_text.parse(body).samples
  end

  -- Uses all workers, and returns the number of requests.
  local function use_all(workers)
    local pids, found, count = {}, 0, 0
    helper.eventually(function()
      local requests = {}
      for index = 1, 2 * workers do requests[index] = nginx:request("/use") end
      for _, request in ipairs(requests) do
        local _, pid = request:finish()
        assert.is_truthy(tonumber(pid), pid)
        if not pids[pid] then pids[pid], found = true, found + 1 end
        count = count + 1
      end
      return found == workers
    end, "a request in each worker")
    return count
  end

  local function eventually_equal(expected, name)
    local seen
    local ok = pcall(helper.eventually, function()
      seen = samples()[name]
      return seen == expected
    end, name)
    assert.is_true(ok, ("%s is %s, and %s is expected"):format(name, tostring(seen), tostring(expected)))
  end

  it("any_worker_renders_sum_of_all_workers", function()
    start { workers = 3 }
    local count = use_all(3)
    eventually_equal(count, "redlock_attempts_total")
    eventually_equal(9, "redlock_held")
    eventually_equal(2 * count, 'redlock_votes_total{node="' .. farm.addresses[1] .. '",vote="granted"}')
    eventually_equal(0.25 * count, "redlock_acquire_seconds_sum")
    eventually_equal(count, 'redlock_acquire_seconds_bucket{le="1"}')
    eventually_equal(0, 'redlock_acquire_seconds_bucket{le="0.1"}')
    eventually_equal(3, "redlock_workers")
    eventually_equal(2, "redlock_quorum") -- is no sum
    for _ = 1, 20 do assert.are.equal(count, samples().redlock_attempts_total) end
    assert.are.equal("", nginx:complaints())
  end)

  it("counters_of_killed_worker_remain_and_its_gauges_vanish", function()
    start { workers = 2 }
    local count = use_all(2)
    eventually_equal(count, "redlock_attempts_total")
    eventually_equal(6, "redlock_held")
    local pid = nginx:workers()[1]
    os.execute("kill -KILL " .. pid)
    eventually_equal(3, "redlock_held")
    assert.are.equal(count, samples().redlock_attempts_total)
    count = count + use_all(2) -- The new worker has the number of the old one.
    eventually_equal(count, "redlock_attempts_total")
    eventually_equal(6, "redlock_held")
    nginx:complaints("exited on signal 9")
  end)

  it("counters_remain_in_reload_and_gauges_vanish", function()
    start { workers = 2 }
    local count = use_all(2)
    for _ = 1, 3 do
      nginx:reload()
      eventually_equal(0, "redlock_held")
      assert.are.equal(count, samples().redlock_attempts_total)
      count = count + use_all(2)
      eventually_equal(count, "redlock_attempts_total")
      eventually_equal(6, "redlock_held")
      eventually_equal(2, "redlock_workers")
    end
    assert.are.equal("", nginx:complaints())
  end)

  it("pages_of_init_worker_sum_all_workers", function()
    local init = "local pages, client, figures, fake\n" .. INIT:gsub("\n%s*pages = ", [[

      rawset(_G, "client", client)
      rawset(_G, "fake", fake)
      pages = ]])
    start { workers = 2, init = "", init_worker = init .. [[ rawset(_G, "pages", pages) ]] }
    local count = use_all(2)
    eventually_equal(count, "redlock_attempts_total")
    eventually_equal(6, "redlock_held")
    assert.are.equal("", nginx:complaints())
  end)

  it("figures_read_in_init_are_not_those_of_workers", function()
    start { workers = 2, init = INIT .. [[ pages:stats() ]] }
    use_all(2)
    eventually_equal(6, "redlock_held")
    eventually_equal(2, "redlock_workers")
    assert.are.equal("", nginx:complaints())
  end)

  it("worker_publishes_without_being_asked", function()
    start { workers = 2 }
    local count = use_all(2)
    helper.eventually(function() return tonumber((select(2, nginx:get("/stored")))) == count end, "the figures")
  end)

  it("worker_whose_entry_was_taken_moves_to_another_one", function()
    start { workers = 1 }
    nginx:get("/use")
    assert.are.equal(3, samples().redlock_held)
    nginx:get("/set?key=redlock::worker%201&value=" .. "another%0Aheld%095")
    assert.are.equal(8, samples().redlock_held)
    assert.are.equal(2, samples().redlock_workers)
  end)

  it("buckets_that_are_not_yet_added_do_not_break_the_order", function()
    start { workers = 1 }
    nginx:get("/use")
    samples()
    nginx:get("/set?key=redlock::acquire_time.buckets.0.01.count&value=4")
    local page = samples() -- The parser of the page checks the order.
    assert.are.equal(4, page['redlock_acquire_seconds_bucket{le="+Inf"}'])
    assert.are.equal(4, page.redlock_acquire_seconds_count)
  end)

  it("figures_that_found_no_room_are_added_later", function()
    start { workers = 1, http = "lua_shared_dict figures 128k;", server = [[
      location = /fill { content_by_lua_block {
        local index = 0
        repeat index = index + 1 until not ngx.shared.figures:safe_set("filler" .. index, ("x"):rep(20))
        ngx.print(index)
      } }
      location = /free { content_by_lua_block {
        for index = 1, tonumber(ngx.var.arg_count) do ngx.shared.figures:delete("filler" .. index) end
      } } ]] }
    local count = select(2, nginx:get("/fill"))
    for _ = 1, 3 do nginx:get("/use") end
    assert.is_true(samples().redlock_figures_missing > 0)
    nginx:get("/free?count=" .. count)
    eventually_equal(3, "redlock_attempts_total")
    assert.are.equal(0, samples().redlock_figures_missing)
  end)

  it("last_figures_of_ending_worker_are_counted", function()
    start { workers = 1 }
    for count = 1, 5 do
      nginx:get("/use")
      nginx:reload()
      assert.are.equal(count, samples().redlock_attempts_total)
    end
    assert.are.equal("", nginx:complaints())
  end)

  it("node_is_up_if_a_worker_is_connected_and_absent_if_no_worker_used_it", function()
    start { workers = 1, server = [[
      location = /unused { content_by_lua_block {
        for _, node in ipairs(fake.nodes) do node.up, node.connections = false, 0 end
      } }
      location = /down { content_by_lua_block { fake.nodes[1].up, fake.nodes[1].failures = false, 1 } } ]] }
    local name = 'redlock_node_up{node="' .. farm.addresses[1] .. '"}'
    nginx:get("/unused")
    assert.is_nil(samples()[name])
    nginx:get("/down")
    assert.are.equal(0, samples()[name])
    nginx:reload()
    assert.are.equal(1, samples()[name]) -- The new worker is connected.
    nginx:get("/unused")
    eventually_equal(nil, name) -- The old worker had no clock, so that its gauges expire.
  end)

  it("full_dictionary_evicts_nothing_and_is_logged_once", function()
    local names = {}
    for index = 1, 16 do names[index] = "10.0.0." .. index .. ":6379" end
    start { http = "lua_shared_dict figures 12k;", init = INIT:gsub("unpack%(addresses%)", '"'
      .. table.concat(names, '", "') .. '"') .. [[ ngx.shared.figures:set("own", "kept") ]], server = [[
      location = /grow { content_by_lua_block {
        for _, node in ipairs(fake.nodes) do
          for kind in pairs(node.votes) do node.votes[kind] = node.votes[kind] + 1 end
        end
        pages:stats()
      } }
      location = /own { content_by_lua_block { ngx.print(ngx.shared.figures:get("own")) } }
      location = /free { content_by_lua_block {
        for _, key in ipairs(ngx.shared.figures:get_keys()) do
          if key ~= "own" then ngx.shared.figures:delete(key) end
        end
      } } ]] }
    nginx:get("/use")
    for _ = 1, 5 do nginx:get("/grow") end
    local first = samples()
    assert.is_true(first.redlock_figures_missing > 0)
    assert.are.equal("kept", select(2, nginx:get("/own")))
    local _, lines = nginx:read("error.log"):gsub("redlock: %d+ figures of this worker are missing in "
      .. "lua_shared_dict figures: it is full", "")
    assert.are.equal(1, lines)
    for _ = 1, 5 do
      nginx:get("/grow")
      local now = samples()
      for name, value in pairs(first) do
        if name:find("_total") then assert.is_true(now[name] >= value, name .. " fell") end
      end
    end
  end)

  it("dictionary_that_was_emptied_is_filled_again", function()
    start { workers = 1, server = [[ location = /flush { content_by_lua_block { ngx.shared.figures:flush_all() } } ]] }
    use_all(1)
    assert.are.equal(3, samples().redlock_held)
    nginx:get("/flush")
    nginx:get("/use")
    eventually_equal(1, "redlock_attempts_total")
    assert.are.equal(3, samples().redlock_held)
    assert.are.equal("", nginx:complaints())
  end)

  it("figures_need_no_timer", function()
    start { workers = 1 }
    nginx:get("/use")
    for _ = 1, 2 do
      helper.eventually(function() return tonumber((select(2, nginx:get("/timers")))) == 4 end, "clock and connections")
      for _ = 1, 20 do samples() end
    end
  end)

  it("figures_are_summed_with_lua_code_cache_off", function()
    start { workers = 1, http = "lua_shared_dict figures 1m; lua_code_cache off;" }
    for _ = 1, 5 do nginx:get("/use") end
    eventually_equal(5, "redlock_attempts_total")
    nginx:complaints("lua_code_cache is off")
  end)
end)
