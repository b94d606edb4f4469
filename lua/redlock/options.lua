--- Checks arguments. Raises misuse at the line of the caller, and names the option. Shows only
--- numbers, because a text may be a password.
---
--- csrc/core/options/rl_option_table.h has all options with their kinds and bounds. The C functions
--- read the tables that are checked here by name.

local core = require "redlock.core"

local options = {}

local floor = math.floor
local TOKEN_MAX, RESOURCES_MAX, OWNER_NAME_MAX = core.TOKEN_MAX, core.RESOURCES_MAX, core.OWNER_NAME_MAX

--- Returns "nil", or the type of a value, such as "a redlock client".
function options.kind(value)
  if value == nil then return "nil" end
  local class = getmetatable(value)
  local name = type(class) == "string" and class:match("^redlock%.(%a+)$")
  return "a " .. (name and "redlock " .. name or type(value))
end

local function shown(value)
  if type(value) ~= "number" then return options.kind(value) end
  return value ~= value and "nan" or string.format("%.14g", value)
end

-- Makes a check for whole numbers. A check returns nil, or a complaint, which follows the name of
-- the option.
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

-- Kinds of rl_option_table.h: functions that make a check for some bounds.
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

-- Does not show a number, which may be a password.
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

function kinds.label()
  return function(value)
    if type(value) ~= "string" then return "must be a string, got " .. shown(value) end
    return core.label_complaint(value)
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

local in_milliseconds = {} -- names of durations -> true
local parts_of_tls = {} -- checks of the fields of the table `tls`
local parts_of_guard = {} -- checks of the fields of the table `guard`

-- Adds the checks of a table of rl_option_table.h to `checks`, by name.
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

--- Returns true inside nginx. Programs may raise an error for a missing global (strict.lua), hence
--- pcall.
function options.inside_nginx()
  local ok, ngx = pcall(function(host) return host.ngx end, _G)
  return ok and type(ngx) == "table" and ngx.get_phase ~= nil
end

--- Returns true where a client must not block: in a worker of nginx, but not in its threads
--- (ngx.run_worker_thread), which have no cosockets.
function options.must_yield()
  return options.inside_nginx() and _G.ngx.socket ~= nil
end

-- Options for nginx only.
local of_host = add({}, core.options.host)
if not options.inside_nginx() then
  for name in pairs(of_host) do
    of_host[name] = function()
      return "is for nginx only, where a request or the worker owns a lock"
    end
  end
end

local of_lock = add({}, core.options.lock)
local of_client = add(add({}, core.options.lock), core.options.client)
for name, check in pairs(of_host) do
  of_lock[name], of_client[name] = check, check
end
local of_node = add({}, core.options.node)

local function quoted(name)
  return "'" .. name:gsub("[%c\128-\255]", "?") .. "'"
end

-- Returns the complaint about an unknown part of an option; `form` are the values of the option.
local function unknown_in(name, form)
  local part = type(name) == "string" and "an unknown " .. quoted(name) or "an unnamed value"
  return "has " .. part .. "; it must be " .. form
end

-- auto_extend is true, false, or a table of its parts.
local AUTO_EXTEND = "true, false or { every = ms, max_hold = ms }"
local parts_of_auto_extend = { every = of_lock.extend_every, max_hold = of_lock.max_hold }

local function auto_extend(value)
  if type(value) == "boolean" then return end
  if type(value) ~= "table" then
    return "must be " .. AUTO_EXTEND .. ", got " .. shown(value)
  end
  for name, part in pairs(value) do
    local check = parts_of_auto_extend[name]
    if not check then return unknown_in(name, AUTO_EXTEND) end
    local wrong = check(part)
    if wrong then return "has a '" .. name .. "' that " .. wrong end
  end
end

-- Returns the first wrong option: its name and the complaint; an unknown option has no complaint.
local function first_wrong(given, known)
  for name, value in pairs(given) do
    local check = known[name]
    local wrong = check and check(value)
    if wrong or not check then return name, wrong end
  end
  if getmetatable(given) == nil then return end -- false may hide a metatable
  -- Options from an __index metamethod are used, too.
  for name, check in pairs(known) do
    local value = given[name]
    local wrong = value ~= nil and check(value)
    if wrong then return name, wrong end
  end
end

local unknown_part -- below

-- tls is true, false, or a table of its parts.
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

