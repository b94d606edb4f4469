/*
 * Out of memory in Lua: runs scripts that together use the whole module in a state whose allocator
 * fails at its n-th call, for every n, until the script succeeds. No run may crash, or leave a byte
 * of the allocator or a descriptor. Valgrind and the address sanitizer check the library's own
 * allocations.
 *
 * SPDX-License-Identifier: MIT
 *
 *     rl_lua_oom_test <directory of redlock.lua> [address...]
 *
 * Without addresses the nodes refuse connections; with those of running servers the scripts get
 * their locks.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "client/rl_client_state.h"
#include "redlock.h"
#include "rl_lua.h"

/*
 * LuaJIT 2.1 itself loses 16 bytes when there is no memory for a closure: a script of three local
 * functions and nothing else shows it. There, only descriptors are counted.
 */
#if LUA_VERSION_NUM < 502 && defined(LUA_OK)
#define COUNTS_BYTES 0
#else
#define COUNTS_BYTES 1
#endif

/*
 * LuaJIT's compiler crashes in code it has made when there is no memory. The compiled code depends
 * on addresses, so that this test ended so once in a hundred runs: with its threshold at one loop
 * in each, and with the compiler off in none.
 */
static const char INTERPRETED[] = "if jit then jit.off() end\n";

#define NEW_CLIENT                                                                                 \
  "redlock.new(nodes, { retry_count = 0, prefix = 'oom:', username = nil,\n"                       \
  "  on_event = function(event) seen[#seen + 1] = event.event end })\n"

/*
 * Each scenario is short, because it runs once for each of its allocations. They fail between
 * arm(true) and arm(false), or the end.
 */
typedef struct scenario {
  const char *name;
  bool uses_nodes;
  const char *script;
} scenario;

static const scenario SCENARIOS[] = {
    {"the module", false,
     "arm(true)\n"
     "local redlock = require 'redlock'\n"
     "arm(false)\n"
     "local client = redlock.new(nodes)\n"
     "client:new_lock('name'):start('acquire')\n"
     "client:process()\n"},
    {"a lock", true,
     "local redlock = require 'redlock'\n"
     "local seen = {}\n"
     "arm(true)\n"
     "local client = " NEW_CLIENT
     "local lock = client:new_lock('name', { ttl = 30000, node_timeout = 5000 })\n"
     "local validity, message, code = lock:acquire()\n"
     "if reachable then assert(validity, message) else assert(code == 'unavailable', code) end\n"
     "local text = tostring(lock) .. tostring(client)\n"
     "assert(#lock:votes() == #client:nodes() and #client:stats().nodes == #client:nodes())\n"
     "lock:acquire({ wait = 0, node_timeout = 5000 })\n"
     "lock:extend(31000)\n"
     "lock:token() lock:resource() lock:ttl() lock:remaining()\n"
     "lock:release()\n"
     "lock:start('acquire') client:process() lock:result() lock:cancel()\n"
     "client:pollfd() client:events() client:timeout()\n"
     "pcall(redlock.new, { 'host:port' })\n"
     "pcall(lock.acquire, lock, { ttl = -1 })\n"
     "client:close()\n"},
    {"a lost lock", true,
     "local redlock = require 'redlock'\n"
     "local seen = {}\n"
     "local client = " NEW_CLIENT "arm(true)\n"
     "local reported\n"
     "local function on_lost(_, reason) reported = reason end\n"
     "local kept = client:new_lock('kept', { node_timeout = 500, ttl = 8, on_lost = on_lost,\n"
     "  auto_extend = { every = 3, max_hold = 12 } })\n"
     /* The time passes in C: LuaJIT does not bear it when its compiler finds no memory. */
     "if kept:acquire({ on_lost = on_lost }) then\n"
     "  client:acquire('kept', { wait = 100, node_timeout = 500, retry_delay = 3, retry_jitter = 0 })\n"
     "end\n"
     "kept:lost() client:process() pcall(kept.check, kept) kept:release()\n"
     "client:close()\n"},
    {"credentials", false,
     "local redlock = require 'redlock'\n"
     "local client = redlock.new(nodes, { retry_count = 0, node_timeout = 50,\n"
     "  credentials = function() return 'password' end })\n"
     "local lock = client:new_lock('name')\n"
     "arm(true)\n"
     "local succeeded, message = pcall(lock.acquire, lock)\n"
     "arm(false)\n"
     "assert(not is_asking(client), 'the client never asks again')\n"
     "assert(not require('redlock.core').pending(lock), 'the acquire never ends')\n"
     "client:close()\n"
     "if not succeeded then error(message, 0) end\n"},
    {"dropped objects", true,
     "local redlock = require 'redlock'\n"
     "local seen = {}\n"
     "local client = " NEW_CLIENT "arm(true)\n"
     "local dropped = client:acquire('dropped', { node_timeout = 500 })\n"
     "dropped = nil\n"
     "collectgarbage()\n"
     "client:with('section', { node_timeout = 500 }, function(held) return held:is_held() end)\n"
     "local abandoned = redlock.new(nodes):new_lock('abandoned')\n"
     "abandoned:start('acquire')\n"
     "abandoned = nil\n"
     "collectgarbage()\n"
     "client:close()\n"}};

