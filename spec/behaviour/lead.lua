--- lead() and leader().

local assert = require "luassert"
local helper = require "spec.helper"

return function(behaviour)
  local test = behaviour.test
  local failure = behaviour.failure
  local eventually_free = behaviour.eventually_free
  local driver = behaviour.driver

  local unpack = table.unpack or unpack -- luacheck: ignore

  local function pack(...) return { n = select("#", ...), ... } end

  -- Deletes the keys of a leader, and waits until its term knows.
  local function lose(term)
    for _, node in ipairs(behaviour.farm) do node:command("DEL", "r") end
    helper.eventually(function()
      driver.pump(behaviour.client)
      driver.idle(behaviour.client)
      return term:lost()
    end, "the loss of the lease")
  end

  local QUICK = { ttl = 60000, auto_extend = { every = 20 } }

  test("lead_runs_function_with_fenced_lease_until_it_resigns", function(client)
    local inside
    assert.are.same({ n = 3, true, "a", nil }, pack(client:lead("r", { ttl = 30000, label = "one" }, function(term, ...)
      inside = { term:check() > 0, term:is_held(), term:lost() or "not lost", term:fence() > 0, term:ttl(),
        select("#", ...) }
      return "resign", "a", nil
    end)))
    assert.are.same({ true, true, "not lost", true, 30000, 0 }, inside)
    eventually_free("r")
    assert.are.same({ n = 1, true }, pack(client:lead("r", function() return "resign" end)))
  end)

  test("fence_grows_from_term_to_term", function(client, other)
    local fences = {}
    local function lead(term)
      fences[#fences + 1] = term:fence()
      if #fences % 3 == 0 then return "resign" end
    end
    assert.is_true((client:lead("r", lead)))
    assert.is_true((other:lead("r", lead)))
    assert.are.equal(6, #fences)
    for index = 2, #fences do assert.is_true(fences[index] > fences[index - 1]) end
  end)

  test("lead_raises_error_of_function_after_release", function(client)
    local problem = {}
    local ok, err = pcall(function() client:lead("r", function() error(problem) end) end)
    assert.are.same({ false, problem }, { ok, err })
    eventually_free("r")
    ok, err = pcall(function() client:lead("r", function() error("where") end) end)
    assert.is_false(ok)
    assert.is_truthy(err:find("lead%.lua:%d+: where"), err)
    eventually_free("r")
  end)

  test("campaign_begins_only_after_function_of_lost_term_has_returned", function(client, _, farm)
    local terms, reasons = {}, {}
    local options = { ttl = 60000, auto_extend = { every = 20 }, node_timeout = 10000,
      on_lost = function(_, reason) reasons[#reasons + 1] = reason end }
    assert.are.same({ n = 2, true, "end" }, pack(client:lead("r", options, function(term)
      terms[#terms + 1] = term:fence()
      if #terms == 2 then return "resign", "end" end
      lose(term)
      assert.is_false(term:is_held())
      local ok, err = pcall(function() term:check() end)
      assert.is_false(ok)
      assert.is_truthy(err:find("lead.lua:%d+: redlock: 'r' is not held any more"), err)
      helper.pass(0.1, function()
        driver.pump(client)
        assert.are.equal(0, farm:count("r")) -- no campaign
      end)
    end)))
    assert.are.equal(2, #terms)
    assert.is_true(terms[2] > terms[1])
    assert.are.same({ "lost" }, reasons)
  end)

  test("lead_reports_lost_lease_of_function_that_resigns", function(client)
    local result, message, code, value = client:lead("r", QUICK, function(term)
      lose(term)
      return "resign", "value"
    end)
    assert.is_nil(result)
    assert.is_string(message)
    assert.are.same({ "lost", "value" }, { code, value })
  end)

  test("wait_limits_a_campaign", function(client, other)
    local held = assert(other:acquire("r", { ttl = 60000 }))
    local function never() error("must not lead") end
    failure("taken", client:lead("r", { wait = 0, on_error = never }, never))
    failure("taken", client:lead("r", { wait = 50, on_error = never }, never))
    assert.is_true(held:is_held())
  end)

  test("lead_reports_unreachable_nodes_until_on_error_resigns", function(client, _, farm)
    for index = 1, 3 do farm[index]:kill() end
    local codes, messages = {}, {}
    local message = failure("unavailable", client:lead("r", { node_timeout = 200, on_error = function(text, code)
      codes[#codes + 1], messages[#messages + 1] = code, text
      return "resign"
    end }, function() error("must not lead") end))
    assert.are.same({ "unavailable" }, codes)
    assert.are.equal(message, messages[1])
    assert.is_truthy(message:find("'r'", 1, true), message)
  end)

  test("leader_campaigns_on_when_nodes_are_back", function(client, _, farm)
    for index = 1, 3 do farm[index]:kill() end
    local errors = 0
    assert.is_true((client:lead("r", { node_timeout = 10000, on_error = function()
      errors = errors + 1
      if errors == 1 then for index = 1, 3 do farm[index]:restart() end end
    end }, function() return "resign" end)))
    assert.is_true(errors >= 1)
  end)

  test("wrong_password_ends_campaign", function(_, _, farm)
    local locked_out = driver.new(farm.addresses, { password = "wrong", retry_count = 0 })
    local function never() error("must not be called") end
    local message = failure("unavailable", locked_out:lead("r", { on_error = never }, never))
    assert.is_nil(message:find("wrong", 1, true))
    locked_out:close()
  end)

  test("close_of_client_ends_lead", function(client)
    local message = failure("closed", client:lead("r", function() client:close() end))
    assert.is_truthy(message:find("the client has been closed", 1, true), message)
    failure("closed", client:lead("r", error))
    failure("closed", client:leader("r"))
  end)

  test("leader_names_label_fence_and_time_left", function(client, other)
    local message = failure("not_held", other:leader("r"))
    assert.are.equal("'r': 5 of 5 nodes answered, and no client leads", message)
    assert.is_true((client:lead("r", { ttl = 60000, label = "host a" }, function(term)
      local seen = helper.eventually(function()
        driver.pump(client)
        return other:leader("r")
      end, "the leader")
      assert.are.equal("host a", seen.label)
      assert.are.equal(term:fence(), seen.fence)
      assert.is_true(seen.ttl > 20000 and seen.ttl <= 60000, "ttl " .. seen.ttl)
      return "resign"
    end)))
    failure("not_held", other:leader("r"))
  end)

  test("leader_needs_answers_of_a_majority", function(client, other, farm)
    for index = 1, 3 do farm[index]:kill() end
    local observer = driver.new(farm.addresses, { node_timeout = 10000 })
    local message = failure("unavailable", observer:leader("r"))
    assert.are.equal("'r': 2 of 5 nodes answered; more than half of them are needed", message)
    observer:close()
    assert.is_truthy(client and other)
  end)

  test("leader_that_nodes_without_answer_decide_is_unavailable", function(_, other, farm)
    farm[1]:command("SET", "r", ("a"):rep(40), "PX", 60000)
    for index = 2, 3 do farm[index]:kill() end
    local message = failure("unavailable", other:leader("r"))
    assert.are.equal("'r': 3 of 5 nodes answered, and 1 of them store the same token; the others decide if its client "
      .. "leads", message)
    farm[1]:command("DEL", "r")
    failure("not_held", other:leader("r"))
  end)

  test("wrong_arguments_of_lead_are_raised", function(client)
    local function resign() return "resign" end
    local function refused(text, ...)
      local arguments = pack(...)
      local ok, err = pcall(function() client:lead(unpack(arguments, 1, arguments.n)) end)
      assert.is_false(ok)
      assert.is_truthy(err:find("lead%.lua:%d+: redlock: "), err)
      assert.is_truthy(err:find(text, 1, true), err)
    end
    refused("lead() needs a function to run, got nil", "r")
    refused("lead() needs a function to run, got nil", "r", { ttl = 1000 })
    refused("lead() takes a name, options and a function, got 7", "r", 7, resign)
    refused("option 'fence' of client:lead() is always true", "r", { fence = false }, resign)
    refused("option 'auto_extend' of client:lead() is always true", "r", { auto_extend = false }, resign)
    refused("option 'reentrant' of client:lead() is always false", "r", { reentrant = true }, resign)
    refused("option 'permits' of client:lead() is always 0", "r", { permits = 3 }, resign)
    refused("option 'retry_count' does not go with client:lead()", "r", { retry_count = 3 }, resign)
    refused("option 'on_error' must be a function", "r", { on_error = 1 }, resign)
    refused("option 'token' can only be given", "r", { token = ("x"):rep(20) }, resign)
    refused("option 'ttl' must be an integer", "r", { ttl = "1" }, resign)
    refused("resource", 7, resign)
    assert.is_false((pcall(client.lead, nil, "r", resign)))
  end)
end
