/*
 * Options: converts a Lua table to a struct of redlock.h by the option tables of the core.
 *
 * SPDX-License-Identifier: MIT
 *
 * nil in Lua is 0 in C: not set. 0 or false in Lua is the constant for "none" in C.
 */
#include "rl_lua_option.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rl_label.h"
#include "base/rl_validity.h"
#include "rl_lua_argument.h"
#include "rl_lua_credentials.h"
#include "rl_lua_loss.h"
#include "rl_lua_result.h"

/* Option that only Lua has: the owner of a lock inside nginx. */
typedef struct host_options {
  int owner;
} host_options;

enum { OWNER_REQUEST = 1, OWNER_WORKER = 2 };

static const rl_option host_rows[] = {
    {"owner", "owner", "", RL_OPTION_CHOICE, 0, offsetof(host_options, owner), sizeof(int), 0,
     OWNER_REQUEST, OWNER_WORKER, 0, "request|worker"},
};
static const rl_option_table host_table = {host_rows, sizeof host_rows / sizeof host_rows[0],
                                           sizeof(host_options)};

#define MILLISECOND ((double)REDLOCK_MILLISECONDS)

/* Return the bounds in the units of Lua. */
static double lowest(const rl_option *row) {
  if ((row->also & RL_OPTION_NONE) != 0)
    return 0;
  return row->kind == RL_OPTION_DURATION ? ceil((double)row->low / MILLISECOND) : (double)row->low;
}

static double highest(const rl_option *row) {
  return row->kind == RL_OPTION_DURATION ? (double)row->high / MILLISECOND : (double)row->high;
}

/* Sets the field of |row| in the struct |of| to the value on top of the stack. */
typedef void reader(lua_State *L, const rl_option *row, const char *name, void *of);

static void set_field(void *of, const rl_option *row, const void *value, size_t size) {
  memcpy((char *)of + row->offset, value, size);
}

static void read_duration(lua_State *L, const rl_option *row, const char *name, void *of) {
  redlock_duration duration = rl_lua_check_duration(L, -1, name, lowest(row), highest(row));
  if (duration == 0)
    duration = REDLOCK_DURATION_NONE;
  set_field(of, row, &duration, sizeof duration);
}

static void read_count(lua_State *L, const rl_option *row, const char *name, void *of) {
  double value = rl_lua_check_whole(L, -1, name, "", lowest(row), highest(row));
  int count = value == 0 ? RL_OPTION_COUNT_NONE : (int)value;
  set_field(of, row, &count, sizeof count);
}

static void read_factor(lua_State *L, const rl_option *row, const char *name, void *of) {
  double value = lua_type(L, -1) == LUA_TNUMBER ? (double)lua_tonumber(L, -1) : -1;
  if (!(value >= 0 && value < highest(row))) {
    rl_lua_misuse(L, RL_LUA_WRAPPED, "redlock: %s must be a number >= 0 and < %d", name,
                  (int)row->high);
  }
  if (value == 0)
    value = REDLOCK_DRIFT_NONE;
  set_field(of, row, &value, sizeof value);
}

static void read_flag(lua_State *L, const rl_option *row, const char *name, void *of) {
  int flag = lua_toboolean(L, -1) ? REDLOCK_YES : REDLOCK_NO;
  /* rl_lua_read_lease_options() and push_option() read the parts of the table. */
  bool parts =
      lua_istable(L, -1) && (strcmp(row->name, "auto_extend") == 0 ||
                             strcmp(row->name, "tls") == 0 || strcmp(row->name, "guard") == 0);
  if (lua_type(L, -1) != LUA_TBOOLEAN && !parts)
    rl_lua_misuse(L, RL_LUA_WRAPPED, "redlock: %s must be true or false", name);
  set_field(of, row, &flag, sizeof flag);
}

/* Returns the position of |word| in |words|, from 1; 0 if it is not there. */
static int word_number(const char *words, const char *word) {
  size_t length = strlen(word);

  for (int number = 1; words != NULL; number++) {
    const char *end = strchr(words, '|');
    if (strcspn(words, "|") == length && memcmp(words, word, length) == 0)
      return number;
    words = end != NULL ? end + 1 : NULL;
  }
  return 0;
}

static void read_choice(lua_State *L, const rl_option *row, const char *name, void *of) {
  int number = lua_type(L, -1) == LUA_TSTRING ? word_number(row->words, lua_tostring(L, -1)) : 0;
  if (number == 0)
    rl_lua_misuse(L, RL_LUA_WRAPPED, "redlock: %s must be one of %s", name, row->words);
  set_field(of, row, &number, sizeof number);
}