-- guard is true, false, or a table of its parts.
local GUARD = "true, false or { max_ttl = ms, cluster = \"name\" }"
local function guard(value)
  if type(value) == "boolean" then return end
  if type(value) ~= "table" then
    return "must be " .. GUARD .. ", got " .. shown(value)
  end
  local name, wrong = first_wrong(value, parts_of_guard)
  if wrong then return "has a '" .. name .. "' that " .. wrong end
  if name ~= nil then return unknown_in(name, GUARD) end
  if value.cluster and value.cluster:find("[^\33-\126]") then
    return "has a 'cluster' that must be printable, and have no spaces"
  end
end

of_client.guard = guard

-- Inside nginx cosockets speak TLS. Refuses the parts that they take from nginx.conf instead of
-- ignoring them.
local of_nginx_conf = {
  ca = "nginx takes from lua_ssl_trusted_certificate", ca_path = "nginx takes from lua_ssl_trusted_certificate, a file",
  crl = "nginx takes from lua_ssl_crl", ciphers = "nginx takes from lua_ssl_ciphers",
  min_version = "nginx takes from lua_ssl_protocols",
  key_password = "nginx does not support: use a key without a password",
}
if options.inside_nginx() then
  for name, sentence in pairs(of_nginx_conf) do
    parts_of_tls[name] = function() return sentence end
  end
end

local function callback(value)
  if not callable(value) then return "must be a function, got " .. shown(value) end
end

of_client.on_event = callback

for _, of in ipairs { of_lock, of_client } do
  of.auto_extend, of.on_lost = auto_extend, callback
end

-- Option 'reentrant' of a lock may be the name of its owner; that of a client must be a boolean.
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

-- An acquire has the options of a lock and a token; with() also has an option of its release.
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

--- Returns nil, or the complaint about an owner.
options.owner_complaint = of_lock.owner

-- Reduces a name to lower-case letters, without a unit at the end.
local function plain(name)
  return (name:lower():gsub("[^%a]", ""):gsub("ms$", ""))
end

-- Names in other libraries, plain -> our name.
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

-- Names of TLS settings in other libraries, plain -> our name in the table `tls`.
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
-- Names that switch verification on or off in other libraries.
local verifying = {
  verify = true, verifymode = true, verifypeer = true, verifyhost = true, verifyhostname = true, checkhostname = true,
  rejectunauthorized = true, certreqs = true, insecure = true, insecureskipverify = true, skipverify = true,
  noverify = true, unverified = true, verification = true,
}
local VERIFIED = ": certificates are verified, against the system's CAs or those of tls = { ca = ... };"
  .. " only 'dangerously_unverified' turns that off"

-- Returns the part of `tls` that a name means, or "verify", or nil. `alone`: also without the
-- prefix ssl or tls.
local function meant_part(name, alone)
  local spelled = plain(name)
  local rest = spelled:match("^ssl(.+)$") or spelled:match("^tls(.+)$") or (alone and spelled)
  if not rest then return end
  for part in pairs(parts_of_tls) do
    if plain(part) == rest then return part end
  end
  return verifying[rest] and "verify" or elsewhere_in_tls[rest]
end

function unknown_part(name)
  if type(name) ~= "string" then return "is a list; it must be a table such as { ca = \"/etc/redis/ca.pem\" }" end
  local part = meant_part(name, true)
  local text = "has an unknown " .. quoted(name)
  if part == "verify" then return text .. VERIFIED end
  return text .. (part and " (did you mean '" .. part .. "'?)" or "")
end

-- Returns true for names that can only mean TLS, although they do not contain the word.
local function is_of_tls(name)
  local spelled = plain(name)
  return verifying[spelled] or spelled:find("cert", 1, true) or spelled:find("cipher", 1, true)
    or spelled == "ca" or spelled == "cafile" or spelled == "capath" or spelled == "keyfile" or spelled == "sni"
    or spelled == "servername"
end

-- Returns a hint at an option that belongs into `tls`, or nil.
local function hint_at_tls(name)
  local part = meant_part(name, is_of_tls(name))
  if part == "verify" then return VERIFIED end
  return part and " (did you mean 'tls = { " .. part .. " = ... }'?)"
end

-- Returns a hint at an option that belongs into `guard`, or nil.
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

