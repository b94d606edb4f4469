--- Labels: text in the tokens of a lock.

local assert = require "luassert"
local helper = require "spec.helper"

return function(behaviour)
  local test = behaviour.test
  local once = behaviour.once
  local failure = behaviour.failure
  local eventually_on_all = behaviour.eventually_on_all
  local eventually_free = behaviour.eventually_free
  local driver = behaviour.driver
  local PATIENCE = behaviour.patience

  local LABEL = "host a, pid 7, n\195\164chtlich"

  local function labelled(farm, more)
    local options = { retry_count = 0, node_timeout = PATIENCE, label = LABEL }
    for name, value in pairs(more or {}) do options[name] = value end
    local client = driver.new(farm.addresses, options)
    behaviour.warm(client)
    return client
  end

  test("label_of_the_client_is_inspected", function(_, other, farm)
    local client = labelled(farm)
    local lock = assert(client:acquire("r", { ttl = 60000 }))
    assert.are.equal(":" .. LABEL, lock:token():sub(41))
    assert.is_truthy(lock:token():find("^" .. ("%x"):rep(40) .. ":"))
    eventually_on_all(lock, "r", client)
    local seen = assert(other:inspect("r"))
    assert.are.equal(lock:token(), seen.holder)
    assert.are.equal(LABEL, seen.label)
    for _, row in ipairs(seen.nodes) do
      assert.are.equal(LABEL, row.label)
      assert.are.equal(lock:token(), row.token)
    end
    assert.is_nil(tostring(lock):find(lock:token():sub(1, 40), 1, true))
    assert(lock:extend(70000))
    assert(lock:release())
    eventually_free("r")
    client:close()
  end)

  test("label_of_a_call_replaces_that_of_lock_and_client", function(client, _, farm)
    local lock = client:new_lock("r", { label = "lock" })
    assert(lock:acquire())
    assert.are.equal(":lock", lock:token():sub(41))
    assert(lock:release())
    assert(lock:acquire({ label = "call" }))
    assert.are.equal(":call", lock:token():sub(41))
    assert(lock:release())
    assert.are.equal(":section", select(2, assert(client:with("r", { label = "section" }, function(own)
      return own:token():sub(41)
    end))))
    local with_label = labelled(farm)
    assert.are.equal(40, #assert(with_label:acquire("s", { label = "" })):token())
    assert.are.equal("given", assert(with_label:acquire("t", { token = "given" })):token())
    with_label:close()
  end)

  test("label_goes_with_fence_several_resources_and_reentrance", function(_, other, farm)
    local client = labelled(farm)
    for _, row in ipairs {
      { "r", { fence = true } }, { { "r", "s" } }, { { "r", "s" }, { fence = true } }, { "r", { reentrant = "me" } },
      { "r", { wait = 20000, fair = true } }, { "r", { auto_extend = true } },
    } do
      local lock = assert(client:acquire(row[1], row[2]))
      eventually_on_all(lock, "r", client)
      assert.are.equal(LABEL, assert(other:inspect("r")).label)
      failure("taken", other:acquire("r"))
      assert(lock:extend(30000))
      assert(lock:release())
      eventually_free("r")
    end
    client:close()
  end)

  test("attached_lock_has_the_label_of_the_client_that_attaches", function(_, other, farm)
    local client = labelled(farm)
    local lock = assert(client:acquire("r", { ttl = 60000 }))
    eventually_on_all(lock, "r", client)
    local text = assert(lock:detach())
    assert.is_nil(text:find(LABEL, 1, true))
    local attached = assert(other:attach(text, { label = "second" }))
    assert.are.equal(":second", attached:token():sub(41))
    eventually_on_all(attached, "r", other)
    assert.are.equal("second", other:inspect("r").label)
    assert(attached:release())
    eventually_free("r")
    client:close()
  end)

  test("force_release_takes_a_token_with_a_label", function(_, other, farm)
    local client = labelled(farm)
    local lock = assert(client:acquire("r", { ttl = 60000 }))
    eventually_on_all(lock, "r", client)
    local digits = lock:token():sub(1, 40)
    local message = failure("not_held", other:force_release("r", digits))
    assert.is_nil(message:find(digits, 1, true))
    assert.are.equal(5, other:force_release("r", lock:token()))
    failure("lost", lock:extend())
    client:close()
  end)

  -- A waiter with a label asks for that of the holder.
  test("message_of_taken_names_the_holder", function(_, _, farm)
    local client = labelled(farm)
    local lock = assert(client:acquire("r", { ttl = 60000 }))
    eventually_on_all(lock, "r", client)
    local waiter = labelled(farm, { label = "waiter" })
    local message
    helper.eventually(function()
      message = failure("taken", waiter:acquire("r", { wait = 700 }))
      return message:find("'r' is taken, held by '" .. LABEL .. "': ", 1, true)
    end, "the label of the holder")
    assert.is_nil(message:find(lock:token():sub(1, 40), 1, true))
    assert.is_nil(failure("taken", waiter:acquire("r")):find("held by", 1, true))
    waiter:close()
    client:close()
  end)

  once("only_a_valid_label_of_another_program_is_shown", function(client, _, farm)
    local digits = ("0123456789"):rep(4)
    local values = {
      digits .. ":line\nbreak", digits .. ":\27[2J", digits .. ":\255", digits .. ":" .. ("x"):rep(65),
      digits:upper():gsub("^0", "A") .. ":upper",
    }
    for index, value in ipairs(values) do farm[index]:command("SET", "r", value, "PX", "60000") end
    for index, row in ipairs(assert(client:inspect("r")).nodes) do
      assert.are.equal(values[index], row.token)
      assert.is_nil(row.label)
    end
    for index = 1, 5 do farm[index]:command("SET", "r", digits .. ":theirs", "PX", "60000") end
    local seen = assert(client:inspect("r"))
    assert.are.equal("theirs", seen.label)
    assert.are.equal(digits .. ":theirs", seen.holder)
    failure("taken", client:acquire("r"))
  end)

  test("invalid_label_is_refused_at_the_line_of_the_caller", function(client, _, farm)
    local function complaint(fn)
      local ok, err = pcall(fn)
      assert.is_false(ok)
      assert.is_truthy(err:find("label.lua:%d+: redlock: option 'label' must"), err)
    end
    for _, wrong in ipairs { ("x"):rep(65), "line\nbreak", "\255", "cut \195", "\194\155", "a\0b", 5, true } do
      local given = { label = wrong }
      complaint(function() client:acquire("r", given) end)
      complaint(function() client:new_lock("r", given) end)
      complaint(function() client:new_lock("r"):acquire(given) end)
      complaint(function() client:with("r", given, error) end)
      complaint(function() driver.new(farm.addresses, given) end)
    end
    local longest = ("\195\164"):rep(32)
    assert.are.equal(":" .. longest, assert(client:acquire("r", { label = longest })):token():sub(41))
  end)
end