typedef struct memory {
  size_t in_use;
  size_t calls;   /* that could fail, while armed */
  size_t fail_at; /* 0 = never */
  size_t fail_count;
  bool armed;
} memory;

typedef struct run {
  memory memory;
  const char *script;
  int address_count;
  char **addresses;
} run;

static void *allocate(void *data, void *block, size_t old_size, size_t new_size) {
  memory *self = data;
  void *moved;

  if (block == NULL)
    old_size = 0; /* Lua says there what kind of object it makes. */
  if (new_size == 0) {
    free(block);
    self->in_use -= old_size;
    return NULL;
  }
  if (self->armed && new_size > old_size) {
    self->calls++;
    if (self->fail_at != 0 && self->calls >= self->fail_at &&
        self->calls - self->fail_at < self->fail_count) {
      return NULL;
    }
  }
  moved = realloc(block, new_size);
  if (moved != NULL)
    self->in_use = self->in_use - old_size + new_size;
  return moved;
}

static size_t count_descriptors(void) {
  DIR *directory = opendir("/proc/self/fd");
  size_t count = 0;

  if (directory == NULL)
    return 0;
  while (readdir(directory) != NULL)
    count++;
  closedir(directory);
  return count;
}

static void push_nodes(lua_State *L, const run *self) {
  static const char *const refusing[] = {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"};

  lua_newtable(L);
  for (int index = 0; index < (self->address_count > 0 ? self->address_count : 3); index++) {
    lua_pushstring(L, self->address_count > 0 ? self->addresses[index] : refusing[index]);
    lua_rawseti(L, -2, index + 1);
  }
  lua_setglobal(L, "nodes");
  lua_pushboolean(L, self->address_count > 0);
  lua_setglobal(L, "reachable");
}

/* The modules of redlock.lua as bytecode, because compiling them again would take most of a run. */
typedef struct module {
  const char *name;
  const char *file;
  char *code;
  size_t length;
} module;

static module modules[] = {{.name = "redlock", .file = "redlock.lua"},
                           {.name = "redlock.client", .file = "redlock/client.lua"},
                           {.name = "redlock.lead", .file = "redlock/lead.lua"},
                           {.name = "redlock.lock", .file = "redlock/lock.lua"},
                           {.name = "redlock.loss", .file = "redlock/loss.lua"},
                           {.name = "redlock.options", .file = "redlock/options.lua"},
                           {.name = "redlock.section", .file = "redlock/section.lua"},
                           {.name = "redlock.slots", .file = "redlock/slots.lua"}};

#define MODULE_COUNT (sizeof modules / sizeof modules[0])

/* Returns false after a message if a file does not compile. */
static bool compile_modules(const char *directory) {
  lua_State *L = luaL_newstate();
  bool succeeded = true;

  luaL_openlibs(L);
  for (module *one = modules; succeeded && one < modules + MODULE_COUNT; one++) {
    const char *code;

    succeeded = luaL_loadstring(L, "return string.dump(assert(loadfile(...)), true)") == 0;
    lua_pushfstring(L, "%s/%s", directory, one->file);
    succeeded = succeeded && lua_pcall(L, 1, 1, 0) == 0;
    code = lua_tolstring(L, -1, &one->length);
    if (succeeded)
      one->code = memcpy(malloc(one->length), code, one->length);
    else
      fprintf(stderr, "%s\n", code);
    lua_pop(L, 1);
  }
  lua_close(L);
  return succeeded;
}

static void free_modules(void) {
  for (module *one = modules; one < modules + MODULE_COUNT; one++)
    free(one->code);
}

/* Loads before memory runs out: LuaJIT leaves a file open when it fails to read one. */
static void preload(lua_State *L) {
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "preload");
  for (const module *one = modules; one < modules + MODULE_COUNT; one++) {
    if (luaL_loadbuffer(L, one->code, one->length, one->name) != 0)
      lua_error(L);
    lua_setfield(L, -2, one->name);
  }
  lua_pushcfunction(L, luaopen_redlock_core);
  lua_setfield(L, -2, "redlock.core");
  lua_pop(L, 2);
}

/* arm(true) lets allocations fail from now on. */
static int arm(lua_State *L) {
  memory *self = lua_touserdata(L, lua_upvalueindex(1));

  self->armed = lua_toboolean(L, 1);
  return 0;
}

/* is_asking(client) returns true if the client takes its credentials function for running. */
static int is_asking(lua_State *L) {
  const rl_lua_client *self = luaL_checkudata(L, 1, RL_LUA_CLIENT);

  lua_pushboolean(L, self->client->asking);
  return 1;
}

