-- The mutants of a file: the same text with one operator or one truth value changed, in a line that
-- decides.
--
-- SPDX-License-Identifier: MIT

local mutate = {}

local C_OPERATORS = {
  { " >= ", " > " }, { " > ", " >= " }, { " <= ", " < " }, { " < ", " <= " }, { " == ", " != " }, { " != ", " == " },
  { " && ", " || " }, { " || ", " && " }, { " + 1", " + 2" }, { " - ", " + " }, { "&= ~", "|= " }, { "|= ", "&= ~" },
  { " & ~", " & " }, { "true", "false" }, { "false", "true" }, { "(!", "(" }, { "rl_time_min(", "rl_time_max(" },
  { "rl_time_max(", "rl_time_min(" }, { "++", "--" }, { "_GRANTED", "_TAKEN" }, { "_TAKEN", "_GRANTED" },
}
local LUA_OPERATORS = {
  { " >= ", " > " }, { " > ", " >= " }, { " <= ", " < " }, { " < ", " <= " }, { " == ", " ~= " }, { " ~= ", " == " },
  { " and ", " or " }, { " or ", " and " }, { " + ", " - " }, { " - ", " + " }, { "true", "false" },
  { "false", "true" }, { "not ", "" },
}

-- A line without effect on a caller or a node is not a decision.
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

