--- Checks what callers hand in. Every mistake is raised at the line of the caller, and names the
--- option. Values are never quoted unless they are numbers: a text may be a password.
---
--- Which options there are, of what kind and within what bounds, is written in csrc/core/options/rl_option_table.h
--- alone. The C functions take the tables that are checked here, and read them by name.

local core = require "redlock.core"

local options = {}

local floor = math.floor
local TOKEN_MAX, RESOURCES_MAX, OWNER_NAME_MAX = core.TOKEN_MAX, core.RESOURCES_MAX, core.OWNER_NAME_MAX

local function shown(value)
  local kind = type(value)
  if kind == "number" then
    if value ~= value then return "nan" end
    return (string.format("%.14g", value))
  elseif kind == "nil" then
    return "nil"
  end
  return "a " .. kind
end

-- Makes a check for whole numbers. The checks return what is wrong, or nil.
local function whole(low, high, unit)
  local least = string.format("must be an integer >= %.0f%s, got ", low, unit)
  local most = string.format("must be at most %.0f%s, got ", high, unit)
  return function(value)
    if type(value) ~= "number" or value ~= value or value < low or floor(value) ~= value then
      return least .. shown(value)
    elseif value > high then
      return most .. shown(value)
    end
  end
end

local metatable_of = type(debug) == "table" and debug.getmetatable or getmetatable

local function callable(value)
  if type(value) == "function" then return true end
  local metatable = metatable_of(value)
  return type(metatable) == "table" and metatable.__call ~= nil
end

-- By the kinds of rl_option_table.h: what makes a check within bounds.
local kinds = {}

function kinds.duration(low, high)
  return whole(low, high, " (milliseconds)")
end

function kinds.count(low, high)
  return whole(low, high, "")
end

function kinds.factor(low, high)
  local text = string.format("must be a number >= %.0f and < %.0f, got ", low, high)
  return function(value)
    if type(value) ~= "number" or not (value >= low and value < high) then return text .. shown(value) end
  end
end

function kinds.flag()
  return function(value)
    if type(value) ~= "boolean" then return "must be true or false, got " .. shown(value) end
  end
end

function kinds.bytes()
  return function(value)
    if type(value) ~= "string" then return "must be a string, got " .. shown(value) end
  end
end

-- A number is not shown: it may be the password, or that of a key.
function kinds.secret()
  return function(value)
    if type(value) ~= "string" then return "must be a string, got a " .. type(value) end
  end
end

function kinds.text(low, high)
  return function(value)
    if type(value) ~= "string" then return "must be a string, got a " .. type(value) end
    if value:find("\0", 1, true) then return "must not contain a NUL byte" end
    if #value < low then return "must not be empty" end
    if high > 0 and #value > high then return string.format("must have at most %.0f bytes", high) end
  end
end

kinds["function"] = function()
  return function(value)
    if not callable(value) then return "must be a function, got " .. shown(value) end
  end
end

function kinds.choice(_, _, words)
  local allowed = {}
  for word in words:gmatch("[^|]+") do
    allowed[word] = true
  end
  local text = 'must be "' .. words:gsub("|", '" or "') .. '", got '
  return function(value)
    if not allowed[value] then return text .. shown(value) end
  end
end

local in_milliseconds = {} -- the names of the durations

local parts_of_tls = {} -- the checks of what is in the table `tls`
local parts_of_guard = {} -- and in the table `guard`

-- The checks of a table of rl_option_table.h, by name, added to `checks`.
local function add(checks, rows)
  for _, row in ipairs(rows) do
    local check = kinds[row.kind](row.low, row.high, row.words)
    if row.part_of_tls then
      parts_of_tls[row.part_of_tls] = check
    elseif row.part_of_guard then
      parts_of_guard[row.part_of_guard] = check
    else
      checks[row.name] = check
    end
    in_milliseconds[row.name] = row.kind == "duration"
  end
  return checks
end

--- Returns true if this is nginx. Programs that let nobody read a global that is not there are asked kindly.
function options.inside_nginx()
  local ok, ngx = pcall(function(host) return host.ngx end, _G)
  return ok and type(ngx) == "table" and ngx.get_phase ~= nil
end

