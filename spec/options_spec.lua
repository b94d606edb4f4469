local helper = require "spec.helper"
local redlock = require "redlock"

-- Nobody is contacted by these.
local NODES = { "127.0.0.1:1" }

describe("wrong arguments", function()
  local client = redlock.new(NODES, { retry_count = 0 })
  local lock = client:new_lock("r")

  --- The function has to raise an error with this text at its first line.
  local function misuse(text, fn)
    local where = debug.getinfo(fn, "S")
    local ok, err = pcall(fn)
    assert.is_false(ok, "no error: " .. text)
    assert.are.equal(where.short_src .. ":" .. where.linedefined .. ": redlock: " .. text, err)
  end

  it("wrong_durations_are_raised", function()
    local ms = "must be an integer >= 1 (milliseconds), got "
    misuse("option 'ttl' " .. ms .. "-5", function() redlock.new(NODES, { ttl = -5 }) end)
    misuse("option 'ttl' " .. ms .. "0", function() redlock.new(NODES, { ttl = 0 }) end)
    misuse("option 'ttl' " .. ms .. "nan", function() redlock.new(NODES, { ttl = 0 / 0 }) end)
    misuse("option 'ttl' " .. ms .. "1.5", function() redlock.new(NODES, { ttl = 1.5 }) end)
    misuse("option 'ttl' " .. ms .. "a string", function() redlock.new(NODES, { ttl = "1000" }) end)
    misuse("option 'ttl' " .. ms .. "a table", function() redlock.new(NODES, { ttl = {} }) end)
    misuse("option 'ttl' " .. ms .. "a boolean", function() redlock.new(NODES, { ttl = true }) end)
    misuse("option 'ttl' must be at most 31622400000 (milliseconds), got 1e+300",
      function() redlock.new(NODES, { ttl = 1e300 }) end)
    misuse("option 'ttl' must be at most 31622400000 (milliseconds), got inf",
      function() redlock.new(NODES, { ttl = math.huge }) end)
    misuse("option 'node_timeout' " .. ms .. "0", function() redlock.new(NODES, { node_timeout = 0 }) end)
    for _, name in ipairs { "retry_delay", "retry_jitter", "wait", "lock_delay" } do
      misuse("option '" .. name .. "' must be an integer >= 0 (milliseconds), got -1",
        function() redlock.new(NODES, { [name] = -1 }) end)
      assert(redlock.new(NODES, { [name] = 0 }))
    end
    misuse("option 'retry_count' must be an integer >= 0, got -1",
      function() redlock.new(NODES, { retry_count = -1 }) end)
    misuse("option 'drift_factor' must be a number >= 0 and < 1, got nan",
      function() redlock.new(NODES, { drift_factor = 0 / 0 }) end)
    misuse("option 'drift_factor' must be a number >= 0 and < 1, got 1",
      function() redlock.new(NODES, { drift_factor = 1 }) end)
    misuse("option 'drift_factor' must be a number >= 0 and < 1, got a string",
      function() redlock.new(NODES, { drift_factor = "0.01" }) end)
  end)

  it("values_at_the_bounds_are_accepted", function()
    for name, values in pairs {
      ttl = { 4, 31622400000 }, retry_count = { 0, 1000000 }, retry_delay = { 0, 31622400000 },
      retry_jitter = { 0 }, wait = { 0 }, node_timeout = { 1 }, lock_delay = { 0 }, drift_factor = { 0, 0.9 },
    } do
      for _, value in ipairs(values) do
        assert(redlock.new(NODES, { [name] = value }))
        assert(client:new_lock("r", { [name] = value }))
      end
    end
    -- Of 4 ms, 1 ms and 2 ms are taken off: 1 ms is left.
    assert(redlock.new(NODES, { ttl = 4, drift_factor = 0.25 }))
    for _, port in ipairs { 1, 65535 } do
      assert(redlock.new { { host = "a", port = port } })
    end
  end)

  it("wrong_options_are_raised_at_every_place", function()
    local text = "option 'ttl' must be an integer >= 1 (milliseconds), got -5"
    local bad = { ttl = -5 }
    misuse(text, function() redlock.new(NODES, bad) end)
    misuse(text, function() client:new_lock("r", bad) end)
    misuse(text, function() client:acquire("r", bad) end)
    misuse(text, function() client:with("r", bad, print) end)
    misuse(text, function() lock:acquire(bad) end)
    misuse(text, function() lock:start("acquire", bad) end)
    misuse("lock:extend(): ttl must be an integer >= 1 (milliseconds), got -5", function() lock:extend(-5) end)
    misuse("lock:extend(): ttl must be an integer >= 1 (milliseconds), got nan", function() lock:extend(0 / 0) end)
    misuse("lock:extend(): ttl must be an integer >= 1 (milliseconds), got 2.5", function() lock:extend(2.5) end)
    misuse("lock:extend(): ttl must be an integer >= 1 (milliseconds), got a table", function() lock:extend(bad) end)
    misuse("lock:extend(): ttl must be at most 31622400000 (milliseconds), got inf",
      function() lock:extend(math.huge) end)
    misuse("lock:start(\"extend\"): ttl must be an integer >= 1 (milliseconds), got 0",
      function() lock:start("extend", 0) end)
    misuse("lock:start() takes \"acquire\", \"extend\" or \"release\"", function() lock:start("steal") end)
    misuse("lock:start() takes \"acquire\", \"extend\" or \"release\"", function() lock:start() end)
    misuse("lock:result() before any operation", function() return (lock:result()) end)
  end)

  it("wrong_notify_is_raised", function()
    for _, value in ipairs { true, false } do
      redlock.new(NODES, { notify = value }):close()
      assert(client:new_lock("r", { notify = value, fair = true, poll_interval = 1 }))
    end
    for _, value in ipairs { "auto", "", 1, {}, print } do
      local text = "option 'notify' must be true or false, got "
      local shown = value == 1 and "1" or "a " .. type(value)
      misuse(text .. shown, function() redlock.new(NODES, { notify = value }) end)
      misuse(text .. shown, function() client:new_lock("r", { notify = value }) end)
      misuse(text .. shown, function() client:acquire("r", { notify = value }) end)
      misuse(text .. shown, function() lock:acquire({ notify = value }) end)
    end
    misuse("option 'poll_interval' must be an integer >= 1 (milliseconds), got 0",
      function() client:new_lock("r", { poll_interval = 0 }) end)
  end)

  it("client_that_blocks_nginx_worker_is_refused", function()
    local client_module = require "redlock.client"
    local function made(blocking) return client_module.new(NODES, nil, 1, blocking) end
    finally(function() rawset(_G, "ngx", nil) end)
    for _, host in ipairs { false, "ngx", {}, { get_phase = print }, { get_phase = print, socket = {} } } do
      rawset(_G, "ngx", host)
      assert(made(true))
      if type(host) == "table" and host.socket then -- a thread of nginx has none
        assert.has_error(function() made(false) end)
      else
        assert(made(false))
      end
    end
  end)

  it("unknown_options_are_named", function()
    misuse("unknown option 'time'", function() redlock.new(NODES, { time = 5 }) end)
    misuse("unknown option 'TTL' (did you mean 'ttl'?)", function() redlock.new(NODES, { TTL = 5 }) end)
    misuse("unknown option 'ttl_ms' (did you mean 'ttl'?)", function() client:new_lock("r", { ttl_ms = 5 }) end)
    misuse("unknown option 'retryCount' (did you mean 'retry_count'?)",
      function() lock:acquire({ retryCount = 5 }) end)
    misuse("unknown option [1]", function() redlock.new(NODES, { "ttl" }) end)
    misuse("unknown option [boolean]", function() redlock.new(NODES, { [true] = 1 }) end)
    misuse("option 'prefix' can only be given to redlock.new()", function() client:new_lock("r", { prefix = "" }) end)
    misuse("option 'password' can only be given to redlock.new()", function() lock:acquire({ password = "" }) end)
    misuse("option 'guard' has an unknown 'max_tll'; it must be true, false or { max_ttl = ms, cluster = \"name\" }",
      function() redlock.new(NODES, { guard = { max_tll = 5000 } }) end)
    misuse("option 'auto_extend' has an unknown 'evry'; it must be true, false or { every = ms, max_hold = ms }",
      function() client:new_lock("r", { auto_extend = { evry = 50 } }) end)
    misuse("option 'auto_extend' has an unnamed value; it must be true, false or { every = ms, max_hold = ms }",
      function() client:new_lock("r", { auto_extend = { 50 } }) end)
    local units = "; times are in milliseconds: "
    misuse("options must be a table, got 30" .. units .. "{ ttl = 30000 } is a lease of 30 s",
      function() client:acquire("r", 30) end)
    misuse("options must be a table, got 2500" .. units .. "{ ttl = 2500 } is a lease of 2.5 s",
      function() redlock.new(NODES, 2500) end)
    misuse("options must be a table, got -1" .. units .. "{ ttl = 10000 } is a lease of 10 s",
      function() client:new_lock("r", -1) end)
    misuse("options must be a table, got nan" .. units .. "{ ttl = 10000 } is a lease of 10 s",
      function() lock:acquire(0 / 0) end)
    misuse("options must be a table, got 30", function() lock:release(30) end)
    misuse("with() takes a name, options and a function, got 30" .. units .. "{ ttl = 30000 } is a lease of 30 s",
      function() client:with("r", 30, print) end)
    misuse("lead() takes a name, options and a function, got 5000" .. units .. "{ ttl = 5000 } is a lease of 5 s",
      function() client:lead("r", 5000, print) end)
    misuse("options must be a table, got a string", function() client:new_lock("r", "ttl") end)
    misuse("options must be a table, got a boolean", function() client:acquire("r", true) end)
  end)

  it("wrong_client_options_are_raised", function()
    misuse("option 'prefix' must be a string, got 5", function() redlock.new(NODES, { prefix = 5 }) end)
    misuse("option 'db' must be an integer >= 0, got -1", function() redlock.new(NODES, { db = -1 }) end)
    misuse("option 'db' must be an integer >= 0, got a string", function() redlock.new(NODES, { db = "1" }) end)
    misuse("option 'tls' must be true, false or a table such as { ca = \"/etc/redis/ca.pem\" }, got a string",
      function() redlock.new(NODES, { tls = "yes" }) end)
    misuse("option 'quorum' must be an integer >= 1, got 0", function() redlock.new(NODES, { quorum = 0 }) end)
    misuse("option 'quorum' must be from 3, the majority of 5 nodes, to 5, got 2",
      function() redlock.new({ "a", "b", "c", "d", "e" }, { quorum = 2 }) end)
    misuse("option 'quorum' must be from 3, the majority of 4 nodes, to 4, got 5",
      function() redlock.new({ "a", "b", "c", "d" }, { quorum = 5 }) end)
    assert(redlock.new({ "a", "b", "c", "d" }, { quorum = 4 }))
    misuse("option 'quorum' can only be given to redlock.new()", function() client:new_lock("r", { quorum = 1 }) end)
    misuse("option 'username' must not contain a NUL byte", function() redlock.new(NODES, { username = "a\0b" }) end)
    misuse("option 'password' must be a string, got a number", function() redlock.new(NODES, { password = 4711 }) end)
  end)

  it("wrong_list_of_nodes_is_raised", function()
    misuse("nodes must be a list of addresses, got nil", function() redlock.new() end)
    misuse("nodes must be a list of addresses, got a string", function() redlock.new("127.0.0.1:6379") end)
    misuse("nodes is empty; name at least one node", function() redlock.new({}) end)
    misuse("nodes must be a list of addresses, but has a key that is a string",
      function() redlock.new({ nodes = { "127.0.0.1" } }) end)
    misuse("nodes must be a list: { { host = ... }, ... }, got a single node",
      function() redlock.new({ host = "127.0.0.1", password = "x" }) end)
    misuse("nodes and options are two tables: redlock.new(nodes, options)",
      function() redlock.new({ "127.0.0.1", ttl = 5000 }) end)
    misuse("nodes must be a list of addresses from 1 on, but has the key 0",
      function() redlock.new({ [0] = "a", "b" }) end)
    misuse("nodes must be a list without gaps, but node 2 is nil", function() redlock.new({ "a", nil, "c" }) end)
    misuse("node 2: must be an address or a table, got 6379", function() redlock.new({ "a", 6379 }) end)
    misuse("node 1: the address contains a NUL byte", function() redlock.new({ "a\0b" }) end)
    misuse("node 1: needs a 'host' or a 'path'", function() redlock.new({ {} }) end)
    misuse("node 1: has a 'host' and a 'path'; set one of them",
      function() redlock.new({ { host = "a", path = "/b" } }) end)
    misuse("node 1: has a 'path', which takes no 'port'", function() redlock.new({ { path = "/b", port = 1 } }) end)
    misuse("node 2: option 'port' must be at most 65535, got 65536",
      function() redlock.new({ "a", { host = "a", port = 65536 } }) end)
    misuse("node 1: option 'port' must be an integer >= 1, got a string",
      function() redlock.new({ { host = "a", port = "6379" } }) end)
    misuse("node 1: unknown option 'hotname'", function() redlock.new({ { hotname = "a" } }) end)
    misuse("node 1: unknown option 'Host' (did you mean 'host'?)", function() redlock.new({ { Host = "a" } }) end)
  end)

  it("wrong_node_is_named_by_index_without_password", function()
    local wrong = {
      "", "host:", ":6379", "host:0", "host:65536", "host:port", "host:6379:1", "host:-1", "ho st", "[::1", "[]:1",
      "::1", "redis://", "redis://host/x", "redis://host/-1", "redis://host:99999", "redis://user:secret@",
      "redis://:secret@host/db", "redis://us%zzer:secret@host", "http://host", "unix://", "unix:///p?db=x",
      "redis://user:secret@host:x", "user:secret@host",
    }
    for _, address in ipairs(wrong) do
      local function make() redlock.new({ "good:6379", address }) end
      local ok, err = pcall(make)
      assert.is_false(ok, "accepted: " .. address)
      local where = debug.getinfo(make, "S")
      local start = where.short_src .. ":" .. where.linedefined .. ": redlock: node 2: "
      assert.are.equal(start, err:sub(1, #start), err)
      assert.is_true(#err > #start + 8, "says too little: " .. err)
      assert.is_nil(err:find("secret", 1, true), err)
    end
    for _, address in ipairs { "host", "host:1", "[::1]:1", "redis://host", "redis://u:p@host:1/3",
      "redis://:p%40@host", "unix:///p", "unix://u:p@/p?db=2", "sentinel://a,b:1/m" } do
      assert.is_truthy(tostring(redlock.new({ address })), address)
    end
  end)

  it("wrong_resource_is_raised", function()
    misuse("resource must be a string, got nil", function() client:new_lock() end)
    misuse("resource must be a string, got 42", function() client:acquire(42) end)
    misuse("the list of resources is empty; name at least one", function() client:with({}, print) end)
    misuse("resources 1 and 2 of the list are the same", function() client:acquire { "a", "a" } end)
    local function long() local made = client:new_lock(("x"):rep(5000)) return made end
    local ok, err = pcall(long)
    assert.is_false(ok)
    local line = debug.getinfo(long, "S").linedefined
    assert.is_truthy(err:find("options_spec.lua:" .. line .. ": redlock: ", 1, true), err)
  end)

  it("wrong_arguments_of_with_are_raised", function()
    misuse("with() needs a function to run, got nil", function() client:with("r") end)
    misuse("with() needs a function to run, got nil", function() client:with("r", {}) end)
    misuse("with() needs a function to run, got a string", function() client:with("r", {}, "print") end)
    misuse("with() takes a name, options and a function, got a string", function() client:with("r", "print") end)
  end)

  it("dot_instead_of_colon_is_raised", function()
    misuse("client:new_lock() needs a client before the colon, got a string", function() client.new_lock("r") end)
    misuse("client:with() needs a client before the colon, got a string", function() client.with("r", print) end)
    misuse("client:close() needs a client before the colon, got nil", function() client.close() end)
    misuse("client:nodes() needs a client before the colon, got a redlock lock", function() client.nodes(lock) end)
    misuse("client:new_lock() needs a client before the colon, got a table", function() client.new_lock({}, "r") end)
    misuse("lock:extend() needs a lock before the colon, got a redlock client", function() lock.extend(client) end)
    misuse("lock:extend() needs a lock before the colon, got a userdata", function() lock.extend(io.stdout) end)
    misuse("resource must be a string, got a redlock client", function() client:inspect(client) end)
    for name in pairs(debug.getmetatable(lock).__index) do
      local argument = name == "start" and "acquire" or nil
      local needs = "lock:" .. name .. "() needs a lock before the colon, got "
      misuse(needs .. "nil", function() lock[name](nil, argument) end)
      misuse(needs .. "a table", function() lock[name]({}, argument) end)
    end
  end)

  it("core_functions_survive_wrong_arguments", function()
    local core = require "redlock.core"
    local thread = coroutine.create(function() end)
    local values = { nil, true, 0 / 0, -1, 1e300, "x", {}, print, client, nil, thread, io.stdout }
    for name, fn in pairs(core) do
      if type(fn) == "function" then
        values[10] = client:new_lock("r") -- One of them is the end of it.
        pcall(fn)
        for first = 1, 12 do
          for second = 1, 12 do pcall(fn, values[first], values[second], values[first]) end
          local made = redlock.new(NODES)
          pcall(fn, made, values[first], values[first], values[first], values[first], values[first])
          if name ~= "acquire" then pcall(fn, made:new_lock("x"), values[first], values[first]) end
        end
      end
    end
    core.dispatch_by(require("redlock.loss").tell) -- One of them was given print instead.
  end)

  it("client_works_after_wrong_arguments", function()
    assert.is_nil((lock:acquire({ wait = 0 })))
    assert.is_truthy(helper)
    client:close()
  end)
end)
