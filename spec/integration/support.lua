--- What the integration specs share, beyond the servers of spec/helper.lua.

local assert = require "luassert"
local socket = require "socket"

local helper = require "spec.helper"

local support = {}

--- Options to try once. Nodes that answer have the time for that, however slow the machine is.
support.once = { retry_count = 0, node_timeout = 20000, ttl = 60000 }

--- Asserts that a call failed with this code, and returns its message.
function support.failure(code, ...)
  local result, message, got = ...
  assert.is_nil(result)
  assert.are.equal(code, got, message)
  assert.is_string(message)
  assert.is_true(#message > 0)
  return message
end

function support.contains(text, part)
  assert.is_truthy(text:find(part, 1, true), ("%q does not contain %q"):format(text, part))
end

--- The first `count` elements of a list.
function support.first(list, count)
  local some = {}
  for index = 1, count do some[index] = list[index] end
  return some
end

--- Lets the client work until `condition` returns something true.
function support.pump(client, condition, what)
  return helper.eventually(function()
    client:process()
    return condition()
  end, what)
end

local function is_up(client)
  for _, node in ipairs(client:nodes()) do
    if node.state ~= "up" then return false end
  end
  return true
end

--- Until every node of the client is connected.
function support.all_up(client)
  support.pump(client, function() return is_up(client) end, "all nodes to be up")
end

--- Until `count` nodes (all, if not given) have the key of a held lock, with its token.
function support.on_nodes(farm, client, lock, count, key)
  support.pump(client, function()
    return farm:count(key or lock:resource(), lock:token()) == (count or #farm)
  end, "the key to be on the nodes")
end

--- Until no node has the key.
function support.free(farm, client, key)
  support.pump(client, function() return farm:count(key) == 0 end, "the key " .. key .. " to be gone")
end

--- Connects a client to all its nodes, and makes them know the scripts.
function support.warm(farm, client)
  helper.eventually(function() -- A node that has failed is connected to when it is used.
    local lock = client:acquire("warm")
    if lock then lock:release() end
    client:process()
    return lock and is_up(client)
  end, "all nodes to be up")
  assert(assert(client:acquire("warm")):release())
  support.free(farm, client, "warm")
  return client
end

local Session = {}
Session.__index = Session

--- A connection of its own to a node, for AUTH and SELECT.
function support.session(node)
  local connection = assert(socket.connect("127.0.0.1", node.port))
  connection:settimeout(45)
  return setmetatable({ connection = connection }, Session)
end

--- Returns a status, a bulk or a number; false for a nil; nil and the text of an error.
function Session:call(...)
  local words = { ... }
  local parts = { "*" .. #words .. "\r\n" }
  for _, word in ipairs(words) do
    parts[#parts + 1] = ("$%d\r\n%s\r\n"):format(#tostring(word), tostring(word))
  end
  assert(self.connection:send(table.concat(parts)))
  local line = assert(self.connection:receive("*l"))
  local kind, rest = line:sub(1, 1), line:sub(2)
  if kind == "-" then return nil, rest end
  if kind == ":" then return tonumber(rest) end
  if kind ~= "$" then return rest end
  if rest == "-1" then return false end
  return (assert(self.connection:receive(tonumber(rest) + 2)):sub(1, -3))
end

function Session:close()
  self.connection:close()
end

--- How many connections of redlock clients a node has.
function support.connections(node)
  local _, count = assert(node:command("CLIENT", "LIST")):gsub(" name=redlock ", "")
  return count
end

return support
