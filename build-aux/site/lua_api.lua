-- The page of the Lua API, made from LuaCATS annotations.
--
-- SPDX-License-Identifier: MIT

local lua_api = {}

-- Splits "type the rest" after the type, which may have spaces in brackets, and after ":" and ",".
local function split_type(text)
  local depth = 0
  for index = 1, #text do
    local character = text:sub(index, index)
    if character:find("[%(%[{<]") then depth = depth + 1 end
    if character:find("[%)%]}>]") then depth = depth - 1 end
    if character == " " and depth == 0 and not text:sub(index - 1, index - 1):find("[:,]") then
      return text:sub(1, index - 1), text:sub(index + 1)
    end
  end
  return text, ""
end

-- Returns "name", "type", "the rest" of an annotation.
local function named(text)
  local name, rest = text:match("^(%S+)%s+(.*)$")
  return name, split_type(rest)
end

local ADD = {
  param = function(item, text)
    local name, kind, meaning = named(text)
    item.params[#item.params + 1] = { name = name, kind = kind, meaning = meaning }
  end,
  field = function(item, text)
    local name, kind, meaning = named(text)
    item.fields[#item.fields + 1] = { name = name, kind = kind, meaning = meaning }
  end,
  ["return"] = function(item, text)
    local kind, rest = split_type(text)
    local name, meaning = rest:match("^(%S+)%s*(.*)$")
    item.returns[#item.returns + 1] = { name = name or "", kind = kind, meaning = meaning or "" }
  end,
  class = function(item, text) item.class, item.parent = text:match("^([%w_.]+):?%s*(%S*)") end,
  alias = function(item, text) item.alias, item.kind = text:match("^(%S+)%s*(.*)$") end,
}

local function new_item() return { text = {}, params = {}, fields = {}, returns = {}, values = {} } end

local function add_line(item, line)
  local tag, rest = line:match("^%-%-%-@(%w+)%s*(.*)$")
  local value, meaning = line:match("^%-%-%-|%s*(%S+)%s*#?%s*(.*)$")
  if tag then
    if ADD[tag] then ADD[tag](item, rest) end
  elseif value then
    item.values[#item.values + 1] = { name = value, meaning = meaning }
  else
    item.text[#item.text + 1] = line:match("^%-%-%-%s?(.*)$")
  end
end

-- Returns the items of a file: blocks of comments and what follows each.
local function items_of(text)
  local items, item = {}, nil
  for line in text:gmatch("(.-)\n") do
    if line:find("^%-%-%-") then
      item = item or new_item()
      add_line(item, line)
    elseif item then
      item.method = line:match("^function ([%w_.:]+%b())")
      items[#items + 1] = item
      item = nil
    end
  end
  items[#items + 1] = item
  return items
end

local function row(markup, cells, anchors)
  local shown = { markup.code(cells.name), cells.kind and markup.code(cells.kind, anchors), markup.text(cells.meaning) }
  return "| " .. table.concat(cells.kind and shown or { shown[1], shown[3] }, " | ") .. " |"
end

-- Adds a table to a page if there are rows.
local function add_table(page, markup, head, rows, anchors)
  if #rows == 0 then return end
  local _, columns = head:gsub("|", "")
  page[#page + 1] = "\n" .. head .. "\n" .. ("|---"):rep(columns - 1) .. "|"
  for _, cells in ipairs(rows) do page[#page + 1] = row(markup, cells, anchors) end
end

local function paragraph(markup, item) return "\n" .. markup.text(table.concat(item.text, " ")) end

local function anchor_of(name) return (name:gsub("[^%w]+", "-"):gsub("-+$", "")) end

local function add_method(page, markup, item, anchors)
  local name = item.method:match("^[%w_.:]+")
  page[#page + 1] = ("\n### %s {#%s}"):format(item.method:gsub("_", "\\_"), anchor_of(name))
  page[#page + 1] = paragraph(markup, item)
  add_table(page, markup, "| parameter | type | meaning |", item.params, anchors)
  local result = item.returns[1]
  if #item.returns == 1 and result.name == "" then
    page[#page + 1] = "\nReturns " .. markup.code(result.kind, anchors) .. "."
  else
    add_table(page, markup, "| result | type | meaning |", item.returns, anchors)
  end
end

local function add_class(page, markup, item, anchors)
  page[#page + 1] = ("\n## %s {#%s}"):format(item.class, anchor_of(item.class))
  page[#page + 1] = paragraph(markup, item)
  if item.parent ~= "" then page[#page + 1] = "\nHas all fields of " .. markup.code(item.parent, anchors) .. "." end
  add_table(page, markup, "| field | type | meaning |", item.fields, anchors)
  for _, method in ipairs(item.methods or {}) do add_method(page, markup, method, anchors) end
end

local function add_alias(page, markup, item)
  page[#page + 1] = ("\n## %s {#%s}"):format(item.alias, anchor_of(item.alias))
  page[#page + 1] = paragraph(markup, item)
  if item.kind ~= "" then page[#page + 1] = "\nThe type " .. markup.code(item.kind) .. "." end
  add_table(page, markup, "| value | meaning |", item.values)
end

-- Returns classes with methods, classes without, and aliases. A method belongs to the class before.
local function sort(items)
  local acting, plain, aliases, class = {}, {}, {}, nil
  for _, item in ipairs(items) do
    if item.alias then aliases[#aliases + 1] = item end
    if item.class then
      class = item
      class.methods = {}
      plain[#plain + 1] = class
    elseif item.method and class then
      class.methods[#class.methods + 1] = item
    end
  end
  for index = #plain, 1, -1 do
    if #plain[index].methods > 0 then table.insert(acting, 1, table.remove(plain, index)) end
  end
  return acting, plain, aliases
end

local INTRODUCTION = [[
# Lua API

This page has every function, option and type. [The guide](../docs/lua.md) explains them.

All durations are whole milliseconds unless another unit is named. A failure is returned as `nil, message, code`.
A mistake of the program raises an error at the caller's line. A `?` marks what may be `nil`.]]

-- Returns the page for the texts of some files.
function lua_api.page(markup, texts)
  local items, anchors = {}, {}
  for _, text in ipairs(texts) do
    for _, item in ipairs(items_of(text)) do items[#items + 1] = item end
  end
  for _, item in ipairs(items) do
    local name = item.class or item.alias
    if name then anchors[name] = anchor_of(name) end
  end
  local page = { INTRODUCTION }
  local acting, plain, aliases = sort(items)
  for _, item in ipairs(acting) do add_class(page, markup, item, anchors) end
  for _, item in ipairs(plain) do add_class(page, markup, item, anchors) end
  for _, item in ipairs(aliases) do add_alias(page, markup, item) end
  return table.concat(page, "\n") .. "\n"
end

return lua_api
