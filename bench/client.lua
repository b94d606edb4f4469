-- The Lua module, measured like the bare limit of limit.c. With BENCH_FORGET set the lock is
-- released without waiting.
--
--     lua client.lua <locks in flight: 1> <host:port> ...
--
-- SPDX-License-Identifier: MIT

local measure = require "bench_measure"
local redlock = require "redlock"

local start, held, ended = measure.start, measure.held, measure.ended

assert(arg[1] == "1" and arg[2], "usage: client.lua 1 <host:port> ...")
local dlm = redlock.new({ (table.unpack or unpack)(arg, 2) }, { retry_count = 0 }) -- luacheck: ignore
local lock = dlm:new_lock(measure.name())
local how = os.getenv "BENCH_FORGET" and { wait = false } or nil

print("ready")
io.stdout:flush()
for line in io.lines() do
  if not start(line) then break end
  repeat
    local validity = lock:acquire()
    held()
  until not ended(validity and lock:release(how))
  measure.print()
end
dlm:close()
