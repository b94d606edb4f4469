/*
 * The commands for a node, in RESP.
 *
 * SPDX-License-Identifier: MIT
 *
 * Commands are written directly to the node's output, because hiredis's formatter allocates for
 * every command. The unit test compares every byte with hiredis's.
 *
 * The wire format is that of most Redlock libraries, so that locks of different libraries exclude
 * each other: the key is the resource, its value the token.
 */
#include "wire/rl_command.h"

#include <assert.h>
#include <string.h>

/* The texts of the scripts have these numbers (rl_script.c). */
static_assert(RL_COMMAND_ENQUEUE_APPEND == 1025 && RL_COMMAND_ENQUEUE_UNIT == 2000,
              "the numbers in ENQUEUE");
static_assert(RL_COMMAND_RESERVE_MS == 400, "the number in ENQUEUE_ALL");

/* Room for "$<20 digits>\r\n" and "\r\n" around an argument, or for "*<digits>\r\n". */
#define RL_COMMAND_FRAME 32
#define RL_COMMAND_DIGITS 20
#define RL_COMMAND_DIGITS_SIZE 21 /* with a NUL */
#define RL_COMMAND_SHA1_LENGTH 40

/* Writes the digits of the number before |end|, and returns the first one. */
static inline char *rl_command_digits(char *end, uint64_t number) {
  do {
    *--end = (char)('0' + number % 10);
    number /= 10;
  } while (number != 0);
  return end;
}

/* Most numbers are lengths of one or two digits. */
static char *rl_command_header(char *out, char type, uint64_t number) {
  char digits[RL_COMMAND_DIGITS];
  *out++ = type;
  if (number < 100) {
    *out = (char)('0' + number / 10);
    out += number >= 10;
    *out++ = (char)('0' + number % 10);
  } else {
    const char *first = rl_command_digits(digits + sizeof digits, number);
    size_t length = (size_t)(digits + sizeof digits - first);
    out = (char *)memcpy(out, first, length) + length;
  }
  *out++ = '\r';
  *out++ = '\n';
  return out;
}

static char *rl_command_argument(char *out, const char *bytes, size_t length) {
  out = rl_command_header(out, '$', length);
  memcpy(out, bytes, length);
  out += length;
  *out++ = '\r';
  *out++ = '\n';
  return out;
}

/* Writes a text that is RESP already. */
#define RL_COMMAND_RAW(out, text)                                                                  \
  ((char *)memcpy((out), (text), sizeof(text) - 1) + sizeof(text) - 1)

static char *rl_command_text(char *out, const char *text) {
  return rl_command_argument(out, text, strlen(text));
}

static char *rl_command_number(char *out, uint64_t number) {
  char digits[RL_COMMAND_DIGITS];
  const char *first = rl_command_digits(digits + sizeof digits, number);
  return rl_command_argument(out, first, (size_t)(digits + sizeof digits - first));
}

static bool rl_command_finish(rl_buffer *buffer, const char *end) {
  rl_buffer_append(buffer, (size_t)(end - buffer->data) - buffer->tail);
  return true;
}

bool rl_command_set(rl_buffer *buffer, const rl_command_key *key, uint64_t ttl_ms) {
  size_t bound = key->key_length + key->token_length + 8 * RL_COMMAND_FRAME;
  char *out = rl_buffer_reserve(buffer, bound, true);
  if (out == NULL) {
    return false;
  }
  out = RL_COMMAND_RAW(out, "*6\r\n$3\r\nSET\r\n");
  out = rl_command_argument(out, key->key, key->key_length);
  out = rl_command_argument(out, key->token, key->token_length);
  out = RL_COMMAND_RAW(out, "$2\r\nNX\r\n$2\r\nPX\r\n");
  return rl_command_finish(buffer, rl_command_number(out, ttl_ms));
}

