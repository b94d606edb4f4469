--- What every driver has to do, done inside nginx. The specs are declared here and run there, by
--- name.

if not rawget(_G, "jit") then return end

local behaviour = require "spec.behaviour"
local notify_behaviour = require "spec.notify_behaviour"
local server = require "spec.nginx.server"

-- The helper must not think that it runs in busted. Waits let the worker's other work go on.
local INIT = [[
  package.preload.busted = function() return {} end
  tests = {}

  function load_tests()
    local helper = require "spec.helper"
    local farm
    local declared = {
      new = require("redlock").new,
      run = function(fn) fn() end,
      pump = function() ngx.sleep(0.001) end,
      idle = function() ngx.sleep(0.005) end,
      farm = function()
        farm = farm or helper.farm(5)
        return farm
      end,
      describe = function(_, fn) fn() end,
      it = function(name, fn) tests[name] = fn end,
    }
    require("spec.behaviour")("in nginx", declared)
    require("spec.notify_behaviour")("in nginx", declared)
  end
]]

local LOCATIONS = [[
  location / {
    content_by_lua_block {
      if not next(tests) then load_tests() end
      local name = ngx.unescape_uri(ngx.var.args)
      local ok, err = xpcall(tests[name], function(err) return debug.traceback(tostring(err), 2) end)
      ngx.print(ok and "ok" or err)
    }
  }
]]

-- nginx gives its children no environment, and theirs is to be the same interpreter: the module of
-- a sanitized tree can be loaded by no other one.
local MAIN = "env REDLOCK_SPEC_LUA; env ASAN_OPTIONS;"

local nginx

local declared = {
  describe = function(title, fn)
    describe(title, function()
      setup(function() nginx = server.start { main = MAIN, init = INIT, server = LOCATIONS } end)
      teardown(function() nginx:stop() end)
      fn()
    end)
  end,
  it = function(name)
    it(name, function()
      local escaped = name:gsub("[^%w]", function(byte) return string.format("%%%02X", byte:byte()) end)
      local _, body = nginx:get("/?" .. escaped)
      assert.are.equal("ok", body)
      -- Nodes that were killed on purpose.
      assert.are.equal("", nginx:complaints(server.NODE_IS_GONE, server.CONNECTION_BROKE))
    end)
  end,
}

behaviour("redlock in nginx, like everywhere", declared)
notify_behaviour("notifications in nginx", declared)