--- Returns true where a client must not block: in a worker of nginx, not in its threads (ngx.run_worker_thread), which
--- have no sockets of nginx's.
function options.must_yield()
  return options.inside_nginx() and _G.ngx.socket ~= nil
end

-- What is for nginx alone.
local of_host = add({}, core.options.host)
if not options.inside_nginx() then
  for name in pairs(of_host) do
    of_host[name] = function()
      return "is for nginx, where a lock belongs to a request or to the worker"
    end
  end
end

local of_lock = add({}, core.options.lock)
local of_client = add(add({}, core.options.lock), core.options.client)
for name, check in pairs(of_host) do
  of_lock[name], of_client[name] = check, check
end
local of_node = add({}, core.options.node)

-- auto_extend is true, false, or what it consists of.
local parts_of_auto_extend = { every = of_lock.extend_every, max_hold = of_lock.max_hold }

local function auto_extend(value)
  if type(value) == "boolean" then return end
  if type(value) ~= "table" then
    return "must be true, false or { every = ms, max_hold = ms }, got " .. shown(value)
  end
  for name, part in pairs(value) do
    local check = parts_of_auto_extend[name]
    if not check then return "must be true, false or { every = ms, max_hold = ms }; it has something else" end
    local wrong = check(part)
    if wrong then return "has a '" .. name .. "' that " .. wrong end
  end
end

-- The first of what is `given` that is wrong: its name, and what is wrong with it, unless nobody knows the name.
local function first_wrong(given, known)
  for name, value in pairs(given) do
    local check = known[name]
    local wrong = check and check(value)
    if wrong or not check then return name, wrong end
  end
  if getmetatable(given) == nil then return end -- false may hide one
  -- What a metatable adds is used like the rest.
  for name, check in pairs(known) do
    local value = given[name]
    local wrong = value ~= nil and check(value)
    if wrong then return name, wrong end
  end
end

local unknown_part -- below

-- tls is true, false, or how it is spoken.
local function tls(value)
  if type(value) == "boolean" then return end
  if type(value) ~= "table" then
    return "must be true, false or a table such as { ca = \"/etc/redis/ca.pem\" }, got " .. shown(value)
  end
  local name, wrong = first_wrong(value, parts_of_tls)
  if wrong then return "has a '" .. name .. "' that " .. wrong end
  if name ~= nil then return unknown_part(name) end
end

of_client.tls, of_node.tls = tls, tls

-- guard is true, false, or what it consists of.
local function guard(value)
  if type(value) == "boolean" then return end
  if type(value) ~= "table" then
    return "must be true, false or { max_ttl = ms, cluster = \"name\" }, got " .. shown(value)
  end
  local name, wrong = first_wrong(value, parts_of_guard)
  if wrong then return "has a '" .. name .. "' that " .. wrong end
  if name ~= nil then return "must be true, false or { max_ttl = ms, cluster = \"name\" }; it has something else" end
  if value.cluster and value.cluster:find("[^\33-\126]") then
    return "has a 'cluster' that must be printable, and have no spaces"
  end
end

of_client.guard = guard

-- Inside nginx its own sockets speak TLS. What they take from nginx.conf is not to be ignored in silence.
local of_nginx_conf = {
  ca = "nginx takes from lua_ssl_trusted_certificate", ca_path = "nginx takes from lua_ssl_trusted_certificate, a file",
  crl = "nginx takes from lua_ssl_crl", ciphers = "nginx takes from lua_ssl_ciphers",
  min_version = "nginx takes from lua_ssl_protocols", key_password = "nginx does not take: its keys have no password",
}
if options.inside_nginx() then
  for name, sentence in pairs(of_nginx_conf) do
    parts_of_tls[name] = function() return sentence end
  end
end

local function on_lost(value)
  if not callable(value) then return "must be a function, got " .. shown(value) end
end

for _, of in ipairs { of_lock, of_client } do
  of.auto_extend, of.on_lost = auto_extend, on_lost
end

-- Whose a lock is may be a name; of a client it is no single owner's.
local function reentrant(value)
  if type(value) == "boolean" then return end
  if type(value) ~= "string" then return "must be true, false or the name of an owner, got " .. shown(value) end
  if #value == 0 or #value > OWNER_NAME_MAX then return "must have from 1 to " .. OWNER_NAME_MAX .. " bytes" end
