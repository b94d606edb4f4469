--- Loads the module, locks, releases and drops; for each interpreter that spec/all_luas.sh is given.

local redlock = require "redlock"

local nodes = { ... }
local client = redlock.new(nodes, { retry_count = 0, node_timeout = 2000 })
local other = redlock.new(nodes, { retry_count = 0, node_timeout = 2000 })

local lock = client:lock("all", { ttl = 5000 })
local validity = assert(lock:acquire())
assert(validity > 3000 and validity < 5000)
assert(select(3, other:acquire("all")) == "taken")
assert(lock:extend(8000) > 6000)
assert(#lock:votes() == #nodes and #client:nodes() == #nodes)
assert(tostring(lock):match("^redlock%.lock all %(held, %d+ ms left%)$"))
assert(lock:release() == true)
assert(select(3, lock:release()) == "not_held")

local ok, err = pcall(function() client:lock("r", { ttl = 0 }) end)
assert(not ok and err:match("all_luas%.lua:%d+: redlock: option 'ttl' must be an integer >= 1"), err)

assert(select("#", other:with("all", function(held, ...) return held:is_held(), nil, ... end, 1, nil)) == 5)
assert(not pcall(other.with, other, "all", function(held) error(held:is_held() and "raised", 0) end))

lock = assert(client:acquire("dropped"))
assert(lock:is_held())
lock = nil -- luacheck: ignore
collectgarbage()
collectgarbage()
assert(other:acquire("dropped", { wait = 2000, retry_delay = 5, retry_jitter = 0 }))

assert(client:close() == true and client:close() == true)
assert(select(3, client:acquire("all")) == "closed")
io.write("ok ", _VERSION, rawget(_G, "jit") and " (" .. jit.version .. ")" or "", "\n")
