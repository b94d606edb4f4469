/*
 * The table of all options: name, kind, field, bounds. The rows are in rl_option_table.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "options/rl_option_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/rl_label.h"
#include "options/rl_login.h"

#define RL_OPTION_SIZE_MAX 4096 /* of a struct of any version */

/* By kind: the offset of a field's length. */
#define RL_OPTION_LENGTH_DURATION(structure, field) 0
#define RL_OPTION_LENGTH_COUNT(structure, field) 0
#define RL_OPTION_LENGTH_FACTOR(structure, field) 0
#define RL_OPTION_LENGTH_FLAG(structure, field) 0
#define RL_OPTION_LENGTH_CHOICE(structure, field) 0
#define RL_OPTION_LENGTH_TEXT(structure, field) 0
#define RL_OPTION_LENGTH_LABEL(structure, field) 0
#define RL_OPTION_LENGTH_BYTES(structure, field) offsetof(structure, field##_length)
#define RL_OPTION_LENGTH_SECRET(structure, field) offsetof(structure, field##_length)
#define RL_OPTION_LENGTH_FUNCTION(structure, field) offsetof(structure, field##_data)

/* The size of a field. It does not compile if the kind has another size. */
#define RL_OPTION_KIND_SIZE(kind, name, type) RL_OPTION_SIZE_##kind = sizeof(type),
enum { RL_OPTION_KINDS(RL_OPTION_KIND_SIZE) };
#define RL_OPTION_SIZE(structure, kind, field)                                                     \
  sizeof(                                                                                          \
      char[sizeof(((structure *)0)->field) == RL_OPTION_SIZE_##kind ? RL_OPTION_SIZE_##kind : -1])

/* The words of a CHOICE, in the order of its numbers from 1. The only one is the TLS version. */
#define RL_OPTION_WORDS(kind) (RL_OPTION_##kind == RL_OPTION_CHOICE ? "1.2|1.3" : NULL)

#define RL_OPTION_ROW(structure, name, kind, field, low, high, also, fallback, must)               \
  {#name,                                                                                          \
   #field,                                                                                         \
   #field " must be " must,                                                                        \
   RL_OPTION_##kind,                                                                               \
   also,                                                                                           \
   offsetof(structure, field),                                                                     \
   RL_OPTION_SIZE(structure, kind, field),                                                         \
   RL_OPTION_LENGTH_##kind(structure, field),                                                      \
   low,                                                                                            \
   high,                                                                                           \
   (double)(fallback),                                                                             \
   RL_OPTION_WORDS(kind)},
#define RL_OPTION_LOCK_ROW(name, kind, field, low, high, also, fallback, must)                     \
  RL_OPTION_ROW(redlock_options, name, kind, field, low, high, also, fallback, must)
#define RL_OPTION_CLIENT_ROW(name, kind, field, low, high, also, must)                             \
  RL_OPTION_ROW(redlock_settings, name, kind, field, low, high, also, 0, must)
#define RL_OPTION_NODE_ROW(name, kind, field, low, high, also, must)                               \
  RL_OPTION_ROW(redlock_node, name, kind, field, low, high, also, 0, must)

static const rl_option rl_option_lock_rows[] = {RL_OPTIONS_OF_LOCK(RL_OPTION_LOCK_ROW)};
static const rl_option rl_option_client_rows[] = {RL_OPTIONS_OF_CLIENT(RL_OPTION_CLIENT_ROW)};
static const rl_option rl_option_node_rows[] = {RL_OPTIONS_OF_NODE(RL_OPTION_NODE_ROW)};

#define RL_OPTION_TABLE(rows, structure) (rows), sizeof(rows) / sizeof((rows)[0]), sizeof(structure)
const rl_option_table rl_options_of_lock = {RL_OPTION_TABLE(rl_option_lock_rows, redlock_options)};
const rl_option_table rl_options_of_client = {
    RL_OPTION_TABLE(rl_option_client_rows, redlock_settings)};
const rl_option_table rl_options_of_node = {RL_OPTION_TABLE(rl_option_node_rows, redlock_node)};

const char *rl_option_kind_name(rl_option_kind kind) {
#define RL_OPTION_KIND_NAME(value, name, type) #name,
  static const char *const names[] = {RL_OPTION_KINDS(RL_OPTION_KIND_NAME)};
  return names[kind];
}

static bool rl_option_is_zero(const void *memory, size_t length) {
  const unsigned char *bytes = memory;
  for (size_t i = 0; i < length; i++) {
    if (bytes[i] != 0) {
      return false;
    }
  }
  return true;
}

/* Returns true if the field of |row| in |of| is not 0. */
static bool rl_option_is_set(const rl_option *row, const void *of) {
  return !rl_option_is_zero((const char *)of + row->offset, row->size);
}

/* Returns the caller's length of the field of |row|; 0 if there is none. */
static size_t rl_option_length(const rl_option *row, const void *of) {
  size_t length = 0;
  if (row->length_offset != 0) {
    memcpy(&length, (const char *)of + row->length_offset, sizeof length);
  }
  return length;
}

static bool rl_option_fits(const rl_option *row, const void *of) {
  const void *field = (const char *)of + row->offset;
  bool may_be_none = (row->also & RL_OPTION_NONE) != 0;
  redlock_duration value_us;
  const char *text;
  double factor;
  size_t length;
  int number;
  switch (row->kind) {
  case RL_OPTION_DURATION:
    memcpy(&value_us, field, sizeof value_us);
    return (value_us >= row->low && value_us <= row->high) ||
           (value_us == REDLOCK_DURATION_NONE && may_be_none) ||
           (value_us == REDLOCK_NEVER && (row->also & RL_OPTION_NEVER) != 0);
  case RL_OPTION_COUNT:
  case RL_OPTION_CHOICE:
    memcpy(&number, field, sizeof number);
    return (number > 0 && (uint64_t)number >= row->low && (uint64_t)number <= row->high) ||
           (number == RL_OPTION_COUNT_NONE && may_be_none);
  case RL_OPTION_FACTOR:
    memcpy(&factor, field, sizeof factor);
    /* Written so that a NaN fails. */
    return factor == 0.0 || (factor > (double)row->low && factor < (double)row->high) ||
           (factor == REDLOCK_DRIFT_NONE && may_be_none);
  case RL_OPTION_FLAG:
    memcpy(&number, field, sizeof number);
    return number == REDLOCK_YES || number == REDLOCK_NO;
  case RL_OPTION_BYTES:
    return rl_option_length(row, of) <= row->high;
  case RL_OPTION_TEXT:
    memcpy(&text, field, sizeof text);
    length = strnlen(text, (size_t)row->high + 1);
    return row->high == 0 || (length >= row->low && length <= row->high);
  case RL_OPTION_LABEL:
    memcpy(&text, field, sizeof text);
    return text[0] == '\0' || rl_label_is_valid(text, strnlen(text, REDLOCK_LABEL_MAX + 1));
  case RL_OPTION_SECRET:
  case RL_OPTION_FUNCTION:
  default:
    return true;
  }
}

const char *rl_option_wrong(const rl_option_table *table, const void *of) {
  for (size_t i = 0; i < table->count; i++) {
    const rl_option *row = &table->rows[i];
    if (rl_option_is_set(row, of)) {
      if (!rl_option_fits(row, of)) {
        return row->sentence;
      }
    } else if (rl_option_length(row, of) != 0) {
      return row->sentence; /* a length without bytes */
    }
  }
  return NULL;
}

static bool rl_option_is_within(size_t at, size_t offset, size_t size) {
  return at > offset && at < offset + size;
}

/* Returns true if a struct may end at |size|: not within a field. */
static bool rl_option_may_end(const rl_option_table *table, size_t size) {
  for (size_t i = 0; i < table->count; i++) {
    const rl_option *row = &table->rows[i];
    if (rl_option_is_within(size, row->offset, row->size) ||
        (row->length_offset != 0 &&
         rl_option_is_within(size, row->length_offset, sizeof(size_t)))) {
      return false;
    }
  }
  return size >= sizeof(void *) && size <= RL_OPTION_SIZE_MAX;
}

const char *rl_option_fit(const rl_option_table *table, void *known, const void *from,
                          size_t from_size) {
  size_t size = from_size < table->size ? from_size : table->size;
  if (!rl_option_may_end(table, from_size)) {
    return "the size of a struct is wrong: it must be sizeof the struct of redlock.h";
  }
  if (!rl_option_is_zero((const char *)from + size, from_size - size)) {
    return "something is set that this version (" REDLOCK_VERSION ") of the library does not know: "
           "the program was compiled with a newer redlock.h";
  }
  memset(known, 0, table->size);
  memcpy(known, from, size);
  return NULL;
}

static bool rl_option_is_copied(const rl_option *row) {
  return row->kind == RL_OPTION_TEXT || row->kind == RL_OPTION_BYTES ||
         row->kind == RL_OPTION_SECRET;
}

/* Returns a copy of the text or bytes of |row| in |of|, with a NUL; NULL if out of memory. */
static char *rl_option_copy_bytes(const rl_option *row, const void *of) {
  const char *from;
  size_t length = rl_option_length(row, of);
  memcpy(&from, (const char *)of + row->offset, sizeof from);
  if (from != NULL && row->kind != RL_OPTION_BYTES && length == 0) {
    length = strlen(from);
  }
  return rl_login_copy(from, length);
}

bool rl_option_copy(const rl_option_table *table, void *copy, const void *of) {
  bool ok = true;
  memcpy(copy, of, table->size);
  for (size_t i = 0; i < table->count; i++) {
    const rl_option *row = &table->rows[i];
    if (rl_option_is_copied(row)) {
      char *made = ok ? rl_option_copy_bytes(row, of) : NULL;
      ok = ok && (made != NULL || !rl_option_is_set(row, of));
      memcpy((char *)copy + row->offset, &made, sizeof made);
    }
  }
  if (!ok) {
    rl_option_free(table, copy);
  }
  return ok;
}

void rl_option_free(const rl_option_table *table, void *copy) {
  for (size_t i = 0; i < table->count; i++) {
    const rl_option *row = &table->rows[i];
    void *made = NULL;
    if (rl_option_is_copied(row)) {
      memcpy(&made, (const char *)copy + row->offset, sizeof made);
      if (made != NULL) { /* a password, perhaps */
        size_t length = rl_option_length(row, copy);
        rl_login_overwrite(made, length > 0 ? length : strlen(made));
      }
      free(made);
    }
  }
  memset(copy, 0, table->size);
}

void rl_option_fill(void *to, size_t to_size, const void *from, size_t from_size) {
  memset(to, 0, to_size);
  memcpy(to, from, from_size < to_size ? from_size : to_size);
}
