-- Reads the tables of options and verbs of the tool from csrc/cli/cli_options.h and cli_verbs.h.
--
-- SPDX-License-Identifier: MIT

local HEADERS = { "csrc/cli/cli_options.h", "csrc/cli/cli_verbs.h" }

local source = ""
for _, header in ipairs(HEADERS) do
  local file = assert(io.open(header))
  source = source .. file:read("*a"):gsub("\\\n", " ")
  file:close()
end

-- Splits the arguments of a row: names, numbers, characters, and texts of adjacent literals.
local function arguments_of(row)
  local list, at = {}, 1
  while at <= #row do
    local text, first = "", row:match('^%s*"()', at)
    while first do
      local last = first
      while row:sub(last, last) ~= '"' do last = last + (row:sub(last, last) == "\\" and 2 or 1) end
      text, at = text .. row:sub(first, last - 1):gsub("\\(.)", "%1"), last + 1
      first = row:match('^%s*"()', at)
    end
    local plain, stop = row:match("^%s*([^,]*)()", at)
    list[#list + 1] = text ~= "" and text or plain:match("^'(.)'$") or plain:gsub('^""$', ""):match("^(.-)%s*$")
    at = stop + 1
  end
  return list
end

-- Returns the rows of the table |name|. A row ends with the parenthesis that closes it.
local function rows_of(name)
  local body = assert(source:match("#define " .. name .. "%(X%)(.-)\n"), "no header has the table " .. name)
  local rows = {}
  for row in body:gmatch("X(%b())") do rows[#rows + 1] = arguments_of(row:sub(2, -2)) end
  assert(#rows > 0, "the table " .. name .. " is empty")
  return rows
end

-- Returns the sum of groups |text| without names of sums.
local function expand(text)
  for name, sum in source:gmatch("(CLI_FOR_%w+) = (CLI_FOR_[^,}]*)") do text = text:gsub(name .. "%f[%W]", sum) end
  return text
end

local tables = { groups = {}, options = {}, verbs = {} }

for _, row in ipairs(rows_of("CLI_GROUPS")) do
  tables.groups[#tables.groups + 1] = { name = row[1], title = row[2], options = {}, verbs = {} }
  tables.groups[row[1]] = tables.groups[#tables.groups]
end
for _, row in ipairs(rows_of("CLI_OPTIONS")) do
  local option = { letter = row[2] ~= "0" and row[2] or nil, name = row[3], value = row[4] ~= "NULL" and row[4] or nil,
    group = row[5], meaning = row[6] }
  tables.options[#tables.options + 1] = option
  table.insert(assert(tables.groups[option.group]).options, option)
end
for _, row in ipairs(rows_of("CLI_VERBS")) do
  local verb = { name = row[2], operands = row[5], groups = {}, purpose = row[7] }
  for group in (expand(row[6]) .. " | CLI_FOR_ALWAYS"):gmatch("CLI_FOR_(%w+)") do
    verb.groups[group] = true
    table.insert(assert(tables.groups[group], group).verbs, verb)
  end
  tables.verbs[#tables.verbs + 1] = verb
end

-- Returns the options that |verb| accepts, in the order of the help.
function tables.options_of(verb)
  local list = {}
  for _, group in ipairs(tables.groups) do
    for _, option in ipairs(verb.groups[group.name] and group.options or {}) do list[#list + 1] = option end
  end
  return list
end

return tables
