--- The worker's side of bench/nginx/handoff: a request wants the key, holds it for 5 ms, and
--- answers when that was.

-- luacheck: globals ngx
-- luacheck: read_globals addresses
local ffi = require "ffi"

ffi.cdef [[
typedef struct { long seconds, nanoseconds; } bench_hold_time;
int clock_gettime(int clock, bench_hold_time *at);
]]

local hold = {}

local MONOTONIC = 1
local HOLD_S = 0.005
local WAIT_MS, TTL_MS = 60000, 10000

local at = ffi.new "bench_hold_time"
local clients = {}

-- nginx's own clock is of whole milliseconds, and of the beginning of a turn of its loop.
local function now()
  ffi.C.clock_gettime(MONOTONIC, at)
  return tonumber(at.seconds) * 1e3 + tonumber(at.nanoseconds) / 1e6
end

local function client_of(text)
  if not clients[text] then
    local options = assert(loadstring("return " .. text))()
    options.wait, options.ttl = options.wait or WAIT_MS, options.ttl or TTL_MS
    clients[text] = require("resty.redlock").new(addresses, options)
  end
  return clients[text]
end

--- The header Way has the client's options; each has a client of its own.
function hold.answer()
  local client, name = client_of(ngx.var.http_way), ngx.var.arg_key
  local wanted = now()
  local lock, message = client:acquire(name)
  if not lock then
    ngx.status = 503
    return ngx.print(message)
  end
  local granted = now()
  ngx.sleep(HOLD_S)
  local begun = now()
  local released
  released, message = lock:release()
  ngx.print(string.format("%.6f %.6f %.6f %s", wanted, granted, begun, released and "" or message))
end

return hold
