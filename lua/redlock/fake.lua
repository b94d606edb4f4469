--- redlock.fake: the API of redlock in this process, for tests: no servers, no C, and a clock that
--- the test moves.
---
---     local fake = require "redlock.fake"
---     package.loaded.redlock = fake            -- the program under test gets clients of the fake
---     local client = fake.new({ "a", "b", "c" })
---     fake:advance(5000)
---
--- The module is a world. All its clients share the locks. fake.world() returns another world.

local core = require "redlock.fake_core"
local worlds = require "redlock.fake_world"

-- Loads the library's own Lua files upon the fake's core. They are loaded once more: modules that
-- the program has loaded upon the C library stay as they are.
local function load_upon(fake_core, names)
  local loaded, kept, made = package.loaded, {}, {}
  for _, name in ipairs(names) do kept[name], loaded[name] = loaded[name], nil end
  loaded["redlock.core"] = fake_core
  local ok, err = pcall(function()
    for _, name in ipairs(names) do made[name] = name == "redlock.core" and fake_core or require(name) end
  end)
  for _, name in ipairs(names) do loaded[name] = kept[name] end
  if not ok then error(err, 0) end
  return made
end

local loaded = load_upon(core, {
  "redlock.core", "redlock.options", "redlock.loss", "redlock.lock", "redlock.section", "redlock.lead",
  "redlock.client",
})
local client, options = loaded["redlock.client"], loaded["redlock.options"]

-- Inside nginx, or where a test has a global ngx with get_phase.
if options.inside_nginx() then
  function core.lock_methods.hand_over(lock, owner)
    local held = lock:is_held()
    local wrong = options.owner_complaint(owner)
    if wrong then error("redlock: lock:hand_over(): owner " .. wrong, 2) end
    if held then return true end
    return nil, "'" .. lock:resource() .. "': the lock is not held", "not_held"
  end
end

local NODES = { "fake-1", "fake-2", "fake-3" }
local YEAR = 366 * 86400000

local methods = {}

local function check_world(fake, method)
  local world = type(fake) == "table" and rawget(fake, "world_of_fake")
  if not world then error("redlock: fake:" .. method .. "() is called with a colon", 3) end
  world:sweep()
  return world
end

--- Lets milliseconds pass on the clock of the fake: leases expire, automatic extends and on_lost
--- run, waits end, and coroutines of spawn() go on. 0 or nil: only what is due now.
function methods.advance(fake, milliseconds)
  local world = check_world(fake, "advance")
  local time = milliseconds or 0
  if type(time) ~= "number" or not (time >= 0 and time <= YEAR) then
    error("redlock: fake:advance() takes milliseconds from 0 to 366 days", 2)
  end
  world.clock:advance(time)
end

--- Returns the milliseconds of the fake's clock.
function methods.now(fake)
  local world = check_world(fake, "now")
  return world.clock.now
end

--- Runs fn(...) in a coroutine, until it waits for a lock or calls fake:advance(). Calls that move
--- the clock let it go on, and raise its errors. Returns the coroutine.
function methods.spawn(fake, fn, ...)
  local world = check_world(fake, "spawn")
  if type(fn) ~= "function" then error("redlock: fake:spawn() takes a function", 2) end
  return world.clock:spawn(fn, ...)
end

local outcomes = { taken = true, unavailable = true }

--- Sets how operations end: "taken" = another client holds the lock, for acquires; "unavailable" =
--- no node answers, for all operations; nil = as usual. With a resource, only for locks on it.
function methods.set(fake, outcome, resource)
  local world = check_world(fake, "set")
  if outcome ~= nil and not outcomes[outcome] then
    error('redlock: fake:set() takes "taken", "unavailable" or nil', 2)
  elseif resource ~= nil and type(resource) ~= "string" then
    error("redlock: fake:set() takes the name of a resource", 2)
  end
  world:set(outcome, resource)
end

--- Lets the nodes forget a lock, or all locks on a resource. A lock with auto_extend is lost at
--- once, and on_lost is called. Any other lock is lost when it is extended or released.
function methods.lose(fake, lock)
  local world = check_world(fake, "lose")
  local record = type(lock) == "table" and core.record_of_lock(lock) or nil
  if type(lock) ~= "string" and not record then
    error("redlock: fake:lose() takes a lock of the fake, or the name of a resource", 2)
  end
  world:lose(record, type(lock) == "string" and lock or nil)
end

--- Forgets all locks, coroutines and settings, for the next test. Clients stay as they are.
function methods.reset(fake)
  local world = check_world(fake, "reset")
  world:reset()
end

-- Returns a module: a world, and what redlock has.
local function new_fake()
  local world = worlds.new()
  local fake = { VERSION = core.VERSION, world_of_fake = world }

  --- Makes a client, like redlock.new(). Without nodes it has three.
  function fake.new(nodes, given)
    if nodes == nil then nodes = NODES end
    local made = client.new(nodes, given, 2, true)
    return core.join(made, world)
  end

  return setmetatable(fake, { __index = methods })
end

--- Returns another world, whose locks and clock are its own.
function methods.world()
  return new_fake()
end

return new_fake()
