--- Checks what callers hand in. Every mistake is raised at the line of the caller, and names the
--- option. Values are never quoted unless they are numbers: a text may be a password.

local options = {}

local floor = math.floor

local YEAR = 366 * 86400 * 1000
local INT_MAX = 2147483647

local kinds = {}

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
  unit = unit and " (" .. unit .. ")" or ""
  return function(value)
    if type(value) ~= "number" or value ~= value or value < low or floor(value) ~= value then
      return "must be an integer >= " .. low .. unit .. ", got " .. shown(value)
    elseif value > high then
      return string.format("must be at most %.0f%s, got %s", high, unit, shown(value))
    end
  end
end

function kinds.factor(value)
  if type(value) ~= "number" or not (value >= 0 and value < 1) then
    return "must be a number >= 0 and < 1, got " .. shown(value)
  end
end

function kinds.bytes(value)
  if type(value) ~= "string" then return "must be a string, got " .. shown(value) end
end

function kinds.text(value)
  if type(value) ~= "string" then return "must be a string, got a " .. type(value) end
  if value:find("\0", 1, true) then return "must not contain a NUL byte" end
end

function kinds.boolean(value)
  if type(value) ~= "boolean" then return "must be true or false, got " .. shown(value) end
end

kinds.lease = whole(1, YEAR, "milliseconds")
kinds.duration = whole(0, YEAR, "milliseconds")
kinds.count = whole(0, INT_MAX)
kinds.retries = whole(0, 1000000)
kinds.port = whole(1, 65535)

-- Inside nginx only: whose a lock is.
local host = _G
local inside_nginx = type(host.ngx) == "table" and host.ngx.get_phase ~= nil

function kinds.owner(value)
  if not inside_nginx then return "is for nginx, where a lock belongs to a request or to the worker" end
  if value ~= "request" and value ~= "worker" then
    return "must be \"request\" or \"worker\", got " .. shown(value)
  end
end

--- What is wrong with an owner, or nil.
options.owner_complaint = kinds.owner

local of_lock = {
  ttl = kinds.lease,
  retry_count = kinds.retries,
  retry_delay = kinds.duration,
  retry_jitter = kinds.duration,
  wait = kinds.duration,
  node_timeout = kinds.lease,
  drift_factor = kinds.factor,
  lock_delay = kinds.duration,
  owner = kinds.owner,
}

local of_client = {
  prefix = kinds.bytes,
  username = kinds.text,
  password = kinds.text,
  db = kinds.count,
  tls = kinds.boolean,
}
for name, check in pairs(of_lock) do
  of_client[name] = check
end

local of_node = {
  host = kinds.text,
  port = kinds.port,
  path = kinds.text,
  username = kinds.text,
  password = kinds.text,
  db = kinds.count,
  tls = kinds.boolean,
}

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
  hostname = "host", ip = "host", address = "host", socket = "path", unix = "path", unixsocket = "path",
}

local function unknown(name, known)
  if type(name) ~= "string" then
    return "unknown option [" .. (type(name) == "number" and shown(name) or type(name)) .. "]"
  end
  local text = "unknown option '" .. name:gsub("[%c\128-\255]", "?") .. "'"
  if known == of_lock and of_client[name] then
    return "option '" .. name .. "' can only be given to redlock.new()"
  end
  local spelled = plain(name)
  for candidate in pairs(known) do
    if plain(candidate) == spelled then return text .. " (did you mean '" .. candidate .. "'?)" end
  end
  local meant = elsewhere[spelled]
  local check = meant and known[meant]
  if check then
    local unit = (check == kinds.lease or check == kinds.duration) and ", in milliseconds" or ""
    return text .. " (did you mean '" .. meant .. "'" .. unit .. "?)"
  end
  return text
end

--- The first thing that is wrong with a table of options, or nil.
local function complaint(given, known)
  if type(given) ~= "table" then return "options must be a table, got " .. shown(given) end
  for name, value in pairs(given) do
    local check = known[name]
    if not check then return unknown(name, known) end
    local wrong = check(value)
    if wrong then return "option '" .. name .. "' " .. wrong end
  end
  if not getmetatable(given) then return end
  -- What a metatable adds is used like the rest.
  for name, check in pairs(known) do
    local value = given[name]
    local wrong = value ~= nil and check(value)
    if wrong then return "option '" .. name .. "' " .. wrong end
  end
end

-- In the order in which the C functions take them.
local function unpack_lock(o)
  return o.ttl, o.retry_count, o.retry_delay, o.retry_jitter, o.wait, o.node_timeout,
    o.drift_factor, o.lock_delay, o.owner
end

--- The options of a lock or of a call, as the C functions take them. `level` counts as in error(),
--- seen from the caller of this function.
function options.lock(given, level)
  local wrong = complaint(given, of_lock)
  if wrong then error("redlock: " .. wrong, level + 1) end
  return unpack_lock(given)
end

--- The options of a client, as the C functions take them.
function options.client(given, level)
  if given == nil then return end
  local wrong = complaint(given, of_client)
  if wrong then error("redlock: " .. wrong, level + 1) end
  return given.prefix, given.username, given.password, given.db, given.tls, unpack_lock(given)
end

--- The ttl that lock:extend() is given; nil is the lock's own.
function options.extension(ttl, level)
  local wrong = ttl ~= nil and kinds.lease(ttl)
  if wrong then error("redlock: lock:extend(): ttl " .. wrong, level + 1) end
end

--- A node of the list, as the C functions take it: an address, or nil and its parts.
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
  return nil, node.host, node.port, node.path, node.username, node.password, node.db, node.tls
end

--- The list of nodes: a table with nothing but 1 to n in it. Returns n.
function options.nodes(nodes, level)
  if type(nodes) ~= "table" then
    error("redlock: nodes must be a list of addresses, got " .. shown(nodes), level + 1)
  end
  if type(rawget(nodes, "new")) == "function" then
    error("redlock: redlock.new() is called with a dot, not with a colon", level + 1)
  end
  local count = 0
  for key in pairs(nodes) do
    if type(key) ~= "number" then
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

--- The object before the colon and the name of what is to be locked.
function options.resource(client, kind, resource, method, level)
  if type(client) ~= kind then
    error("redlock: client:" .. method .. "() needs a client before the colon, got " .. shown(client),
      level + 1)
  elseif type(resource) ~= "string" then
    error("redlock: resource must be a string, got " .. shown(resource), level + 1)
  end
end

local metatable_of = type(debug) == "table" and debug.getmetatable or getmetatable

local function callable(value)
  if type(value) == "function" then return true end
  local metatable = metatable_of(value)
  return type(metatable) == "table" and metatable.__call ~= nil
end

-- A table with options of a lock, and nothing else.
local function are_options(value)
  if type(value) ~= "table" or next(value) == nil then return false end
  for name in pairs(value) do
    if not of_lock[name] then return false end
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

return options