end

of_lock.reentrant, of_client.reentrant = reentrant, kinds.flag()

local function token_complaint(value)
  if type(value) ~= "string" then return "must be a string, got " .. shown(value) end
  if #value == 0 or #value > TOKEN_MAX then return "must have from 1 to " .. TOKEN_MAX .. " bytes" end
  if value == "any" then return 'must not be "any", which client:force_release() takes for every token' end
end

-- Besides the options of a lock, an acquire takes a token, and with() what goes for its own release, too.
local of_acquire = { token = token_complaint }
local of_section = { token = token_complaint, release_wait = kinds.flag() }
for name, check in pairs(of_lock) do
  of_acquire[name], of_section[name] = check, check
end

--- Checks the client's `quorum` against the number of its nodes.
function options.quorum(given, count, level)
  local quorum, majority = given and given.quorum, floor(count / 2) + 1
  if quorum and (quorum < majority or quorum > count) then
    error(string.format("redlock: option 'quorum' must be from %d, the majority of %d nodes, to %d, got %.14g",
      majority, count, count, quorum), level + 1)
  end
end

--- What is wrong with an owner, or nil.
options.owner_complaint = of_lock.owner

-- Spelled alike: letters only, lower case, without a unit at the end.
local function plain(name)
  return (name:lower():gsub("[^%a]", ""):gsub("ms$", ""))
end

-- What other libraries call them, spelled plainly.
local elsewhere = {
  retries = "retry_count", maxretries = "retry_count", retrytimes = "retry_count", tries = "retry_count",
  maxtries = "retry_count", attempts = "retry_count", maxattempts = "retry_count",
  timeout = "wait", waittimeout = "wait", waittime = "wait", locktimeout = "wait", acquiretimeout = "wait",
  blockingtimeout = "wait",
  exptime = "ttl", expire = "ttl", expires = "ttl", expiry = "ttl", expiration = "ttl", lease = "ttl",
  leasetime = "ttl", leaseduration = "ttl", duration = "ttl", px = "ttl",
  delay = "retry_delay", step = "retry_delay", interval = "retry_delay", retryinterval = "retry_delay",
  jitter = "retry_jitter", drift = "drift_factor", clockdrift = "drift_factor",
  clockdriftfactor = "drift_factor", connecttimeout = "node_timeout", requesttimeout = "node_timeout",
  sockettimeout = "node_timeout",
  keyprefix = "prefix", namespace = "prefix",
  user = "username", pass = "password", auth = "password", secret = "password", database = "db", ssl = "tls",
  watchdog = "auto_extend", autorenew = "auto_extend", renew = "auto_extend", autorenewal = "auto_extend",
  fencing = "fence", fencingtoken = "fence", fencetoken = "fence",
  reentry = "reentrant", recursive = "reentrant",
  keepalive = "auto_extend", renewal = "auto_extend", maxextensions = "max_hold", maxduration = "max_hold",
  hostname = "host", ip = "host", address = "host", socket = "path", unix = "path", unixsocket = "path",
}

-- What belongs into the table `tls`, and what other libraries call it, spelled plainly.
local elsewhere_in_tls = {
  cafile = "ca", cacert = "ca", cacerts = "ca", cacertificate = "ca", trustedcertificate = "ca", truststore = "ca",
  rootcert = "ca", rootca = "ca", capem = "ca", capath = "ca_path", cadir = "ca_path", cacertdir = "ca_path",
  crlfile = "crl", certificate = "cert", certfile = "cert", clientcert = "cert", clientcertificate = "cert",
  certpem = "cert", keyfile = "key", privatekey = "key", clientkey = "key", keypem = "key", certificatekey = "key",
  password = "key_password", passphrase = "key_password", keypass = "key_password", keypassphrase = "key_password",
  keyfilepassword = "key_password", sni = "server_name", hostname = "server_name", host = "server_name",
  peername = "server_name", serverhostname = "server_name", verifyname = "server_name", protocol = "min_version",
  protocols = "min_version", minprotocol = "min_version", version = "min_version", minimumversion = "min_version",
  cipher = "ciphers", ciphersuites = "ciphers", cipherlist = "ciphers",
}
-- What turns verification on or off there.
local verifying = {
  verify = true, verifymode = true, verifypeer = true, verifyhost = true, verifyhostname = true, checkhostname = true,
  rejectunauthorized = true, certreqs = true, insecure = true, insecureskipverify = true, skipverify = true,
  noverify = true, unverified = true, verification = true,
}
local VERIFIED = ": certificates are verified, against the system's CAs or those of tls = { ca = ... }; what turns that"
  .. " off is called 'dangerously_unverified'"

