--- client:lead() inside nginx. An exiting worker begins no campaign, and ends its acquire. The
--- watcher of an acquire ends with the light thread of its caller, because a request waits for its
--- light threads.

local lead = require "redlock.lead"

local exiting, sleep, spawn, kill = ngx.worker.exiting, ngx.sleep, ngx.thread.spawn, ngx.thread.kill

local running, status = coroutine.running, coroutine.status

local nginx_lead = {}

local WATCH = 0.5 -- seconds between two questions if the worker exits, or the caller was killed
local PAUSE = 0.2 -- seconds, after a failed acquire

local function watch(lock, caller)
  repeat sleep(WATCH) until exiting() or status(caller) == "dead"
  lock:cancel()
end

local driver = { kind = "userdata" }

function driver.waits(candidate, lock)
  candidate.watcher = spawn(watch, lock, (running()))
end

function driver.waited(candidate)
  if candidate.watcher then kill(candidate.watcher) end
  candidate.watcher = nil
end

function driver.pause()
  sleep(PAUSE)
  return true
end

--- Adds lead() and leader() to the methods of clients. may_ask(method) returns true, or nil,
--- message and code in a phase without waits. is_blocking(client, method) returns true for a client
--- that blocks, which has the methods `of_blocking`.
function nginx_lead.install(methods, of_blocking, is_blocking, may_ask)
  local own = {}

  function driver.refuses(_, resource)
    local ok, message, code = may_ask("lead")
    if not ok then return message, code end
    if exiting() then return "'" .. resource .. "': the worker of nginx exits", "cancelled" end
  end

  own.inspect = methods.inspect
  lead.install(own, driver)

  -- The argument is passed on by tail calls, so that misuse is raised at the line of the caller.
  for name, method in pairs { lead = own.lead, leader = own.leader } do
    methods[name] = function(self, ...)
      if is_blocking(self, name) then return of_blocking[name](self, ...) end
      return method(self, ...)
    end
  end
end

return nginx_lead
