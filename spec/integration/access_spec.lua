local helper = require "spec.helper"
local redlock = require "redlock"
local support = require "spec.integration.support"

local failure = support.failure

describe("access", function()
  local farm, node

  setup(function()
    farm = helper.farm(1, ("--requirepass s3cret/@: --unixsocket %s/access.sock --unixsocketperm 700")
      :format(helper.directory))
    node = farm[1]
  end)
  teardown(function() farm:shut() end)

  -- What the node has, seen by one who may.
  local function look(...)
    local session = support.session(node)
    assert(session:call("AUTH", "s3cret/@:"))
    local reply, err = session:call(...)
    session:close()
    return reply, err
  end

  before_each(function()
    assert(look("FLUSHALL"))
    assert(look("SCRIPT", "FLUSH"))
    assert(look("ACL", "SETUSER", "ann", "reset", "on", ">pass word%41", "~*", "+@all"))
    assert(look("ACL", "SETUSER", "noscript", "reset", "on", ">pw", "~*", "+@all", "-@scripting"))
    assert(look("ACL", "SETUSER", "noclient", "reset", "on", ">pw", "~*", "+@all", "-client"))
    assert(look("ACL", "SETUSER", "least", "reset", "on", ">pw", "~app:*", "+set", "+get", "+del", "+pttl", "+pexpire",
      "+eval", "+evalsha"))
    assert(look("ACL", "SETUSER", "nopass", "reset", "on", "nopass", "~*", "+@all"))
  end)

  local function locks(description)
    local client = redlock.new({ description }, { retry_count = 0, node_timeout = 20000, prefix = "app:" })
    local lock = assert(client:acquire("r"))
    assert.are.equal(lock:token(), look("GET", "app:r"))
    assert(lock:extend(120000))
    assert.is_true(look("PTTL", "app:r") > 60000)
    assert(lock:release())
    assert.are.equal(false, look("GET", "app:r"))
    client:close()
  end

  -- Everything that a client says about its nodes.
  local function refused(description, ...)
    local client = redlock.new({ description }, support.once)
    local lock = client:new_lock("r")
    local message = failure("unavailable", lock:acquire())
    local texts = { message, tostring(client), tostring(lock) }
    for _, entry in ipairs(client:nodes()) do
      texts[#texts + 1] = entry.node .. " " .. tostring(entry.error)
    end
    for _, entry in ipairs(lock:votes()) do
      texts[#texts + 1] = entry.node .. " " .. tostring(entry.error)
    end
    local all = table.concat(texts, "\n")
    for index = 1, select("#", ...) do
      local secret = (select(index, ...))
      assert.is_nil(all:find(secret, 1, true), all)
    end
    client:close()
    return message
  end

  it("password_alone_logs_in", function()
    locks({ host = "127.0.0.1", port = node.port, password = "s3cret/@:" })
    locks("redis://:s3cret%2F%40%3A@" .. node.address)
  end)

  it("user_and_password_log_in", function()
    locks({ host = "127.0.0.1", port = node.port, username = "ann", password = "pass word%41" })
    locks("redis://ann:pass%20word%2541@" .. node.address)
    locks({ host = "127.0.0.1", port = node.port, username = "nopass", password = "whatever" })
  end)

  it("credentials_of_node_override_those_of_client", function()
    local client = redlock.new({ node.address }, { username = "ann", password = "pass word%41", node_timeout = 20000 })
    assert(assert(client:acquire("r")):release())
    client:close()
    client = redlock.new({ "redis://:s3cret%2F%40%3A@" .. node.address },
      { username = "nobody", password = "wrong", retry_count = 0, node_timeout = 20000 })
    local lock, message = client:acquire("r")
    assert.is_truthy(lock, message)
    client:close()
  end)

  it("missing_password_is_refused", function()
    support.contains(refused(node.address), "NOAUTH")
  end)

  it("wrong_password_is_refused_and_not_shown", function()
    support.contains(refused("redis://:wr0ngpass@" .. node.address, "wr0ngpass"), "WRONGPASS")
    support.contains(refused("redis://ann:wr0ngpass@" .. node.address, "wr0ngpass"), "WRONGPASS")
    support.contains(refused("redis://n0body:wr0ngpass@" .. node.address, "wr0ngpass"), "WRONGPASS")
    assert.are.equal(false, look("GET", "r"))
  end)

  it("server_without_passwords_refuses_and_quotes_none", function()
    local open = helper.farm(1)
    refused("redis://:sesame42@" .. open[1].address, "sesame42")
    refused("redis://n0body:sesame42@" .. open[1].address, "sesame42")
    open:shut()
  end)

  it("documented_ACL_suffices", function()
    locks("redis://least:pw@" .. node.address)
    support.contains(refused("redis://least:pw@" .. node.address), "NOPERM")
  end)

  it("user_without_CLIENT_SETNAME_locks", function()
    locks("redis://noclient:pw@" .. node.address)
  end)

  it("user_without_scripts_acquires_and_reports_why_extend_and_release_fail", function()
    local client = redlock.new({ "redis://noscript:pw@" .. node.address }, { node_timeout = 20000, ttl = 400 })
    helper.unless_stalled(100, function()
      local lock = helper.eventually(function() return (client:acquire("r")) end, "a short lease")
      local before = lock:remaining()
      support.contains(failure("unavailable", lock:extend(5000)), "it runs no scripts")
      assert.is_true(lock:remaining() <= before)
      support.contains(failure("unavailable", lock:release()), "its key stays until it expires")
      assert.are.equal(0, lock:remaining())
    end)
    helper.eventually(function() return look("GET", "r") == false end, "the ttl to end it")
    client:close()
  end)

  it("unix_socket_is_used", function()
    local path = helper.directory .. "/access.sock"
    locks("unix://:s3cret%2F%40%3A@" .. path)
    locks("unix://ann:pass%20word%2541@" .. path)
    locks({ path = path, password = "s3cret/@:" })
    local client = redlock.new({ "unix://:s3cret%2F%40%3A@" .. path .. "?db=5" }, support.once)
    local lock = assert(client:acquire("r"))
    assert.are.equal("unix:" .. path, client:nodes()[1].node)
    local session = support.session(node)
    assert(session:call("AUTH", "s3cret/@:"))
    assert.are.equal(false, session:call("GET", "r"))
    assert(session:call("SELECT", "5"))
    assert.are.equal(lock:token(), session:call("GET", "r"))
    session:close()
    client:close()
  end)

  it("missing_unix_socket_is_reported", function()
    support.contains(refused("unix:///no/such/socket"), "unix:/no/such/socket: No such file or directory")
    local path = helper.directory .. "/plain"
    helper.write_file(path, "")
    support.contains(refused("unix://" .. path), "Connection refused")
  end)

  it("host_name_is_resolved", function()
    locks({ host = "localhost", port = node.port, password = "s3cret/@:" })
    local before = helper.now()
    support.contains(refused("name.invalid:6379"), "name.invalid:6379: ")
    assert.is_true(helper.now() - before < 15)
  end)

  it("IPv6_is_used_or_its_absence_reported", function()
    local client = redlock.new({ "[::1]:" .. helper.free_port() }, support.once)
    local message = failure("unavailable", client:acquire("r"))
    client:close()
    if message:find("Connection refused", 1, true) then
      local six = helper.farm(1, "--bind ::1 127.0.0.1")
      client = redlock.new({ "[::1]:" .. six[1].port }, support.once)
      local lock = assert(client:acquire("r"))
      assert.are.equal(lock:token(), six[1]:command("GET", "r"))
      assert.are.equal("[::1]:" .. six[1].port, client:nodes()[1].node)
      assert(lock:release())
      client:close()
      six:shut()
    else
      support.contains(message, "Cannot assign requested address") -- a machine without IPv6
    end
  end)
end)