/* Leaves the string on the stack, which the caller keeps for as long as it uses the struct. */
static void read_string(lua_State *L, const rl_option *row, const char *name, void *of) {
  size_t length = 0;
  const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &length) : NULL;
  if (text == NULL)
    rl_lua_misuse(L, RL_LUA_WRAPPED, "redlock: %s must be a string", name);
  set_field(of, row, &text, sizeof text);
  if (row->length_offset != 0) {
    memcpy((char *)of + row->length_offset, &length, sizeof length);
  } else if (strlen(text) != length) {
    rl_lua_misuse(L, RL_LUA_WRAPPED, "redlock: %s must not contain a NUL byte", name);
  }
  lua_pushnil(L); /* The caller pops this in place of the string. */
}

/* The client object keeps the function. The library calls rl_lua_credentials_later() instead. */
static void read_function(lua_State *L, const rl_option *row, const char *name, void *of) {
  redlock_credentials_function *later = rl_lua_credentials_later;

  if (!lua_isfunction(L, -1)) {
    if (!luaL_getmetafield(L, -1, "__call"))
      rl_lua_misuse(L, RL_LUA_WRAPPED, "redlock: %s must be a function", name);
    lua_pop(L, 1);
  }
  set_field(of, row, &later, sizeof later);
}

/*
 * Returns the name of the nested table that contains |row|, or NULL; and its name there, |*part|.
 */
static const char *table_of(const rl_option *row, const char **part) {
  static const char *const tables[] = {"tls", "guard"};

  for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
    size_t length = strlen(tables[i]);
    if (strncmp(row->name, tables[i], length) == 0 && row->name[length] == '_') {
      *part = row->name + length + 1;
      return tables[i];
    }
  }
  *part = row->name;
  return NULL;
}

/* Pushes the value of |row| in the table at |index|, or nil. */
static void push_option(lua_State *L, int index, const rl_option *row) {
  const char *part;
  const char *table = table_of(row, &part);

  lua_getfield(L, index, table != NULL ? table : row->name);
  if (table == NULL)
    return;
  if (lua_istable(L, -1)) {
    lua_getfield(L, -1, part);
  } else {
    lua_pushnil(L);
  }
  lua_remove(L, -2);
}

static void read_option(lua_State *L, const rl_option *row, void *of) {
  static reader *const readers[] = {
      [RL_OPTION_DURATION] = read_duration, [RL_OPTION_COUNT] = read_count,
      [RL_OPTION_FACTOR] = read_factor,     [RL_OPTION_FLAG] = read_flag,
      [RL_OPTION_CHOICE] = read_choice,     [RL_OPTION_TEXT] = read_string,
      [RL_OPTION_BYTES] = read_string,      [RL_OPTION_LABEL] = read_string,
      [RL_OPTION_SECRET] = read_string,     [RL_OPTION_FUNCTION] = read_function};
  char name[64];
  const char *part;
  const char *table = table_of(row, &part);

  (void)snprintf(name, sizeof name, "option '%s%s%s'", table != NULL ? table : "",
                 table != NULL ? "." : "", part);
  readers[row->kind](L, row, name, of);
}

int rl_lua_read_options(lua_State *L, int index, const rl_option_table *table, void *of) {
  memset(of, 0, table->size);
  if (lua_isnoneornil(L, index))
    return 0;
  if (!lua_istable(L, index))
    rl_lua_misuse(L, RL_LUA_WRAPPED, "redlock: options must be a table, got a %s",
                  luaL_typename(L, index));
  luaL_checkstack(L, (int)table->count + 4, "redlock: options");
  for (size_t i = 0; i < table->count; i++) {
    push_option(L, index, &table->rows[i]);
    if (!lua_isnil(L, -1))
      read_option(L, &table->rows[i], of);
    lua_pop(L, 1);
  }
  return 1;
}

/* Reads option |name|, which is |as| in auto_extend = { every = , max_hold = }. */
static void read_part(lua_State *L, const char *name, const char *as, redlock_options *given) {
  char shown[64];

  lua_getfield(L, -1, as);
  for (size_t i = 0; i < rl_options_of_lock.count && !lua_isnil(L, -1); i++) {
    const rl_option *row = &rl_options_of_lock.rows[i];
    if (strcmp(row->name, name) != 0)
      continue;
    (void)snprintf(shown, sizeof shown, "option 'auto_extend.%s'", as);
    read_duration(L, row, shown, given);
  }
  lua_pop(L, 1);
}

