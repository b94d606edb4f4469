-- Text and code of comments as Markdown.
--
-- SPDX-License-Identifier: MIT

local markup = {}

-- Returns the text without characters that mean something in a table of Markdown.
function markup.escape(text)
  return (text:gsub("[&<>|*_%[%]]", function(character) return ("&#%d;"):format(character:byte()) end))
end

-- Returns code for a table. anchors maps names to the anchors that they link to.
function markup.code(text, anchors)
  if text == "" then return "" end
  local escaped = {}
  local from = 1
  while true do
    local start, stop = text:find("redlock[%w_.]+", from)
    local name = start and text:sub(start, stop)
    escaped[#escaped + 1] = markup.escape(text:sub(from, (start or 0) - 1))
    if not name then break end
    local anchor = anchors and anchors[name]
    local shown = markup.escape(name)
    escaped[#escaped + 1] = anchor and ('<a href="#%s">%s</a>'):format(anchor, shown) or shown
    from = stop + 1
  end
  return "<code>" .. table.concat(escaped) .. "</code>"
end

-- Returns a sentence for a page. Names with an underscore become code.
function markup.text(text)
  return (text:gsub("([^`]*)(`?[^`]*`?)", function(plain, quoted)
    local marked = markup.escape((plain:gsub("%a[%w.:]*_[%w_]*", "\1%0\2")))
    return marked:gsub("\1(.-)\2", "<code>%1</code>") .. quoted:gsub("|", "\\|")
  end))
end

return markup
