--- Stands for nginx-lua-prometheus in specs: the part of its published API that pages:join() uses,
--- by its README. Each worker counts for itself.

local ngx = rawget(_G, "ngx") -- Luacheck checks specs without nginx.

local Double = {}
Double.__index = Double

function Double.init()
  return setmetatable({ counters = {} }, Double)
end

function Double:counter(name, help, label_names)
  local counter = { name = name, help = help, label_names = label_names, values = {} }
  function counter.inc(this, value, labels)
    local pairs_of = {}
    for index, label in ipairs(this.label_names) do pairs_of[index] = label .. '="' .. labels[index] .. '"' end
    local series = this.name .. "{" .. table.concat(pairs_of, ",") .. "}"
    this.values[series] = (this.values[series] or 0) + value
  end
  self.counters[#self.counters + 1] = counter
  return counter
end

function Double:metric_data()
  local lines = {}
  for _, counter in ipairs(self.counters) do
    if next(counter.values) then
      lines[#lines + 1] = "# HELP " .. counter.name .. " " .. counter.help .. "\n"
      lines[#lines + 1] = "# TYPE " .. counter.name .. " counter\n"
    end
    for series, value in pairs(counter.values) do lines[#lines + 1] = series .. " " .. value .. "\n" end
  end
  return lines
end

function Double:collect()
  ngx.header.content_type = "text/plain"
  ngx.print(self:metric_data())
end

return Double
