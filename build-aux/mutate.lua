-- The mutants of a file: the same text with one operator or one truth value changed, in a line that decides.
--
-- SPDX-License-Identifier: MIT

local mutate = {}

local C_OPERATORS = {
  { " >= ", " > " }, { " > ", " >= " }, { " <= ", " < " }, { " < ", " <= " }, { " == ", " != " }, { " != ", " == " },
  { " && ", " || " }, { " || ", " && " }, { " + 1", " + 2" }, { " - ", " + " }, { "&= ~", "|= " }, { "|= ", "&= ~" },
  { "true", "false" }, { "false", "true" }, { "(!", "(" }, { "rl_time_min(", "rl_time_max(" },
  { "rl_time_max(", "rl_time_min(" }, { "++", "--" }, { "_GRANTED", "_TAKEN" }, { "_TAKEN", "_GRANTED" },
}
local LUA_OPERATORS = {
  { " >= ", " > " }, { " > ", " >= " }, { " <= ", " < " }, { " < ", " <= " }, { " == ", " ~= " }, { " ~= ", " == " },
  { " and ", " or " }, { " or ", " and " }, { " + ", " - " }, { " - ", " + " }, { "true", "false" },
  { "false", "true" }, { "not ", "" },
}

-- What says nothing to a caller or a node is not a decision.
local function c_decides(line)
  return not (line:find("assert(", 1, true) or line:find("snprintf", 1, true) or line:find("^%s*/?%*")
    or line:find("^%s*for ") or line:find("^#") or line:find('^%s*"') or line:find("^%s*case ")
    or line:find("^%s*default") or line:find("^static ") or line:find("^}")
    or line:find("^%s+[%w_ ]+ %*?[%w_]+%[[^%]]*%];"))
end

local function lua_decides(line)
  return not (line:find("^%s*%-%-") or line:find("^%s*for ") or line:find('^%s*"')
    or line:find("function%s*[%w_.:]*%(.*%)$") or line:find("assert(", 1, true) or line:find("error(", 1, true))
end

-- The line with what stands between quotes made unrecognizable, each byte for a byte.
local function without_strings(line)
  local function mask(text)
    return ("\1"):rep(#text)
  end
  return (line:gsub('"[^"]*"', mask):gsub("'[^']*'", mask))
end

local function operators_of(line, code, operators)
  local made = {}
  for _, operator in ipairs(operators) do
    local from = 1
    while true do
      local first, last = code:find(operator[1], from, true)
      if not first then
        break
      end
      made[#made + 1] = line:sub(1, first - 1) .. operator[2] .. line:sub(last + 1)
      from = last + 1
    end
  end
  return made
end

-- A statement that is a call, or an assignment that is no declaration.
local function is_statement(code)
  return code:find("^%s+[%w_]+[%w_%->%.%[%]]*[^=]*;$") and not code:find("^%s*return") and not code:find("^%s*break")
    and not code:find("^%s*continue") and not code:find("^%s+[%w_]+ %*?[%w_]+ =")
    and not code:find("^%s+[%w_]+ %*?[%w_]+;$")
    or code:find("^%s+[%w_%->%.%[%]%*]+ [|&%-+]?= [^=]*;$")
end

local function c_mutants(line, statements)
  if not c_decides(line) then
    return {}
  end
  line = line:gsub("%s*/%*.-%*/", "")
  local code = without_strings(line)
  local made = operators_of(line, code, C_OPERATORS)
  -- A condition that has no operator is turned round.
  if code:find("^%s*[} else]*if %([%w_]+[^!&|<>=]*%) {$") and not code:find("->", 1, true) then
    made[#made + 1] = line:gsub("if %((.*)%) {$", "if (!(%1)) {")
  end
  if statements and is_statement(code) then
    made[#made + 1] = line:match("^%s*") .. ";"
  end
  return made
end

local function lua_mutants(line, statements)
  if not lua_decides(line) then
    return {}
  end
  line = line:gsub("%s*%-%- .*$", "")
  local code = without_strings(line)
  local made = operators_of(line, code, LUA_OPERATORS)
  local condition = code:match("^%s*e?l?s?e?if (.*) then$")
  if condition and not condition:find("[<>=]") and not condition:find("^not ") then
    made[#made + 1] = line:gsub("if (.*) then$", "if not (%1) then")
  end
  if statements and code:find("^%s+[%w_.:]+%b()$") then
    made[#made + 1] = line:match("^%s*")
  end
  return made
end

-- The lines of a C file that stand in a function or a table.
local function c_inside(lines)
  local inside, within = {}, false
  for number, line in ipairs(lines) do
    if line:find("^[%w_].*{$") or (line:find("^ .*%) {$") and not within) then
      within = true
    elseif line:find("^}") then
      within = false
    else
      inside[number] = within
    end
  end
  return inside
end

-- All mutants of |text|, the file |path|: an array of { number, line, mutant, text }.
function mutate.all(path, text, statements)
  local lines, found = {}, {}
  for line in text:gmatch("([^\n]*)\n") do
    lines[#lines + 1] = line
  end
  local is_lua = path:find("%.lua$")
  local inside = is_lua or c_inside(lines)
  for number, line in ipairs(lines) do
    if is_lua or inside[number] then
      for _, mutant in ipairs((is_lua and lua_mutants or c_mutants)(line, statements)) do
        lines[number] = mutant
        found[#found + 1] = { number = number, line = line, mutant = mutant, text = table.concat(lines, "\n") .. "\n" }
        lines[number] = line
      end
    end
  end
  return found
end

return mutate