bool rl_command_set_if(rl_buffer *buffer, const rl_command_key *key, uint64_t ttl_ms) {
  size_t bound = key->key_length + 2 * key->token_length + 9 * RL_COMMAND_FRAME;
  char *out = rl_buffer_reserve(buffer, bound, true);
  if (out == NULL) {
    return false;
  }
  out = RL_COMMAND_RAW(out, "*7\r\n$3\r\nSET\r\n");
  out = rl_command_argument(out, key->key, key->key_length);
  out = rl_command_argument(out, key->token, key->token_length);
  out = RL_COMMAND_RAW(out, "$4\r\nIFEQ\r\n");
  out = rl_command_argument(out, key->token, key->token_length);
  out = RL_COMMAND_RAW(out, "$2\r\nPX\r\n");
  return rl_command_finish(buffer, rl_command_number(out, ttl_ms));
}

bool rl_command_delete_if(rl_buffer *buffer, const rl_command_key *key, bool delex, bool grow) {
  size_t bound = key->key_length + key->token_length + 6 * RL_COMMAND_FRAME;
  char *out = rl_buffer_reserve(buffer, bound, grow);
  if (out == NULL) {
    return false;
  }
  out = delex ? RL_COMMAND_RAW(out, "*4\r\n$5\r\nDELEX\r\n")
              : RL_COMMAND_RAW(out, "*3\r\n$7\r\nDELIFEQ\r\n");
  out = rl_command_argument(out, key->key, key->key_length);
  out = delex ? RL_COMMAND_RAW(out, "$4\r\nIFEQ\r\n") : out;
  return rl_command_finish(buffer, rl_command_argument(out, key->token, key->token_length));
}

bool rl_command_flag(rl_buffer *buffer, const rl_command_key *key) {
  rl_command_bytes base = {key->key, key->key_length};
  base = key->base.bytes != NULL ? key->base : base;
  char *out = rl_buffer_reserve(buffer, base.length + 5 * RL_COMMAND_FRAME, true);
  if (out == NULL) {
    return false;
  }
  out = RL_COMMAND_RAW(out, "*2\r\n$6\r\nEXISTS\r\n");
  out = rl_command_header(out, '$', base.length + strlen(RL_COMMAND_WAIT));
  out = (char *)memcpy(out, base.bytes, base.length) + base.length;
  return rl_command_finish(buffer, RL_COMMAND_RAW(out, RL_COMMAND_WAIT "\r\n"));
}

static unsigned rl_command_key_count(const rl_command_key *key) {
  return key->count < 2 ? 1 : key->count;
}

static size_t rl_command_key_length(const rl_command_key *key, unsigned index) {
  return key->count < 2 ? key->key_length : key->lengths[index];
}

static char *rl_command_keys(char *out, const rl_command_key *key) {
  const char *bytes = key->key;
  for (unsigned i = 0; i < rl_command_key_count(key); i++) {
    out = rl_command_argument(out, bytes, rl_command_key_length(key, i));
    bytes += rl_command_key_length(key, i);
  }
  return out;
}

static char *rl_command_body(char *out, const rl_script_source *source, bool by_text) {
  if (by_text) {
    return rl_command_text(RL_COMMAND_RAW(out, "$4\r\nEVAL\r\n"), source->text);
  }
  out = RL_COMMAND_RAW(out, "$7\r\nEVALSHA\r\n$40\r\n");
  out = (char *)memcpy(out, source->sha1, RL_COMMAND_SHA1_LENGTH) + RL_COMMAND_SHA1_LENGTH;
  return RL_COMMAND_RAW(out, "\r\n");
}

/* Returns a bound of the bytes of a script and |count| arguments, besides their own lengths. */
static size_t rl_command_body_bound(const rl_script_source *source, bool by_text, unsigned count) {
  return (by_text ? strlen(source->text) : RL_COMMAND_SHA1_LENGTH) +
         (size_t)(4 + count) * RL_COMMAND_FRAME;
}