-- The part of `tls` that is meant, or "verify"; nil when it is none. `alone`: without a prefix that says so.
local function meant_part(name, alone)
  local spelled = plain(name)
  local rest = spelled:match("^ssl(.+)$") or spelled:match("^tls(.+)$") or (alone and spelled)
  if not rest then return end
  for part in pairs(parts_of_tls) do
    if plain(part) == rest then return part end
  end
  return verifying[rest] and "verify" or elsewhere_in_tls[rest]
end

local function quoted(name)
  return "'" .. name:gsub("[%c\128-\255]", "?") .. "'"
end

function unknown_part(name)
  if type(name) ~= "string" then return "has no names in it; it is a table such as { ca = \"/etc/redis/ca.pem\" }" end
  local part = meant_part(name, true)
  local text = "has an unknown " .. quoted(name)
  if part == "verify" then return text .. VERIFIED end
  return text .. (part and " (did you mean '" .. part .. "'?)" or "")
end

-- Names that mean nothing but TLS though they do not say so.
local function is_of_tls(name)
  local spelled = plain(name)
  return verifying[spelled] or spelled:find("cert", 1, true) or spelled:find("cipher", 1, true)
    or spelled == "ca" or spelled == "cafile" or spelled == "capath" or spelled == "keyfile" or spelled == "sni"
    or spelled == "servername"
end

-- What to write for an option that belongs into `tls`, or nil.
local function hint_at_tls(name)
  local part = meant_part(name, is_of_tls(name))
  if part == "verify" then return VERIFIED end
  return part and " (did you mean 'tls = { " .. part .. " = ... }'?)"
end

-- The same for one that belongs into `guard`.
local function hint_at_guard(name)
  local spelled = plain(name):gsub("^guard", "")
  for part in pairs(parts_of_guard) do
    if plain(part) == spelled then return " (did you mean 'guard = { " .. part .. " = ... }'?)" end
  end
end

local function unknown(name, known)
  if type(name) ~= "string" then
    return "unknown option [" .. (type(name) == "number" and shown(name) or type(name)) .. "]"
  end
  local text = "unknown option " .. quoted(name)
  if (known == of_lock or known == of_acquire or known == of_section) and of_client[name] then
    return "option '" .. name .. "' can only be given to redlock.new()"
  elseif name == "release_wait" and known ~= of_node then
    return "option 'release_wait' can only be given to client:with()"
  elseif name == "token" and known ~= of_node then
    return "option 'token' can only be given to an acquire"
  end
  local spelled = plain(name)
  for candidate in pairs(known) do
    if plain(candidate) == spelled then return text .. " (did you mean '" .. candidate .. "'?)" end
  end
  local meant = elsewhere[spelled]
  if meant and known[meant] then
    local unit = in_milliseconds[meant] and ", in milliseconds" or ""
    return text .. " (did you mean '" .. meant .. "'" .. unit .. "?)"
  end
  return text .. (known.tls and hint_at_tls(name) or known.guard and hint_at_guard(name) or "")
end

--- The first thing that is wrong with a table of options, or nil.
local function complaint(given, known)
  if type(given) == "number" then
    return "options must be a table, such as { ttl = " .. shown(given) .. " }, got " .. shown(given)
  elseif type(given) ~= "table" then
    return "options must be a table, got " .. shown(given)
  end
  local name, wrong = first_wrong(given, known)
  if wrong then return "option '" .. name .. "' " .. wrong end
  if name ~= nil then return unknown(name, known) end
end

--- The options of a lock or of a call, as the C functions take them. `level` counts as in error(),
--- seen from the caller of this function.
function options.lock(given, level)
  local wrong = complaint(given, of_lock)
  if wrong then error("redlock: " .. wrong, level + 1) end
  return given