int rl_lua_read_lease_options(lua_State *L, int index, redlock_options *given) {
  if (!rl_lua_read_options(L, index, &rl_options_of_lock, given))
    return 0;
  lua_getfield(L, index, "auto_extend");
  if (lua_istable(L, -1)) {
    read_part(L, "extend_every", "every", given);
    read_part(L, "max_hold", "max_hold", given);
  }
  lua_pop(L, 1);
  if (rl_lua_loss_has_option(L, index))
    given->notify_lost = REDLOCK_YES;
  return 1;
}

int rl_lua_lease_is_empty(const rl_options *above, const redlock_options *given, char *message,
                          size_t size) {
  redlock_duration ttl_us = given->ttl_us != 0 ? given->ttl_us : above->ttl_us;
  double factor = given->drift_factor == 0.0 ? above->drift_factor : given->drift_factor;

  if (rl_option_wrong(&rl_options_of_lock, given) != NULL ||
      !rl_options_lease_is_empty(above, given))
    return 0;
  factor = factor < 0.0 ? 0.0 : factor;
  (void)snprintf(message, size,
                 "option 'ttl' must be at least %.14g ms, got %.14g: at least 1 ms must be left "
                 "after the allowance for clock drift, which is ttl x %.14g + 2 ms",
                 (double)rl_validity_least_ttl(factor) / MILLISECOND, (double)ttl_us / MILLISECOND,
                 factor);
  return 1;
}

const redlock_options *rl_lua_read_lock_options(lua_State *L, const rl_options *above,
                                                redlock_options *given) {
  char message[RL_LUA_MESSAGE_SIZE];
  rl_options options = *above;

  if (!rl_lua_read_lease_options(L, RL_LUA_ARGUMENT, given))
    return NULL;
  if (rl_lua_lease_is_empty(above, given, message, sizeof message))
    rl_lua_misuse(L, RL_LUA_WRAPPED, "redlock: %s", message);
  if (rl_options_read(&options, given) == NULL && rl_options_lack_auto_extend(&options, given))
    rl_lua_misuse(L, RL_LUA_WRAPPED,
                  "redlock: options 'extend_every' and 'max_hold' need option 'auto_extend'");
  return given;
}

int rl_lua_read_owner(lua_State *L, int index, int absent) {
  host_options host;

  rl_lua_read_options(L, index, &host_table, &host);
  return host.owner == 0 ? absent : host.owner == OWNER_WORKER;
}

int rl_lua_label_complaint(lua_State *L) {
  size_t length;
  const char *label = luaL_checklstring(L, 1, &length);

  if (length == 0 || rl_label_is_valid(label, length))
    return 0;
  lua_pushfstring(L, "must be at most %d bytes of UTF-8 without control characters",
                  REDLOCK_LABEL_MAX);
  return 1;
}

/* Pushes the rows by which Lua code checks options. */
static void push_table(lua_State *L, const rl_option_table *table) {
  int count = 0;

  lua_createtable(L, (int)table->count, 0);
  for (size_t i = 0; i < table->count; i++) {
    const rl_option *row = &table->rows[i];
    const char *part;
    const char *inside = table_of(row, &part);
    double unit = row->kind == RL_OPTION_DURATION ? MILLISECOND : 1;
    lua_createtable(L, 0, 7);
    rl_lua_set_text(L, "name", row->name);
    rl_lua_set_text(L, "field", row->field);
    rl_lua_set_text(L, "kind", rl_option_kind_name(row->kind));
    if (inside != NULL) { /* part_of_tls, part_of_guard */
      lua_pushfstring(L, "part_of_%s", inside);
      lua_pushstring(L, part);
      lua_settable(L, -3);
    }
    lua_pushnumber(L, (lua_Number)lowest(row));
    lua_setfield(L, -2, "low");
    lua_pushnumber(L, (lua_Number)highest(row));
    lua_setfield(L, -2, "high");
    if (row->kind != RL_OPTION_FLAG && row->fallback > 0 &&
        row->fallback < (double)REDLOCK_DURATION_NONE) {
      lua_pushnumber(L, (lua_Number)(row->fallback / unit));
      lua_setfield(L, -2, "default");
    }
    rl_lua_set_text(L, "words", row->words);
    lua_rawseti(L, -2, ++count);
  }
}

void rl_lua_push_option_tables(lua_State *L) {
  lua_createtable(L, 0, 4);
  push_table(L, &rl_options_of_lock);
  lua_setfield(L, -2, "lock");
  push_table(L, &rl_options_of_client);
  lua_setfield(L, -2, "client");
  push_table(L, &rl_options_of_node);
  lua_setfield(L, -2, "node");
  push_table(L, &host_table);
  lua_setfield(L, -2, "host");
}
