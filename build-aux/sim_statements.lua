-- Every statement of the simulator's checkers, which a control must have seen to fail.
--
-- SPDX-License-Identifier: MIT

local statements = {}

-- The adjacent string literals at |place| as one text; a macro between them, as PRIu64, stands for a number.
local function literals(text, place)
  local parts = {}
  while true do
    place = text:find("%S", place)
    local _, last, macro = text:find("^(PRI[%w]+)", place)
    if macro then
      parts[#parts + 1] = "u"
    elseif text:find('^"', place) then
      last = place
      repeat
        last = text:find('"', last + 1, true)
      until text:sub(last - 1, last - 1) ~= "\\"
      parts[#parts + 1] = text:sub(place + 1, last - 1)
    else
      return table.concat(parts)
    end
    place = last + 1
  end
end

-- A pattern for what a format prints.
local function pattern_of(format)
  local pattern = format:gsub("%%#?[lz]*[a-z]", "\0"):gsub("[%^%$%(%)%%%.%[%]%*%+%-%?]", "%%%0"):gsub("%z", ".-")
  return "^" .. pattern .. "$"
end

-- All of |sources|, a list of { name = path, text = ... }: a list of { source, checker, format, pattern }.
function statements.of(sources)
  local found = {}
  for _, source in ipairs(sources) do
    for checker, place in source.text:gmatch('%f[%w_]sim_violation%(%s*s,%s*"(%w+)",()') do
      local format = literals(source.text, place)
      found[#found + 1] = { source = source.name, checker = checker, format = format, pattern = pattern_of(format) }
    end
  end
  return found
end

-- Those that nobody has said: |said| is a list of { checker = ..., detail = ... }.
function statements.unsaid(found, said)
  local left = {}
  for _, statement in ipairs(found) do
    local is_said = false
    for _, one in ipairs(said) do
      is_said = is_said or (one.checker == statement.checker and one.detail:find(statement.pattern) ~= nil)
    end
    if not is_said then
      left[#left + 1] = statement
    end
  end
  return left
end

return statements
