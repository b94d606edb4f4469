-- Draws a bar chart as SVG from a file of bench/data.
--
--     lua bench/plot.lua [check] FILE.tsv ...       writes docs/chart-FILE.svg, or compares with it
--
-- A file has comments "# title:", "# axis:" and "# limit:", and a line for each bar: column, name,
-- kind (redlock or peer), value, and the smallest and the largest value, both empty if unknown.
-- Bars of one name share a row.
--
-- SPDX-License-Identifier: MIT

local LEFT, RIGHT, TOP, ROW, BAR, GAP, WIDTH = 186, 24, 100, 27, 15, 34, 760

local STYLE = [[
<style>
  text { font-family: "DejaVu Sans", Verdana, sans-serif; font-size: 13px; fill: #1f2328; }
  .title { font-size: 16px; font-weight: bold; }
  .small { font-size: 12px; fill: #59636e; }
  .name { text-anchor: end; }
  .back { fill: #ffffff; }
  .lane { fill: #f3f5f7; }
  .redlock { fill: #1a7f37; } .peer { fill: #8c96a1; }
  text.redlock { fill: #1a7f37; font-weight: bold; }
  .range { stroke: #1f2328; stroke-width: 1.2; fill: none; }
  .limit { stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 5 3; }
  text.limit-text { fill: #cf222e; font-size: 12px; text-anchor: middle; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .small { fill: #9198a1; } .back { fill: #0d1117; } .lane { fill: #161b22; }
    .redlock, text.redlock { fill: #3fb950; } .peer { fill: #6e7781; }
    .range { stroke: #e6edf3; } .limit { stroke: #f85149; } text.limit-text { fill: #f85149; }
  }
</style>]]

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read("*a")
  file:close()
  return text
end

-- Adds a value to a list once.
local function add_once(list, value)
  for index, known in ipairs(list) do
    if known == value then return index end
  end
  list[#list + 1] = value
  return #list
end

-- Returns the chart of a text: its title, axis and limit, the names, the columns and the bars.
local function parse(text)
  local chart = { names = {}, columns = {}, bars = {}, largest = 0 }
  for line in text:gmatch("[^\n]+") do
    local key, value = line:match("^# (%w+): (.*)$")
    if key then
      chart[key] = value
    elseif not line:find("^#") then
      local cells = {}
      for cell in (line .. "\t"):gmatch("(.-)\t") do cells[#cells + 1] = cell end
      local bar = { kind = cells[3], value = assert(tonumber(cells[4]), "no number: " .. line), shown = cells[4],
        low = tonumber(cells[5]), high = tonumber(cells[6]) }
      bar.column, bar.row = add_once(chart.columns, cells[1]), add_once(chart.names, cells[2])
      chart.bars[#chart.bars + 1] = bar
      chart.largest = math.max(chart.largest, bar.value, bar.high or 0)
    end
  end
  chart.limit = assert(tonumber(chart.limit), "no limit")
  chart.largest = math.max(chart.largest, chart.limit)
  return chart
end

local function escape(text) return (text:gsub("[&<>\"]", function(c) return ("&#%d;"):format(c:byte()) end)) end

local function bar_of(bar, x, width, scale)
  local y = TOP + ROW * (bar.row - 1)
  local lines = { ('<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%d"/>'):format(bar.kind, x,
    y + (ROW - BAR) / 2, math.max(bar.value * scale, 1), BAR) }
  if bar.low and bar.high then
    lines[2] = ('<path class="range" d="M%.1f %.1fH%.1fM%.1f %.1fv8M%.1f %.1fv8"/>'):format(x + bar.low * scale,
      y + ROW / 2, x + bar.high * scale, x + bar.low * scale, y + ROW / 2 - 4, x + bar.high * scale, y + ROW / 2 - 4)
  end
  lines[#lines + 1] = ('<text class="small name" x="%.1f" y="%.1f">%s</text>'):format(x + width - 5,
    y + ROW / 2 + 4.5, escape(bar.shown))
  return table.concat(lines, "\n")
end

-- Returns the frame of a column: its heading, the lanes of its rows, and the limit.
local function column_of(chart, heading, x, width, scale)
  local lines = {}
  for row = 1, #chart.names do
    lines[row] = ('<rect class="lane" x="%.1f" y="%d" width="%.1f" height="%d"/>'):format(x, TOP + ROW * (row - 1) + 2,
      width, ROW - 4)
  end
  local at = x + chart.limit * scale
  lines[#lines + 1] = ('<text x="%.1f" y="%d">%s</text>'):format(x, TOP - 28, escape(heading))
  lines[#lines + 1] = ('<path class="limit" d="M%.1f %dV%d"/>'):format(at, TOP - 4, TOP + ROW * #chart.names)
  lines[#lines + 1] = ('<text class="limit-text" x="%.1f" y="%d">limit</text>'):format(at, TOP - 10)
  return table.concat(lines, "\n")
end

local function kinds_of(chart)
  local kinds = {}
  for _, bar in ipairs(chart.bars) do kinds[bar.row] = bar.kind end
  return kinds
end

-- Returns the picture of a chart.
local function draw(chart)
  local height = TOP + ROW * #chart.names + 16
  local width = (WIDTH - LEFT - RIGHT - GAP * (#chart.columns - 1)) / #chart.columns
  local scale = (width - 48) / chart.largest
  local lines = { ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" '
    .. 'aria-labelledby="title description">'):format(WIDTH, height, WIDTH, height),
    ('<title id="title">%s</title>'):format(escape(chart.title)),
    ('<desc id="description">%s. The dashed line is the limit.</desc>'):format(escape(chart.axis)), STYLE,
    ('<rect class="back" width="%d" height="%d" rx="6"/>'):format(WIDTH, height),
    ('<text class="title" x="14" y="26">%s</text>'):format(escape(chart.title)),
    ('<text class="small" x="14" y="46">%s</text>'):format(escape(chart.axis)) }
  local kinds = kinds_of(chart)
  for row, name in ipairs(chart.names) do
    lines[#lines + 1] = ('<text class="name %s" x="%d" y="%.1f">%s</text>'):format(
      kinds[row] == "redlock" and "redlock" or "", LEFT - 10, TOP + ROW * (row - 0.5) + 4.5, escape(name))
  end
  for index, heading in ipairs(chart.columns) do
    lines[#lines + 1] = column_of(chart, heading, LEFT + (width + GAP) * (index - 1), width, scale)
  end
  for _, bar in ipairs(chart.bars) do
    lines[#lines + 1] = bar_of(bar, LEFT + (width + GAP) * (bar.column - 1), width, scale)
  end
  lines[#lines + 1] = "</svg>\n"
  return table.concat(lines, "\n")
end

local is_check = arg[1] == "check"
local good = true
for index = is_check and 2 or 1, #arg do
  local name = assert(arg[index]:match("([%w-]+)%.tsv$"), "plot: no .tsv file: " .. arg[index])
  local picture = draw(parse(assert(read(arg[index]), "plot: cannot read " .. arg[index])))
  local path = "docs/chart-" .. name .. ".svg"
  if not is_check then
    local file = assert(io.open(path, "wb"))
    file:write(picture)
    file:close()
    print("wrote " .. path)
  elseif read(path) ~= picture then
    good = false
    print(("not ok - %s does not show %s: run bench/plot"):format(path, arg[index]))
  end
end
if is_check and good then print("ok - the charts show the data in bench/data") end
os.exit(good and 0 or 1)
