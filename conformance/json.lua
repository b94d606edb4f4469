-- JSON for the lines of adapters: values, objects and arrays.
--
-- SPDX-License-Identifier: MIT

local json = {}

local NAMES = { ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

local function quote(text)
  return '"' .. text:gsub('[%c"\\]', function(c) return ("\\u%04x"):format(c:byte()) end) .. '"'
end

--- Returns the text of a value. A table with an element 1, or an empty one, is an array.
function json.encode(value)
  if type(value) == "string" then return quote(value) end
  if type(value) ~= "table" then return tostring(value) end
  local parts = {}
  if value[1] ~= nil or next(value) == nil then
    for _, element in ipairs(value) do parts[#parts + 1] = json.encode(element) end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  for name, field in pairs(value) do parts[#parts + 1] = quote(name) .. ":" .. json.encode(field) end
  table.sort(parts)
  return "{" .. table.concat(parts, ",") .. "}"
end

local function decode_string(text, at)
  local last = at
  repeat -- a quote that an even number of backslashes precedes ends the string
    last = assert(text:find('"', last + 1, true), "a string has no end")
  until #text:sub(at, last - 1):match("\\*$") % 2 == 0
  local inner = text:sub(at + 1, last - 1):gsub("\\u(%x%x%x%x)", function(hex)
    return tonumber(hex, 16) < 128 and string.char(tonumber(hex, 16)) or "?"
  end)
  return inner:gsub("\\(.)", NAMES), last + 1
end

local decode

-- Decodes the elements of an array or object up to the bracket |close|.
local function decode_elements(text, at, close, add)
  at = text:match("^%s*()", at)
  while text:sub(at, at) ~= close do
    at = text:match("^%s*,?%s*()", add(at))
    assert(at <= #text, "an array or object has no end")
  end
  return at + 1
end

function decode(text, at)
  at = text:match("^%s*()", at)
  local first, value = text:sub(at, at), {}
  if first == '"' then
    return decode_string(text, at)
  elseif first == "[" then
    return value, decode_elements(text, at + 1, "]", function(place)
      value[#value + 1], place = decode(text, place)
      return place
    end)
  elseif first == "{" then
    return value, decode_elements(text, at + 1, "}", function(place)
      local name
      name, place = decode_string(text, place)
      value[name], place = decode(text, assert(text:match("^%s*:()", place), "a name has no value"))
      return place
    end)
  end
  local word, after = text:match("^([%w%+%-%.]+)()", at)
  if word == "true" or word == "false" then return word == "true", after end
  if word == "null" then return nil, after end
  return assert(tonumber(word), "no JSON value"), after
end

--- Returns the value of a text, or raises an error.
function json.decode(text) return (decode(text, 1)) end

return json