-- Returns what was given instead of options. A number may be a ttl, in seconds if it is small.
local function no_options(given)
  if type(given) ~= "number" then return shown(given) end
  local ttl = given >= 1000 and given or given >= 1 and given * 1000 or 10000
  return ("%s; times are in milliseconds: { ttl = %.14g } is a lease of %.14g s"):format(shown(given), ttl, ttl / 1000)
end

-- Returns the complaint about the first wrong option, or nil.
local function complaint(given, known)
  if type(given) ~= "table" then
    return "options must be a table, got " .. (known.ttl and no_options or shown)(given)
  end
  local name, wrong = first_wrong(given, known)
  if wrong then return "option '" .. name .. "' " .. wrong end
  if name ~= nil then return unknown(name, known) end
end

--- Checks the options of a lock or of a call, and returns them. `level` counts as in error(), as
--- seen from the caller of this function.
function options.lock(given, level)
  local wrong = complaint(given, of_lock)
  if wrong then error("redlock: " .. wrong, level + 1) end
  return given
end

--- Checks the options of a client, and returns them.
function options.client(given, level)
  local wrong = given ~= nil and complaint(given, of_client)
  if wrong then error("redlock: " .. wrong, level + 1) end
  return given
end

-- Refuses options of retries for operations that are tried once.
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

--- Checks the options of an acquire, and returns them.
function options.acquire(given, level)
  local wrong = complaint(given, of_acquire)
  if wrong then error("redlock: " .. wrong, level + 1) end
  check_token_goes_with(given, level + 1)
  return given
end

local of_release = { wait = kinds.flag() }

--- Checks the options of lock:release(). Returns true if it must not wait.
function options.release(given, level)
  local wrong = complaint(given, of_release)
  if wrong then error("redlock: " .. wrong, level + 1) end
  return given.wait == false
end

--- Checks the options of an attach, and returns them.
function options.attach(given, level)
  local checked = options.lock(given, level + 1)
  check_tried_once(given, "client:attach(): it", level + 1)
  return checked
end

--- Checks the object before the colon and the text of lock:detach().
function options.handover(client, kind, text, level)
  if type(client) ~= kind then
    error("redlock: client:attach() needs a client before the colon, got " .. shown(client), level + 1)
  elseif type(text) ~= "string" then
    error("redlock: client:attach() takes the text that lock:detach() has returned, got " .. shown(text), level + 1)
  end
end

--- Checks the token of client:force_release().
function options.token(token, level)
  if type(token) ~= "string" then
    error("redlock: client:force_release(): token must be a string, or \"any\", got " .. shown(token), level + 1)
  elseif #token > TOKEN_MAX then
    error("redlock: client:force_release(): token is longer than " .. TOKEN_MAX .. " bytes", level + 1)
  end
  return token
end

--- Checks the ttl of lock:extend(); nil is the ttl of the acquire.
function options.extension(ttl, level)
  local wrong = ttl ~= nil and of_lock.ttl(ttl)
  if wrong then error("redlock: lock:extend(): ttl " .. wrong, level + 1) end
  return ttl
end

local of_inspection = { permits = of_lock.permits }

--- Checks the options of client:inspect(). Returns the number of slots of a semaphore, or nil.
function options.inspection(given, level)
  local wrong = given ~= nil and complaint(given, of_inspection)
  if wrong then error("redlock: client:inspect(): " .. wrong, level + 1) end
  local permits = given ~= nil and given.permits or 0
  return permits > 0 and permits or nil
end

local of_doctor = { keys = kinds.flag(), resource = kinds.bytes() }

--- Checks the object before the colon and the options of client:doctor(). Returns the resource
--- whose keys are tried, and true if keys must be scanned.
function options.doctor(client, kind, given, level)
  local wrong = given ~= nil and complaint(given, of_doctor)
  local resource = not wrong and given ~= nil and given.resource or "redlock-doctor"
  options.resource(client, kind, resource, "doctor", level + 1)
  if wrong then error("redlock: client:doctor(): " .. wrong, level + 1) end
  return resource, given ~= nil and given.keys or false
end

--- Checks a node of the list, an address or its parts, and returns it.
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
      wrong = "has a 'host' and a 'path'; set one of them"
    elseif node.path ~= nil and node.port ~= nil then
      wrong = "has a 'path', which takes no 'port'"
    end
  end
  if wrong then error(where .. wrong, level + 1) end
  return node
