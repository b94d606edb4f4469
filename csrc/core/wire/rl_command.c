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
static inline char *rl_command_header(char *out, char type, uint64_t number) {
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

static inline char *rl_command_argument(char *out, const char *bytes, size_t length) {
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
  char digits[RL_COMMAND_DIGITS], *end = digits + sizeof digits;
  const char *first = rl_command_digits(end, ttl_ms);
  const rl_command_bytes token = {key->token, key->token_length};
  const rl_command_bytes arguments[] = {
      rl_command_word("SET"), {key->key, key->key_length},   token, rl_command_word("IFEQ"), token,
      rl_command_word("PX"),  {first, (size_t)(end - first)}};
  return rl_command_arguments(buffer, arguments, 7);
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

static unsigned rl_command_key_count(const rl_command_key *key) {
  return key->count < 2 ? 1 : key->count;
}

/* Writes the keys, each with |suffix|, in their order. */
static inline char *rl_command_keys(char *out, const rl_command_key *key, const char *suffix,
                                    size_t suffix_length) {
  const char *bytes = key->key;
  for (unsigned i = 0; i < rl_command_key_count(key); i++) {
    size_t length = key->count < 2 ? key->key_length : key->lengths[i];
    out = rl_command_header(out, '$', length + suffix_length);
    out = (char *)memcpy(out, bytes, length) + length;
    out = (char *)memcpy(out, suffix, suffix_length) + suffix_length;
    out = RL_COMMAND_RAW(out, "\r\n");
    bytes += length;
  }
  return out;
}

bool rl_command_flag(rl_buffer *buffer, const rl_command_key *key) {
  bool apart = key->base.bytes != NULL;
  const rl_command_key base = {.key = apart ? key->base.bytes : key->key,
                               .key_length = apart ? key->base.length : key->key_length};
  char *out = rl_buffer_reserve(buffer, base.key_length + 5 * RL_COMMAND_FRAME, true);
  if (out == NULL) {
    return false;
  }
  out = RL_COMMAND_RAW(out, "*2\r\n$6\r\nEXISTS\r\n");
  return rl_command_finish(
      buffer, rl_command_keys(out, &base, RL_COMMAND_WAIT, sizeof RL_COMMAND_WAIT - 1));
}

/* ------------------------------------------------------------------------------------ scripts */

/* A script and its keys. */
typedef struct rl_command_call {
  const char *body; /* the text for EVAL, or the SHA-1 for EVALSHA */
  bool by_text;
  const rl_command_key *key;
  bool counted;     /* the counters of the keys are keys, too */
  const char *last; /* the last key; or NULL */
  bool grow;
} rl_command_call;

/* An argument of a script: bytes, or a number if they are NULL. */
typedef struct rl_command_argv {
  const char *bytes;
  uint64_t number; /* or the length of the bytes */
} rl_command_argv;

static rl_command_call rl_command_call_of(rl_script script, bool by_text, const rl_command_key *key,
                                          bool grow) {
  return (rl_command_call){.body = by_text ? rl_script_text(script) : rl_script_sha1(script),
                           .by_text = by_text,
                           .key = key,
                           .grow = grow};
}

/* NULL is an empty text. */
static rl_command_argv rl_command_text_of(const char *text) {
  return (rl_command_argv){text != NULL ? text : "", text != NULL ? strlen(text) : 0};
}

static rl_command_argv rl_command_token_of(const rl_command_key *key) {
  return (rl_command_argv){key->token, key->token_length};
}

static char *rl_command_body(char *out, const char *body, bool by_text) {
  if (by_text) {
    return rl_command_text(RL_COMMAND_RAW(out, "$4\r\nEVAL\r\n"), body);
  }
  out = RL_COMMAND_RAW(out, "$7\r\nEVALSHA\r\n$40\r\n");
  out = (char *)memcpy(out, body, RL_COMMAND_SHA1_LENGTH) + RL_COMMAND_SHA1_LENGTH;
  return RL_COMMAND_RAW(out, "\r\n");
}

static bool rl_command_eval(rl_buffer *buffer, rl_command_call call, const rl_command_argv *argv,
                            unsigned count) {
  const rl_command_key *key = call.key;
  unsigned keys = rl_command_key_count(key) * (call.counted ? 2 : 1) + (call.last != NULL);
  size_t bound = (call.by_text ? strlen(call.body) : RL_COMMAND_SHA1_LENGTH) + key->key_length +
                 (call.counted ? key->key_length + keys * sizeof RL_COMMAND_COUNTER : 0) +
                 (call.last != NULL ? strlen(call.last) : 0) +
                 (size_t)(5 + keys + count) * RL_COMMAND_FRAME;
  for (unsigned i = 0; i < count; i++) {
    bound += argv[i].bytes != NULL ? (size_t)argv[i].number : 0;
  }
  char *out = rl_buffer_reserve(buffer, bound, call.grow);
  if (out == NULL) {
    return false;
  }
  out = rl_command_body(rl_command_header(out, '*', 3u + keys + count), call.body, call.by_text);
  out = keys == 1 ? RL_COMMAND_RAW(out, "$1\r\n1\r\n") : rl_command_number(out, keys);
  out = rl_command_keys(out, key, "", 0);
  if (call.counted) {
    out = rl_command_keys(out, key, RL_COMMAND_COUNTER, sizeof RL_COMMAND_COUNTER - 1);
  }
  out = call.last != NULL ? rl_command_text(out, call.last) : out;
  for (unsigned i = 0; i < count; i++) {
    out = argv[i].bytes != NULL ? rl_command_argument(out, argv[i].bytes, (size_t)argv[i].number)
                                : rl_command_number(out, argv[i].number);
  }
  return rl_command_finish(buffer, out);
}

bool rl_command_script(rl_buffer *buffer, rl_script script, bool by_text, const rl_command_key *key,
                       uint64_t ttl_ms, bool grow) {
  bool releases = script == RL_SCRIPT_RELEASE || script == RL_SCRIPT_RELEASE_ALL;
  const rl_command_argv argv[] = {rl_command_token_of(key), {NULL, ttl_ms}};
  return rl_command_eval(buffer, rl_command_call_of(script, by_text, key, grow), argv,
                         releases ? 1 : 2);
}

bool rl_command_release(rl_buffer *buffer, rl_script script, bool by_text,
                        const rl_command_key *key, const char *entry, bool grow) {
  const rl_command_argv argv[] = {
      rl_command_token_of(key), rl_command_text_of(entry), {key->base.bytes, key->base.length}};
  return rl_command_eval(buffer, rl_command_call_of(script, by_text, key, grow), argv,
                         key->base.bytes != NULL ? 3
                         : entry != NULL         ? 2
                                                 : 1);
}

bool rl_command_hold(rl_buffer *buffer, rl_script script, bool by_text, const rl_command_key *key,
                     uint64_t rest_ms, bool fenced, const char *entry, bool grow) {
  bool notifies = script == RL_SCRIPT_HOLD_NOTIFY;
  const rl_command_argv argv[] = {rl_command_token_of(key),
                                  {NULL, rest_ms},
                                  {NULL, rl_command_key_count(key)},
                                  rl_command_text_of(entry),
                                  {key->base.bytes, key->base.length}};
  rl_command_call call = rl_command_call_of(script, by_text, key, grow);
  call.counted = fenced;
  return rl_command_eval(buffer, call, argv, 3u + notifies + (notifies && key->base.bytes != NULL));
}

bool rl_command_queue(rl_buffer *buffer, rl_script script, bool by_text, const char *bytes,
                      size_t length, const char *entry, unsigned mode, unsigned permits) {
  bool dequeues = script == RL_SCRIPT_DEQUEUE || script == RL_SCRIPT_DEQUEUE_SLOTS;
  const rl_command_key key = {.key = bytes, .key_length = length};
  const rl_command_argv argv[] = {
      rl_command_text_of(entry), {NULL, dequeues ? permits : mode}, {NULL, permits}};
  return rl_command_eval(buffer, rl_command_call_of(script, by_text, &key, true), argv,
                         1u + !dequeues + (permits > 0));
}

bool rl_command_slots(rl_buffer *buffer, bool by_text, const rl_command_bytes *base,
                      unsigned permits) {
  const rl_command_key key = {.key = base->bytes, .key_length = base->length};
  const rl_command_argv argv[] = {{NULL, permits}};
  return rl_command_eval(buffer, rl_command_call_of(RL_SCRIPT_SLOTS, by_text, &key, true), argv, 1);
}

bool rl_command_enqueue_all(rl_buffer *buffer, bool by_text, const rl_command_key *key,
                            const char *before, const char *notified) {
  const rl_command_argv argv[] = {rl_command_token_of(key), rl_command_text_of(before),
                                  rl_command_text_of(notified)};
  return rl_command_eval(buffer, rl_command_call_of(RL_SCRIPT_ENQUEUE_ALL, by_text, key, true),
                         argv, 3);
}

bool rl_command_attach(rl_buffer *buffer, const rl_command_key *key, const rl_command_key *old,
                       uint64_t ttl_ms, uint64_t floor_ms, const rl_command_here *here) {
  const rl_command_argv argv[] = {rl_command_token_of(old),
                                  rl_command_token_of(key),
                                  {NULL, ttl_ms},
                                  {NULL, floor_ms},
                                  rl_command_text_of(here != NULL ? here->record : NULL),
                                  rl_command_text_of(here != NULL ? here->run_id : NULL)};
  const rl_command_call call = {.body = rl_script_attach_text(here != NULL),
                                .by_text = true,
                                .key = key,
                                .last = here != NULL ? here->record_key : NULL,
                                .grow = true};
  return rl_command_eval(buffer, call, argv, here != NULL ? 6 : 4);
}

bool rl_command_fenced(rl_buffer *buffer, const rl_command_key *key,
                       const rl_command_fence *fenced) {
  bool takes = rl_script_takes(fenced->script);
  const rl_command_argv fence = {NULL, fenced->fence};
  const rl_command_argv argv[] = {rl_command_token_of(key),
                                  {NULL, fenced->ttl_ms},
                                  {NULL, rl_command_key_count(key)},
                                  takes ? rl_command_text_of(fenced->own ? "1" : "0") : fence,
                                  fence,
                                  rl_command_text_of(fenced->seal != NULL ? "1" : ""),
                                  rl_command_text_of(fenced->run_id)};
  rl_command_call call = rl_command_call_of(fenced->script, fenced->by_text, key, true);
  call.body = fenced->body != NULL ? fenced->body : call.body;
  call.counted = fenced->fence > 0;
  call.last = fenced->seal;
  return rl_command_eval(buffer, call, argv, takes ? 7 : 4);
}

bool rl_command_guard(rl_buffer *buffer, const char *record_key, const char *action,
                      const char *fingerprint, uint64_t age_us, const char *expected, unsigned db) {
  const rl_command_key key = {.key = record_key, .key_length = strlen(record_key)};
  const rl_command_argv argv[] = {rl_command_text_of(action),
                                  rl_command_text_of(fingerprint),
                                  {NULL, age_us},
                                  rl_command_text_of(expected),
                                  {NULL, db}};
  const rl_command_call call = {
      .body = rl_script_guard_text(), .by_text = true, .key = &key, .grow = true};
  return rl_command_eval(buffer, call, argv, 5);
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
