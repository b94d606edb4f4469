-- The negative controls of the replay (csrc/test/model): cores that are wrong in one way each. The random
-- walks must notice every one.
--
--     lua build-aux/model_controls.lua [name ...]
--
-- Each change is made in a copy, in a scratch directory. Its text must occur exactly once in csrc/core.
-- Environment: CC, CFLAGS, HIREDIS_CFLAGS, HIREDIS_LIBS, WALKS (how many may be needed [20000]).
--
-- SPDX-License-Identifier: MIT

local CC = os.getenv("CC") or "cc"
local CFLAGS = os.getenv("CFLAGS") or "-O1 -g"
local HIREDIS_CFLAGS = os.getenv("HIREDIS_CFLAGS") or ""
local HIREDIS_LIBS = os.getenv("HIREDIS_LIBS") or "-lhiredis"
local WALKS = os.getenv("WALKS") or "20000"

local controls = {
  { "quorum-off-by-one", "half the nodes are a majority",
    "return nodes / 2 + 1;", "return nodes < 2 ? 1 : nodes / 2;" },
  { "no-drift", "the deadline has no drift allowance",
    "rl_time_sub(ttl_us, rl_validity_drift(ttl_us, drift_factor))",
    "ttl_us + 0 * rl_validity_drift(ttl_us, drift_factor)" },
  { "no-recheck", "a majority that comes too late is a lock",
    "if (now_us >= deadline_us) {", "if (false) {" },
  { "extend-late", "an extend may be confirmed after the old deadline",
    "if (now_us >= lock->deadline_us) {", "if (false) {" },
  { "round-unchecked", "late replies of one round count in the next",
    "owed->round != lock->round || entry->settled", "entry->settled" },
  { "taken-counts", "a node that refuses counts as one that grants",
    "case REDLOCK_VOTE_TAKEN: lock->quorum.taken++;", "case REDLOCK_VOTE_TAKEN: lock->quorum.granted++;" },
  { "no-release", "nothing is released",
    "attempt->due = attempt->sent & ~attempt->confirmed;", "attempt->due = 0;" },
  { "release-once", "a release whose connection broke is not sent again",
    "attempt->due |= (uint32_t)1 << node->index;", "" },
  { "no-heal", "a node that has lost the key does not get it back",
    "if (rl_lock_remaining(lock, now_us) == 0 || !rl_link_has_room(&node->link, RL_OWED_HEAL) ||",
    "if (true || rl_lock_remaining(lock, now_us) == 0 || !rl_link_has_room(&node->link, RL_OWED_HEAL) ||" },
  { "no-join", "a node that comes up after the decision is not given the key",
    "rl_acquire_join(lock, now_us, node);", "(void)rl_acquire_join;" },
  { "lease-kept", "an extend that is confirmed leaves the old deadline",
    "lock->deadline_us = rl_time_max(lock->deadline_us, deadline_us);",
    "lock->deadline_us = lock->deadline_us + 0 * deadline_us;" },
  { "set-twice", "a SET is sent again with every release",
    "attempt->releasing = true;",
    "attempt->releasing = true; for (unsigned i = 0; i < core->node_count; i++) { "
      .. "if (core->nodes[i]->link.phase == RL_LINK_UP) { "
      .. "(void)rl_link_queue_set(&core->nodes[i]->link, now_us, RL_OWED_HEAL, attempt, 0, "
      .. "(attempt->life_us - REDLOCK_SECONDS) * 10 / 11 / 1000); } }" },
}

local changed_core = dofile("build-aux/changed_core.lua")
local run, must, read, write = changed_core.run, changed_core.must, changed_core.read, changed_core.write

-- The core's file in which |from| occurs, and its text with |to| instead.
local function mutate(sources, name, from, to)
  local file, changed
  for _, source in ipairs(sources) do
    local text, trouble = changed_core.replace(read(source), from, to)
    if trouble == "ambiguous" or (text and file) then
      error(name .. ": its text is ambiguous: " .. from, 0)
    elseif text then
      file, changed = source, text
    end
  end
  return file or error(name .. ": its text is not there: " .. from, 0), changed
end

local scratch = must("mktemp -d"):match("%S+")

local function compile(source, object)
  must(CC .. " -std=c11 -D_GNU_SOURCE " .. CFLAGS .. " -Icsrc/include -Icsrc/core -Icsrc/test/lib -Icsrc/test/model "
    .. HIREDIS_CFLAGS .. " -c -o " .. object .. " " .. source)
  return object
end

local function object_of(source)
  return scratch .. "/" .. source:match("([^/]+)%.c$") .. ".o"
end

local function build()
  local core, objects = {}, {}
  for source in must("ls csrc/core/rl_*.c"):gmatch("%S+") do
    core[#core + 1] = source
    objects[source] = compile(source, object_of(source))
  end
  for source in must("ls csrc/test/model/*.c csrc/test/lib/fake_store.c"):gmatch("%S+") do
    if not source:match("model_main%.c$") then
      objects[source] = compile(source, object_of(source))
    end
  end
  return core, objects
end

-- Walks with |instead| built from |changed|. Returns output and exit status.
local function walk(objects, instead, changed)
  local list = {}
  for source, object in pairs(objects) do
    list[#list + 1] = source == instead and changed or object
  end
  must(CC .. " " .. CFLAGS .. " -o " .. scratch .. "/replay " .. table.concat(list, " ") .. " " .. HIREDIS_LIBS)
  return run("timeout 300 " .. scratch .. "/replay --only-walks --walks " .. WALKS)
end

local function notice(output, status)
  if status == 1 then
    local walks = output:match("not ok %- replay: (%d+) random walks")
    local difference = output:match("([^\n]*)\nnot ok %- replay")
    return walks and ("in walk %s: %s"):format(walks, (difference or ""):match("^%s*(.*)$"))
  end
  return status == 134 and "by " .. (output:match("Assertion [^\n]*") or "an abort")
end

local function main()
  local core, objects = build()
  local wanted, survived, ran = {}, 0, 0
  for _, name in ipairs(arg) do
    wanted[name] = true
  end
  local _, status = walk(objects)
  if status ~= 0 then
    error("the core as it is fails the replay", 0)
  end
  for _, control in ipairs(controls) do
    local name, what, from, to = control[1], control[2], control[3], control[4]
    if #arg == 0 or wanted[name] then
      local file, text = mutate(core, name, from, to)
      local copy = scratch .. "/changed_" .. file:match("([^/]+)$")
      write(copy, text)
      local seen = notice(walk(objects, file, compile(copy, scratch .. "/changed.o")))
      ran, survived = ran + 1, survived + (seen and 0 or 1)
      print(seen and ("ok - replay control %s (%s): noticed %s"):format(name, what, seen)
        or ("not ok - replay control %s (%s): not noticed"):format(name, what))
      io.flush()
    end
  end
  print(("%d wrong cores, %d noticed by the replay"):format(ran, ran - survived))
  return survived == 0 and ran > 0
end

changed_core.finish(main, scratch)
