-- Changes a page of the repository into one of the site.
--
-- GitHub and the generator differ: here a list needs an empty line before it, a nested list an
-- indentation of four, and code in a table no backslash. The navigation shows the sections of a
-- page only below one heading of the first level. A link to a source file leads to a page that
-- shows the source.
--
-- SPDX-License-Identifier: MIT

local pages = {}

local LANGUAGES = { c = "c", h = "c", lua = "lua", sh = "sh", conf = "nginx", yml = "yaml" }

local function is_item(line) return line:find("^%s*[-*] ") or line:find("^%s*%d+%. ") end

local function without_backslashes(line)
  return line:find("^|") and line:gsub("`[^`]*`", function(code) return (code:gsub("\\|", "|")) end) or line
end

-- Returns the number of headings of the first level.
local function count_titles(each_line)
  local count = 0
  each_line(function(line, is_code)
    if not is_code and line:find("^# ") then count = count + 1 end
  end)
  return count
end

-- Returns the page with lists, tables and headings for the generator. each_line(visit) visits its
-- lines.
local function adapt(each_line)
  local written, before, titled = {}, "", count_titles(each_line) < 2
  each_line(function(line, is_code)
    if not is_code then
      if line:find("^#") and written[1] and not titled then line = "#" .. line end
      line = without_backslashes(line)
      local starts = is_item(line) and before:find("%S") and not is_item(before) and not before:find("^%s")
      if starts then written[#written + 1] = "" end
      line = line:gsub("^  ([-*] )", "    %1")
    end
    written[#written + 1] = line
    before = line
  end)
  return table.concat(written, "\n")
end

local function lines_of(text)
  return function(visit)
    local fenced = false
    for line in text:gmatch("(.-)\n") do
      local fence = line:find("^%s*```") ~= nil
      visit(line, fenced or fence)
      if fence then fenced = not fenced end
    end
  end
end

-- Returns the kind of a link's path: "page", "picture" or "source".
function pages.kind_of(path)
  if path:find("%.md$") then return "page" end
  return path:find("%.svg$") and "picture" or path:find("%.png$") and "picture" or "source"
end

-- Returns the text of a page for the site. Calls found(path) for each file that it links to.
function pages.convert(links, page, text, found)
  local listed = adapt(lines_of(text))
  return (listed:gsub("(%]%()([^()%s]+)(%))", function(before, target, after)
    if links.is_external(target) or target:find("^#") then return nil end
    local path = links.resolve(page, target)
    found(path)
    if pages.kind_of(path) == "source" then target = target .. ".md" end
    return before .. target .. after
  end)) .. "\n"
end

-- Returns a page that shows a source file.
function pages.of_source(path, source)
  local language = LANGUAGES[path:match("%.(%w+)$")] or ""
  return ("# %s\n\n~~~~%s\n%s\n~~~~\n"):format(path:gsub("_", "\\_"), language, source)
end

return pages
