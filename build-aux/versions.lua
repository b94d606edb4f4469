--- Writes the table of tested versions in README.md from what the tests run: the servers of
--- build-aux/other_servers.sh, LUA_VERSIONS of the Makefile, and the targets of build-aux/cross.sh.
---
---     versions.lua          writes the table
---     versions.lua check    fails if README.md has another one

local PAGE = "README.md"
local FIRST, LAST = "<!-- make versions writes this table. -->\n", "\n<!-- The end of the table. -->"

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return text
end

local function output(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read("*a")
  pipe:close()
  return text
end

-- Returns "a, b and c".
local function list(words)
  if #words < 2 then return words[1] or "" end
  return table.concat(words, ", ", 1, #words - 1) .. " and " .. words[#words]
end

local function servers()
  local names, versions, order = read("build-aux/other_servers.sh"):match('names="([^"]*)"'), {}, {}
  for kind, version in names:gmatch("(%a+)%-(%S+)") do
    local title = kind:sub(1, 1):upper() .. kind:sub(2)
    if not versions[title] then
      versions[title] = {}
      order[#order + 1] = title
    end
    table.insert(versions[title], version)
  end
  for index, title in ipairs(order) do order[index] = title .. " " .. list(versions[title]) end
  return table.concat(order, ", ")
end

local function luas()
  local versions = read("Makefile"):match("\nLUA_VERSIONS = ([^\n]*)"):gsub(" jit", ""):gsub(" ", ", ")
  return versions
end

-- Returns the texts of the targets of a row, behind those of the system that runs the tests.
local function targets(row, ...)
  local texts = { ... }
  for of, text in output("sh build-aux/cross.sh --rows"):gmatch("([^|\n]+)|([^\n]+)") do
    if of == row then texts[#texts + 1] = text end
  end
  return texts
end

-- The first version is that of Debian 12, where the tests run.
local rows = {
  { "Redis or Valkey", "Redis 2.6.12; with `fence` Redis 5", servers() },
  { "hiredis", "0.14", table.concat(targets("hiredis", "0.14.1"), ", ") },
  { "Lua", "5.1", luas() },
  { "LuaJIT", "2.1", "2.1.0-beta3" },
  { "nginx, lua-nginx-module, lua-resty-core", "", table.concat(targets("nginx", "1.22.1, 0.10.23, 0.1.25"), "; ") },
  { "cqueues, luv, copas", "", "20200726, 1.44.2, 1.2.0" },
  { "for TLS: OpenSSL", "1.1.1", "3.0" },
  { "build tools", "C11, GNU make, pkg-config", list(targets("compilers", "gcc 12")) },
  { "C library", "", list(targets("C library", "glibc 2.36")) },
  { "processor", "", list(targets("processors", "x86-64")) },
  { "system", "", table.concat(targets("systems", "Linux"), "; ") },
}

local lines = { "| | at least | tested with |", "|---|---|---|" }
for _, row in ipairs(rows) do
  lines[#lines + 1] = ("| %s | %s | %s |"):format(row[1], row[2], row[3]):gsub("  +", " ")
end

local page = read(PAGE)
local _, from = page:find(FIRST, 1, true)
local to = page:find(LAST, 1, true)
assert(from and to, PAGE .. " has no place for the table")
local text = page:sub(1, from) .. table.concat(lines, "\n") .. page:sub(to)
if arg[1] == "check" then
  if text ~= page then
    io.stderr:write(PAGE, " is not up to date; run: make versions\n")
    os.exit(1)
  end
else
  local file = assert(io.open(PAGE, "w"))
  file:write(text)
  file:close()
end
print("ok - table of tested versions")
