-- The page of the C API, made from redlock.h.
--
-- The header has sections, comments and declarations. A comment belongs to the declarations after
-- it, if no empty line is between them.
--
-- SPDX-License-Identifier: MIT

local c_api = {}

-- Splits the header into blocks { kind = "comment" or "code", lines = }. A comment is a block only
-- if it begins at column 1.
local function blocks_of(text)
  local blocks, block, in_comment, depth = {}, nil, false, 0
  for line in text:gmatch("(.-)\n") do
    local begins = depth == 0 and not in_comment and line:find("^/%*")
    if depth == 0 and not in_comment and (begins or not line:find("%S") or block and block.kind == "comment") then
      block = nil
    end
    if line:find("%S") or block then
      if not block then
        block = { kind = begins and "comment" or "code", lines = {}, attached = false }
        blocks[#blocks + 1] = block
      end
      block.lines[#block.lines + 1] = line
      if block.kind == "comment" then
        in_comment = not line:find("%*/")
      else
        local _, opened = line:gsub("[{(]", "")
        local _, closed = line:gsub("[})]", "")
        depth = depth + opened - closed
      end
    else
      blocks[#blocks + 1] = { kind = "gap", lines = {} }
    end
  end
  return blocks
end

-- Returns the lines of a comment without its stars.
local function comment_lines(block)
  local lines = {}
  for _, line in ipairs(block.lines) do
    local text = line:gsub("^/%*%s?", ""):gsub("^ %*/$", ""):gsub("^ %* ?", ""):gsub("%s*%*/$", "")
    if not text:find("SPDX", 1, true) then lines[#lines + 1] = text end
  end
  return lines
end

-- Returns a line of a comment with its names as code. Functions and pages are links.
local function inline(markup, line, anchors)
  local function name_of(name, call)
    local anchor = anchors[name]
    local code = markup.code(name .. call)
    return anchor and ('<a href="#%s">%s</a>'):format(anchor, code) or code
  end
  line = line:gsub("docs/([%w-]+)%.md", "\1%1\2")
  local parts, from = {}, 1
  while true do
    local start, stop, star, name, call = line:find("|?(%*?)([%a_][%w_]*)(%(?%)?)|?", from)
    if not start then break end
    local whole = line:sub(start, stop)
    local member = call == "" and whole:sub(-1) ~= "|" and line:match("^[.]%l[%w_]*", stop + 1)
    if member then name, stop = name .. member, stop + #member end
    local is_name = member or whole:find("^|.*|$") or name:find("_", 1, true) or call == "()"
    parts[#parts + 1] = markup.escape(line:sub(from, start - 1))
    if is_name and call ~= "(" then
      parts[#parts + 1] = name_of(star .. name, call)
    else
      parts[#parts + 1] = markup.escape(whole)
    end
    from = stop + 1
  end
  local text = table.concat(parts) .. markup.escape(line:sub(from))
  return (text:gsub("\1(.-)\2", "[docs/%1.md](../docs/%1.md)"))
end

-- Returns the kind of a comment's line after a line of some kind, and what it says.
local function kind_of(line, before)
  if not line:find("%S") then return before == "code" and "code" or "gap", "" end
  local code, item = line:match("^    (.*)$"), line:match("^  %-? ?(%S.*)$")
  if code and before == "item" then return "item", code, true end
  if code then return "code", line end
  if item then return "item", item end
  if line:find("^%u[%u ]+$") then return "heading", line:sub(1, 1) .. line:sub(2):lower() end
  if line:find("^Errors:") then return "errors", line:sub(9) end
  return "text", line
end

local PREFIX = { item = "\n- ", heading = "\n## ", errors = "\n**Errors:** " }

-- Adds a comment to the page: paragraphs, lists, code and capital lines as headings.
local function add_comment(page, markup, block, anchors)
  local before
  for _, line in ipairs(comment_lines(block)) do
    local kind, text, goes_on = kind_of(line, before)
    if kind == "code" or kind == "gap" then
      if kind ~= before then page[#page + 1] = "" end
      page[#page + 1] = text
    else
      local apart = before == "code" or before == "item" and kind == "text"
      local prefix = not goes_on and PREFIX[kind] or apart and "\n" or ""
      local shown = inline(markup, text, anchors)
      -- "Signals. Only ..." begins a paragraph about signals.
      if before == "gap" and #text:match("^[^.]*") < 24 then shown = shown:gsub("^(%u%l[%a ]*%.) ", "**%1** ") end
      page[#page + 1] = prefix .. shown
    end
    before = kind
  end
end

-- Returns a prototype whose lines begin below its first parameter.
local function aligned(head, parameters)
  return head .. "(" .. parameters:gsub("\n%s+", "\n" .. (" "):rep(#head + 1)) .. ");"
end

-- Returns the code without linkage, and inline functions without bodies.
local function declarations(block)
  local text = table.concat(block.lines, "\n")
  text = text:gsub("REDLOCK_INLINE (.-)%s(%b{})", "%1;"):gsub("REDLOCK_EXTERN ", "")
  for name in text:gmatch("([%w_]+)_sized%(") do
    if text:find("%f[%w_]" .. name .. "%(") then text = text:gsub("[^\n;]*" .. name .. "_sized%b();\n", "") end
  end
  return (("\n" .. text):gsub("(\n[%l][%w_ ]*[ *][%w_]+)%(([^()]*)%);", function(head, parameters)
    return "\n" .. aligned(head:sub(2), parameters)
  end):sub(2))
end

-- Returns the names that code declares, in order.
local function names_of(code)
  local names = {}
  local function add(name) names[#names + 1] = name end
  local flat = code:gsub("/%*.-%*/", "")
  if flat:find("^typedef [%w_ ]+%b{}") or flat:find("^typedef enum") or flat:find("^typedef struct [%w_]+ {") then
    add(flat:match("}%s*([%w_]+);"))
    return names
  end
  for statement in flat:gmatch("[^;]+;") do
    local name = statement:match("([%w_]+)%(") or not statement:find("#define") and statement:match("([%w_]+);")
    if name and (name:find("^redlock_") or name:find("^luaopen_")) then add(name) end
  end
  return names
end

-- Returns the title of a section: a comment that is one line of dashes and words.
local function section_of(block)
  return block.kind == "comment" and #block.lines == 1 and block.lines[1]:match("^/%* %-%-%-+ (.-) %*/$")
end

local function add_code(page, names, code)
  if #names > 0 then
    local heading = table.concat(names, ", "):gsub("_", "\\_")
    page[#page + 1] = ("\n### %s {#%s}\n"):format(heading, names[1])
    for index = 2, #names do page[#page + 1] = ('<a id="%s"></a>'):format(names[index]) end
  end
  page[#page + 1] = "\n```c\n" .. code .. "\n```\n"
end

-- Skips the guards of the header: the code before the first section of types.
local function is_guard(code)
  return code:find("^#if") or code:find("^#endif") or code:find("^#include") or
    code:find("^#define REDLOCK_INLINE") or code:find("^struct ")
end

-- Adds anchors, and returns the blocks with the names and code of each.
local function prepare(text)
  local blocks, anchors = blocks_of(text:gsub("#ifdef __cplusplus\n.-#endif\n", "")), {}
  for _, block in ipairs(blocks) do
    if block.kind == "code" then
      block.code = declarations(block)
      block.names = names_of(block.code)
      for _, name in ipairs(block.names) do anchors[name] = name end
    end
  end
  return blocks, anchors
end

-- Returns the page for the text of redlock.h.
function c_api.page(markup, text)
  local blocks, anchors = prepare(text)
  local page = { "# C API\n", "This page is `redlock.h`. [The guide](../docs/c.md) explains it with programs.\n" }
  local has_types
  for index, block in ipairs(blocks) do
    local following, before = blocks[index + 1], blocks[index - 1]
    local stands_alone = not (following and following.kind == "code" and not is_guard(following.code))
    local section = section_of(block)
    if block.kind == "code" and not has_types and not is_guard(block.code) then
      has_types = true
      page[#page + 1] = "\n## Types and constants\n"
    end
    if section then
      page[#page + 1] = "\n## " .. section:sub(1, 1):upper() .. section:sub(2) .. "\n"
    elseif block.kind == "comment" and stands_alone then
      page[#page + 1] = ""
      add_comment(page, markup, block, anchors)
    elseif block.kind == "code" and not is_guard(block.code) then
      add_code(page, block.names, block.code)
      if before and before.kind == "comment" then add_comment(page, markup, before, anchors) end
    end
  end
  return table.concat(page, "\n") .. "\n"
end

return c_api
