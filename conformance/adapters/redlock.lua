-- Adapter for this library:  lua5.4 conformance/adapters/redlock.lua [guard]
--
-- SPDX-License-Identifier: MIT

local redlock = require "redlock"
local serve = require "conformance.adapters.serve"

local guarded = arg[1] == "guard"
local client
local locks = {}

-- The nodes are new for the first client only: another bootstrap would make the nodes identify
-- themselves to it again.
local function bootstrap_new_nodes()
  local probe = client:acquire("bootstrap", { ttl = 10000 })
  if probe then return probe:release() end
  assert(client:bootstrap())
end

serve {
  open = function(request)
    client = redlock.new(request.nodes, {
      wait = 0,
      node_timeout = request.timeout,
      guard = guarded and { max_ttl = 700000, cluster = "conformance" } or nil,
    })
    if guarded then bootstrap_new_nodes() end
    return { ok = true, version = redlock._VERSION }
  end,
  acquire = function(request)
    local lock, message, code = client:acquire(request.resource, { ttl = request.ttl })
    if not lock then return { ok = false, error = code .. ": " .. message } end
    locks[#locks + 1] = lock
    return { ok = true, lock = tostring(#locks), validity = lock:remaining() }
  end,
  extend = function(request)
    local lock = locks[tonumber(request.lock)]
    local ok, message, code = lock:extend(request.ttl)
    if not ok then return { ok = false, error = code .. ": " .. message } end
    return { ok = true, validity = lock:remaining() }
  end,
  release = function(request)
    local ok, message, code = locks[tonumber(request.lock)]:release()
    if not ok then return { ok = false, error = code .. ": " .. message } end
    return { ok = true }
  end,
  validity = function(request) return { ok = true, validity = locks[tonumber(request.lock)]:remaining() } end,
}
