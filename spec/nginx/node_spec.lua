--- The ways to reach a node from nginx: TLS, users with passwords, Unix sockets, host names.

if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local server = require "spec.nginx.server"

local CERTIFICATES = [[
set -e
cd "$1"
new="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
authority() {
  openssl req -x509 $new -days 2 -subj "/CN=$1" -keyout "$1.key" -out "$1.pem"
}
certificate() {
  openssl req $new -subj "/CN=$1" -keyout "$2.key" -out "$2.csr"
  printf 'subjectAltName=DNS:%s\n' "$1" > "$2.ext"
  openssl x509 -req -in "$2.csr" -CA "$3.pem" -CAkey "$3.key" -CAcreateserial -days 2 -extfile "$2.ext" -out "$2.pem"
}
authority ours
authority theirs
certificate redis.test good ours
certificate evil.test evil ours
certificate redis.test foreign theirs
]]

describe("nodes in nginx", function()
  local directory, nginx, dns_port
  local children = {}

  local function background(command)
    local pipe = io.popen(command .. " >/dev/null 2>&1 </dev/null & echo $!")
    children[#children + 1] = pipe:read("*l")
    pipe:close()
  end

  setup(function()
    directory = helper.directory .. "/tls"
    os.execute("mkdir " .. directory)
    helper.write_file(directory .. "/make.sh", CERTIFICATES)
    local made = os.execute("sh " .. directory .. "/make.sh " .. directory .. " 2>" .. directory .. "/log")
    assert(made == 0 or made == true, "openssl failed")
    dns_port = helper.free_port()
    background(helper.interpreter .. " spec/nginx/name_server.lua " .. dns_port)
    local asking = require("socket").udp()
    asking:settimeout(0.1)
    helper.eventually(function()
      asking:setpeername("127.0.0.1", dns_port)
      asking:send("\0\1\1\0\0\1\0\0\0\0\0\0\1a\0\0\1\0\1")
      return asking:receive()
    end, "the name server")
    asking:close()
  end)

  teardown(function()
    for _, pid in ipairs(children) do os.execute("kill " .. pid .. " 2>/dev/null") end
  end)

  after_each(function()
    if nginx then nginx:stop() end
    nginx = nil
  end)

  -- A node that speaks TLS with the certificate `name`, and its port for that.
  local function tls_node(name, wants_certificate)
    local port = helper.free_port()
    local farm = helper.farm(1, string.format("--tls-port %d --tls-cert-file %s/%s.pem --tls-key-file %s/%s.key "
      .. "--tls-ca-cert-file %s/ours.pem --tls-auth-clients %s", port, directory, name, directory, name, directory,
      wants_certificate or "no"))
    return farm, port
  end

  local function start(addresses, options, http)
    nginx = server.start {
      addresses = addresses,
      http = "resolver 127.0.0.1:" .. dns_port .. " ipv6=off; " .. (http or ""),
      init = "client = require('redlock').new(addresses, " .. (options or "{}") .. ")",
      server = [[location / { content_by_lua_block {
        local lock, err, code = client:acquire("name", { ttl = 60000, node_timeout = 20000, retry_count = 0 })
        if not lock then return ngx.say(code, ": ", err) end
        ngx.say(tostring(lock:extend() ~= nil), " ", tostring(lock:release()))
      } }]],
    }
  end

  local TRUST = function() return "lua_ssl_trusted_certificate " .. directory .. "/ours.pem;" end

  it("client_speaks_TLS_and_verifies", function()
    local farm, port = tls_node("good")
    start({ "rediss://redis.test:" .. port }, "{}", TRUST())
    assert.are.equal("true true\n", select(2, nginx:get("/")))
    nginx:stop()
    assert.are.equal("", nginx:complaints())
    farm:shut()
  end)

  it("tls_option_of_client_enables_TLS", function()
    local farm, port = tls_node("good")
    start({ "redis.test:" .. port }, "{ tls = true }", TRUST())
    assert.are.equal("true true\n", select(2, nginx:get("/")))
    nginx:stop()
    assert.are.equal("", nginx:complaints())
    farm:shut()
  end)

  local function seen_of(nodes, options, http)
    start(nodes, options, http)
    local _, body = nginx:get("/")
    nginx:stop()
    return body
  end

  it("tls_parts_that_cosockets_support_are_used", function()
    local farm, port = tls_node("good", "yes")
    local own = string.format("cert = '%s/evil.pem', key = '%s/evil.key'", directory, directory)
    local address = "127.0.0.1:" .. port
    local named = "{ tls = { server_name = 'redis.test', " .. own .. " } }"
    assert.are.equal("true true\n", seen_of({ address }, named, TRUST()))
    assert.is_truthy(seen_of({ address }, "{ tls = { " .. own .. " } }", TRUST()):find("certificate"))
    assert.are.equal("true true\n", seen_of({ address }, "{ tls = { dangerously_unverified = true, " .. own .. " } }"))
    assert.is_truthy(seen_of({ address }, "{ tls = { server_name = 'redis.test' } }", TRUST()):find("^unavailable: "))
    local node = "{ host = '127.0.0.1', port = " .. port .. ", tls = { server_name = 'redis.test' } }"
    assert.are.equal("true true\n", seen_of({ "a" }, "nil)\nclient = require('redlock').new({ " .. node .. " }, "
      .. "{ tls = { server_name = 'evil.test', " .. own .. " } }", TRUST()))
    farm:shut()
  end)

  it("tls_parts_of_nginx_configuration_and_sentinels_are_refused", function()
    nginx = server.start {
      addresses = {},
      server = [[location / { content_by_lua_block {
        local function reported(module, nodes, options)
          ngx.say((tostring(select(2, pcall(require(module).new, nodes, options))):gsub("\n.*", "")))
        end
        for _, part in ipairs { "ca", "ca_path", "crl", "ciphers", "min_version", "key_password" } do
          reported("redlock", { "a" }, { tls = { [part] = "x" } })
          reported("redlock", { { host = "a", tls = { [part] = "x" } } })
        end
        reported("redlock", { "a" }, { tls = { cert = "/none.pem" } })
        reported("redlock", { "a" }, { tls = { cert = "/none.pem", key = "/none.key" } })
        reported("redlock", { "a" }, { tls = { cert = "/etc/passwd", key = "/etc/passwd" } })
        reported("redlock", { { path = "/s", tls = true } })
        reported("redlock.nginx_blocking", { "rediss://a" })
        reported("redlock", { "sentinel://:secret@a,b/m" })
        ngx.say(tostring(package.loaded["redlock.tls"]))
      } }]],
    }
    local _, body = nginx:get("/")
    local lines = {}
    for line in body:gmatch("[^\n]+") do lines[#lines + 1] = line end
    local function says(expected)
      local line = table.remove(lines, 1)
      assert.is_truthy(line:find(expected, 1, true), line)
    end
    for _, directive in ipairs { "trusted_certificate", "trusted_certificate", "crl", "ciphers", "protocols" } do
      says("that nginx takes from lua_ssl_" .. directive)
      says("that nginx takes from lua_ssl_" .. directive)
    end
    says("use a key without a password")
    says("use a key without a password")
    says("node 1: a:6379: set both of tls.cert and tls.key")
    says("tls.cert cannot be read: /none.pem")
    says("nginx cannot use /etc/passwd")
    says("node 1: unix:/s: TLS over a Unix socket needs tls.server_name")
    says("node 1: TLS would load a second OpenSSL")
    says("node 1: Sentinels cannot be asked inside nginx: name the master by a DNS name that follows it")
    says("nil")
    nginx:stop()
  end)

  for _, name in ipairs { "evil", "foreign" } do
    it("node_with_wrong_certificate_is_refused: " .. name, function()
      local farm, port = tls_node(name)
      start({ "rediss://redis.test:" .. port }, "{}", TRUST())
      local _, body = nginx:get("/")
      assert.is_truthy(body:find("^unavailable: "), body)
      assert.is_truthy(body:find("certificate"), body)
      assert.are.equal(0, farm:count("name"))
      farm:shut()
      assert.are.equal("", nginx:complaints(server.CONNECTION_BROKE))
    end)
  end

  it("client_verifies_without_lua_ssl_trusted_certificate", function()
    local farm, port = tls_node("good")
    start({ "rediss://redis.test:" .. port })
    local _, body = nginx:get("/")
    assert.is_truthy(body:find("^unavailable: "), body)
    assert.is_truthy(body:find("certificate"), body)
    farm:shut()
  end)

  it("client_sends_server_name", function()
    local port = helper.free_port()
    -- The good certificate is only shown to those who ask for redis.test.
    background(string.format("openssl s_server -quiet -accept %d -cert %s/evil.pem -key %s/evil.key "
      .. "-servername redis.test -cert2 %s/good.pem -key2 %s/good.key",
      port, directory, directory, directory, directory))
    start({ "rediss://redis.test:" .. port }, "{}", TRUST())
    local seen
    helper.eventually(function()
      seen = select(2, nginx:get("/"))
      return not seen:find("refused", 1, true)
    end)
    -- It is no Redis, but what it showed was believed.
    assert.is_falsy(seen:find("certificate"), seen)
    assert.is_truthy(seen:find("^unavailable: "), seen)
  end)

  it("node_without_TLS_delays_no_acquire", function()
    local farm = helper.farm(3)
    local odd = helper.farm(1)
    farm.addresses[4] = "rediss://redis.test:" .. odd[1].port
    start(farm.addresses, "{}", TRUST())
    for _ = 1, 5 do assert.are.equal("true true\n", select(2, nginx:get("/"))) end
    farm:shut()
    odd:shut()
  end)

  it("client_logs_in_and_selects_database_on_unix_sockets", function()
    local path = directory .. "/redis.sock"
    local one = helper.farm(1, "--unixsocket " .. path .. " --user alice on '>secret' '~*' '+@all'")
    local two = helper.farm(1, "--user alice on '>secret' '~*' '+@all'")
    start({ "unix://alice:secret@" .. path .. "?db=2", "redis://alice:secret@redis.test:" .. two[1].port .. "/2" })
    assert.are.equal("true true\n", select(2, nginx:get("/")))
    nginx:stop()
    assert.are.equal("", nginx:complaints())
    one:shut()
    two:shut()
  end)

  -- A worker that holds a lock in a table, and ends.
  local function hold(address)
    nginx = server.start {
      addresses = { address },
      http = "resolver 127.0.0.1:" .. dns_port .. " ipv6=off; " .. TRUST() .. [[
        exit_worker_by_lua_block { ngx.log(ngx.NOTICE, "another: ", select(3, kept.another:result())) }
      ]],
      init = [[client = require("redlock").new(addresses, {
        ttl = 60000, node_timeout = 20000, owner = "worker", auto_extend = true,
        on_lost = function(_, reason) ngx.log(ngx.NOTICE, "reported: ", reason) end,
      })]],
      server = [[location / {
        content_by_lua_block {
          kept.lock = assert(client:acquire("kept"))
          kept.another = client:new_lock("kept", { retry_count = 0 })
          kept.another:acquire()
        }
      }]],
    }
    nginx:get("/")
  end

  for _, signal in ipairs { "QUIT", "TERM" } do
    it("ended_worker_releases_on_IPv6_nodes: " .. signal, function()
      local farm = helper.farm(1, "--bind 127.0.0.1 ::1")
      -- A worker that ends at once waits for its nodes for 100 ms.
      helper.unless_stalled(50, function()
        farm:reset()
        hold("[::1]:" .. farm[1].port)
        assert.are.equal(1, farm:count("kept"))
        nginx:stop(signal)
        assert.are.equal(0, farm:count("kept"))
        assert.are.equal("", nginx:complaints(server.CONNECTION_BROKE))
      end)
      farm:shut()
    end)
  end

  it("graceful_exit_releases_on_TLS_nodes", function()
    local farm, port = tls_node("good")
    -- A worker that ends waits for its nodes for a second.
    helper.unless_stalled(300, function()
      farm:reset()
      hold("rediss://redis.test:" .. port)
      assert.are.equal(1, farm:count("kept"))
      nginx:reload()
      assert.are.equal(0, farm:count("kept"))
      assert.is_truthy(nginx:read("error.log"):find("reported: unavailable", 1, true))
      assert.is_truthy(nginx:read("error.log"):find("another: taken", 1, true)) -- It keeps its own result.
      nginx:get("/")
      nginx:stop("QUIT")
      assert.are.equal(0, farm:count("kept"))
      assert.are.equal("", nginx:complaints(server.CONNECTION_BROKE))
    end)
    farm:shut()
  end)

  it("fast_exit_leaves_lock_on_TLS_nodes_to_its_ttl", function()
    local farm, port = tls_node("good")
    hold("rediss://redis.test:" .. port)
    nginx:stop("TERM")
    assert.are.equal(1, farm:count("kept"))
    assert.are.equal("", nginx:complaints(server.CONNECTION_BROKE))
    farm:shut()
  end)

  it("wrong_password_is_reported_without_the_password", function()
    local farm = helper.farm(1, "--user alice on '>secret' '~*' '+@all'")
    start({ "redis://alice:wrong-one@" .. farm.addresses[1] })
    local _, body = nginx:get("/")
    assert.is_truthy(body:find("^unavailable: .*WRONGPASS"), body)
    assert.is_falsy(body:find("wrong-one", 1, true), body)
    farm:shut()
    assert.are.equal("", nginx:complaints(server.CONNECTION_BROKE))
  end)

  it("unresolvable_name_is_reported", function()
    nginx = server.start {
      addresses = { "redis.test:6379" },
      init = "client = require('redlock').new(addresses)",
      server = [[location / { content_by_lua_block { ngx.say(select(2, client:acquire("x"))) } }]],
    }
    local _, body = nginx:get("/")
    assert.is_truthy(body:find("no resolver defined to resolve \"redis.test\"", 1, true), body)
  end)
end)