end

--- The options of a client, as the C functions take them.
function options.client(given, level)
  local wrong = given ~= nil and complaint(given, of_client)
  if wrong then error("redlock: " .. wrong, level + 1) end
  return given
end

-- What is tried once takes no option that says otherwise.
local function check_tried_once(given, with, level)
  for _, name in ipairs { "retry_count", "wait" } do
    if given[name] ~= nil and given[name] ~= 0 then
      error("redlock: option '" .. name .. "' does not go with " .. with .. " is tried once", level + 1)
    end
  end
end

local function check_token_goes_with(given, level)
  if given.token ~= nil then check_tried_once(given, "'token': a token", level + 1) end
end

--- The options of an acquire, as the C functions take them, which know nothing of the token.
function options.acquire(given, level)
  local wrong = complaint(given, of_acquire)
  if wrong then error("redlock: " .. wrong, level + 1) end
  check_token_goes_with(given, level + 1)
  return given
end

local of_release = { wait = kinds.flag() }

--- The options of lock:release(). Returns whether to go on without waiting.
function options.release(given, level)
  local wrong = complaint(given, of_release)
  if wrong then error("redlock: " .. wrong, level + 1) end
  return given.wait == false
end

--- The options of an attach.
function options.attach(given, level)
  local checked = options.lock(given, level + 1)
  check_tried_once(given, "client:attach(): it", level + 1)
  return checked
end

--- The object before the colon and what lock:detach() has returned.
function options.handover(client, kind, text, level)
  if type(client) ~= kind then
    error("redlock: client:attach() needs a client before the colon, got " .. shown(client), level + 1)
  elseif type(text) ~= "string" then
    error("redlock: client:attach() takes what lock:detach() has returned, got " .. shown(text), level + 1)
  end
end

--- The token that client:force_release() is given.
function options.token(token, level)
  if type(token) ~= "string" then
    error("redlock: client:force_release(): token must be a string, or \"any\", got " .. shown(token), level + 1)
  elseif #token > TOKEN_MAX then
    error("redlock: client:force_release(): token is longer than " .. TOKEN_MAX .. " bytes", level + 1)
  end
  return token
end

--- The ttl that lock:extend() is given; nil is the one that the lock was acquired with.
function options.extension(ttl, level)
  local wrong = ttl ~= nil and of_lock.ttl(ttl)
  if wrong then error("redlock: lock:extend(): ttl " .. wrong, level + 1) end
  return ttl
end

local of_doctor = { keys = kinds.flag(), resource = kinds.bytes() }

--- The object before the colon and the options of client:doctor(). Returns the resource whose keys are tried, and
--- whether to look through keys.
function options.doctor(client, kind, given, level)
  local wrong = given ~= nil and complaint(given, of_doctor)
  local resource = not wrong and given ~= nil and given.resource or "redlock-doctor"
  options.resource(client, kind, resource, "doctor", level + 1)
  if wrong then error("redlock: client:doctor(): " .. wrong, level + 1) end
  return resource, given ~= nil and given.keys or false
end

--- A node of the list, as the C functions take it: an address or its parts.
function options.node(node, index, level)
  local where = "redlock: node " .. index .. ": "
  if type(node) == "string" then
    if node:find("\0", 1, true) then error(where .. "the address contains a NUL byte", level + 1) end
    return node
  elseif type(node) ~= "table" then
    error(where .. "must be an address or a table, got " .. shown(node), level + 1)
  end
  local wrong
  if node[1] ~= nil then
    wrong = "is a list; a node is \"host:port\" or { host = \"host\", port = 6379 }"
  else
    wrong = complaint(node, of_node)
  end
  if not wrong then
    if node.host == nil and node.path == nil then
      wrong = "needs a 'host' or a 'path'"
    elseif node.host ~= nil and node.path ~= nil then
      wrong = "has a 'host' and a 'path'; give one of them"
    elseif node.path ~= nil and node.port ~= nil then
      wrong = "has a 'path', which takes no 'port'"
    end
  end
  if wrong then error(where .. wrong, level + 1) end
  return node
end

