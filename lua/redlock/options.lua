--- Checks what callers hand in. Every mistake is raised at the line of the caller, and names the
--- option. Values are never quoted unless they are numbers: a text may be a password.
---
--- Which options there are, of what kind and within what bounds, is written in csrc/core/rl_option_table.h
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

function kinds.text()
  return function(value)
    if type(value) ~= "string" then return "must be a string, got a " .. type(value) end
    if value:find("\0", 1, true) then return "must not contain a NUL byte" end
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

-- The checks of a table of rl_option_table.h, by name, added to `checks`.
local function add(checks, rows)
  for _, row in ipairs(rows) do
    checks[row.name] = kinds[row.kind](row.low, row.high, row.words)
    in_milliseconds[row.name] = row.kind == "duration"
  end
  return checks
end

local metatable_of = type(debug) == "table" and debug.getmetatable or getmetatable

local function callable(value)
  if type(value) == "function" then return true end
  local metatable = metatable_of(value)
  return type(metatable) == "table" and metatable.__call ~= nil
end

--- Whether this is nginx. Programs that let nobody read a global that is not there are asked kindly.
function options.inside_nginx()
  local ok, ngx = pcall(function(host) return host.ngx end, _G)
  return ok and type(ngx) == "table" and ngx.get_phase ~= nil
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
  reentry = "reentrant", recursive = "reentrant",
  keepalive = "auto_extend", renewal = "auto_extend", maxextensions = "max_hold", maxduration = "max_hold",
  hostname = "host", ip = "host", address = "host", socket = "path", unix = "path", unixsocket = "path",
}

local function unknown(name, known)
  if type(name) ~= "string" then
    return "unknown option [" .. (type(name) == "number" and shown(name) or type(name)) .. "]"
  end
  local text = "unknown option '" .. name:gsub("[%c\128-\255]", "?") .. "'"
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
  return text
end

--- The first thing that is wrong with a table of options, or nil.
local function complaint(given, known)
  if type(given) == "number" then
    return "options must be a table, such as { ttl = " .. shown(given) .. " }, got " .. shown(given)
  elseif type(given) ~= "table" then
    return "options must be a table, got " .. shown(given)
  end
  for name, value in pairs(given) do
    local check = known[name]
    if not check then return unknown(name, known) end
    local wrong = check(value)
    if wrong then return "option '" .. name .. "' " .. wrong end
  end
  if getmetatable(given) == nil then return end -- false may hide one
  -- What a metatable adds is used like the rest.
  for name, check in pairs(known) do
    local value = given[name]
    local wrong = value ~= nil and check(value)
    if wrong then return "option '" .. name .. "' " .. wrong end
  end
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

--- By the names in the table of csrc/binding/rl_lua_call.c: the function that checks the argument of a call, unless it
--- is nil, and returns what C is given. It has the parameters argument and level.
options.arguments = {
  options = options.acquire, ttl = options.extension, release = options.release, token = options.token,
  none = function() end,
}

return options
