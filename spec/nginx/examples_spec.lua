--- The examples for nginx, each run as it is but for its port and its nodes.

if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local metrics_text = require "spec.metrics_text"
local server = require "spec.nginx.server"

describe("examples for nginx", function()
  local farm, nginx

  setup(function() farm = helper.farm(3) end)
  teardown(function() farm:shut() end)

  before_each(function()
    farm:reset()
  end)

  after_each(function()
    if nginx then nginx:stop() end
    nginx = nil
  end)

  local function start(name)
    nginx = server.start_example("examples/nginx/" .. name, farm.addresses)
  end

  local function free()
    helper.eventually(function()
      return farm[1]:keys_left() == 0 and farm[2]:keys_left() == 0 and farm[3]:keys_left() == 0
    end, "all keys to be gone")
  end

  it("cache_conf_builds_page_once", function()
    start("cache.conf")
    local requests, pages = {}, {}
    for index = 1, 40 do requests[index] = nginx:request("/page?name=front") end
    for index = 1, 40 do
      local status, body = requests[index]:finish()
      assert.are.equal(200, status)
      pages[body] = true
    end
    local page = next(pages)
    assert.is_truthy(page:find("^the page front, made at "), page)
    assert.is_nil(next(pages, page))
    free()
    assert.are.equal("", nginx:complaints())
  end)

  it("cache_conf_builds_page_without_nodes", function()
    start("cache.conf")
    farm[1]:kill()
    farm[2]:kill()
    local status, body = nginx:get("/page?name=other")
    assert.are.equal(200, status)
    assert.is_truthy(body:find("^the page other"), body)
  end)

  it("cron_conf_runs_job_in_one_worker_per_period", function()
    start("cron.conf")
    local function runs() return tonumber(select(2, nginx:get("/runs")):match("^(%d+) runs")) end
    helper.eventually(function() return runs() > 0 end, "the first run")
    helper.unless_stalled(300, function()
      local before, began = runs(), helper.now()
      helper.eventually(function() return runs() >= before + 2 end, "two more")
      assert.is_true(helper.now() - began > 1, "two more in " .. helper.now() - began .. " s")
    end)
    assert.are.equal("", nginx:complaints())
    nginx:stop()
    free()
  end)

  local function leader(known)
    return helper.eventually(function()
      local status, body = nginx:get("/leader")
      local worker, fence = body:match("^worker (%d+) leads with fence (%d+) for")
      fence = tonumber(fence)
      return status == 200 and fence and fence > known and { worker = tonumber(worker), fence = fence }
    end, "a leader")
  end

  -- The worker that leads is killed, and then nginx is reloaded.
  it("leader_conf_has_one_leader_of_all_workers", function()
    start("leader.conf")
    local first = leader(0)
    helper.eventually(function()
      return select(2, nginx:get("/step")) == ("1 leader, %d with fence %.0f\n"):format(first.worker, first.fence)
    end, "a step of the leader")
    os.execute("kill -KILL " .. first.worker)
    local second = leader(first.fence)
    assert.are_not.equal(first.worker, second.worker)
    nginx:reload() -- waits for the end of the old workers
    leader(second.fence)
    assert.are.equal("", nginx:complaints("exited on signal 9"))
    nginx:stop()
    helper.eventually(function() return farm:count("leader:job") == 0 end, "the key to be gone")
  end)

  it("monitoring_conf_shows_figures_of_both_workers_health_and_status", function()
    start("monitoring.conf")
    for index = 1, 20 do assert.are.equal("done\n", select(2, nginx:get("/order?id=" .. index))) end
    helper.eventually(function()
      local status, body = nginx:get("/metrics")
      assert.are.equal(200, status)
      local samples = metrics_text.parse(body).samples
      return samples['redlock_operations_total{operation="acquire",outcome="ok"}'] == 20
        and samples['redlock_operations_total{operation="release",outcome="ok"}'] == 20
    end, "the figures of all workers")
    local status, body = nginx:get("/health")
    assert.are.equal(200, status, body)
    status, body = nginx:get("/status")
    assert.are.equal(200, status)
    assert.is_truthy(body:find(farm.addresses[3], 1, true), body)
    assert.are.equal("", nginx:complaints())
  end)

  it("upload_conf_holds_lock_through_subrequests", function()
    start("upload.conf")
    local body = ("0123456789"):rep(3000)
    local status, answer = nginx:request("/upload?name=one", body):finish()
    assert.are.equal("stored one in 8 parts\n", answer)
    assert.are.equal(200, status)
    assert.are.equal(body, select(2, nginx:get("/file?name=one")))
    free()
    assert.are.equal("", nginx:complaints())
  end)

  it("upload_conf_accepts_one_upload_at_a_time", function()
    start("upload.conf")
    local requests, bodies = {}, {}
    for index = 1, 4 do
      bodies[index] = tostring(index):rep(20000)
      requests[index] = nginx:request("/upload?name=same", bodies[index])
    end
    for index = 1, 4 do
      local status, answer = requests[index]:finish()
      assert.is_true(status == 200 or status == 423, tostring(status) .. " " .. tostring(answer))
    end
    local stored = select(2, nginx:get("/file?name=same"))
    assert.are.equal(20000, #stored)
    assert.are.equal(stored, stored:sub(1, 1):rep(20000))
    assert.are.equal("", nginx:complaints())
  end)

  local function read(path)
    local file = io.open(path)
    local text = file and file:read("*a") or ""
    if file then file:close() end
    return text
  end

  -- A holder is stopped in the middle of its work. Its lease runs out, another holds the lock and
  -- writes. Then the first goes on, and writes. Returns the answer, and what the service has then.
  local function late_write(name)
    local url = "http://127.0.0.1:" .. nginx.port .. "/document/one"
    local place = helper.directory .. "/" .. name
    local first = helper.start_reader("examples/fenced_http.lua", place .. ".in", place .. ".out", url, "first",
      (table.unpack or unpack)(farm.addresses))
    helper.eventually(function() return read(place .. ".out"):find("^holding") end, "the first holder")
    os.execute("kill -STOP " .. first)
    helper.eventually(function() return helper.is_stopped(first) end, "it to stop")
    helper.write_file(place .. ".in", "go on\n")
    farm:eventually_free("document")
    local output, ok = helper.run_file("examples/fenced_http.lua", url, "second",
      (table.unpack or unpack)(farm.addresses))
    assert.is_true(ok, output)
    assert.is_truthy(output:find("200\tstored", 1, true), output)
    assert.is_true(helper.is_stopped(first))
    os.execute("kill -CONT " .. first)
    local answer = helper.eventually(function() return read(place .. ".out"):match("\n(%d+\t[^\n]+)") end, "its answer")
    return answer, select(2, nginx:get("/document/one"))
  end

  it("fenced_conf_refuses_late_write", function()
    start("fenced.conf")
    local answer, document = late_write("fenced")
    assert.are.equal("412\trefused: a later holder has written", answer)
    assert.are.equal("second", document)
    assert.are.equal(428, (nginx:request("/document/one", "text"):finish()))
    assert.are.equal("", nginx:complaints())
  end)

  it("fenced_conf_without_comparison_accepts_late_write", function()
    local text, count = read("examples/nginx/fenced.conf"):gsub("if fence < last then", "if false then")
    assert.are.equal(1, count)
    helper.write_file(helper.directory .. "/unfenced.conf", text)
    nginx = server.start_example(helper.directory .. "/unfenced.conf", farm.addresses)
    local answer, document = late_write("unfenced")
    assert.are.equal("200\tstored", answer)
    assert.are.equal("first", document)
  end)

  local function store(name, fence, text)
    return (nginx:request("/document/" .. name, text, "X-Fence: " .. fence .. "\r\n"):finish())
  end

  it("fenced_conf_stores_whole_text_or_refuses", function()
    start("fenced.conf")
    local text = ("x"):rep(60000)
    assert.are.equal(200, store("one", "17", text))
    assert.are.equal(text, select(2, nginx:get("/document/one")))
    assert.are.equal(413, store("one", "18", ("y"):rep(70000)))
    assert.are.equal(text, select(2, nginx:get("/document/one")))
    assert.are.equal(428, store("one", "9007199254740993", "z"))
  end)

  it("fenced_conf_keeps_tokens_when_memory_is_full", function()
    local conf, count = read("examples/nginx/fenced.conf"):gsub("dict fences 1m", "dict fences 16k")
    assert.are.equal(1, count)
    helper.write_file(helper.directory .. "/full.conf", conf)
    nginx = server.start_example(helper.directory .. "/full.conf", farm.addresses)
    assert.are.equal(200, store("first", "100", "new"))
    local name, status = "x"
    repeat
      name = name .. "x"
      status = store(name, "1", "text")
    until status ~= 200 or #name == 500
    assert.are.equal(507, status)
    assert.are.equal(412, store("first", "99", "old"))
    assert.are.equal("new", select(2, nginx:get("/document/first")))
  end)

  it("upload_conf_reports_that_file_is_taken", function()
    start("upload.conf")
    for _, node in ipairs(farm) do node:command("SET", "file:held", "somebody else") end
    local status, answer = nginx:request("/upload?name=held", "text"):finish()
    assert.are.equal(423, status)
    assert.is_truthy(answer:find("'held' is taken", 1, true) or answer:find("'file:held' is taken", 1, true), answer)
    assert.are.equal("", nginx:complaints())
  end)
end)