/* |ttl_ms|, |entry| and |base| are optional arguments. Before |base| an absent entry is empty. */
static bool rl_command_eval(rl_buffer *buffer, rl_script script, bool by_text,
                            const rl_command_key *key, const uint64_t *ttl_ms, const char *entry,
                            const rl_command_bytes *base, bool grow) {
  const rl_script_source *source = rl_script_source_of(script);
  unsigned count = rl_command_key_count(key);
  entry = base != NULL && entry == NULL ? "" : entry;
  size_t bound = rl_command_body_bound(source, by_text, count + 4) + key->key_length +
                 key->token_length + (entry != NULL ? strlen(entry) : 0) +
                 (base != NULL ? base->length : 0);
  char *out = rl_buffer_reserve(buffer, bound, grow);
  if (out == NULL) {
    return false;
  }
  out =
      rl_command_header(out, '*', 4u + count + (ttl_ms != NULL) + (entry != NULL) + (base != NULL));
  out = rl_command_body(out, source, by_text);
  out = count == 1 ? RL_COMMAND_RAW(out, "$1\r\n1\r\n") : rl_command_number(out, count);
  out = rl_command_keys(out, key);
  out = rl_command_argument(out, key->token, key->token_length);
  out = ttl_ms != NULL ? rl_command_number(out, *ttl_ms) : out;
  out = entry != NULL ? rl_command_text(out, entry) : out;
  return rl_command_finish(
      buffer, base != NULL ? rl_command_argument(out, base->bytes, base->length) : out);
}

bool rl_command_script(rl_buffer *buffer, rl_script script, bool by_text, const rl_command_key *key,
                       uint64_t ttl_ms, bool grow) {
  bool has_ttl = script != RL_SCRIPT_RELEASE && script != RL_SCRIPT_RELEASE_ALL;
  return rl_command_eval(buffer, script, by_text, key, has_ttl ? &ttl_ms : NULL, NULL, NULL, grow);
}

bool rl_command_release(rl_buffer *buffer, rl_script script, bool by_text,
                        const rl_command_key *key, const char *entry, bool grow) {
  bool apart = key->base.bytes != NULL;
  return rl_command_eval(buffer, script, by_text, key, NULL, entry, apart ? &key->base : NULL,
                         grow);
}

/* Writes the counters of the keys, in the order of the keys. */
static char *rl_command_counters(char *out, const rl_command_key *key) {
  static const char suffix[] = RL_COMMAND_COUNTER "\r\n";
  const char *bytes = key->key;
  for (unsigned i = 0; i < rl_command_key_count(key); i++) {
    size_t length = rl_command_key_length(key, i);
    out = rl_command_header(out, '$', length + strlen(RL_COMMAND_COUNTER));
    memcpy(out, bytes, length);
    memcpy(out + length, suffix, sizeof suffix - 1);
    out += length + sizeof suffix - 1;
    bytes += length;
  }
  return out;
}

bool rl_command_hold(rl_buffer *buffer, rl_script script, bool by_text, const rl_command_key *key,
                     uint64_t rest_ms, bool fenced, const char *entry, bool grow) {
  const rl_script_source *source = rl_script_source_of(script);
  bool notifies = script == RL_SCRIPT_HOLD_NOTIFY;
  bool apart = notifies && key->base.bytes != NULL;
  size_t count = rl_command_key_count(key);
  size_t bound = rl_command_body_bound(source, by_text, (unsigned)(2 * count) + 5) +
                 2 * key->key_length + count * sizeof RL_COMMAND_COUNTER + key->token_length +
                 (entry != NULL ? strlen(entry) : 0) + key->base.length;
  char *out = rl_buffer_reserve(buffer, bound, grow);
  if (out == NULL) {
    return false;
  }
  size_t keys = fenced ? 2 * count : count;
  out = rl_command_header(out, '*', 3 + keys + 3 + notifies + apart);
  out = rl_command_keys(rl_command_number(rl_command_body(out, source, by_text), keys), key);
  out = fenced ? rl_command_counters(out, key) : out;
  out = rl_command_argument(out, key->token, key->token_length);
  out = rl_command_number(rl_command_number(out, rest_ms), count);
  out = notifies ? rl_command_text(out, entry != NULL ? entry : "") : out;
  return rl_command_finish(
      buffer, apart ? rl_command_argument(out, key->base.bytes, key->base.length) : out);
}

