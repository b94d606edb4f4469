--- Reads the fenced code blocks of a page, and runs them as a reader would: from top to bottom, in
--- one shell.
---
--- A block of `sh` is run. A block of another language is saved under the name in its first line
--- ("-- lock.lua", "/* lock.c */", "# redis.conf"). A block of `text` is output that the block
--- before it must print.

local helper = require "spec.helper"

local page = {}

-- Commands of the page that would change this machine. make installs into a directory of the test,
-- and ldconfig makes the libraries there known: without it, a program that is linked with them does
-- not start.
local STAND_INS = [[
mkdir -p bin cache home
cat >bin/sudo <<'END'
#!/bin/sh
exec "$@"
END
cat >bin/make <<'END'
#!/bin/sh
unset PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
exec %(make) -s -C '%(root)' DESTDIR='%(directory)/root' "$@"
END
cat >bin/ldconfig <<'END'
#!/bin/sh
cp -P '%(directory)'/root/usr/local/lib/*.so* '%(directory)/cache/'
END
cat >bin/redis-server <<'END'
#!/bin/sh
exec %(server) "$@" --pidfile '%(directory)'/$$.pid
END
chmod +x bin/*
export PATH='%(directory)/bin:%(directory)/root/usr/local/bin':$PATH HOME='%(directory)/home'
export LD_LIBRARY_PATH='%(directory)/cache' PKG_CONFIG_SYSROOT_DIR='%(directory)/root'
export PKG_CONFIG_PATH='%(directory)/root/usr/local/lib/pkgconfig'
unset ${!LUA_PATH*} ${!LUA_CPATH*} MAKEFLAGS MAKELEVEL
export LUA_PATH='%(directory)/root/usr/local/share/lua/5.4/?.lua;;'
export LUA_CPATH='%(directory)/root/usr/local/lib/lua/5.4/?.so;;'
]]

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return text
end

--- Returns the blocks of a page, in order: { language = , text = , line = , name = }.
function page.blocks(path)
  local blocks, block, number = {}, nil, 0
  for line in (read(path) .. "\n"):gmatch("(.-)\n") do
    number = number + 1
    local language = line:match("^```(.*)$")
    if block and language == "" then
      block.text = table.concat(block.lines, "\n") .. "\n"
      block.name = block.lines[1]:match("^[-/#*]+ ([%w_]+%.[%w_.]+)")
      blocks[#blocks + 1], block = block, nil
    elseif block then
      block.lines[#block.lines + 1] = line
    elseif language then
      block = { language = language, line = number, lines = {} }
    end
  end
  assert(block == nil, path .. " has a block without an end")
  return blocks
end

local function output_of(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read("*a")
  pipe:close()
  return text
end

-- Returns the path of a command that a stand-in calls.
local function which(command)
  return (output_of("command -v " .. command):gsub("%s+$", ""))
end

-- Returns a function that replaces 6379 and 7001 to 7009 by free ports.
local function new_ports()
  local ports = {}
  return function(text)
    local function free_port(port)
      ports[port] = ports[port] or tostring(helper.free_port())
      return ports[port]
    end
    return (text:gsub("%f[%d]700%d%f[%D]", free_port):gsub("%f[%d]6379%f[%D]", free_port))
  end
end

local function fill(text, values)
  return (text:gsub("%%%((%w+)%)", values))
end

-- Times and figures differ from run to run.
local function without_figures(text)
  return (text:gsub("%d+%.?%d*[um]s%f[%W]", "T"):gsub("%d+%.%d+", "N"))
end

local function script_of(blocks, values, replace)
  local script = { "cd '" .. values.directory .. "'", fill(STAND_INS, values), values.before }
  for index, block in ipairs(blocks) do
    if block.language == "sh" then
      script[#script + 1] = ("echo '@@ %d'\n%secho \"@@ ended $?\""):format(index, replace(block.text))
    elseif block.name then
      helper.write_file(values.directory .. "/" .. block.name, replace(block.text))
    end
  end
  script[#script + 1] = "wait"
  return table.concat(script, "\n") .. "\n"
end

-- Returns what each block printed, by its number, and its exit status.
local function results_of(output)
  local results, rest = {}, output
  for index, text, status in rest:gmatch("@@ (%d+)\n(.-)@@ ended (%d+)\n") do
    results[tonumber(index)] = { text = text, status = tonumber(status) }
  end
  return results
end

local function check(path, blocks, output, replace)
  local results, last = results_of(output), nil
  for index, block in ipairs(blocks) do
    local place = ("%s:%d"):format(path, block.line)
    if block.language == "sh" then
      last = results[index]
      assert(last and last.status == 0, ("%s fails:\n%s"):format(place, output))
    elseif block.language == "text" then
      local printed = "\n" .. without_figures(last.text)
      for line in without_figures(replace(block.text)):gmatch("[^\n]+") do
        assert(printed:find("\n" .. line .. "\n", 1, true),
          ("%s: '%s' is not printed:\n%s"):format(place, line, output))
      end
    end
  end
end

local runs = 0

local function run_once(path, blocks, before)
  runs = runs + 1
  local directory = helper.directory .. "/page" .. runs
  os.execute("mkdir -p " .. directory)
  local replace = new_ports()
  local values = { directory = directory, before = before or "",
    root = output_of("pwd"):gsub("%s+$", ""),
    make = which(os.getenv("MAKE") or "make"),
    server = which(os.getenv("REDLOCK_TEST_SERVER") or "redis-server") }
  helper.write_file(directory .. "/page.sh", script_of(blocks, values, replace))
  local output = output_of("bash " .. directory .. "/page.sh 2>&1 </dev/null")
  os.execute("kill -KILL $(cat " .. directory .. "/*.pid 2>/dev/null) 2>/dev/null")
  check(path, blocks, output, replace)
end

--- Runs the blocks of a page, after the shell commands `before`. Fails unless each shell block ends
--- with 0 and prints what the page shows. The clients of a page have short default times, which a
--- slow machine may exceed: then the page runs again.
function page.run(path, blocks, before)
  helper.limit(1200)
  for _ = 1, 4 do
    local ok, err = pcall(run_once, path, blocks, before)
    if ok then return end
    print(("# repeated: %s: %s"):format(helper.test_name or "?", tostring(err)))
  end
  run_once(path, blocks, before)
end

return page