-- The line with all quoted text replaced, byte by byte.
local function without_strings(line)
  local function mask(text)
    return ("\1"):rep(#text)
  end
  return (line:gsub('"[^"]*"', mask):gsub("'[^']*'", mask))
end

-- The name of an operator: ">= to >".
local function name_of(operator)
  local function trim(text)
    return text:match("^%s*(.-)%s*$")
  end
  return trim(operator[1]) .. " to " .. (operator[2] == "" and "nothing" or trim(operator[2]))
end

-- Counts the operators of a line in |counts|. Those in |made| that stand whole on the line become
-- mutants, each with its number among the operators of that name in its function: however the lines
-- are broken, it stays the same.
local function operators_of(line, code, operators, counts, made)
  local padded = " " .. code .. " "
  for _, operator in ipairs(operators) do
    local name, from = name_of(operator), 1
    while true do
      local first, last = padded:find(operator[1], from, true)
      if not first then
        break
      end
      counts[name] = (counts[name] or 0) + 1
      if made and first > 1 and last < #padded then
        made[#made + 1] = { mutant = line:sub(1, first - 2) .. operator[2] .. line:sub(last), operator = name,
          nth = counts[name] }
      end
      from = last + 1
    end
  end
end

local function one_more(counts, name)
  counts[name] = (counts[name] or 0) + 1
  return counts[name]
end

-- A statement that is a call, or an assignment that is no declaration.
local function is_statement(code)
  return code:find("^%s+%(void%)[%w_]+%(.*%);$")
    or code:find("^%s+[%w_]+[%w_%->%.%[%]]*[^=]*;$") and not code:find("^%s*return") and not code:find("^%s*break")
    and not code:find("^%s*continue") and not code:find("^%s+[%w_]+ %*?[%w_]+ =")
    and not code:find("^%s+[%w_]+ %*?[%w_]+;$")
    or code:find("^%s+[%w_%->%.%[%]%*]+ [|&%-+]?= [^=]*;$")
end

-- The mutants of a line; |counts| are those of its function.
local function c_mutants(line, statements, counts)
  local made = c_decides(line) and {} or nil
  if line:find("^%s*/?%*") or line:find("^#") then
    return {}
  end
  line = line:gsub("%s*/%*.-%*/", "")
  local code = without_strings(line)
  operators_of(line, code, C_OPERATORS, counts, made)
  if not made then
    return {}
  end
  -- A condition that has no operator is turned round.
  if code:gsub("%->", "."):find("^%s*[} else]*if %([%w_]+[^!&|<>=]*%) {$") then
    made[#made + 1] = { mutant = line:gsub("if %((.*)%) {$", "if (!(%1)) {"), operator = "if to if not",
      nth = one_more(counts, "if to if not") }
  end
  if statements and is_statement(code) then
    made[#made + 1] = { mutant = line:match("^%s*") .. ";", operator = "statement",
      nth = one_more(counts, "statement") }
  end
  return made
end

local function lua_mutants(line, statements, counts)
  local made = lua_decides(line) and {} or nil
  if line:find("^%s*%-%-") then
    return {}
  end
  line = line:gsub("%s*%-%- .*$", "")
  local code = without_strings(line)
  operators_of(line, code, LUA_OPERATORS, counts, made)
  if not made then
    return {}
  end
  local condition = code:match("^%s*e?l?s?e?if (.*) then$")
  if condition and not condition:find("[<>=]") and not condition:find("^not ") then
    made[#made + 1] = { mutant = line:gsub("if (.*) then$", "if not (%1) then"), operator = "if to if not",
      nth = one_more(counts, "if to if not") }
  end
  if statements and code:find("^%s+[%w_.:]+%b()$") then
    made[#made + 1] = { mutant = line:match("^%s*"), operator = "statement", nth = one_more(counts, "statement") }
  end
  return made
end

-- The names of the functions and tables that the lines of a C file stand in.
local function c_functions(lines)
  local names, within, name = {}, false, nil
  for number, line in ipairs(lines) do
    if line:find("^[%w_]") then
      local plain = line:gsub("__attribute__%(%(.-%)%)+", "")
      name = plain:match("([%w_]+)%(") or plain:match("([%w_]+)%[[^%]]*%] =") or plain:match("([%w_]+) =")
        or plain:match("([%w_]+) {$") or name
    end
    if line:find("^[%w_].*{$") or (line:find("^ .*%) {$") and not within) then
      within = true
    elseif line:find("^}") then
      within = false
    elseif within then
      names[number] = name
    end
  end
  return names
end

-- The names of the functions that the lines of a Lua file stand in; "main" outside of all.
local function lua_functions(lines)
  local names, open = {}, {}
  for number, line in ipairs(lines) do
    local indent = #line:match("^ *")
    while #open > 0 and line:find("%S") and indent < open[#open].inside do
      open[#open] = nil
    end
    names[number] = #open > 0 and open[#open].name or "main"
    local name = line:match("^%s*local function ([%w_]+)") or line:match("^%s*function ([%w_.:]+)")
      or line:match("^%s*local ([%w_]+) = function") or line:match("^%s*([%w_.]+) = function")
    if name and not line:find("%f[%w_]end%f[^%w_]") then
      open[#open + 1] = { name = name:match("[%w_]+$"), inside = indent + 1 }
    elseif name then
      names[number] = name:match("[%w_]+$")
    end
  end
  return names
end

local function lines_of(text)
  local lines = {}
  for line in text:gmatch("([^\n]*)\n") do
    lines[#lines + 1] = line
  end
  return lines
end

-- All mutants of |text|, the file |path|: an array of { path, number, line, mutant, name, operator,
-- nth }. |name| is the function's. And how often operators stand in functions, those that lines are
-- broken at included: { [name] = { [operator] = count } }.
function mutate.all(path, text, statements)
  local lines, found, counts = lines_of(text), {}, {}
  local is_lua = path:find("%.lua$")
  local names = (is_lua and lua_functions or c_functions)(lines)
  for number, line in ipairs(lines) do
    local name = names[number]
    if name then
      counts[name] = counts[name] or {}
      for _, one in ipairs((is_lua and lua_mutants or c_mutants)(line, statements, counts[name])) do
        one.path, one.number, one.line, one.name = path, number, line, name
        found[#found + 1] = one
      end
    end
  end
  return found, counts
end

-- The text with the mutant in it.
function mutate.text(text, mutant)
  local lines = lines_of(text)
  lines[mutant.number] = mutant.mutant
  return table.concat(lines, "\n") .. "\n"
end

return mutate
