--- A client that blocks the nginx worker while it waits: for init_by_lua and exit_worker_by_lua,
--- where no other wait is possible, and for comparisons.

require "redlock.nginx"
local client = require "redlock.client"

local nginx_blocking = {}

--- Like redlock.new(), for a client whose calls block the worker.
---@param nodes (string|redlock.Node)[]
---@param options? redlock.ClientOptions
---@return redlock.Client
---@nodiscard
function nginx_blocking.new(nodes, options)
  local made = client.new(nodes, options, 2, true)
  return made
end

return nginx_blocking
