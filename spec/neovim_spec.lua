--- redlock.luv in a real Neovim, whose loop is libuv and whose Lua is LuaJIT.

local helper = require "spec.helper"

-- Neovim loads the module of LuaJIT, and none that a sanitizer was built into.
if not rawget(_G, "jit") or os.getenv "REDLOCK_TEST_SANITIZER" then return end

describe("Neovim", function()
  local farm

  setup(function() farm = helper.farm(3) end)
  teardown(function() farm:shut() end)

  local PROGRAM = [[
    local client = require("redlock.luv").new({ NODES }, { node_timeout = 20000 })
    local done, most, waiting, problems = 0, 0, 0, {}
    for index = 1, 20 do
      coroutine.wrap(function()
        waiting = waiting + 1
        most = math.max(most, waiting)
        local lock, message = client:acquire("own:" .. index)
        waiting = waiting - 1
        -- What a coroutine does after it has waited: that it may call vim.api is the point.
        local ok, err = pcall(vim.api.nvim_buf_set_lines, 0, -1, -1, true, { "line " .. index })
        if not (lock and ok and lock:release()) then table.insert(problems, message or err or "release") end
        done = done + 1
      end)()
    end
    vim.wait(60000, function() return done == 20 end, 5)
    io.stdout:write(("%d done, %d at one time, %d lines, problems: %s\n"):format(done, most,
      #vim.api.nvim_buf_get_lines(0, 1, -1, true), table.concat(problems, "; ")))
    client:close()
    vim.cmd("qa!")
  ]]

  it("coroutine_locks_and_calls_vim_api", function()
    local path = helper.directory .. "/program.lua"
    local file = assert(io.open(path, "w"))
    local nodes = '"' .. table.concat(farm.addresses, '", "') .. '"'
    assert(file:write((PROGRAM:gsub("NODES", nodes))))
    assert(file:close())
    local pipe = assert(io.popen("timeout 100 nvim --headless --clean -c 'luafile " .. path .. "' 2>&1"))
    local output = pipe:read("*a")
    pipe:close()
    assert.is_truthy(output:find("20 done, 20 at one time, 20 lines, problems: \n", 1, true), output)
  end)
end)
