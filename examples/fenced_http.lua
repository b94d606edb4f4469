--- A holder that writes to an HTTP service. The service rejects the write if the holder was paused
--- for longer than its lease.
---
---     lua fenced_http.lua http://127.0.0.1:8080/document/one TEXT 127.0.0.1:6379 ...
---
--- The service is examples/nginx/fenced.conf. LuaSocket speaks HTTP here.

local http = require "socket.http"
local ltn12 = require "ltn12"
local redlock = require "redlock"

local url, text = arg[1], arg[2]
local client = redlock.new({ (table.unpack or unpack)(arg, 3) }, { ttl = 1000, wait = 10000, fence = true })

local function store(fence)
  local answer = {}
  local _, status = http.request {
    method = "PUT",
    url = url,
    headers = { ["X-Fence"] = string.format("%.0f", fence), ["Content-Length"] = #text },
    source = ltn12.source.string(text),
    sink = ltn12.sink.table(answer),
  }
  return status, table.concat(answer)
end

local lock = assert(client:acquire("document"))
-- Read it once, after the acquire: the lock has none after its lease has ended.
local fence = lock:fence()
print("holding, with the fencing token " .. string.format("%.0f", fence))
io.stdout:flush()

-- The work: it waits for a line. The process may be stopped here for as long as the machine likes.
io.read("*l")

local status, answer = store(fence)
print(status, answer)
lock:release()
client:close()