bool rl_command_queue(rl_buffer *buffer, rl_script script, bool by_text, const char *bytes,
                      size_t length, const char *entry, unsigned mode, unsigned permits) {
  const rl_script_source *source = rl_script_source_of(script);
  bool enqueues = script != RL_SCRIPT_DEQUEUE && script != RL_SCRIPT_DEQUEUE_SLOTS;
  size_t bound = rl_command_body_bound(source, by_text, 5) + length + strlen(entry);
  char *out = rl_buffer_reserve(buffer, bound, true);
  if (out == NULL) {
    return false;
  }
  out = rl_command_header(out, '*', 5u + enqueues + (permits > 0));
  out = rl_command_body(out, source, by_text);
  out = rl_command_argument(out, "1", 1);
  out = rl_command_argument(out, bytes, length);
  out = rl_command_text(out, entry);
  out = enqueues ? rl_command_number(out, mode) : out;
  return rl_command_finish(buffer, permits > 0 ? rl_command_number(out, permits) : out);
}

bool rl_command_slots(rl_buffer *buffer, bool by_text, const rl_command_bytes *base,
                      unsigned permits) {
  const rl_script_source *source = rl_script_source_of(RL_SCRIPT_SLOTS);
  size_t bound = rl_command_body_bound(source, by_text, 3) + base->length;
  char *out = rl_buffer_reserve(buffer, bound, true);
  if (out == NULL) {
    return false;
  }
  out = rl_command_body(rl_command_header(out, '*', 5), source, by_text);
  out = rl_command_argument(RL_COMMAND_RAW(out, "$1\r\n1\r\n"), base->bytes, base->length);
  return rl_command_finish(buffer, rl_command_number(out, permits));
}

bool rl_command_enqueue_all(rl_buffer *buffer, bool by_text, const rl_command_key *key,
                            const char *before, const char *notified) {
  const rl_script_source *source = rl_script_source_of(RL_SCRIPT_ENQUEUE_ALL);
  unsigned count = rl_command_key_count(key);
  size_t bound = rl_command_body_bound(source, by_text, count + 4) + key->key_length +
                 key->token_length + strlen(before) + strlen(notified);
  char *out = rl_buffer_reserve(buffer, bound, true);
  if (out == NULL) {
    return false;
  }
  out = rl_command_header(out, '*', 6u + count);
  out = rl_command_body(out, source, by_text);
  out = rl_command_keys(rl_command_number(out, count), key);
  out = rl_command_argument(out, key->token, key->token_length);
  return rl_command_finish(buffer, rl_command_text(rl_command_text(out, before), notified));
}

bool rl_command_attach(rl_buffer *buffer, const rl_command_key *key, const rl_command_key *old,
                       uint64_t ttl_ms, uint64_t floor_ms, const rl_command_here *here) {
  const char *body = rl_script_attach_text(here != NULL);
  unsigned keys = rl_command_key_count(key) + (here != NULL);
  size_t bound = strlen(body) + key->key_length + key->token_length + old->token_length +
                 (12 + keys) * RL_COMMAND_FRAME;
  if (here != NULL) {
    bound += strlen(here->record_key) + strlen(here->record) + strlen(here->run_id);
  }
  char *out = rl_buffer_reserve(buffer, bound, true);
  if (out == NULL) {
    return false;
  }
  out = rl_command_header(out, '*', 7 + keys + (here != NULL ? 2u : 0u));
  out = rl_command_text(rl_command_argument(out, "EVAL", 4), body);
  out = rl_command_keys(rl_command_number(out, keys), key);
  out = here != NULL ? rl_command_text(out, here->record_key) : out;
  out = rl_command_argument(out, old->token, old->token_length);
  out = rl_command_argument(out, key->token, key->token_length);
  out = rl_command_number(rl_command_number(out, ttl_ms), floor_ms);
  if (here != NULL) {
    out = rl_command_text(rl_command_text(out, here->record), here->run_id);
  }
  return rl_command_finish(buffer, out);
}

