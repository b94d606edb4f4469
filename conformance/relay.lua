-- A relay in front of one server, and the faults of the suite: a node that is dead, hung or slow,
-- requests that arrive late, replies that arrive late or are lost, broken connections.
--
-- SPDX-License-Identifier: MIT

local uv = require "luv"
local task = require "conformance.task"

local Relay = {}
Relay.__index = Relay

local function close(handle)
  if handle and not handle:is_closing() then handle:close() end
end

local function send(handle, bytes)
  if not handle:is_closing() then handle:write(bytes) end
end

-- Closes both ends. Held requests stay: the node executes them when they are let go, as bytes
-- in a network do.
local function close_link(link)
  close(link.client)
  if not link.requests then close(link.server) end
  link.closed = true
end

local function concerns(relay, bytes) return bytes:find(relay.word, 1, true) ~= nil end

local function on_request(relay, link, bytes)
  if concerns(relay, bytes) then relay.seen = relay.seen + 1 end
  if link.requests or relay.hung or relay.holds_requests and concerns(relay, bytes) then
    link.requests = (link.requests or "") .. bytes
    return
  end
  if relay.holds_replies and concerns(relay, bytes) then link.replies = link.replies or "" end
  if relay.delay == 0 then return send(link.server, bytes) end
  task.after(relay.delay, function() send(link.server, bytes) end)
end

local function on_reply(relay, link, bytes)
  if link.replies then
    link.replies = link.replies .. bytes
  elseif relay.delay == 0 then
    send(link.client, bytes)
  else
    task.after(relay.delay, function() send(link.client, bytes) end)
  end
end

-- Reads one end of a link until it closes.
local function read(relay, link, handle, on_bytes)
  handle:read_start(function(failure, bytes)
    if failure or not bytes then return close_link(link) end
    on_bytes(relay, link, bytes)
  end)
end

local function accept(relay)
  local link = { client = uv.new_tcp(), server = uv.new_pipe(false) }
  relay.listener:accept(link.client)
  link.client:nodelay(true)
  relay.links[#relay.links + 1] = link
  link.server:connect(relay.path, function(failure)
    if failure or link.client:is_closing() then return close_link(link) end
    read(relay, link, link.server, on_reply)
    read(relay, link, link.client, on_request)
  end)
end

-- A bound socket that does not listen refuses connections, and keeps its port.
local function bind(relay)
  relay.listener = uv.new_tcp()
  assert(relay.listener:bind("127.0.0.1", relay.port))
  relay.port = relay.listener:getsockname().port
end

--- Returns a relay to the server at the Unix socket |path|. Faults that hold requests or replies
--- wait for a request that contains |word|.
function Relay.new(path, word)
  local self = setmetatable({ path = path, word = word, port = 0, links = {}, delay = 0, seen = 0 }, Relay)
  bind(self)
  self:listen()
  return self
end

function Relay:listen()
  assert(self.listener:listen(128, function() accept(self) end))
end

--- Breaks all connections.
function Relay:cut()
  for _, link in ipairs(self.links) do close_link(link) end
end

--- Breaks all connections, and refuses new ones until listen().
function Relay:refuse()
  self:cut()
  close(self.listener)
  bind(self)
end

--- The node reads nothing until let().
function Relay:hang() self.hung = true end

--- The next request with the word, and all that follow it on its connection, arrive after let().
function Relay:hold_requests() self.holds_requests = true end

--- Requests arrive. From the next one with the word on, replies arrive after let().
function Relay:hold_replies() self.holds_replies = true end

--- Each direction takes |ms|.
function Relay:slow(ms) self.delay = ms end

--- Ends the faults, and delivers the held bytes.
function Relay:let()
  self.hung, self.holds_requests, self.holds_replies, self.delay = nil, nil, nil, 0
  for _, link in ipairs(self.links) do
    if link.replies then send(link.client, link.replies) end
    if link.requests then send(link.server, link.requests) end
    link.replies, link.requests = nil, nil
    if link.closed then -- the server executes the bytes, and sees the end after them
      local server = link.server
      if not server:is_closing() then server:shutdown(function() close(server) end) end
    end
  end
end

--- Ends the faults. Held replies are lost with their connections.
function Relay:lose_replies()
  for _, link in ipairs(self.links) do
    if link.replies then close_link(link) end
  end
  self:let()
end

function Relay:shut()
  close(self.listener)
  for _, link in ipairs(self.links) do
    link.requests = nil
    close_link(link)
  end
end

return Relay