/*
 * Everything happens in here, because an error outside of a protected call would end the process.
 */
static int body(lua_State *L) {
  run *self = lua_touserdata(L, 1);

  luaL_openlibs(L);
  preload(L);
  push_nodes(L, self);
  lua_pushlightuserdata(L, &self->memory);
  lua_pushcclosure(L, arm, 1);
  lua_setglobal(L, "arm");
  lua_pushcfunction(L, is_asking);
  lua_setglobal(L, "is_asking");
  if (luaL_loadstring(L, INTERPRETED) != 0)
    return lua_error(L);
  lua_call(L, 0, 0);
  if (luaL_loadstring(L, self->script) != 0)
    return lua_error(L);
  lua_call(L, 0, 0);
  return 0;
}

static int protected_body(lua_State *L, run *self) {
#if LUA_VERSION_NUM < 502
  return lua_cpcall(L, body, self);
#else
  lua_pushcfunction(L, body);
  lua_pushlightuserdata(L, self);
  return lua_pcall(L, 1, 0, 0);
#endif
}

static lua_State *new_state(memory *self) {
#if LUA_VERSION_NUM >= 505
  return lua_newstate(allocate, self, 1);
#else
  return lua_newstate(allocate, self);
#endif
}

/* Returns true if the script came to its end. */
static int run_once(run *self, size_t fail_at, size_t fail_count) {
  size_t descriptors = count_descriptors();
  lua_State *L;
  int status;
  char message[256];

  memset(&self->memory, 0, sizeof self->memory);
  self->memory.fail_at = fail_at;
  self->memory.fail_count = fail_count;
  L = new_state(&self->memory);
  if (L == NULL) {
    fprintf(stderr, "lua_newstate() failed\n");
    exit(2);
  }
  status = protected_body(L, self);
  self->memory.armed = false;
  (void)snprintf(message, sizeof message, "%s",
                 status != 0 && lua_tostring(L, -1) != NULL ? lua_tostring(L, -1) : "");
  lua_close(L);

  if (COUNTS_BYTES && self->memory.in_use != 0) {
    fprintf(stderr, "allocation %zu: %zu bytes are left\n", fail_at, self->memory.in_use);
    exit(1);
  }
  if (count_descriptors() != descriptors) {
    fprintf(stderr, "allocation %zu: descriptors are left\n", fail_at);
    exit(1);
  }
  if (status != 0 && strstr(message, "memory") == NULL) {
    fprintf(stderr, "allocation %zu: %s\n", fail_at, message);
    exit(1);
  }
  return status == 0;
}

/*
 * Lua 5.2 and newer answer a failure with a full collection and try again: only the second one in a
 * row is an error there. The first is worth a run of its own, because finalizers follow it.
 */
static const size_t FAIL_COUNTS[] = {1, 2, SIZE_MAX};

/* Under valgrind only some of the allocations fail: all of them would take minutes there. */
#define VALGRIND_STRIDE 7

/* Lets each allocation of a scenario fail in each way. Otherwise returns false after a message. */
static bool run_scenario(run *self, const scenario *one, size_t stride) {
  static const char *const names[] = {"once", "twice in a row", "from there on"};

  self->script = one->script;
  for (size_t mode = 0; mode < sizeof FAIL_COUNTS / sizeof FAIL_COUNTS[0]; mode++) {
    size_t total, failed = 0, fail_at = 0;

    if (!run_once(self, 0, 0)) {
      fprintf(stderr, "%s: the script fails without a failing allocator\n", one->name);
      return false;
    }
    total = self->memory.calls;
    do {
      fail_at += stride;
      if (!run_once(self, fail_at, FAIL_COUNTS[mode]))
        failed++;
    } while (self->memory.calls >= fail_at);
    printf("ok - %s: %zu allocations, failing %s: %zu runs ended by it, %s left\n", one->name,
           total, names[mode], failed, COUNTS_BYTES ? "nothing is" : "no descriptor is");
    if (mode > 0 && failed == 0) {
      fprintf(stderr, "no failure had an effect: this test tests nothing\n");
      return false;
    }
  }
  return true;
}

int main(int argc, char **argv) {
  run self;
  bool succeeded;

  if (argc < 2) {
    fprintf(stderr, "usage: %s <directory of redlock.lua> [address...]\n", argv[0]);
    return 2;
  }
  size_t stride = getenv("REDLOCK_TEST_VALGRIND") != NULL ? VALGRIND_STRIDE : 1;
  memset(&self, 0, sizeof self);
  self.address_count = argc - 2;
  self.addresses = argv + 2;

  succeeded = compile_modules(argv[1]);
  for (size_t index = 0; index < sizeof SCENARIOS / sizeof SCENARIOS[0]; index++) {
    if (succeeded && (self.address_count == 0 || SCENARIOS[index].uses_nodes))
      succeeded = run_scenario(&self, &SCENARIOS[index], stride);
  }
  free_modules();
  return succeeded ? 0 : 1;
}
