--- redlock: a distributed lock over independent Redis or Valkey nodes.
---
--- All durations are milliseconds. A mistake of the caller raises an error at the caller's line;
--- a failure is returned as nil, message, code. The types are in redlock/types.lua, the
--- words in docs/lua.md.

local core = require "redlock.core"
local options = require "redlock.options"
require "redlock.lock"

-- Inside nginx nothing may block the worker.
local client = require(options.must_yield() and "redlock.nginx" or "redlock.client")

---@class redlock
local redlock = {
  ---@type string
  VERSION = core.VERSION,
}

--- Makes a client. Connects to no node: each connection is made when it is first needed.
---@param nodes (string|redlock.Node)[] every client of a resource must use the same ones
---@param given? redlock.ClientOptions
---@return redlock.Client
---@nodiscard
function redlock.new(nodes, given)
  local made = client.new(nodes, given, 2)
  return made
end

return redlock
