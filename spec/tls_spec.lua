--- TLS as scripts ask for it: the option `tls`, and when OpenSSL is loaded.

local helper = require "spec.helper"
local redlock = require "redlock"

local CERTIFICATES = [[
set -e
cd "$1"
new="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
openssl req -x509 $new -days 2 -subj /CN=ours -keyout ours.key -out ours.pem
openssl req $new -subj /CN=redis.test -keyout node.key -out node.csr
printf 'subjectAltName=DNS:redis.test,IP:127.0.0.1\n' > node.ext
openssl x509 -req -in node.csr -CA ours.pem -CAkey ours.key -CAcreateserial -days 2 -extfile node.ext -out node.pem
openssl ec -aes128 -passout pass:hush -in node.key -out locked.key
mkdir cas
cp ours.pem cas
openssl rehash cas
]]

--- What a script prints that runs in a process of its own.
local function run(script)
  local path = helper.directory .. "/script.lua"
  helper.write_file(path, script)
  local pipe = io.popen(helper.interpreter .. " " .. path .. " 2>&1")
  local text = pipe:read("*a")
  pipe:close()
  return text
end

describe("TLS in Lua", function()
  local directory = helper.directory .. "/certificates"
  local CA, CERT, KEY = directory .. "/ours.pem", directory .. "/node.pem", directory .. "/node.key"
  local farm, port

  setup(function()
    os.execute("mkdir " .. directory)
    helper.write_file(directory .. "/make.sh", CERTIFICATES)
    local made = os.execute("sh " .. directory .. "/make.sh " .. directory .. " >" .. directory .. "/log 2>&1")
    assert(made == 0 or made == true, "openssl failed")
    port = helper.free_port()
    farm = helper.farm(1, string.format("--tls-port %d --tls-cert-file %s --tls-key-file %s --tls-ca-cert-file %s "
      .. "--tls-auth-clients yes", port, CERT, KEY, CA))
  end)
  teardown(function() farm:shut() end)

  -- Returns true if a client of these nodes gets a lock; otherwise the reason why its node is down.
  local function reached(nodes, options, node_timeout)
    local client = redlock.new(nodes, options)
    local lock = client:acquire("r", { retry_count = 0, node_timeout = node_timeout or 30000, ttl = 120000 })
    local why = client:nodes()[1].error
    if lock then assert(lock:release()) end
    client:close()
    return lock and true or why
  end

  local function refused(nodes, options)
    local ok, err = pcall(redlock.new, nodes, options)
    assert.is_false(ok)
    return err
  end

  local function says(expected, text)
    assert.is_truthy(tostring(text):find(expected, 1, true), tostring(text))
  end

  it("tls_table_of_client_or_node_enables_TLS", function()
    local all = { ca = CA, cert = CERT, key = KEY, min_version = "1.3" }
    local address = "127.0.0.1:" .. port
    assert.is_true(reached({ "rediss://" .. address }, { tls = all }))
    assert.is_true(reached({ address }, { tls = all }))
    assert.is_true(reached({ { host = "127.0.0.1", port = port, tls = all } }))
    assert.is_true(reached({ address }, { tls = { ca_path = directory .. "/cas", cert = CERT,
      key = directory .. "/locked.key", key_password = "hush", server_name = "redis.test" } }))
    says("certificate", reached({ address }, { tls = { cert = CERT, key = KEY } }))
    assert.is_not_true(reached({ address }, { tls = { ca = CA } })) -- The server wants a certificate of ours.
    says("other.test", reached({ address }, { tls = { ca = CA, server_name = "other.test", cert = CERT, key = KEY } }))
    assert.is_true(reached({ address }, { tls = { dangerously_unverified = true, cert = CERT, key = KEY } }))
  end)

  it("tls_parts_of_node_override_those_of_client", function()
    local node = { host = "127.0.0.1", port = port, tls = { server_name = "other.test" } }
    local of_client = { ca = CA, cert = CERT, key = KEY, server_name = "redis.test" }
    says("other.test", reached({ node }, { tls = of_client }))
    node.tls.server_name = "redis.test"
    of_client.server_name = "other.test"
    assert.is_true(reached({ node }, { tls = of_client }))
    node.tls = true
    says("other.test", reached({ node }, { tls = of_client }))
    node.tls = setmetatable({}, { __index = { server_name = "redis.test" } })
    assert.is_true(reached({ node }, { tls = of_client }))
  end)

  it("tls_false_disables_and_empty_table_enables_TLS", function()
    local plain = farm.addresses[1]
    local host, plain_port = plain:match("^(.*):(%d+)$")
    local node = { host = host, port = tonumber(plain_port), tls = false }
    assert.is_true(reached({ node }, { tls = { ca = CA } }))
    assert.is_true(reached({ plain }, { tls = false }))
    assert.is_not_true(reached({ plain }, { tls = {} }, 200))
    assert.is_not_true(reached({ { host = host, port = tonumber(plain_port), tls = {} } }, nil, 200))
  end)

  it("wrong_TLS_files_are_raised_by_new", function()
    local N = { { host = "a", tls = false }, "rediss://b" }
    says("node 2: b:6379: tls.ca cannot be read (/none)", refused(N, { tls = { ca = "/none" } }))
    local err = refused(N, { tls = { cert = CERT, key = directory .. "/locked.key", key_password = "wrong-secret" } })
    says("tls.key", err)
    assert.is_nil(err:find("wrong-secret", 1, true))
    says("set both of", refused(N, { tls = { cert = CERT } }))
    says("Unix socket", refused({ { path = "/s", tls = true } }))
    assert(redlock.new({ { path = "/s", tls = { server_name = "redis.test" } }, "unix:///t" }, { tls = true }))
  end)

  it("TLS_options_of_other_libraries_have_hints", function()
    local N = { "rediss://a" }
    local hints = {
      tls_ca = "tls = { ca = ", tls_key_password = "tls = { key_password = ", ssl_cafile = "tls = { ca = ",
      cafile = "tls = { ca = ", certfile = "tls = { cert = ", keyfile = "tls = { key = ",
      sni = "tls = { server_name = ",
      ssl_min_version = "tls = { min_version = ", sslCiphers = "tls = { ciphers = ",
      verify = "'dangerously_unverified'", ssl_verify = "'dangerously_unverified'",
      rejectUnauthorized = "'dangerously_unverified'", tls_dangerously_unverified = "tls = { dangerously_unverified = ",
    }
    for name, meant in pairs(hints) do
      says("unknown option '" .. name .. "'", refused(N, { [name] = "secret" }))
      says(meant, refused(N, { [name] = "secret" }))
      says(meant, refused({ { host = "a", [name] = "secret" } }))
      says("node 1: unknown option '" .. name .. "'", refused({ { host = "a", [name] = "secret" } }))
      assert.is_nil(refused(N, { [name] = "secret" }):find("secret", 1, true))
    end
    local parts = {
      cafile = "'ca'", CA = "'ca'", ca_file = "'ca'", certificate = "'cert'", private_key = "'key'",
      passphrase = "'key_password'", servername = "'server_name'", minVersion = "'min_version'",
      cipher_suites = "'ciphers'",
      verify = "'dangerously_unverified'", tls_ca = "'ca'", insecure = "'dangerously_unverified'",
    }
    for name, meant in pairs(parts) do
      says("option 'tls' has an unknown '" .. name .. "'", refused(N, { tls = { [name] = false } }))
      says(meant, refused(N, { tls = { [name] = false } }))
    end
    says("has an unknown 'b?gus'", refused(N, { tls = { ["b\1gus"] = 1 } }))
    assert.is_nil(refused(N, { tls = { colour = 1 } }):find("did you mean", 1, true))
    says("option 'tls_ca'", refused(N, { tls_ca = CA }))
    local client = redlock.new(N)
    local ok, err = pcall(client.new_lock, client, "r", { tls = true })
    assert.is_false(ok)
    says("option 'tls' can only be given to redlock.new()", err)
  end)

  it("wrong_TLS_values_are_raised_and_not_shown", function()
    local N = { "a" }
    local wrong = {
      { { ca = "" }, "has a 'ca' that must not be empty" },
      { { ca = 5 }, "has a 'ca' that must be a string, got a number" },
      { { ca = ("x"):rep(4097) }, "has a 'ca' that must have at most 4096 bytes" },
      { { cert = "a\0b" }, "has a 'cert' that must not contain a NUL byte" },
      { { key_password = 4711 }, "has a 'key_password' that must be a string, got a number" },
      { { min_version = 1.2 }, "has a 'min_version' that must be \"1.2\" or \"1.3\", got 1.2" },
      { { min_version = "1.1" }, "has a 'min_version' that must be \"1.2\" or \"1.3\", got a string" },
      { { dangerously_unverified = 1 }, "has a 'dangerously_unverified' that must be true or false" },
      { { "/etc/ca.pem" }, "is a list; it must be a table such as" },
      { setmetatable({}, { __index = { ca = 5 } }), "has a 'ca' that must be a string, got a number" },
      { "/etc/ca.pem", "must be true, false or a table such as" },
      { 1, "must be true, false or a table such as { ca = \"/etc/redis/ca.pem\" }, got 1" },
    }
    for _, case in ipairs(wrong) do
      says("redlock: option 'tls' " .. case[2], refused(N, { tls = case[1] }))
      says("redlock: node 1: option 'tls' " .. case[2], refused({ { host = "a", tls = case[1] } }))
    end
    assert(redlock.new(N, { tls = { server_name = ("x"):rep(255) } }))
  end)

  it("first_TLS_client_loads_openssl", function()
    local text = run([[
      local function ssl()
        local loaded = false
        for line in io.lines("/proc/self/maps") do loaded = loaded or line:find("libssl", 1, true) ~= nil end
        return tostring(loaded)
      end
      local redlock = require "redlock"
      local client = redlock.new({ "127.0.0.1:1", { host = "127.0.0.1", port = 2, tls = false } })
      client:acquire("r", { retry_count = 0 })
      print(package.loaded["redlock.tls"], ssl())
      redlock.new({ "127.0.0.1:1", { host = "127.0.0.1", port = 2, tls = true } })
      print(package.loaded["redlock.tls"] ~= nil, ssl())
    ]])
    assert.are.equal("nil\tfalse\ntrue\ttrue\n", text)
  end)

  it("missing_or_foreign_TLS_module_is_reported", function()
    local text = run([[
      local redlock = require "redlock"
      require "redlock.client"
      local function try() print((select(2, pcall(redlock.new, { "a", "rediss://b" })))) end
      local path, cpath = package.path, package.cpath
      package.path, package.cpath = "", ""
      try()
      package.path, package.cpath = path, cpath
      package.preload["redlock.tls"] = function() error("libssl.so.3: cannot open shared object file", 0) end
      try()
      package.preload["redlock.tls"] = nil
      for _, other in ipairs { {}, io.stdout, true, 5 } do
        package.loaded["redlock.tls"] = other
        try()
      end
    ]])
    local lines = {}
    for line in text:gmatch("[^\n]+") do lines[#lines + 1] = line end
    says("node 2: TLS needs the module redlock.tls, which is not installed; ", lines[1])
    says("libssl-dev", lines[1])
    says("TLS needs the module redlock.tls, ", lines[2])
    says("libssl.so.3: cannot open", text)
    local others = 0
    for _, line in ipairs(lines) do
      if line:find("belongs to another version of redlock", 1, true) then others = others + 1 end
    end
    assert.are.equal(4, others, text)
  end)
end)
