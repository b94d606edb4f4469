--- client:stats() and on_event.

local assert = require "luassert"
local helper = require "spec.helper"

return function(behaviour)
  local test = behaviour.test
  local once = behaviour.once
  local failure = behaviour.failure
  local driver = behaviour.driver
  local PATIENCE = behaviour.patience

  local CODES = { "ok", "taken", "unavailable", "expired", "lost", "held", "not_held", "closed", "cancelled", "error" }

  local function check_histogram(histogram)
    local before, last = 0, 0
    for _, bucket in ipairs(histogram.buckets) do
      assert.is_true(bucket.le > last)
      assert.is_true(bucket.count >= before)
      before, last = bucket.count, bucket.le
    end
    assert.are.equal(math.huge, last)
    assert.are.equal(histogram.count, before)
    assert.is_true(histogram.sum >= 0)
  end

  -- A client whose events are kept in a list.
  local function watched(farm, options)
    local events = {}
    options.retry_count, options.node_timeout = options.retry_count or 0, options.node_timeout or PATIENCE
    options.on_event = function(event) events[#events + 1] = event end
    return driver.new(farm.addresses, options), events
  end

  -- Waits for an event with these fields, while the client works.
  local function eventually_event(client, events, fields)
    return helper.eventually(function()
      driver.pump(client)
      if driver.idle then driver.idle(client) end
      client:nodes() -- In a script each call reports events.
      for _, event in ipairs(events) do
        local matches = true
        for name, value in pairs(fields) do matches = matches and event[name] == value end
        if matches then return event end
      end
    end, "an event " .. tostring(fields.event))
  end

  test("stats_of_a_new_client_are_zero", function(_, _, farm)
    local client = driver.new(farm.addresses, { quorum = 4 })
    local stats = client:stats()
    for _, operation in ipairs { "acquire", "extend", "auto_extend", "release" } do
      for _, code in ipairs(CODES) do assert.are.equal(0, stats.operations[operation][code]) end
    end
    assert.are.equal(4, stats.quorum)
    assert.are.same({ expired = 0, lost = 0, max_hold = 0 }, stats.lost)
    assert.are.same({ unavailable = 0, clock = 0 }, stats.warnings)
    assert.are.same({ 0, 0, 0 }, { stats.attempts, stats.held, stats.waiting })
    for index, node in ipairs(stats.nodes) do
      assert.are.equal(farm.addresses[index], node.node)
      assert.is_false(node.up)
      assert.is_false(node.quarantined)
      assert.are.same({ granted = 0, taken = 0, error = 0, quarantined = 0, unknown = 0, late = 0 }, node.votes)
      assert.are.same({ 0, 0, 0, 0 }, { node.connections, node.heals, node.quarantines, node.outstanding })
      check_histogram(node.latency)
    end
    check_histogram(stats.acquire_time)
    check_histogram(stats.wait_time)
    client:close()
  end)

  test("stats_count_operations_by_result", function(client, other)
    local before, of_other = client:stats(), other:stats().operations.acquire.taken
    local function counted(operation, code)
      return client:stats().operations[operation][code] - before.operations[operation][code]
    end
    local lock = assert(client:acquire("counted", { ttl = 60000 }))
    assert.are.equal(before.held + 1, client:stats().held)
    assert(lock:extend())
    failure("taken", other:acquire("counted"))
    failure("held", lock:acquire())
    assert(lock:release())
    failure("not_held", lock:release())
    assert.are.equal(before.held, client:stats().held)
    assert.are.same({ 1, 1, 1, 1, 1 }, { counted("acquire", "ok"), counted("extend", "ok"), counted("acquire", "held"),
      counted("release", "ok"), counted("release", "not_held") })
    assert.are.equal(of_other + 1, other:stats().operations.acquire.taken)
    assert.is_true(client:stats().attempts > before.attempts) -- Inside nginx the clients share their statistics.
    assert.are.equal(before.acquire_time.count + 1, client:stats().acquire_time.count)
    check_histogram(client:stats().acquire_time)
  end)

  test("stats_count_the_votes_and_connections_of_nodes", function(client)
    local before = client:stats()
    local lock = assert(client:acquire("voted", { ttl = 60000 }))
    behaviour.eventually_on_all(lock)
    local granted = 0
    for index, node in ipairs(client:stats().nodes) do
      granted = granted + node.votes.granted - before.nodes[index].votes.granted
      assert.is_true(node.up)
      assert.is_true(node.connections >= 1)
      check_histogram(node.latency)
    end
    assert.is_true(granted >= 3 and granted <= 5, granted)
    assert(lock:release())
  end)

  test("stats_count_a_lease_that_has_expired", function(client)
    local before = client:stats().lost.expired
    local lock = helper.eventually(function() return (client:acquire("short", { ttl = 60 })) end, "a short lease")
    behaviour.run_out(lock)
    lock:release()
    assert.is_true(client:stats().lost.expired > before)
  end)

  test("stats_count_waiting_acquires", function(client, other)
    local holder = assert(other:acquire("wanted", { ttl = 60000 }))
    local before = client:stats().wait_time.count
    failure("taken", client:acquire("wanted", { wait = 100, retry_delay = 10 }))
    local stats = client:stats()
    assert.are.equal(before + 1, stats.wait_time.count)
    assert.are.equal(0, stats.waiting)
    check_histogram(stats.wait_time)
    assert(holder:release())
  end)

  test("stats_remain_after_close", function(_, _, farm)
    local client = driver.new(farm.addresses, { retry_count = 0, node_timeout = PATIENCE, prefix = "closing:" })
    local lock = assert(client:acquire("r"))
    client:close()
    failure("closed", lock:acquire())
    assert.are.equal(1, client:stats().operations.acquire.ok)
    assert.are.equal(0, client:stats().held)
  end)

  test("on_event_reports_nodes_up_and_down", function(_, _, farm)
    farm[5]:kill()
    local client, events = watched(farm, {})
    assert(client:acquire("noted")):release()
    local down = eventually_event(client, events, { event = "down", node = farm.addresses[5] })
    assert.is_string(down.reason)
    assert.is_true(down.ago >= 0)
    eventually_event(client, events, { event = "up", node = farm.addresses[1] })
    farm[5]:restart()
    helper.eventually(function()
      driver.pump(client)
      local lock = client:acquire("noted")
      if lock then lock:release() end
      for _, event in ipairs(events) do
        if event.event == "up" and event.node == farm.addresses[5] then return true end
      end
    end, "the node to be reported up")
    client:close()
  end)

  test("on_event_reports_losses_and_long_waits", function(_, other, farm)
    local client, events = watched(farm, { prefix = "p:" })
    local lock = helper.eventually(function() return (client:acquire("short", { ttl = 60 })) end, "a short lease")
    behaviour.run_out(lock)
    lock:release()
    eventually_event(client, events, { event = "lost", resource = "short", reason = "expired" })
    local holder = assert(other:acquire("p:wanted", { ttl = 60000 }))
    failure("taken", client:acquire("wanted", { wait = 1100, retry_delay = 100 }))
    local waited = eventually_event(client, events, { event = "waited", resource = "wanted", result = "taken" })
    assert.is_true(waited.waited >= 1)
    assert(holder:release())
    client:close()
  end)

  once("on_event_must_be_a_function", function(_, _, farm)
    local ok, message = pcall(driver.new, farm.addresses, { on_event = true })
    assert.is_false(ok)
    assert.is_truthy(message:find("option 'on_event' must be a function, got a boolean", 1, true), message)
    driver.new(farm.addresses, { on_event = setmetatable({}, { __call = function() end }) }):close()
  end)

  once("error_of_on_event_disturbs_no_call", function(_, _, farm)
    local written, stderr = {}, io.stderr
    io.stderr = { write = function(_, text) written[#written + 1] = text end } -- luacheck: ignore
    local client = driver.new(farm.addresses, { retry_count = 0, node_timeout = PATIENCE, on_event = function()
      error("oops")
    end })
    for _ = 1, 3 do assert(client:acquire("calm")):release() end
    io.stderr = stderr -- luacheck: ignore
    client:close()
    local text = table.concat(written)
    assert.is_truthy(text:find("redlock: error in on_event: ", 1, true), text)
    assert.is_truthy(text:find("oops", 1, true), text)
  end)
end
