--- Writes the table of suites in docs/testing.md from the output of the runners:
---
---     suites.lua QUIET [BUSY]
---
--- QUIET is the output of `make test`, or of `.ci/run`, on a quiet machine; "-" keeps its columns.
--- BUSY is that of `make test-busy`; without it, its column remains.
---
--- csrc/test/sampled_mutants.lua has the last column.

local PAGE = "docs/testing.md"
local FIRST, LAST = "<!-- make suites writes this table. -->\n", "\n<!-- The end of the table. -->"
local COMMANDS = { "make test", "make check" } -- runs of `.ci/run`, in order
local NONE = "–"
local SAMPLE = dofile("csrc/test/sampled_mutants.lua")

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return text
end

-- Returns the rows of an output by command and suite. A run ends with its length.
local function rows_of(text)
  local rows, run, tests, cpu = {}, 1, 0, 0
  local function add(suite, ...)
    local row = {}
    row.tests, row.cpu, row.seconds = ...
    rows[(COMMANDS[run] or "run " .. run) .. "\n" .. suite] = row
  end
  for line in text:gmatch("[^\n]+") do
    local suite, passed, failed, seconds, rest = line:match("(%S+) +(%d+) passed +(%d+) failed +(%d+) s(.*)$")
    if suite then
      local own = tonumber(rest:match("^, +(%d+) s of processor"))
      add(suite, passed + failed, own, tonumber(seconds))
      tests, cpu = tests + passed + failed, cpu + (own or 0)
    end
    local took = line:match("took (%d+) s$")
    if took then
      add("all", tests, cpu, tonumber(took))
      run, tests, cpu = run + 1, 0, 0
    end
  end
  return rows
end

-- Returns the rows of the table that the page has.
local function rows_of_page(text)
  local quiet, busy = {}, {}
  for command, suite, tests, cpu, seconds, busy_seconds in
    text:gmatch("\n| `([^`]*)` | ([^|]*) | ([^|]*) | ([^|]*) | ([^|]*) | ([^|]*) |") do
    local key = command .. "\n" .. suite
    quiet[key] = { tests = tonumber(tests), cpu = tonumber(cpu), seconds = tonumber(seconds) }
    busy[key] = { seconds = tonumber(busy_seconds) }
  end
  return quiet, busy
end

local page = read(PAGE)
local _, from = page:find(FIRST, 1, true)
local to = page:find(LAST, 1, true)
assert(from and to, PAGE .. " has no place for the table")
local quiet, busy = rows_of_page(page:sub(from, to))
if arg[1] ~= "-" then quiet = rows_of(read(arg[1])) end
if arg[2] then busy = rows_of(read(arg[2])) end

local keys = {}
for key in pairs(quiet) do keys[#keys + 1] = key end
for key in pairs(busy) do
  if not quiet[key] then keys[#keys + 1] = key end
end
-- By command; the sum stands last, and the suites by their processor seconds.
local function order(key)
  local row, command, suite = quiet[key] or busy[key], key:match("^(.*)\n(.*)$")
  local place = command == COMMANDS[1] and 1 or 2
  return ("%d %d %09d %s"):format(place, suite == "all" and 1 or 0, 999999999 - (row.cpu or 0), suite)
end
table.sort(keys, function(a, b) return order(a) < order(b) end)

local lines = { ("| command | suite | tests | processor seconds | seconds alone | seconds in `make test-busy` "
  .. "| mutants of %d that only this suite kills |"):format(SAMPLE.mutants), "|---|---|---|---|---|---|---|" }
for _, key in ipairs(keys) do
  local command, suite = key:match("^(.*)\n(.*)$")
  local alone, beside = quiet[key] or {}, busy[key] or {}
  lines[#lines + 1] = ("| `%s` | %s | %s | %s | %s | %s | %s |"):format(command, suite,
    alone.tests or beside.tests or NONE, alone.cpu or beside.cpu or NONE, alone.seconds or NONE, beside.seconds or NONE,
    command == COMMANDS[1] and SAMPLE.alone[suite] or NONE)
end
local file = assert(io.open(PAGE, "w"))
file:write(page:sub(1, from), table.concat(lines, "\n"), page:sub(to))
file:close()
