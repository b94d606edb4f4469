-- Links and anchors of Markdown pages, for check_links.lua and for the site.
--
-- SPDX-License-Identifier: MIT

local links = {}

-- Returns the content of a file, or nil.
function links.read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read("*a")
  file:close()
  return text
end

-- Calls visit(number, line) for each line outside of fenced code.
function links.each_line(text, visit)
  local fenced, number = false, 0
  for line in (text .. "\n"):gmatch("(.-)\r?\n") do
    number = number + 1
    if line:find("^%s*```") then
      fenced = not fenced
    elseif not fenced then
      visit(number, line)
    end
  end
end

-- Returns the anchor that GitHub gives to a heading.
function links.anchor(heading)
  local text = heading:gsub("%[(.-)%]%(.-%)", "%1"):lower()
  return (text:gsub("[^%w%s_%-\128-\255]", ""):gsub("^%s+", ""):gsub("%s+$", ""):gsub("%s", "-"))
end

-- Returns the set of the anchors of a page.
function links.anchors(text)
  local anchors, seen = {}, {}
  links.each_line(text, function(_, line)
    local heading = line:match("^#+%s+(.-)%s*$")
    if heading then
      local anchor = links.anchor(heading)
      local again = seen[anchor]
      seen[anchor] = (again or 0) + 1
      anchors[again and anchor .. "-" .. again or anchor] = true
    end
    for id in line:gmatch('<a [^>]-id="([^"]+)"') do anchors[id] = true end
  end)
  return anchors
end

-- Returns the links of a page as an array of { line =, target = }. A link may break between lines.
function links.of(text)
  local found, lines = {}, {}
  links.each_line(text, function(number, line)
    lines[#lines + 1] = { number = number, text = line:gsub("`[^`]*`", "code") }
  end)
  for index, line in ipairs(lines) do
    local following = lines[index + 1]
    -- The text of a link may begin in one line and end in the next.
    local part = line.text .. " " .. (following and following.text or "")
    local from = 1
    while true do
      local start, stop, target = part:find("%[[^%[%]]*%]%(([^()%s]*)%)", from)
      if not start or start > #line.text then break end
      found[#found + 1] = { line = line.number, target = target }
      from = stop + 1
    end
    for target in line.text:gmatch("%[!%[[^%[%]]*%]%([^()]*%)%]%(([^()%s]*)%)") do
      found[#found + 1] = { line = line.number, target = target }
    end
  end
  return found
end

-- Returns true if the link leads out of the repository.
function links.is_external(target) return target:find("^%a[%w+.-]*:") ~= nil end

-- Returns the path that a link of a page leads to, and its anchor: "" and nil if it has none.
function links.resolve(page, target)
  local path, anchor = target:match("^([^#]*)#?(.*)$")
  if path == "" then return page, anchor end
  local parts = {}
  for part in (page:gsub("[^/]*$", "") .. path):gmatch("[^/]+") do
    if part == ".." and #parts > 0 and parts[#parts] ~= ".." then
      parts[#parts] = nil
    elseif part ~= "." then
      parts[#parts + 1] = part
    end
  end
  return table.concat(parts, "/"), anchor
end

return links
