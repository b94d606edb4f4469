--- redlock.fake beside the library: the tables that the fake repeats, and the messages of both for
--- the same calls.

local core = require "redlock.core"
local fake = require "redlock.fake"
local redlock = require "redlock"
local tables = require "redlock.fake_table"

-- Returns the rows of a table of options as texts. The fake has no names of C.
local function texts_of(rows)
  local texts = {}
  for index, row in ipairs(rows) do
    local words = {}
    for _, name in ipairs { "name", "kind", "low", "high", "default", "words", "part_of_tls", "part_of_guard" } do
      local value = row[name]
      words[#words + 1] = name .. "=" .. (type(value) == "number" and ("%.14g"):format(value) or tostring(value))
    end
    texts[index] = table.concat(words, " ")
  end
  table.sort(texts)
  return table.concat(texts, "\n")
end

describe("redlock.fake_table", function()
  it("has_the_options_of_the_library", function()
    for name, rows in pairs(core.options) do
      assert.are.equal(texts_of(rows), texts_of(tables.options[name]), "fake_table.lua, options of " .. name)
    end
  end)

  it("has_the_operations_codes_and_limits_of_the_library", function()
    assert.are.same(core.operations, tables.operations)
    assert.are.same(core.codes, tables.codes)
    for _, name in ipairs { "VERSION", "TOKEN_MAX", "RESOURCES_MAX", "OWNER_NAME_MAX" } do
      assert.are.equal(core[name], tables[name], name)
    end
  end)

  it("has_the_methods_of_the_library", function()
    local real, other = redlock.new({ "a" }), fake.new({ "a" })
    for noun, pair in pairs { client = { real, other }, lock = { real:new_lock("r"), other:new_lock("r") } } do
      for name in pairs(debug.getmetatable(pair[1]).__index) do
        assert.are.equal("function", type(pair[2][name]), noun .. ":" .. name)
      end
    end
  end)

  it("has_the_sentences_of_rl_error_h", function()
    local file = assert(io.open("csrc/core/base/rl_error.h"))
    local text = file:read("*a"):gsub("%s*\\\n%s*", " ")
    file:close()
    for _, code in ipairs(core.codes) do
      assert.is_string(tables.sentences[code], code)
    end
    for code, sentence in pairs(tables.sentences) do
      assert.are.equal(sentence, text:match(", " .. code .. ", FAILURE, \"(.-)\"%)"), code)
    end
  end)
end)

describe("redlock.fake", function()
  -- Returns what a call returns or raises, without the position of the caller.
  local function outcome(fn, module)
    local results = { pcall(fn, module) }
    local text = {}
    for index = 1, 4 do
      local value = tostring(results[index]):gsub("^[^\n]-:%d+: ", "")
      text[index] = (type(results[index]) == "table" or type(results[index]) == "userdata") and "object" or value
    end
    return table.concat(text, " | ")
  end

  local function alike(name, fn)
    assert.are.equal(outcome(fn, redlock), outcome(fn, fake), name)
  end

  it("reads_addresses_like_the_library", function()
    for _, address in ipairs {
      "host", "host:1", "[::1]", "[::1]:1", "redis://host", "redis://u:p@host:1/3", "redis://:p%40@host", "unix:///p",
      "unix://u:p@/p?db=2", "rediss://host", "redis://a@b", "redis://a:b@c@host", "unix:///a@b", "host.example:6379",
      "", "host:", ":6379", "host:0", "host:65536", "host:port", "host:6379:1", "host:-1", "ho st", "[::1", "[]:1",
      "[::1]x", "::1", "redis://", "redis://host/x", "redis://host/-1", "redis://host/", "redis://host/1000001",
      "redis://host:99999", "redis://user:secret@", "redis://:secret@host/db", "redis://us%zzer:secret@host",
      "sentinel://a,b:1,[::1]:2/my-master", "sentinel://u:p@a/m", "sentinel://u@a/m", "sentinel://a,a/m",
      "sentinel://a", "sentinel:///m", "sentinel://a,/m", "sentinel://a/m/n", "sentinel://a,b,c,d,e,f,g,h,i,j/m",
      "sentinel://" .. ("x"):rep(249) .. "/m", "sentinel://" .. ("x"):rep(250) .. "/m",
      "sentinel://a/" .. ("m"):rep(64), "sentinel://a/" .. ("m"):rep(65), "sentinel://:%@a/m", "sentinel://::1/m",
      "redis://us%2", "redis://u%00:p@host", "http://host", "://host", "unix://", "unix://x", "unix:///p?db=x",
      "unix:///p?x=1", "unix:///p%00", "redis://user:secret@host:x", "user:secret@host", "a,b", "a:1,b:2", "host/1",
      "unix:/path", "unix:path", "/path", ("x"):rep(255), ("x"):rep(256), "unix:///" .. ("x"):rep(107),
      "redis://:" .. ("x"):rep(512) .. "@a", "redis://:" .. ("x"):rep(513) .. "@a", "redis://user@host",
    } do
      local function made(module) return module.new({ address }) end
      alike(address, made)
      local function names(module) return module.new({ address }):nodes()[1].node end
      alike(address, names)
    end
    for name, node in pairs {
      host = { host = "a" }, port = { host = "a", port = 7 }, ipv6 = { host = "::1" }, bracketed = { host = "[::1]" },
      path = { path = "/a" }, empty_path = { path = "" }, long_path = { path = ("x"):rep(108) }, empty = { host = "" },
      user = { host = "a", username = "u" }, login = { host = "a", username = "u", password = "p" },
      long = { host = "a", password = ("x"):rep(513) },
    } do
      alike(name, function(module) return module.new({ node }):nodes()[1].node end)
    end
  end)

  it("accepts_labels_like_the_library", function()
    local label = require "redlock.fake_label"
    local texts, random = {}, 1
    for byte = 0, 255 do
      local first = string.char(byte)
      texts[#texts + 1] = first
      for _, rest in ipairs {
        "\128", "\191", "\160\128", "\159\191", "\191\191", "\128\128\128", "\143\191\191", "\128\176x",
      } do
        texts[#texts + 1] = first .. rest
      end
    end
    for _, text in ipairs {
      "", ("x"):rep(64), ("x"):rep(65), "\226\128\168", "\239\191\189", "\239\191\190", "\194\173",
    } do
      texts[#texts + 1] = text
    end
    for _ = 1, 2000 do
      local bytes = {}
      for index = 1, 4 do
        random = random * 16807 % 2147483647
        bytes[index] = string.char(128 + random % 128)
      end
      texts[#texts + 1] = table.concat(bytes)
    end
    for _, text in ipairs(texts) do
      assert.are.equal(core.label_complaint(text), label.complaint(text), ("%q"):format(text))
    end
  end)

  -- Returns the names and types of the fields of a table, as a text.
  local function shape(value, indent)
    if type(value) ~= "table" then return type(value) end
    local lines = {}
    for name, field in pairs(value) do
      lines[#lines + 1] = indent .. tostring(name) .. ": " .. shape(field, indent .. "  ")
    end
    table.sort(lines)
    return "{\n" .. table.concat(lines, "\n") .. "\n" .. indent .. "}"
  end

  it("has_statistics_of_the_same_shape_and_bounds", function()
    local real = redlock.new({ "127.0.0.1:1" }):stats()
    local other = fake.new({ "127.0.0.1:1" }):stats()
    assert.are.equal(shape(real, ""), shape(other, ""))
    for index, bucket in ipairs(real.wait_time.buckets) do
      assert.are.equal(bucket.le, other.wait_time.buckets[index].le)
    end
  end)

  -- The reasons of the nodes differ: no node listens on port 1.
  it("counts_votes_in_messages_like_the_library", function()
    fake:set("unavailable")
    for _, nodes in ipairs { { "127.0.0.1:1" }, { "127.0.0.1:1", "127.0.0.2:1", "127.0.0.3:1" } } do
      alike(#nodes .. " nodes", function(module)
        local _, message, code = module.new(nodes, { retry_count = 0 }):acquire("r")
        return message:match("^.- needed%)"), code
      end)
    end
    fake:reset()
  end)

  it("refuses_options_like_the_library", function()
    for name, given in pairs {
      prefix = { prefix = ("x"):rep(4097) }, ttl = { ttl = 3 }, drift = { ttl = 100, drift_factor = 0.99 },
      username = { username = "u" }, login = { username = "u", password = "p" },
      credentials = { credentials = print, password = "p" }, guard = { guard = { max_ttl = 500 } },
      default_guard = { guard = true, ttl = 40000, lock_delay = 5 }, quorum = { quorum = 2 }, hold = { max_hold = 5 },
      kept = { guard = true, hold_at_least = 30000 },
      cluster = { guard = { cluster = "a b" } }, max_ttl = { guard = { max_ttl = 0 } },
    } do
      alike(name, function(module) return module.new({ "a" }, given) end)
    end
    alike("two names", function(module) return module.new({ "a", "a:6379" }) end)
  end)

  it("refuses_calls_like_the_library", function()
    local calls = {
      reserved = function(client) return client:acquire("x:redlock-fence") end,
      queue = function(client) return client:new_lock("x:redlock-queue") end,
      lineage = function(client) return client:new_lock("redlock:lineage") end,
      long = function(client) return client:new_lock(("x"):rep(4097)) end,
      several = function(client) return client:new_lock({ "a", ("x"):rep(5000) }) end,
      guarded = function(client) return client:new_lock("r", { ttl = 40000 }) end,
      extended = function(client) return client:new_lock("r"):extend(40000) end,
      acquired = function(client) return client:new_lock("r"):acquire({ lock_delay = 30000 }) end,
      hold = function(client) return client:new_lock("r", { max_hold = 5 }) end,
      kept = function(client) return client:new_lock("r", { hold_at_least = 40000 }) end,
      short = function(client) return client:new_lock("r", { ttl = 2 }) end,
      dot = function(client) return client.new_lock(client:new_lock("r"), "r") end,
      dot_of_lock = function(client) return client:new_lock("r").extend(client) end,
      options = function(client) return client:acquire("r", 30) end,
      short_for_drift = function(client) return client:new_lock("r", { ttl = 299, drift_factor = 0.99 }) end,
      short_extend = function(client) return client:new_lock("r"):extend(3) end,
      short_extend_for_drift = function(client) return client:new_lock("r", { drift_factor = 0.99 }):extend(299) end,
      result = function(client) return client:new_lock("r"):result() end,
      check = function(client) return client:new_lock("r"):check() end,
      not_held = function(client) return client:new_lock("r"):release() end,
      sent = function(client) return client:new_lock({ "a", "b" }):release({ wait = false }) end,
      not_extended = function(client) return client:new_lock(("x"):rep(100)):extend() end,
      detached = function(client) return client:new_lock("r"):detach() end,
      started = function(client) return client:new_lock("r"):start("extend") end,
      wrong_ttl = function(client) return client:new_lock("r"):start("extend", 0) end,
      no_ttl = function(client) return client:new_lock("r"):start("extend", {}) end,
      busy = function(client)
        local lock = client:new_lock("a\0b\27\\")
        lock:start("acquire")
        return lock:release()
      end,
      cancelled = function(client)
        local lock = client:new_lock("r")
        lock:start("acquire")
        lock:cancel()
        return lock:result()
      end,
      pending = function(client)
        local lock = client:new_lock("r")
        lock:start("acquire")
        return lock:result()
      end,
      attached = function(client) return client:attach("redlock1.x") end,
      shown = function(client) return tostring(client:new_lock("a\0b\27\\\255")) end,
      shown_many = function(client) return tostring(client:new_lock({ ("x"):rep(81), "b", "c" })) end,
      closed = function(client)
        client:close()
        return client:acquire("r")
      end,
      lock_closed = function(client)
        local lock = client:new_lock("r")
        client:close()
        return lock:extend()
      end,
      doctor_closed = function(client)
        client:close()
        return client:doctor()
      end,
      result_of_cancelled = function(client)
        local lock = client:new_lock("r")
        lock:cancel()
        return lock:votes()[1].vote
      end,
    }
    for name, call in pairs(calls) do
      alike(name, function(module)
        local result, message, code = call(module.new({ "127.0.0.1:1" }, { guard = true }))
        return result, message, code
      end)
    end
    alike("bootstrap", function(module)
      local result = module.new({ "127.0.0.1:1" }):bootstrap()
      return result
    end)
  end)
end)