end

--- Checks the list of nodes, a table with the keys 1 to n. Returns n.
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
  if count == 0 then error("redlock: nodes is empty; name at least one node", level + 1) end
  return count
end

--- Checks the object before the colon and the name of a resource.
function options.resource(client, kind, resource, method, level)
  if type(client) ~= kind then
    error("redlock: client:" .. method .. "() needs a client before the colon, got " .. shown(client),
      level + 1)
  elseif type(resource) ~= "string" then
    error("redlock: resource must be a string, got " .. shown(resource), level + 1)
  end
end

-- Returns nil, or the complaint about a list of resources.
local function list_complaint(resources)
  local seen, count = {}, 0
  for _ in next, resources do count = count + 1 end
  if rawget(resources, 1) == nil then
    return count == 0 and "the list of resources is empty; name at least one"
      or "resource must be a string, or a list of strings, got a table without [1]"
  end
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

--- Checks the object before the colon and a resource, or a list of resources.
function options.resources(client, kind, resource, method, level)
  if type(client) ~= kind or type(resource) ~= "table" then
    options.resource(client, kind, resource, method, level + 1)
    return
  end
  local wrong = list_complaint(resource)
  if wrong then error("redlock: " .. wrong, level + 1) end
end

local sent = { wait = false }

--- Checks the options of with(). Returns the options of its release.
function options.section_release(given, level)
  local wrong = complaint(given, of_section)
  if wrong then error("redlock: " .. wrong, level + 1) end
  check_token_goes_with(given, level + 1)
  return given.release_wait == false and sent or nil
end

-- Returns true for a table of nothing but options of a lock.
local function are_options(value)
  if type(value) ~= "table" or next(value) == nil then return false end
  for name in pairs(value) do
    if not of_section[name] then return false end
  end
  return true
end

--- Checks the arguments of with() after the name: options, if any, and a callable value. Returns
--- the options, and the position of the function.
function options.section(level, first, second, ...)
  if callable(first) then
    if select("#", ...) == 0 and are_options(second) then
      error("redlock: with() takes the options before the function: client:with(name, options, fn)", level + 1)
    end
    return nil, 1
  end
  if first ~= nil and type(first) ~= "table" then
    error("redlock: with() takes a name, options and a function, got " .. no_options(first), level + 1)
  elseif not callable(second) then
    error("redlock: with() needs a function to run, got " .. shown(second), level + 1)
  end
  return first, 2
end

-- Options that client:lead() sets itself, with the values that may be repeated.
local of_leader = { auto_extend = true, fence = true, reentrant = false, permits = 0 }
if options.inside_nginx() then of_leader.owner = "request" end

--- Checks the arguments of lead() after the name. Returns the options of its locks, the callable
--- value, and on_error or nil.
function options.lead(level, first, second)
  if callable(first) and second == nil then first, second = nil, first end
  if first ~= nil and type(first) ~= "table" then
    error("redlock: lead() takes a name, options and a function, got " .. no_options(first), level + 1)
  elseif not callable(second) then
    error("redlock: lead() needs a function to run, got " .. shown(second), level + 1)
  end
  local given = {}
  for name, value in pairs(first or {}) do given[name] = value end
  local on_error = given.on_error
  given.on_error = nil
  local wrong = on_error ~= nil and callback(on_error)
  if wrong then error("redlock: option 'on_error' " .. wrong, level + 1) end
  wrong = complaint(given, of_lock)
  if wrong then error("redlock: " .. wrong, level + 1) end
  for name, value in pairs(of_leader) do
    local own = given[name]
    if own == nil then
      given[name] = value
    elseif own ~= value and not (name == "auto_extend" and own) then
      error(("redlock: option '%s' of client:lead() is always %s"):format(name, tostring(value)), level + 1)
    end
  end
  if given.retry_count ~= nil then
    error("redlock: option 'retry_count' does not go with client:lead(): limit a campaign by 'wait'", level + 1)
  end
  return given, second, on_error
end

--- Functions that check the argument of an operation, by the names in
--- csrc/binding/rl_lua_operation.c. Each is called with (argument, level), unless the argument is
--- nil, and returns the value for C.
options.arguments = {
  options = options.acquire, ttl = options.extension, release = options.release, token = options.token,
  none = function() end,
}

return options
