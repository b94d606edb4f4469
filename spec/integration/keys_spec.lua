local unpack = table.unpack or unpack

local helper = require "spec.helper"
local redlock = require "redlock"
local support = require "spec.integration.support"

local failure = support.failure

describe("keys", function()
  local farm, client

  setup(function() farm = helper.farm(3, "--databases 16") end)
  teardown(function() farm:shut() end)
  before_each(function()
    farm:reset()
    client = support.warm(farm, redlock.new(farm.addresses, support.once))
  end)
  after_each(function() client:close() end)

  local function on_all(...)
    for _, node in ipairs(farm) do assert(node:command(...)) end
  end

  local types = {
    string = { "SET", "r", "x" },
    hash = { "HSET", "r", "field", "1" },
    list = { "RPUSH", "r", "x" },
    set = { "SADD", "r", "x" },
    zset = { "ZADD", "r", "1", "x" },
    stream = { "XADD", "r", "*", "field", "1" },
  }
  for name, words in pairs(types) do
    it("key_of_another_type_is_taken_and_stays: " .. name, function()
      on_all(unpack(words))
      local lock = client:new_lock("r")
      failure("taken", lock:acquire())
      for _, vote in ipairs(lock:votes()) do
        assert.is_truthy(vote.vote == "taken" or vote.vote == "unknown")
      end
      client:process()
      for _, node in ipairs(farm) do assert.are.equal(name, node:command("TYPE", "r")) end
    end)

    it("key_that_changes_its_type_is_lost_and_stays: " .. name, function()
      local lock = assert(client:acquire("r"))
      support.on_nodes(farm, client, lock)
      on_all("DEL", "r")
      on_all(unpack(words))
      failure("lost", lock:extend())
      failure("lost", lock:release())
      for _, node in ipairs(farm) do assert.are.equal(name, node:command("TYPE", "r")) end
    end)
  end

  it("key_is_a_string_with_token_and_expiry", function()
    local lock = assert(client:acquire("r", { ttl = 60000 }))
    support.on_nodes(farm, client, lock)
    for _, node in ipairs(farm) do
      assert.are.equal("string", node:command("TYPE", "r"))
      assert.are.equal(lock:token(), node:command("GET", "r"))
      assert.are.equal(false, node:command("SET", "r", "theirs", "NX", "PX", "5000"))
      local left = node:command("PTTL", "r")
      assert.is_true(left > 30000 and left <= 60000)
    end
  end)

  it("key_of_another_library_is_taken_and_stays", function()
    for _, node in ipairs(farm) do
      os.execute(("redis-cli -p %d SET r other-token NX PX 60000 >/dev/null"):format(node.port))
    end
    assert.are.equal(3, farm:count("r", "other-token"))
    local lock = client:new_lock("r")
    failure("taken", lock:acquire())
    failure("not_held", lock:release())
    client:process()
    assert.are.equal(3, farm:count("r", "other-token"))
    -- What such a client does to release.
    on_all("EVAL", 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end',
      "1", "r", "other-token")
    assert(lock:acquire())
  end)

  it("release_deletes_only_our_keys", function()
    local lock = assert(client:acquire("r"))
    support.on_nodes(farm, client, lock)
    farm[2]:command("SET", "r", "other-token")
    assert(lock:release())
    support.pump(client, function() return farm:count("r") == 1 end, "our keys to be gone")
    assert.are.equal("other-token", farm[2]:command("GET", "r"))
  end)

  it("release_deletes_no_foreign_key_on_a_majority", function()
    local lock = assert(client:acquire("r"))
    support.on_nodes(farm, client, lock)
    farm[1]:command("SET", "r", "other-token")
    farm[2]:command("SET", "r", "other-token")
    failure("lost", lock:release())
    support.pump(client, function() return farm:count("r") == 2 end, "our key to be gone")
    assert.are.equal(2, farm:count("r", "other-token"))
  end)

  it("prefix_separates_clients", function()
    local prefixed = redlock.new(farm.addresses, { prefix = "app:\0%s:", retry_count = 0, node_timeout = 20000 })
    assert(assert(prefixed:acquire("r")):release())
    support.all_up(prefixed)
    local lock = assert(prefixed:acquire("r"))
    support.on_nodes(farm, prefixed, lock, 3, "app:\0%s:r")
    assert.are.equal("r", lock:resource())
    assert(assert(client:acquire("r")):release())
    failure("taken", client:acquire("app:\0%s:r"))
    assert(lock:release())
    support.free(farm, prefixed, "app:\0%s:r")
    prefixed:close()
  end)

  it("key_has_any_bytes", function()
    local all = {}
    for byte = 0, 255 do all[#all + 1] = string.char(byte) end
    local names = {
      "", " ", "a b", "nul\0nul", "\0", "%s%d%n", "gr\195\188n", "\255\254", "line\r\nbreak", "*1\r\n$4\r\nPING\r\n",
      "'\"\\", "{tag}key", table.concat(all), ("x"):rep(4096),
    }
    for _, name in ipairs(names) do
      local lock = assert(client:acquire(name))
      assert.are.equal(name, lock:resource())
      support.on_nodes(farm, client, lock, 3, name)
      failure("taken", client:acquire(name))
      assert(lock:extend())
      assert(lock:release())
      support.free(farm, client, name)
    end
    for _, node in ipairs(farm) do assert.are.equal(0, node:command("DBSIZE")) end
  end)

  it("too_long_key_is_refused_before_sending", function()
    assert.has_error(function() client:new_lock(("x"):rep(4097)) end)
    local prefixed = redlock.new(farm.addresses, { prefix = ("p"):rep(4000), node_timeout = 20000 })
    assert.has_error(function() prefixed:new_lock(("x"):rep(97)) end)
    local lock = assert(prefixed:acquire(("x"):rep(96)))
    assert(lock:release())
    prefixed:close()
  end)

  it("key_is_in_the_chosen_database", function()
    local addresses = {}
    for index, node in ipairs(farm) do addresses[index] = "redis://" .. node.address .. "/3" end
    local third = redlock.new(addresses, support.once)
    assert(assert(third:acquire("r")):release())
    support.all_up(third)
    local seventh = redlock.new(farm.addresses, { db = 7, retry_count = 0, node_timeout = 20000 })
    local lock = assert(third:acquire("r"))
    assert(seventh:acquire("r"))
    assert(client:acquire("r"))
    failure("taken", redlock.new(farm.addresses, { db = 3, retry_count = 0, node_timeout = 20000 }):acquire("r"))
    for _, node in ipairs(farm) do
      local session = support.session(node)
      assert(session:call("SELECT", "3"))
      support.pump(third, function() return session:call("GET", "r") == lock:token() end, "the key in database 3")
      for _, db in ipairs { 0, 7 } do
        assert(session:call("SELECT", db))
        assert.are_not.equal(lock:token(), session:call("GET", "r"))
      end
      session:close()
    end
    third:close()
    seventh:close()
  end)

  it("missing_database_is_reported_and_no_other_is_used", function()
    local client99 = redlock.new(farm.addresses, { db = 99, retry_count = 0, node_timeout = 20000 })
    support.contains(failure("unavailable", client99:acquire("r")), "DB index is out of range")
    assert.are.equal(0, farm:count("r"))
    client99:close()
  end)
end)