static size_t rl_command_watched_bound(const rl_command_key *key, const rl_command_watch *watch,
                                       size_t body_length) {
  size_t count = rl_command_key_count(key);
  size_t bound = body_length + 2 * key->key_length + key->token_length +
                 count * sizeof RL_COMMAND_COUNTER + (12 + 2 * count) * RL_COMMAND_FRAME;
  if (watch->seal != NULL) {
    bound += strlen(watch->seal) + (watch->run_id != NULL ? strlen(watch->run_id) : 0);
  }
  return bound;
}

bool rl_command_watched(rl_buffer *buffer, const rl_command_key *key,
                        const rl_command_watch *watch) {
  const rl_script_source *source = rl_script_source_of(watch->script);
  const char *body = watch->body != NULL ? watch->body
                     : watch->by_text    ? source->text
                                         : source->sha1;
  bool takes = rl_script_takes(watch->script);
  unsigned count = rl_command_key_count(key);
  unsigned keys = count * (watch->fence > 0 ? 2u : 1u) + (watch->seal != NULL);
  char *out = rl_buffer_reserve(buffer, rl_command_watched_bound(key, watch, strlen(body)), true);
  if (out == NULL) {
    return false;
  }
  out = rl_command_header(out, '*', 3 + keys + (takes ? 7 : 4));
  out = rl_command_text(out, watch->by_text ? "EVAL" : "EVALSHA");
  out = rl_command_number(rl_command_text(out, body), keys);
  out = rl_command_keys(out, key);
  out = watch->fence > 0 ? rl_command_counters(out, key) : out;
  out = watch->seal != NULL ? rl_command_text(out, watch->seal) : out;
  out = rl_command_argument(out, key->token, key->token_length);
  out = rl_command_number(rl_command_number(out, watch->ttl_ms), count);
  out = takes ? rl_command_text(out, watch->own ? "1" : "0") : out;
  out = rl_command_number(out, watch->fence);
  if (takes) {
    out = rl_command_text(out, watch->seal != NULL ? "1" : "");
    out = rl_command_text(out, watch->run_id != NULL ? watch->run_id : "");
  }
  return rl_command_finish(buffer, out);
}

bool rl_command_guard(rl_buffer *buffer, const char *record_key, const char *action,
                      const char *fingerprint, uint64_t age_us, const char *expected, unsigned db) {
  char age[RL_COMMAND_DIGITS_SIZE] = "", number[RL_COMMAND_DIGITS_SIZE] = "";
  const char *age_digits = rl_command_digits(age + RL_COMMAND_DIGITS, age_us);
  const char *db_digits = rl_command_digits(number + RL_COMMAND_DIGITS, db);
  const rl_command_bytes arguments[] = {
      rl_command_word("EVAL"),     rl_command_word(rl_script_guard_text()),
      rl_command_word("1"),        rl_command_word(record_key),
      rl_command_word(action),     rl_command_word(fingerprint),
      rl_command_word(age_digits), rl_command_word(expected),
      rl_command_word(db_digits)};
  return rl_command_arguments(buffer, arguments, sizeof arguments / sizeof *arguments);
}

bool rl_command_arguments(rl_buffer *buffer, const rl_command_bytes *arguments, unsigned count) {
  size_t bound = RL_COMMAND_FRAME;
  for (unsigned i = 0; i < count; i++) {
    bound += arguments[i].length + RL_COMMAND_FRAME;
  }
  char *out = rl_buffer_reserve(buffer, bound, true);
  if (out == NULL) {
    return false;
  }
  out = rl_command_header(out, '*', count);
  for (unsigned i = 0; i < count; i++) {
    out = rl_command_argument(out, arguments[i].bytes, arguments[i].length);
  }
  return rl_command_finish(buffer, out);
}
