local helper = require "spec.helper"
local redlock = require "redlock"

-- What a message has to tell its reader. Each test is named after what somebody once read instead.

local NODES = { "127.0.0.1:1" } -- nobody is contacted by the first half

-- The function has to raise an error at its first line; returns what follows the name of the
-- library.
local function misuse(fn)
  local where = debug.getinfo(fn, "S")
  local ok, err = pcall(fn)
  assert.is_false(ok, "no error")
  local start = where.short_src .. ":" .. where.linedefined .. ": redlock: "
  assert.are.equal(start, tostring(err):sub(1, #start), err)
  return err:sub(#start + 1)
end

local function says(text, message)
  assert.is_truthy(message:find(text, 1, true), message .. "\nshould say: " .. text)
end

local function says_not(text, message)
  assert.is_nil(message:find(text, 1, true), message .. "\nshould not say: " .. text)
end

describe("misuse", function()
  local client = redlock.new(NODES, { retry_count = 0 })

  it("new_with_a_colon_is_named", function()
    says("redlock.new() is called with a dot", misuse(function() redlock:new(NODES) end))
    says("redlock.new() is called with a dot", misuse(function() redlock:new({ nodes = NODES }) end))
  end)

  it("client_module_used_directly_raises_no_internal_error", function()
    local module = require "redlock.client"
    assert(module.new(NODES)):close()
    says("'ttl'", misuse(function() module.new(NODES, { ttl = 2 }) end))
  end)

  it("max_ttl_below_default_ttl_is_refused_with_numbers", function()
    local message = misuse(function() redlock.new(NODES, { guard = { max_ttl = 6000 } }) end)
    says("ttl 10000 ms (the default)", message)
    says("max_ttl 6000 ms", message)
    message = misuse(function() redlock.new(NODES, { ttl = 40000, lock_delay = 5, guard = true }) end)
    says("ttl 40000 ms, lock_delay 5 ms, max_ttl 30000 ms (the default)", message)
  end)

  it("lock_without_new_raises_and_names_what_to_call", function()
    local ok, message = pcall(function() client:lock("r") end)
    assert.is_false(ok)
    assert.is_truthy(message:find("client:acquire(name) locks, client:new_lock(name) makes a lock object", 1, true))
    assert.is_truthy(message:find("messages_spec", 1, true))
  end)

  it("closed_client_answers_closed", function()
    local closed = redlock.new(NODES, { guard = true, retry_count = 0 })
    closed:close()
    for name, call in pairs {
      process = function() return closed:process() end,
      attach = function() return closed:attach("not what detach() has written") end,
      bootstrap = function() return closed:bootstrap() end,
      doctor = function() return closed:doctor() end,
      acquire = function() return closed:acquire("r") end,
    } do
      local result, message, code = call()
      assert.is_nil(result, name)
      assert.are.equal("closed", code, name)
      says("the client has been closed", message)
      says_not("redlock-", message)
    end
  end)

  it("bootstrap_names_no_resource_that_its_caller_did_not_write", function()
    says_not("redlock-bootstrap", misuse(function() client:bootstrap() end))
    local guarded = redlock.new(NODES, { guard = true, retry_count = 0 })
    local _, message = guarded:bootstrap()
    says_not("redlock-bootstrap", message)
    guarded:close()
  end)

  it("too_long_resource_is_reported_with_numbers", function()
    local function long() local made = client:new_lock(("x"):rep(5000)) return made end
    local message = misuse(long)
    says("resource", message)
    says("5000 bytes", message)
    says("4096", message)
  end)

  it("busy_lock_is_named", function()
    local lock = client:new_lock("orders:42")
    assert(lock:start("acquire"))
    for _, message in ipairs {
      misuse(function() local result = lock:acquire() return result end),
      misuse(function() local result = lock:release() return result end),
      misuse(function() local result = lock:extend() return result end),
      misuse(function() local result = lock:start("release") return result end),
    } do
      says("'orders:42' has an operation in flight", message)
      says_not("a lock has been made", message)
    end
    lock:cancel()
  end)

  it("messages_contain_no_C_names", function()
    local nodes = {}
    for index = 1, 33 do nodes[index] = "127.0.0.1:" .. index end
    local message = misuse(function() redlock.new(nodes) end)
    says("node 33", message)
    says("32", message)
    says_not("REDLOCK_", message)
    message = misuse(function() redlock.new(NODES, { prefix = ("x"):rep(5000) }) end)
    says("prefix", message)
    says("4096", message)
    says_not("REDLOCK_", message)
    message = misuse(function() redlock.new({ "127.0.0.1:1", "127.0.0.1:1" }) end)
    says("127.0.0.1:1", message)
    for _, options in ipairs { { retry_count = 2000000 }, { wait = 1e13 }, { ttl = 2 } } do
      says_not("REDLOCK_", misuse(function() redlock.new(NODES, options) end))
    end
  end)

  it("start_release_checks_its_options", function()
    local lock = client:new_lock("r")
    says("option 'wait' must be true or false, got 5", misuse(function() lock:start("release", { wait = 5 }) end))
    says("unknown option 'wiat'", misuse(function() lock:start("release", { wiat = false }) end))
    assert.are.equal("not_held", (select(3, lock:start("release", { wait = false }))))
  end)

  it("ttl_below_drift_allowance_is_refused", function()
    local message = misuse(function() redlock.new(NODES, { ttl = 2 }) end)
    says("'ttl'", message)
    says("must be at least 4 ms, got 2", message)
    says("drift", message)
    says("at least 3 ms", misuse(function() redlock.new(NODES, { ttl = 2, drift_factor = 0 }) end))
    says("at least 300 ms", misuse(function() redlock.new(NODES, { ttl = 299, drift_factor = 0.99 }) end))
    local short = client:new_lock("r")
    says("ttl is 3 ms, and must be at least 1 ms more", misuse(function() short:extend(3) end))
    says("at least 4 ms", misuse(function() short:start("extend", 3) end))
    assert.are.equal("not_held", select(3, short:extend(4)))
    says("'ttl'", misuse(function() client:new_lock("r", { ttl = 1 }) end))
    says("'ttl'", misuse(function() client:acquire("r", { ttl = 2 }) end))
    says("'ttl'", misuse(function() client:with("r", { ttl = 2 }, print) end))
    local lock = client:new_lock("r")
    says("'ttl'", misuse(function() lock:acquire({ ttl = 2 }) end))
    says("'ttl'", misuse(function() lock:start("acquire", { ttl = 2 }) end))
    says("drift", misuse(function() lock:acquire({ ttl = 100, drift_factor = 0.99 }) end))
    -- Three milliseconds are nothing when whole ones count.
    says("'ttl'", misuse(function() client:new_lock("r", { ttl = 3 }) end))
    assert(client:new_lock("r", { ttl = 4 }))
  end)

  it("options_of_other_libraries_have_hints", function()
    local hints = {
      retries = "retry_count", max_retries = "retry_count", tries = "retry_count", retryCount = "retry_count",
      timeout = "wait", lock_timeout = "wait", blocking_timeout = "wait",
      exptime = "ttl", expiry = "ttl", expire = "ttl", lease_time = "ttl", TTL = "ttl",
      step = "retry_delay", delay = "retry_delay", retryDelay = "retry_delay",
      jitter = "retry_jitter", driftFactor = "drift_factor", clock_drift_factor = "drift_factor",
      connect_timeout = "node_timeout", key_prefix = "prefix", pass = "password", auth = "password",
      user = "username", database = "db", ssl = "tls",
    }
    for name, meant in pairs(hints) do
      says("unknown option '" .. name .. "' (did you mean '" .. meant .. "'",
        misuse(function() redlock.new(NODES, { [name] = 5 }) end))
    end
    says("(did you mean 'retry_count'?)", misuse(function() client:new_lock("r", { retries = 5 }) end))
    says("(did you mean 'wait', in milliseconds?)", misuse(function() client:new_lock("r", { timeout = 5 }) end))
    -- In seconds there, as a fraction.
    local message = misuse(function() client:new_lock("r", { exptime = 0.5 }) end)
    says("milliseconds", message)
    says("unknown option 'hostname' (did you mean 'host'?)", misuse(function() redlock.new({ { hostname = "a" } }) end))
    says("unknown option 'socket' (did you mean 'path'?)", misuse(function() redlock.new({ { socket = "/s" } }) end))
  end)

  it("hints_name_only_options_of_that_place", function()
    says_not("did you mean", misuse(function() redlock.new({ { host = "a", retries = 3 } }) end))
    says_not("did you mean", misuse(function() client:new_lock("r", { user = "u" }) end))
  end)

  it("node_as_list_is_explained", function()
    local message = misuse(function() redlock.new({ { "127.0.0.1", 6379 } }) end)
    says("node 1: ", message)
    says("host = ", message)
    says_not("127.0.0.1", message) -- it may be a text with a password
    says("host = ", misuse(function() redlock.new({ "a", { "redis://:secret@b" } }) end))
  end)

  it("options_from_index_metamethod_are_checked", function()
    local defaults = { ttl = 4711 }
    local lock = client:new_lock("r", setmetatable({}, { __index = defaults }))
    assert.are.equal(4711, lock:ttl())
    defaults.ttl = -5
    local given = setmetatable({}, { __index = defaults })
    says("option 'ttl' must be an integer >= 1 (milliseconds), got -5",
      misuse(function() client:new_lock("r", given) end))
    defaults.ttl, defaults.drift_factor = nil, "x"
    says("option 'drift_factor' must be a number >= 0 and < 1, got a string",
      misuse(function() client:new_lock("r", given) end))
    local node = setmetatable({ host = "a" }, { __index = { port = "6379" } })
    says("node 1: option 'port' must be an integer >= 1, got a string", misuse(function() redlock.new({ node }) end))
  end)

  it("options_with_hidden_metatable_are_raised_at_callers_line", function()
    local given = setmetatable({}, { __index = { ttl = "5" }, __metatable = false })
    says("option 'ttl' must be an integer", misuse(function() redlock.new(NODES, given) end))
  end)
end)

describe("messages", function()
  local farm, client

  setup(function() farm = helper.farm(3) end)
  teardown(function() farm:shut() end)
  before_each(function()
    farm:reset()
    client = redlock.new(farm.addresses, { retry_count = 0, node_timeout = 20000 })
  end)
  after_each(function()
    client:close()
  end)

  it("server_under_two_names_is_reported", function()
    local address = farm.addresses[1]
    local alias = "localhost:" .. farm[1].port
    for _, nodes in ipairs { { address, alias }, { alias, address } } do
      local doubled = redlock.new(nodes, { retry_count = 0, node_timeout = 20000 })
      for _ = 1, 3 do
        local _, message, code = doubled:acquire("r")
        assert.are.equal("unavailable", code)
        says("it is the same server as", message)
        says_not("somebody else", message)
      end
      local reported = 0
      for _, node in ipairs(doubled:nodes()) do
        if node.error and node.error:find("same server", 1, true) then reported = reported + 1 end
      end
      assert.are.equal(1, reported)
      doubled:close()
      farm:eventually_free("r")
    end
    -- Two databases of one server are two places at least.
    local two = { "redis://" .. address .. "/1", "redis://" .. alias .. "/2" }
    local databases = redlock.new(two, { node_timeout = 20000 })
    assert(databases:acquire("r"):release())
    databases:close()
    -- A majority of other servers decides.
    local five = redlock.new({ address, alias, farm.addresses[2], farm.addresses[3] }, { node_timeout = 20000 })
    assert(five:acquire("r"):release())
    five:close()
  end)

  it("not_held_held_and_closed_name_the_lock", function()
    local lock = client:new_lock("orders:42")
    local function reported(code, ...)
      local _, message, got = ...
      assert.are.equal(code, got)
      says("'orders:42'", message)
    end
    reported("not_held", lock:extend())
    reported("not_held", lock:release())
    reported("not_held", lock:start("extend"))
    assert(lock:acquire())
    reported("held", lock:acquire())
    reported("held", lock:start("acquire"))
    client:close()
    reported("closed", lock:acquire())
    reported("closed", lock:extend())
    reported("closed", lock:release())
    reported("closed", lock:start("acquire"))
    reported("closed", client:new_lock("orders:42"))
    reported("closed", client:acquire("orders:42"))
    reported("closed", client:with("orders:42", print))
  end)
end)
