-- Writes the parts of docs/redlock.1 that the tables of the tool have, and the completions; or
-- checks that all are up to date.
--
--     lua build-aux/manual.lua [check]
--
-- SPDX-License-Identifier: MIT

local here = arg[0]:match("^.*/") or ""
local tables = dofile(here .. "cli_tables.lua")
local completion = dofile(here .. "completion.lua")

local PAGE = "docs/redlock.1"

local function read(path)
  local file = io.open(path)
  local text = file and file:read("*a") or ""
  if file then file:close() end
  return text
end

-- ---------------------------------------------------------------------------------- the manual page

-- Returns text for a line of mdoc: no backslash, and no control character in front.
local function plain(text) return (text:gsub("\\", "\\e"):gsub("^([.'])", "\\&%1"):gsub("%-%-(%l)", "\\-\\-%1")) end

-- Returns the lines of a text, of at most 80 columns.
local function wrapped(text)
  local lines = { "" }
  for word in plain(text):gmatch("%S+") do
    local line = lines[#lines]
    local joined = line == "" and word or line .. " " .. word
    lines[#joined <= 80 and #lines or #lines + 1] = #joined <= 80 and joined or word
  end
  return lines
end

local function append(lines, more)
  for _, line in ipairs(more) do lines[#lines + 1] = line end
end

local function synopsis()
  local lines = {}
  for _, verb in ipairs(tables.verbs) do
    lines[#lines + 1] = ".Nm"
    if verb.groups.CLIENT then lines[#lines + 1] = ".Op Ar option ..." end
    lines[#lines + 1] = ".Cm " .. verb.name
    if verb.groups.CLIENT then lines[#lines + 1] = ".Op Ar option ..." end
    for operand in verb.operands:gmatch("%S+") do
      local name, more = operand:match("^%[?(%u+)%]?(%.*)$")
      local macro = operand == "[--]" and "Op Fl -" or (operand:find("^%[") and "Op Ar " or "Ar ") .. name
      lines[#lines + 1] = "." .. macro .. (more and more ~= "" and " ..." or "")
    end
  end
  return lines
end

local function option_lines(option)
  local value = option.value and " Ar " .. option.value or ""
  local letter = option.letter and ("Fl %s%s , "):format(option.letter, value) or ""
  local lines = { (".It %sFl -%s%s"):format(letter, option.name, value) }
  append(lines, wrapped(option.meaning:sub(1, 1):upper() .. option.meaning:sub(2) .. "."))
  return lines
end

local function verbs_of(group)
  local names = {}
  for _, verb in ipairs(group.verbs) do names[#names + 1] = ".Cm " .. verb.name end
  return names
end

-- Names the verbs of a group of options, unless it is for all but help.
local function list_verbs(group, lines)
  local names = verbs_of(group)
  if #names >= #tables.verbs - 1 then return end
  lines[#lines + 1] = "For"
  for index, name in ipairs(names) do lines[#lines + 1] = name .. (index < #names and " ," or " :") end
end

local function options()
  local lines = {}
  for _, group in ipairs(tables.groups) do
    if #group.verbs > 0 then
      lines[#lines + 1] = ".Ss " .. group.title:match("^[^;]*")
      if group.title:find(";") then
        local note = group.title:match(";%s*(.*)$")
        append(lines, wrapped(note:sub(1, 1):upper() .. note:sub(2) .. "."))
      end
      list_verbs(group, lines)
      lines[#lines + 1] = ".Bl -tag -width Ds"
      for _, option in ipairs(group.options) do
        append(lines, option_lines(option))
      end
      lines[#lines + 1] = ".El"
    end
  end
  return lines
end

-- Replaces the lines between '.\" begin NAME' and '.\" end NAME'.
local function fill(text, name, lines)
  local first, last = ('.\\" begin %s\n'):format(name), ('.\\" end %s\n'):format(name)
  local _, from = text:find(first, 1, true)
  local to = text:find(last, 1, true)
  assert(from and to, PAGE .. " has no place for the " .. name)
  return text:sub(1, from) .. table.concat(lines, "\n") .. "\n" .. text:sub(to)
end

local page = read(PAGE)
local written = {
  { PAGE, fill(fill(page, "synopsis", synopsis()), "options", options()) },
  { "completion/redlock.bash", completion.bash(tables, read(here .. "completion.bash")) },
  { "completion/_redlock", completion.zsh(tables) },
  { "completion/redlock.fish", completion.fish(tables) },
}

-- Each verb has a paragraph of its own.
local missing = 0
for _, verb in ipairs(tables.verbs) do
  if not page:find("\n.It Cm " .. verb.name:gsub("%-", "%%-") .. "%f[^%w-]") then
    io.stderr:write(("%s: the verb %s is not described; add \".It Cm %s\"\n"):format(PAGE, verb.name, verb.name))
    missing = missing + 1
  end
end

for _, one in ipairs(written) do
  local path, text = one[1], one[2]
  if arg[1] == "check" then
    if read(path) ~= text then
      io.stderr:write(path, " is not up to date; run: make manual\n")
      missing = missing + 1
    end
  else
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
  end
end
if missing > 0 then os.exit(1) end
print("ok - manual page and completions")
