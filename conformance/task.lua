-- Coroutines on the loop of luv: a task may sleep, and wait for callbacks.
--
-- SPDX-License-Identifier: MIT

local uv = require "luv"

local task = {}

local function resume(thread)
  local ok, message = coroutine.resume(thread)
  if not ok then error(debug.traceback(thread, tostring(message)), 0) end
end

function task.start(body) resume(coroutine.create(body)) end

--- Calls start(done). Suspends the task until done(...) was called, and returns its arguments.
function task.wait(start)
  local thread, suspended, results = coroutine.running(), false, nil
  start(function(...)
    if results then return end
    results = table.pack(...)
    if suspended then resume(thread) end
  end)
  if not results then
    suspended = true
    coroutine.yield()
  end
  return table.unpack(results, 1, results.n)
end

--- Monotonic milliseconds.
function task.now() return uv.hrtime() / 1e6 end

--- Calls the function after |ms|, unless the returned timer is closed before.
function task.after(ms, call)
  local timer = uv.new_timer()
  timer:start(math.max(0, math.ceil(ms)), 0, function()
    if not timer:is_closing() then timer:close() end
    call()
  end)
  return timer
end

function task.sleep(ms)
  task.wait(function(done) task.after(ms, done) end)
end

--- Polls until predicate() is true. Returns its value, or false after |ms|.
function task.eventually(ms, predicate)
  local deadline = task.now() + ms
  while true do
    local value = predicate()
    if value or task.now() > deadline then return value or false end
    task.sleep(10)
  end
end

--- Runs body(item) for each item, |width| at a time. Returns when all have ended.
function task.each(items, width, body)
  task.wait(function(done)
    local nth, left = 0, #items
    local function worker(index)
      while nth < #items do
        nth = nth + 1
        body(items[nth], index)
        left = left - 1
      end
      if left == 0 then done() end
    end
    if left == 0 then done() end
    for index = 1, math.min(width, #items) do task.start(function() worker(index) end) end
  end)
end

return task
