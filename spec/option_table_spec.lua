-- Options, codes, votes, findings and statistics are written in one place each, such as
-- rl_option_table.h in csrc/core. The header, the types and the pages are compared with it here.

local core = require "redlock.core"

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return text
end

--- The names that a pattern finds within the part of a file between two texts, as a set.
local function names_in(path, from, to, pattern)
  local text = read(path)
  local start = assert(text:find(from, 1, true), path .. " has no " .. from)
  local stop = assert(text:find(to, start + #from, true), path .. " has no " .. to)
  local found = {}
  for name in text:sub(start, stop):gmatch(pattern) do
    found[name] = true
  end
  return found
end

local function set_of(rows, key)
  local set = {}
  for _, row in ipairs(rows) do
    set[key and row[key] or row] = true
  end
  return set
end

local function with(set, more)
  for name in pairs(more) do
    set[name] = true
  end
  return set
end

--- What one set has and the other lacks, as a sentence; "" when they are the same.
local function difference(expected, found)
  local words = {}
  for name in pairs(expected) do
    if not found[name] then words[#words + 1] = name .. " is missing" end
  end
  for name in pairs(found) do
    if not expected[name] then words[#words + 1] = name .. " is too much" end
  end
  table.sort(words)
  return table.concat(words, ", ")
end

--- The rows of the Markdown table under a heading line that begins with `head`, by their first
--- cell.
local function table_rows(path, head)
  local rows, inside = {}, false
  for line in read(path):gmatch("[^\n]*") do
    if line:sub(1, #head) == head then
      inside = true
    elseif inside and line:sub(1, 1) ~= "|" and line ~= "" then
      break
    elseif inside and not line:find("^|%-") then
      local first, rest = line:match("^|([^|]*)|(.*)|$")
      for name in (first or ""):gmatch("`([%w_]+)`") do
        rows[name] = rest
      end
    end
  end
  return rows
end

describe("the table of options", function()
  local host_names = set_of(core.options.host, "name")
  local in_lua_alone = with(host_names, { on_lost = true, reentrant = true })
  local of_client_alone = { on_event = true }
  local function without_parts(rows)
    local whole = {}
    for _, row in ipairs(rows) do
      if not (row.part_of_tls or row.part_of_guard) then whole[#whole + 1] = row end
    end
    return whole
  end
  local client_names = set_of(without_parts(core.options.client), "name")
  local node_names = set_of(without_parts(core.options.node), "name")
  local parts_of_tls, parts_of_guard = {}, {}
  for _, row in ipairs(core.options.client) do
    if row.part_of_tls then parts_of_tls[row.part_of_tls] = true end
    if row.part_of_guard then parts_of_guard[row.part_of_guard] = true end
  end

  local function fields(structure)
    local found = names_in("csrc/include/redlock.h", "typedef struct " .. structure .. " {", "} " .. structure .. ";",
      "\n  %a[%w_ ]-[ *]([%w_]+);")
    return found
  end

  it("redlock_h_documents_every_option", function()
    assert.are.equal("", difference(set_of(core.options.lock, "field"), fields("redlock_options")))
    local settings = with(set_of(core.options.client, "field"), { options = true, prefix_length = true,
      password_length = true, transport = true, credentials_data = true })
    assert.are.equal("", difference(settings, fields("redlock_settings")))
    local node = with(set_of(core.options.node, "field"), { address = true, password_length = true })
    assert.are.equal("", difference(node, fields("redlock_node")))
  end)

  it("types_lua_documents_every_option", function()
    local function fields_of(class, following)
      return names_in("lua/redlock/types.lua", "---@class redlock." .. class, following, "%-%-%-@field ([%w_]+)?")
    end
    assert.are.equal("", difference(with(set_of(core.options.lock, "name"), in_lua_alone),
      fields_of("LockOptions", "---@class")))
    assert.are.equal("", difference(with(client_names, of_client_alone), fields_of("ClientOptions", "\n\n")))
    assert.are.equal("", difference(node_names, fields_of("Node\n", "\n\n")))
    assert.are.equal("", difference(parts_of_tls, fields_of("Tls\n", "\n\n")))
    assert.are.equal("", difference(parts_of_guard, fields_of("Guard\n", "\n\n")))
  end)

  it("lua_md_documents_every_option_with_default", function()
    local rows = table_rows("docs/lua.md", "| option | default |")
    local in_lua = { on_lost = true, on_event = true, reentrant = true }
    local expected = with(with(set_of(core.options.lock, "name"), client_names), in_lua)
    assert.are.equal("", difference(expected, rows))
    for _, option in ipairs(core.options.lock) do
      local default = rows[option.name]:match("^ ([^|]*) |")
      if option.default then
        assert.are.equal(string.format("%.14g", option.default), default, option.name)
      end
    end
    local page = read("docs/lua.md") .. read("docs/openresty.md")
    for name in pairs(with(node_names, host_names)) do
      assert.is_truthy(page:find(name, 1, true), name)
    end
    assert.are.equal("", difference(parts_of_tls, table_rows("docs/lua.md", "| of `tls` |")))
    assert.are.equal("", difference(parts_of_guard, table_rows("docs/lua.md", "| of `guard` |")))
  end)

  it("operating_md_documents_every_option", function()
    local rows = table_rows("docs/operating.md", "| option | default | why |")
    local expected = with(with(with(set_of(core.options.lock, "name"), client_names), in_lua_alone), of_client_alone)
    assert.are.equal("", (difference(expected, rows):gsub("guard is too much", "")))
    for _, option in ipairs(core.options.lock) do
      local default = rows[option.name]:match("^ ([^|]*) |")
      if option.default then
        assert.are.equal(string.format("%.14g", option.default), default, option.name)
      end
    end
    for name, row in pairs(rows) do
      local default, why, advice = row:match("^([^|]+)|([^|]+)|([^|]+)$")
      assert.is_truthy(default and default:find("%S") and why:find("%w") and advice:find("%w"), name .. " lacks a cell")
    end
  end)

  it("node_has_every_TLS_option_of_client", function()
    local of_node = {}
    for _, row in ipairs(core.options.node) do
      if row.part_of_tls then of_node[row.part_of_tls] = true end
    end
    assert.are.equal("", difference(parts_of_tls, of_node))
    assert.is_true(parts_of_tls.ca)
  end)

  it("c_md_documents_every_field", function()
    for of, head in pairs { lock = "| field | in Lua | default | \"none\" |" } do
      local rows = table_rows("docs/c.md", head)
      assert.are.equal("", difference(set_of(core.options[of], "field"), rows))
      for _, option in ipairs(core.options[of]) do
        assert.are.equal(option.name, rows[option.field]:match("^ `([%w_]+)`"), option.field)
      end
    end
    local page = read("docs/c.md")
    for _, of in ipairs { "client", "node" } do
      for _, option in ipairs(core.options[of]) do
        assert.is_truthy(page:find("| `" .. option.field .. "`", 1, true), option.field)
      end
    end
  end)

  -- Returns the defaults of the table in the words of C, by field.
  local function defaults_in_c()
    local defaults = {}
    local options = read("csrc/core/options/rl_option_table.h")
    for field, default in options:gmatch("X%([%w_]+, FLAG, ([%w_]+), 0, 0, 0, ([%w_]+)") do
      defaults[field] = default
    end
    for _, option in ipairs(core.options.lock) do
      local default = option.default
      if default and option.kind == "duration" then
        defaults[option.field] = ("%.14g %s"):format(default < 1000 and default or default / 1000,
          default < 1000 and "ms" or "s")
      elseif default then
        defaults[option.field] = ("%.14g"):format(default)
      end
    end
    return defaults
  end

  it("redlock_h_and_c_md_have_the_defaults_of_the_table", function()
    local header = read("csrc/include/redlock.h")
    local rows = table_rows("docs/c.md", "| field | in Lua | default | \"none\" |")
    local count = 0
    for field, default in pairs(defaults_in_c()) do
      local before = header:match("typedef struct redlock_options {(.-)[ *]" .. field .. ";")
      assert.are.equal(default, before:match(".*%[([^%]]+)%]%. %*/"), field .. " in redlock.h")
      assert.are.equal(default, rows[field]:match("^[^|]*| `?([^|`]*)`? |"), field .. " in docs/c.md")
      count = count + 1
    end
    assert.is_true(count > 8)
  end)

  it("lua_options_have_the_bounds_of_the_table", function()
    local redlock = require "redlock"
    local client = redlock.new({ "127.0.0.1:1" })
    for _, option in ipairs(core.options.lock) do
      local low, high, wrong = option.low, option.high, { option.low - 1, option.high + 1 }
      if option.kind == "factor" then high = 0.5 end
      if option.kind == "flag" then low, high, wrong = true, false, { 1, "yes" } end
      if option.kind == "label" then
        low, high, wrong = "", ("x"):rep(option.high), { 1, ("x"):rep(option.high + 1), "line\nbreak", "\255" }
      end
      if option.name == "ttl" then low = 100 end -- Less than a few ms is all drift.
      for _, value in ipairs { low, high } do
        local options = { auto_extend = true } -- Some need it.
        options[option.name] = value
        assert.is_truthy(client:new_lock("r", options), option.name .. " = " .. tostring(value))
      end
      for _, value in ipairs(wrong) do
        local ok, message = pcall(client.new_lock, client, "r", { [option.name] = value })
        assert.is_false(ok, option.name .. " = " .. value)
        assert.is_truthy(message:find("option '" .. option.name .. "' must be", 1, true), message)
      end
    end
    client:close()
  end)

  it("binding_checks_options_of_lua_code", function()
    local client = assert(core.client({}))
    assert(core.add(client, "127.0.0.1:1"))
    for _, of in ipairs { "lock", "client" } do
      for _, option in ipairs(core.options[of]) do
        local has_parts = option.name == "auto_extend" or option.name == "tls" or option.name == "guard"
        for _, value in ipairs { has_parts and 1 or {}, -1, 0 / 0, 1e300 } do
          local part, whole = option.part_of_tls or option.part_of_guard, option.part_of_tls and "tls" or "guard"
          local given = part and { [whole] = { [part] = value } } or { [option.name] = value }
          local ok, message = pcall(core.client, given)
          assert.is_false(ok, option.name)
          if part then
            assert.is_truthy(message:find("option '" .. whole .. "." .. part .. "' must", 1, true), message)
          end
          if of == "lock" then
            local made, why = pcall(core.lock, client, "r", { [option.name] = value })
            assert.is_false(made)
            assert.is_truthy(why:find("option '" .. option.name .. "' must", 1, true), why)
          end
        end
      end
    end
    assert.is_false((pcall(core.client, { owner = "nobody" })))
    assert.is_false((pcall(core.client, { owner = "work" })))
    assert.is_truthy(core.client({ owner = "worker" }))
    assert.is_false((pcall(core.client, "ttl")))
  end)
end)

describe("the list of codes", function()
  local codes = set_of(core.codes)

  it("types.lua", function()
    assert.are.equal("", difference(codes,
      names_in("lua/redlock/types.lua", "---@alias redlock.Code", "\n\n", '%-%-%-| "([%w_]+)"')))
  end)

  it("docs/lua.md", function()
    assert.are.equal("", difference(codes, table_rows("docs/lua.md", "| code | meaning |")))
  end)

  it("docs/c.md and redlock.h", function()
    local page, header = read("docs/c.md"), read("csrc/include/redlock.h")
    for code in pairs(codes) do
      assert.is_truthy(page:find("_" .. code:upper() .. "`", 1, true), code)
      assert.is_truthy(header:find("REDLOCK_E_" .. code:upper() .. " = ", 1, true), code)
    end
    local rows = read("csrc/core/base/rl_error.h")
    for name in header:gmatch("(REDLOCK_E_[%u_]+) = ") do
      assert.is_truthy(rows:find("X(" .. name .. ",", 1, true), name .. " is not in rl_error.h")
    end
  end)
end)

describe("the table of votes", function()
  local votes = names_in("csrc/core/base/rl_vote.h", "#define RL_VOTES(X)", "typedef",
    "X%(REDLOCK_VOTE_[%u_]+, ([%l_]+),")

  it("types.lua", function()
    assert.are.equal("", difference(votes,
      names_in("lua/redlock/types.lua", "---@alias redlock.VoteKind", "\n\n", '%-%-%-| "([%w_]+)"')))
  end)

  it("redlock.h", function()
    local upper = {}
    for name in pairs(votes) do
      upper[name:upper()] = true
    end
    assert.are.equal("", difference(upper,
      names_in("csrc/include/redlock.h", "typedef enum redlock_vote {", "} redlock_vote;", "REDLOCK_VOTE_([%u_]+)")))
  end)

  it("docs/lua.md", function()
    local page = read("docs/lua.md")
    for name in pairs(votes) do
      assert.is_truthy(page:find('`"' .. name .. '"`', 1, true), name)
    end
  end)
end)

describe("the table of findings", function()
  local names = names_in("csrc/core/operator/rl_finding.h", "#define RL_FINDINGS(X)", "#define RL_SEVERITIES",
    "X%(([%l_]+)%)")

  it("types.lua", function()
    assert.is_truthy(names.same_server and names.node_count)
    assert.are.equal("", difference(names,
      names_in("lua/redlock/types.lua", "---@alias redlock.FindingName", "\n\n", '%-%-%-| "([%w_]+)"')))
  end)

  it("docs/operating.md", function()
    assert.are.equal("", difference(names,
      names_in("docs/operating.md", "| finding |", "\n\n", "\n| `([%l_]+)` |")))
  end)
end)

describe("the statistics", function()
  local figures = require "spec.figures"
  local stats = require("redlock").new({ "127.0.0.1:1" }):stats()
  local node = stats.nodes[1]

  local function keys(of)
    local set = {}
    for name in pairs(of) do set[name] = true end
    return set
  end

  it("types.lua", function()
    for class, of in pairs {
      Stats = stats, NodeStats = node, NodeVotes = node.votes, Operations = stats.operations,
      Outcomes = stats.operations.acquire, Histogram = node.latency,
    } do
      assert.are.equal("", difference(keys(of), names_in("lua/redlock/types.lua",
        "---@class redlock." .. class .. "\n", "\n\n", "%-%-%-@field ([%w_]+)")), class)
    end
  end)

  it("docs/lua.md", function()
    local all = with(keys(stats), keys(node))
    assert.are.equal("", difference(all, table_rows("docs/lua.md", "| statistic | |")))
  end)

  it("spec/figures.lua", function()
    local made = figures.of("a:1")
    assert.are.equal("", difference(keys(stats), keys(made)))
    assert.are.equal("", difference(keys(node), keys(made.nodes[1])))
    assert.are.equal("", difference(keys(node.votes), keys(made.nodes[1].votes)))
  end)

  it("docs/operating.md", function()
    local rows = table_rows("docs/operating.md", "| figure | labels | meaning |")
    rows.redlock_workers, rows.redlock_figures_missing = nil, nil -- of nginx
    assert.are.equal("", difference(set_of(figures.FAMILIES), rows))
  end)
end)

describe("the methods", function()
  local client = require("redlock").new({ "127.0.0.1:1" })
  local of = { client = client, lock = client:new_lock("r") }

  local function methods(noun)
    local set = {}
    for name in pairs(debug.getmetatable(of[noun]).__index) do set[name] = true end
    set.lock = nil -- It raises an error that names new_lock().
    return set
  end

  for noun in pairs(of) do
    it("of a " .. noun .. " in types.lua", function()
      local in_nginx = { hand_over = true }
      local found = names_in("lua/redlock/types.lua", "\nfunction client:", "\n---@class redlock.Pages",
        "\nfunction " .. noun .. ":([%w_]+)")
      for name in pairs(in_nginx) do found[name] = nil end
      assert.are.equal("", difference(methods(noun), found))
    end)

    it("of a " .. noun .. " in docs/lua.md", function()
      local page = read("docs/lua.md")
      for name in pairs(methods(noun)) do
        assert.is_truthy(page:find(":" .. name .. "(", 1, true), noun .. ":" .. name)
      end
    end)
  end
end)
