--- Labels of the fake: text in a token, for people, behind the random digits (rl_label.c).

local label = {}

local MOST, DIGITS = 64, 40

-- Ranges of characters that no label has.
local forbidden = {
  { 0x0000, 0x001f }, { 0x007f, 0x009f }, { 0x00ad, 0x00ad }, { 0x061c, 0x061c }, { 0x200b, 0x200b },
  { 0x200e, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0xd800, 0xdfff }, { 0xfdd0, 0xfdef },
  { 0xfeff, 0xfeff }, { 0xfff0, 0xfffb }, { 0xe0000, 0xe0fff },
}
-- Lowest first byte, its value and the least character of sequences by their length.
local sequences = { { 0, 0, 0 }, { 0xc0, 0xc0, 0x80 }, { 0xe0, 0xe0, 0x800 }, { 0xf0, 0xf0, 0x10000 } }

local function is_printable(character)
  for _, range in ipairs(forbidden) do
    if character >= range[1] and character <= range[2] then return false end
  end
  return character <= 0x10ffff and character % 0x10000 < 0xfffe
end

-- Returns the bytes of the character at a position; nil if there is none that is printable.
local function size_at(text, at)
  local first = text:byte(at)
  local size = first < 0x80 and 1 or first < 0xc0 and 0 or first < 0xe0 and 2 or first < 0xf0 and 3
    or first < 0xf8 and 4 or 0
  local sequence = sequences[size]
  if not sequence or at + size - 1 > #text then return nil end
  local character = first - sequence[2]
  for index = at + 1, at + size - 1 do
    local byte = text:byte(index)
    if byte < 0x80 or byte >= 0xc0 then return nil end
    character = character * 64 + byte - 0x80
  end
  return character >= sequence[3] and is_printable(character) and size or nil
end

local function is_valid(text)
  if #text == 0 or #text > MOST then return false end
  local at = 1
  while at <= #text do
    local size = size_at(text, at)
    if not size then return false end
    at = at + size
  end
  return true
end

--- Returns nil, or why a text is no label. "" is none.
function label.complaint(text)
  if text == "" or is_valid(text) then return nil end
  return "must be at most " .. MOST .. " bytes of UTF-8 without control characters"
end

--- Returns the digits with the permits and the label of some options, if they have any.
function label.token(digits, options)
  local text = options.label
  if (options.permits or 0) > 0 then digits = digits .. "/" .. options.permits end
  return text and text ~= "" and digits .. ":" .. text or digits
end

--- Returns how many permits the client of a semaphore's token uses, or nil.
function label.permits(token)
  local digits, count = token:sub(1, DIGITS), token:sub(DIGITS + 1):match("^/([1-9]%d*)")
  local behind = count and token:sub(DIGITS + 2 + #count, DIGITS + 2 + #count)
  count = tonumber(count)
  return count and count <= 1024 and (behind == "" or behind == ":") and not digits:find("[^0-9a-f]") and count or nil
end

--- Returns the label in a token of any program, or nil.
function label.of(token)
  local permits = label.permits(token)
  local digits = token:sub(1, DIGITS)
  local text = token:sub(DIGITS + 1 + (permits and #tostring(permits) + 1 or 0))
  if text:sub(1, 1) ~= ":" or digits:find("[^0-9a-f]") or not is_valid(text:sub(2)) then return nil end
  return text:sub(2)
end

return label
