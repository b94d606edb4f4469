--- A strict reader of the text format of Prometheus 0.0.4: rejects what Prometheus rejects.

local metrics_text = {}

local function check(condition, message, line)
  if not condition then error(message .. ": " .. tostring(line), 0) end
end

-- Reads `name="value",...` and returns the names and values, still escaped.
local function read_labels(text, line)
  local labels, at = {}, 1
  while at <= #text do
    local name, start = text:match('^([%a_][%w_]*)="()', at)
    check(name, "no label", line)
    local stop = start
    while text:sub(stop, stop) ~= '"' do
      check(stop <= #text, "the label has no end", line)
      if text:sub(stop, stop) == "\\" then
        check(text:find('^[\\"n]', stop + 1), "unknown escape", line)
        stop = stop + 1
      end
      stop = stop + 1
    end
    check(labels[name] == nil, "a label twice", line)
    labels[name] = text:sub(start, stop - 1)
    labels[#labels + 1] = name
    at = stop + 1
    if at <= #text then
      check(text:sub(at, at) == ",", "no comma", line)
      at = at + 1
    end
  end
  return labels
end

local function read_value(text, line)
  if text == "+Inf" then return math.huge end
  if text == "NaN" then return 0 / 0 end
  check(text:find("^-?%d+%.?%d*$") or text:find("^-?%d+%.?%d*e[+-]?%d+$"), "no number", line)
  return tonumber(text)
end

-- Returns the family of a sample, whose name may have a suffix of a histogram.
local function family_of(page, name)
  if page.families[name] then return page.families[name], "" end
  for _, suffix in ipairs { "_bucket", "_sum", "_count" } do
    local base = name:sub(1, -#suffix - 1)
    if name:sub(-#suffix) == suffix and page.families[base] and page.families[base].type == "histogram" then
      return page.families[base], suffix
    end
  end
end

local function other_labels(labels)
  local parts = {}
  for _, name in ipairs(labels) do
    if name ~= "le" then parts[#parts + 1] = name .. "=" .. labels[name] end
  end
  return table.concat(parts, ",")
end

local function note_histogram(family, suffix, labels, value, line)
  local key = other_labels(labels)
  local histogram = family.histograms[key] or { last = -math.huge, count = 0 }
  family.histograms[key] = histogram
  if suffix == "_bucket" then
    local bound = read_value(labels.le, line)
    check(bound > histogram.last, "buckets are not in order", line)
    check(value >= histogram.count, "buckets are not cumulative", line)
    histogram.last, histogram.count = bound, value
  elseif suffix == "_count" then
    histogram.total = value
  elseif suffix == "_sum" then
    histogram.sum = value
  end
end

local function read_sample(page, line)
  local name, rest = line:match("^([%a_:][%w_:]*)(.*)$")
  check(name, "no name", line)
  local labels, value = {}, rest:match("^ (%S+)$")
  if not value then
    local text
    text, value = rest:match("^{(.*)} (%S+)$")
    check(text, "no labels and value", line)
    labels = read_labels(text, line)
  end
  local family, suffix = family_of(page, name)
  check(family, "no TYPE before it", line)
  check(family == page.current, "a sample outside of its family", line)
  local series = line:match("^(.*) %S+$")
  check(page.samples[series] == nil, "the series twice", line)
  page.samples[series] = read_value(value, line)
  family.samples = family.samples + 1
  if family.type == "histogram" then
    check(suffix ~= "", "a histogram without a suffix", line)
    note_histogram(family, suffix, labels, page.samples[series], line)
  end
  for _, label in ipairs(labels) do family.labels[label] = true end
end

--- Returns { families = name -> { type, help, samples, labels }, samples = series -> value }.
function metrics_text.parse(text)
  local page = { families = {}, samples = {} }
  check(text:sub(-1) == "\n", "no newline at the end", text:sub(-50))
  local help = {}
  for line in text:gmatch("([^\n]*)\n") do
    local name, described = line:match("^# HELP (%S+) (.+)$")
    local typed, kind = line:match("^# TYPE (%S+) (%l+)$")
    if name then
      check(help[name] == nil, "HELP twice", line)
      help[name] = described
    elseif typed then
      check(page.families[typed] == nil, "TYPE twice", line)
      check(kind == "counter" or kind == "gauge" or kind == "histogram" or kind == "untyped", "unknown type", line)
      page.current = { type = kind, help = help[typed] or "", samples = 0, labels = {}, histograms = {} }
      page.families[typed] = page.current
    else
      read_sample(page, line)
    end
  end
  for name, family in pairs(page.families) do
    check(family.samples > 0, "a family without samples", name)
    for labels, histogram in pairs(family.histograms) do
      check(histogram.last == math.huge, "no bucket of infinity", name .. labels)
      check(histogram.total == histogram.count, "count and last bucket differ", name .. labels)
      check(histogram.sum, "no sum", name .. labels)
    end
  end
  return page
end

return metrics_text
