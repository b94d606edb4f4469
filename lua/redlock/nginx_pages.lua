--- Pages of nginx for monitoring: figures of all workers, health, status.
---
---     lua_shared_dict redlock 1m;
---     init_by_lua_block {
---       locks = require("resty.redlock").new { ... }
---       pages = require("redlock.nginx_pages").new("redlock", locks)
---     }
---     location = /metrics { content_by_lua_block { pages:metrics() } }
---     location = /health { content_by_lua_block { pages:health() } }
---     location = /status { content_by_lua_block { pages:status() } }

local core = require "redlock.core"
local driver = require "redlock.nginx_driver"
local metrics = require "redlock.nginx_metrics"
local prometheus = require "redlock.prometheus"
local status_page = require "redlock.nginx_status"
require "redlock.nginx"

local ngx = ngx
local list_locks = core.nginx.locks
local concat, sort = table.concat, table.sort
local error, getmetatable, ipairs, next, pairs, pcall = error, getmetatable, ipairs, next, pairs, pcall
local setmetatable, tostring, type = setmetatable, tostring, type

local HEALTH_LIFE = 1 -- seconds for which a worker repeats its last answer about health
local HEALTH_POLL = 0.01 -- seconds between two looks at the answer of another request
local HEALTH_RESOURCE = "redlock-health" -- inspect() reads its key, which nothing writes

local joined = setmetatable({}, { __mode = "k" }) -- objects of pages:join()
local used = {} -- dictionaries with the names of their clients

local Pages = {}
Pages.__index = Pages

-- ------------------------------------------------------------------------------------- the figures

-- Publishes the figures of this worker, and returns those of all workers for the client `index`.
local function sum(self, index)
  local stats, figures = self.clients[index]:stats(), self.figures[index]
  figures:publish(stats, list_locks(self.drivers[index].handle, metrics.LOCKS))
  return figures:sum(stats)
end

-- Returns the argument of prometheus.render().
local function summed(self)
  local clients = {}
  for index, name in ipairs(self.names) do
    clients[name] = { stats = function() return sum(self, index) end }
  end
  if self.named then return clients end
  return clients[self.names[1]]
end

--- Returns the figures of all workers: a redlock.Stats, or a table of them by name if the clients
--- have names.
function Pages:stats()
  local all = {}
  for index, name in ipairs(self.names) do all[name] = sum(self, index) end
  if self.named then return all end
  return all[self.names[1]]
end

--- Answers with the figures of all workers in the text format of Prometheus.
function Pages:metrics()
  local text = prometheus.render(summed(self))
  ngx.header.content_type = prometheus.CONTENT_TYPE
  ngx.header.cache_control = "no-store"
  ngx.print(text)
end