--- The list of nodes: a table with nothing but 1 to n in it. Returns n.
function options.nodes(nodes, level)
  if type(nodes) ~= "table" then
    error("redlock: nodes must be a list of addresses, got " .. shown(nodes), level + 1)
  end
  if type(rawget(nodes, "new")) == "function" then
    error("redlock: redlock.new() is called with a dot, not with a colon", level + 1)
  end
  if rawget(nodes, "host") ~= nil or rawget(nodes, "path") ~= nil then
    error("redlock: nodes must be a list: { { host = ... }, ... }, got a single node", level + 1)
  end
  local count = 0
  for key in pairs(nodes) do
    if of_client[key] then
      error("redlock: nodes and options are two tables: redlock.new(nodes, options)", level + 1)
    elseif type(key) ~= "number" then
      error("redlock: nodes must be a list of addresses, but has a key that is a " .. type(key), level + 1)
    elseif key < 1 or floor(key) ~= key then
      error("redlock: nodes must be a list of addresses from 1 on, but has the key " .. shown(key), level + 1)
    end
    count = count + 1
  end
  for index = 1, count do
    if nodes[index] == nil then
      error("redlock: nodes must be a list without gaps, but node " .. index .. " is nil", level + 1)
    end
  end
  if count == 0 then error("redlock: nodes is empty; at least one is needed", level + 1) end
  return count
end

--- The object before the colon and the name of a resource.
function options.resource(client, kind, resource, method, level)
  if type(client) ~= kind then
    error("redlock: client:" .. method .. "() needs a client before the colon, got " .. shown(client),
      level + 1)
  elseif type(resource) ~= "string" then
    error("redlock: resource must be a string, got " .. shown(resource), level + 1)
  end
end

-- What is wrong with a list of resources, or nil.
local function list_complaint(resources)
  local seen, count = {}, 0
  for _ in next, resources do count = count + 1 end
  if rawget(resources, 1) == nil then return "resource must be a string, or a list of strings, got a table" end
  if count > RESOURCES_MAX then
    return "a lock has at most " .. RESOURCES_MAX .. " resources, got " .. count
  end
  for index = 1, count do
    local resource = rawget(resources, index)
    if type(resource) ~= "string" then
      return "resource " .. index .. " of the list must be a string, got " .. shown(resource)
    elseif seen[resource] then
      return "resources " .. seen[resource] .. " and " .. index .. " of the list are the same"
    end
    seen[resource] = index
  end
end

--- The object before the colon and what is to be locked: a resource, or a list of them.
function options.resources(client, kind, resource, method, level)
  if type(client) ~= kind or type(resource) ~= "table" then
    options.resource(client, kind, resource, method, level + 1)
    return
  end
  local wrong = list_complaint(resource)
  if wrong then error("redlock: " .. wrong, level + 1) end
end

local sent = { wait = false }

--- Checks the options of with(). Returns what its release is given.
function options.section_release(given, level)
  local wrong = complaint(given, of_section)
  if wrong then error("redlock: " .. wrong, level + 1) end
  check_token_goes_with(given, level + 1)
  return given.release_wait == false and sent or nil
end

-- A table with options of a lock, and nothing else.
local function are_options(value)
  if type(value) ~= "table" or next(value) == nil then return false end
  for name in pairs(value) do
    if not of_section[name] then return false end
  end
  return true
end

--- The arguments of with() after the name: options, if there are any, and whatever can be called.
--- Returns the options, and which argument is the function.
function options.section(level, first, second, ...)
  if callable(first) then
    if select("#", ...) == 0 and are_options(second) then
      error("redlock: with() takes the options before the function: client:with(name, options, fn)", level + 1)
    end
    return nil, 1
  end
  if first ~= nil and type(first) ~= "table" then
    error("redlock: with() takes a name, options and a function, got " .. shown(first), level + 1)
  elseif not callable(second) then
    error("redlock: with() needs a function to run, got " .. shown(second), level + 1)
  end
  return first, 2
end

--- Functions that check the argument of an operation, by the names in csrc/binding/rl_lua_operation.c. Each is called
--- with (argument, level), unless the argument is nil, and returns the value for C.
options.arguments = {
  options = options.acquire, ttl = options.extension, release = options.release, token = options.token,
  none = function() end,
}

return options
