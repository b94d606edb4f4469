--- The client that blocks, inside nginx: nothing else happens in the worker while it waits. For
--- init_by_lua and exit_worker_by_lua, where nothing can be waited for in another way, and for
--- comparisons.

require "redlock.nginx"
local client = require "redlock.client"

local nginx_blocking = {}

--- As redlock.new(), for a client whose calls block the worker.
---@param nodes (string|redlock.Node)[]
---@param options? redlock.ClientOptions
---@return redlock.Client
---@nodiscard
function nginx_blocking.new(nodes, options)
  local made = client.new(nodes, options, 2, true)
  return made
end

return nginx_blocking