--- Adds the figures of all workers to the page of an object of nginx-lua-prometheus, so that its
--- collect() and metric_data() have both. Returns the object.
function Pages:join(object)
  if type(object) ~= "table" or type(object.metric_data) ~= "function" then
    error("redlock: pages:join(): pass the object of require(\"prometheus\").init()", 2)
  end
  if joined[object] then
    error("redlock: pages:join(): the object has figures already; pass all clients to one nginx_pages.new()", 2)
  end
  joined[object] = true
  local metric_data, pages = object.metric_data, self
  function object.metric_data(this)
    local lines = metric_data(this) or {}
    lines[#lines + 1] = prometheus.render(summed(pages))
    return lines
  end
  function object.collect(this)
    ngx.header.content_type = prometheus.CONTENT_TYPE
    ngx.print(this:metric_data())
  end
  return object
end

-- ------------------------------------------------------------------------------------------ health

-- Returns the reason why the node does not vote, or nil if it does.
local function complaint(state, key)
  if state.quarantine then return state.quarantine end
  if key and key.state == "unknown" then return key.error or "no answer" end
  if not key or state.state ~= "up" then return state.error or "not connected" end
end

-- Asks all nodes of the client. Waits for node_timeout at most.
local function ask(client, resource)
  local found, message = client:inspect(resource)
  local health = { quorum = client:stats().quorum, votes = 0, nodes = {} }
  for index, state in ipairs(client:nodes()) do
    local reason = found and complaint(state, found.nodes[index]) or not found and message or nil
    health.nodes[index] = { node = state.node, reason = reason }
    if not reason then health.votes = health.votes + 1 end
  end
  health.up = health.votes >= health.quorum
  return health
end

-- Returns the health of the client `index`. One request in HEALTH_LIFE asks; requests that arrive
-- meanwhile wait for its answer.
local function health_of(self, index)
  local last = self.last[index]
  while ngx.now() < last.ask_at do
    ngx.sleep(HEALTH_POLL)
    if ngx.now() < last.fresh_until then return last.health end
  end
  if ngx.now() < last.fresh_until then return last.health end
  last.ask_at = ngx.now() + HEALTH_LIFE
  local health = ask(self.clients[index], self.resource)
  last.health, last.fresh_until, last.ask_at = health, ngx.now() + HEALTH_LIFE, 0
  return health
end

local JSON_ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\" }

local function quote(text)
  text = prometheus.clean(tostring(text))
  return '"' .. text:gsub('[%c"\\]', function(byte)
    return JSON_ESCAPES[byte] or ("\\u%04x"):format(byte:byte())
  end) .. '"'
end

local function to_json(health, name)
  local nodes = {}
  for index, node in ipairs(health.nodes) do
    nodes[index] = '{"node":' .. quote(node.node) .. ',"votes":' .. tostring(not node.reason)
      .. (node.reason and ',"reason":' .. quote(node.reason) or "") .. "}"
  end
  return '{' .. (name and '"client":' .. quote(name) .. "," or "") .. '"status":"' .. (health.up and "up" or "down")
    .. '","votes":' .. health.votes .. ',"quorum":' .. health.quorum .. ',"nodes":[' .. concat(nodes, ",") .. "]}"
end

--- Answers 200 if each client has a quorum of nodes that answer, and 503 otherwise, with a body in
--- JSON. Asks the nodes, at most once a second in each worker, and waits for node_timeout at most.
function Pages:health()
  local up, texts = true, {}
  for index, name in ipairs(self.names) do
    local health = health_of(self, index)
    up = up and health.up
    texts[index] = to_json(health, self.named and name or nil)
  end
  ngx.status = up and 200 or 503
  ngx.header.content_type = "application/json"
  ngx.header.cache_control = "no-store"
  if self.named then
    ngx.say('{"status":"', up and "up" or "down", '","clients":[', concat(texts, ","), "]}")
  else
    ngx.say(texts[1])
  end
end

-- ------------------------------------------------------------------------------------------ status

--- Answers with a page in HTML for people: nodes, held locks, waiters, outcomes. It loads nothing
--- and asks no node.
function Pages:status()
  local clients = {}
  for index, name in ipairs(self.names) do
    local stats, nodes = sum(self, index), self.clients[index]:nodes()
    local locks = self.figures[index]:locks()
    clients[index] = { name = self.named and name or nil, stats = stats, nodes = nodes, locks = locks }
  end
  local text = status_page.render(clients, core.VERSION)
  ngx.header.content_type = "text/html; charset=utf-8"
  ngx.header.cache_control = "no-store"
  ngx.header.content_security_policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
  ngx.header.x_content_type_options = "nosniff"
  ngx.print(text)
end

-- --------------------------------------------------------------------------------------------- new

-- Returns the drivers of the clients, by name.
local function drivers_of(clients, level)
  local drivers, names = {}, {}
  for name, client in pairs(clients) do
    local is_client, own = pcall(core.nginx.driver, client, "stats")
    if not is_client or not own then
      error("redlock: redlock.nginx_pages needs clients of redlock.new() inside nginx", level + 1)
    end
    if names[own] then
      error(("redlock: the clients '%s' and '%s' have the same nodes and options, and share their figures; pass one")
        :format(names[own], name), level + 1)
    end
    drivers[name], names[own] = own, name
  end
  return drivers
end

-- Makes the figures of a client, which its driver publishes.
local function publish_by(own, dict_name, name)
  local figures = metrics.new(dict_name, name)
  local free = driver.set_publisher(own, function(client, ended)
    figures:publish(client:stats(), list_locks(own.handle, metrics.LOCKS))
    if ended then figures:leave() end
  end)
  return free and figures
end

-- Returns the resource of the health check.
local function read_options(given, level)
  if given == nil then return HEALTH_RESOURCE end
  if type(given) ~= "table" then error("redlock: options must be a table", level + 1) end
  for name in pairs(given) do
    if name ~= "health_resource" then error("redlock: unknown option '" .. tostring(name) .. "'", level + 1) end
  end
  local resource = given.health_resource
  if resource ~= nil and type(resource) ~= "string" then
    error("redlock: option 'health_resource' must be a string, got a " .. type(resource), level + 1)
  end
  return resource or HEALTH_RESOURCE
end

-- Notes that the dictionary has figures of the client: two clients of one name would be one.
local function reserve(dict_name, name, level)
  local key = dict_name .. ":" .. name
  if used[key] then
    error(("redlock: lua_shared_dict '%s' has figures of a client '%s' already; give the clients names, or another "
      .. "dictionary"):format(dict_name, name), level + 1)
  end
  used[key] = true
end

local nginx_pages = {}

--- Returns the pages of a client, or of several in a table by name, whose figures are summed in
--- lua_shared_dict `dict_name`. Call it once, after redlock.new(), in init_by_lua or in
--- init_worker_by_lua.
function nginx_pages.new(dict_name, clients, given)
  local named = type(clients) == "table" and getmetatable(clients) == nil
  if type(dict_name) ~= "string" or not ngx.shared[dict_name] then
    error(("redlock: there is no lua_shared_dict '%s'; add it to the block http, with 1m for each client")
      :format(tostring(dict_name)), 2)
  end
  local by_name = named and clients or { [""] = clients }
  if next(by_name) == nil then error("redlock: redlock.nginx_pages.new(): pass a client", 2) end
  for name in pairs(by_name) do
    if type(name) ~= type((next(by_name))) or type(name) ~= "string" and type(name) ~= "number" then
      error("redlock: redlock.nginx_pages.new(): pass a client, or a table of clients by name", 2)
    end
  end
  local drivers = drivers_of(by_name, 2)
  local self = setmetatable({ named = named, names = {}, clients = {}, drivers = {}, figures = {}, last = {} }, Pages)
  self.resource = read_options(given, 2)
  for name in pairs(by_name) do self.names[#self.names + 1] = name end
  sort(self.names)
  for index, name in ipairs(self.names) do
    self.clients[index], self.last[index] = by_name[name], { ask_at = 0, fresh_until = 0 }
    self.drivers[index], self.figures[index] = drivers[name], publish_by(drivers[name], dict_name, name)
    if not self.figures[index] then
      error("redlock: the client has pages already; make them once, for example in init_by_lua", 2)
    end
    reserve(dict_name, name, 2)
  end
  return self
end

return nginx_pages
