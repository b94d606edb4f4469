--- redlock in the threads of ngx.run_worker_thread, and its modules used directly.

-- nginx has its own Lua, LuaJIT: the specs are run once.
if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local server = require "spec.nginx.server"

local JOB = [[
local job = {}

function job.run(...)
  local client = require("redlock").new({ ... }, { wait = 20000 })
  local lock, message = client:acquire("r")
  if not lock then return message end
  return tostring(lock:release()) .. " " .. tostring(client:close())
end

return job
]]

describe("redlock in nginx, outside of its requests", function()
  local farm, nginx

  setup(function()
    farm = helper.farm(3)
    helper.write_file(helper.directory .. "/job.lua", JOB)
    nginx = server.start {
      addresses = farm.addresses,
      main = "thread_pool locks threads=2;",
      init = "package.path = '" .. helper.directory .. "/?.lua;' .. package.path",
      server = [[
        location /thread { content_by_lua_block {
          if not ngx.run_worker_thread then return ngx.print("none") end
          local ok, said = ngx.run_worker_thread("locks", "job", "run", addresses[1], addresses[2], addresses[3])
          ngx.print(tostring(ok), " ", tostring(said))
        } }
        location /module { content_by_lua_block {
          local _, refused = pcall(require("redlock.client").new, addresses)
          local _, wrong = pcall(require("redlock.nginx").new, addresses, { ttl = 2 })
          require("redlock.nginx").new(addresses):close()
          ngx.print(tostring(refused), "\n", tostring(wrong))
        } }
      ]],
    }
  end)

  teardown(function()
    nginx:stop()
    farm:shut()
  end)

  it("worker_thread_locks_with_a_client_that_blocks", function()
    local _, said = nginx:get("/thread")
    if said ~= "none" then assert.are.equal("true true true", said) end
  end)

  it("module_used_directly_raises_no_internal_error", function()
    local _, said = nginx:get("/module")
    assert.is_nil(said:find("arithmetic", 1, true), said)
    assert.is_truthy(said:find("this client would stop the nginx worker", 1, true), said)
    assert.is_truthy(said:find("'ttl'", 1, true), said)
  end)
end)
