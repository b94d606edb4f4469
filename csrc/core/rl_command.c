/*
 * The commands that a node is sent, in RESP.
 *
 * SPDX-License-Identifier: MIT
 *
 * Written straight into the node's output: hiredis's formatter allocates for every command, and the
 * hot path must not. The unit test compares every byte with what hiredis formats.
 *
 * The wire format is the one that most Redlock libraries share, so that their locks and ours exclude
 * each other: the key is the resource, its value the token.
 *
 * Release: only a key that still holds our token is deleted (specification, "Correct Implementation
 * with a Single Instance").
 * Extend: only a key that still holds our token is prolonged; it is never created, and never
 * shortened, because a shortened key on a minority would undermine the old deadline, which stands
 * when the extend fails.
 *
 * Several keys, which a node takes all or none of: no other command comes between those of a script, and
 * none of these scripts changes a key before it has looked at all of them. Only a release takes each key
 * for itself: one that is lost, or of another type by now, must not keep the others.
 * Acquire: where a key is there already, whosever it is, nothing is set.
 * Heal: the same for a lease whose extend was confirmed, of which the node may have kept some keys. Those
 * that live longer are left alone: a heal may come late, on a connection that was given up, after an extend.
 */
#include "rl_command.h"

#include <string.h>

#include "redlock.h"

typedef struct rl_script_source {
  const char *text;
  const char *sha1;
} rl_script_source;

static const rl_script_source rl_script_sources[] = {
    [RL_SCRIPT_RELEASE] = {"if redis.call('GET',KEYS[1])==ARGV[1] then "
                           "return redis.call('DEL',KEYS[1]) end return 0",
                           "5c714dd8ed5b943a1f472132e06290c53ab22693"},
    [RL_SCRIPT_EXTEND] = {"if redis.call('GET',KEYS[1])~=ARGV[1] then return 0 end "
                          "if redis.call('PTTL',KEYS[1])<tonumber(ARGV[2]) then "
                          "redis.call('PEXPIRE',KEYS[1],ARGV[2]) end return 1",
                          "c1230f830fe0653f1187d6f298581b35d996fb43"},
    [RL_SCRIPT_RELEASE_ALL] =
        {"local n,e=0 for i=1,#KEYS do local v=redis.pcall('GET',KEYS[i]) if "
         "v==ARGV[1] then n=n+redis.call('DEL',KEYS[i]) elseif "
         "type(v)=='table' then e=v end end if e then return e end if n==#KEYS "
         "then return 1 end return 0",
         "cde6755350dccf507d228890316057017a7a6eee"},
    [RL_SCRIPT_EXTEND_ALL] =
        {"for i=1,#KEYS do if redis.call('GET',KEYS[i])~=ARGV[1] then return 0 "
         "end end for i=1,#KEYS do if "
         "redis.call('PTTL',KEYS[i])<tonumber(ARGV[2]) then "
         "redis.call('PEXPIRE',KEYS[i],ARGV[2]) end end return 1",
         "26aa5ee44c58fc3c5b666da61ed95d42ceb30811"},
    [RL_SCRIPT_ACQUIRE_ALL] = {"for i=1,#KEYS do if redis.call('EXISTS',KEYS[i])==1 then return i "
                               "end end for i=1,#KEYS do "
                               "redis.call('SET',KEYS[i],ARGV[1],'PX',ARGV[2]) end return "
                               "redis.status_reply('OK')",
                               "cb58520638d93388c18ec29787ed71d8eb118760"},
    [RL_SCRIPT_HEAL_ALL] = {"for i=1,#KEYS do local v=redis.call('GET',KEYS[i]) if v and "
                            "v~=ARGV[1] then return i end end for i=1,#KEYS do if "
                            "redis.call('PTTL',KEYS[i])<tonumber(ARGV[2]) then "
                            "redis.call('SET',KEYS[i],ARGV[1],'PX',ARGV[2]) end end return "
                            "redis.status_reply('OK')",
                            "1dfc9c1b6dae0dea7df0b4853893ec25cff5f575"},
};

/*
 * What holds the key: its type and what is left of it in ms, then the value of a string that can be a
 * token. The answer is one string, so that it belongs to one moment.
 */
static const char rl_command_inspection[] =
    "local t=redis.call('TYPE',KEYS[1])['ok'] if t=='none' then return false end "
    "local a=t..' '..string.format('%.0f',redis.call('PTTL',KEYS[1])) "
    "if t=='string' and redis.call('STRLEN',KEYS[1])<=256 then "
    "a=a..' '..redis.call('GET',KEYS[1]) end return a";

/* The token of all keys is replaced, if it is the one that was handed over and the lease is not over. */
static const char rl_command_attachment[] =
    "for i=1,#KEYS do if redis.call('GET',KEYS[i])~=ARGV[1] or "
    "redis.call('PTTL',KEYS[i])<=tonumber(ARGV[4]) then return 0 end end "
    "for i=1,#KEYS do redis.call('SET',KEYS[i],ARGV[2],'PX',ARGV[3]) end return 1";

/* Room for "$<20 digits>\r\n" and "\r\n" around an argument, and for "*<digits>\r\n". */
#define RL_COMMAND_FRAME 32
#define RL_COMMAND_DIGITS 20

const char *rl_command_script_text(rl_script script) {
  return rl_script_sources[script].text;
}

const char *rl_command_script_sha1(rl_script script) {
  return rl_script_sources[script].sha1;
}

/* Most numbers are lengths of one or two digits. */
static char *rl_command_digits(char *out, uint64_t number) {
  char reversed[RL_COMMAND_DIGITS];
  unsigned count = 0;
  if (number < 10) {
    *out++ = (char)('0' + number);
    return out;
  }
  if (number < 100) {
    *out++ = (char)('0' + number / 10);
    *out++ = (char)('0' + number % 10);
    return out;
  }
  do {
    reversed[count++] = (char)('0' + number % 10);
    number /= 10;
  } while (number != 0);
  while (count > 0) {
    *out++ = reversed[--count];
  }
  return out;
}

static char *rl_command_header(char *out, char type, uint64_t number) {
  *out++ = type;
  out = rl_command_digits(out, number);
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

static char *rl_command_number(char *out, uint64_t number) {
  char digits[RL_COMMAND_DIGITS];
  return rl_command_argument(out, digits, (size_t)(rl_command_digits(digits, number) - digits));
}

static void rl_command_finish(rl_buffer *buffer, const char *end) {
  buffer->tail = (size_t)(end - buffer->data);
}

int rl_command_set(rl_buffer *buffer, const rl_command_key *key, uint64_t ttl_ms) {
  size_t bound = key->key_length + key->token_length + 8 * RL_COMMAND_FRAME;
  char *out = rl_buffer_reserve(buffer, bound, true);
  if (out == NULL) {
    return 0;
  }
  out = rl_command_header(out, '*', 6);
  out = rl_command_argument(out, "SET", 3);
  out = rl_command_argument(out, key->key, key->key_length);
  out = rl_command_argument(out, key->token, key->token_length);
  out = rl_command_argument(out, "NX", 2);
  out = rl_command_argument(out, "PX", 2);
  out = rl_command_number(out, ttl_ms);
  rl_command_finish(buffer, out);
  return 1;
}

static char *rl_command_keys(char *out, const rl_command_key *key) {
  const char *bytes = key->key;
  if (key->count < 2) {
    out = rl_command_argument(out, "1", 1);
    return rl_command_argument(out, key->key, key->key_length);
  }
  out = rl_command_number(out, key->count);
  for (unsigned i = 0; i < key->count; i++) {
    out = rl_command_argument(out, bytes, key->lengths[i]);
    bytes += key->lengths[i];
  }
  return out;
}

int rl_command_script(rl_buffer *buffer, rl_script script, int by_text, const rl_command_key *key,
                      uint64_t ttl_ms, int grow) {
  const rl_script_source *source = &rl_script_sources[script];
  const char *body = by_text ? source->text : source->sha1;
  size_t body_length = strlen(body);
  bool has_ttl = script != RL_SCRIPT_RELEASE && script != RL_SCRIPT_RELEASE_ALL;
  unsigned count = key->count < 2 ? 1 : key->count;
  size_t bound = body_length + key->key_length + key->token_length + (7 + count) * RL_COMMAND_FRAME;
  char *out = rl_buffer_reserve(buffer, bound, grow != 0);
  if (out == NULL) {
    return 0;
  }
  out = rl_command_header(out, '*', 4 + count + has_ttl);
  out = by_text ? rl_command_argument(out, "EVAL", 4) : rl_command_argument(out, "EVALSHA", 7);
  out = rl_command_argument(out, body, body_length);
  out = rl_command_keys(out, key);
  out = rl_command_argument(out, key->token, key->token_length);
  if (has_ttl) {
    out = rl_command_number(out, ttl_ms);
  }
  rl_command_finish(buffer, out);
  return 1;
}

int rl_command_attach(rl_buffer *buffer, const rl_command_key *key, const rl_command_key *old,
                      uint64_t ttl_ms, uint64_t floor_ms) {
  size_t body_length = strlen(rl_command_attachment);
  unsigned count = key->count < 2 ? 1 : key->count;
  size_t bound = body_length + key->key_length + key->token_length + old->token_length +
                 (9 + count) * RL_COMMAND_FRAME;
  char *out = rl_buffer_reserve(buffer, bound, true);
  if (out == NULL) {
    return 0;
  }
  out = rl_command_header(out, '*', 7 + count);
  out = rl_command_argument(out, "EVAL", 4);
  out = rl_command_argument(out, rl_command_attachment, body_length);
  out = rl_command_keys(out, key);
  out = rl_command_argument(out, old->token, old->token_length);
  out = rl_command_argument(out, key->token, key->token_length);
  out = rl_command_number(out, ttl_ms);
  out = rl_command_number(out, floor_ms);
  rl_command_finish(buffer, out);
  return 1;
}

int rl_command_inspect(rl_buffer *buffer, const rl_command_key *key) {
  size_t body_length = strlen(rl_command_inspection);
  char *out = rl_buffer_reserve(buffer, body_length + key->key_length + 8 * RL_COMMAND_FRAME, true);
  if (out == NULL) {
    return 0;
  }
  out = rl_command_header(out, '*', 4);
  out = rl_command_argument(out, "EVAL", 4);
  out = rl_command_argument(out, rl_command_inspection, body_length);
  out = rl_command_argument(out, "1", 1);
  out = rl_command_argument(out, key->key, key->key_length);
  rl_command_finish(buffer, out);
  return 1;
}

int rl_command_delete(rl_buffer *buffer, const rl_command_key *key) {
  char *out = rl_buffer_reserve(buffer, key->key_length + 4 * RL_COMMAND_FRAME, true);
  if (out == NULL) {
    return 0;
  }
  out = rl_command_header(out, '*', 2);
  out = rl_command_argument(out, "DEL", 3);
  out = rl_command_argument(out, key->key, key->key_length);
  rl_command_finish(buffer, out);
  return 1;
}

int rl_command_strings(rl_buffer *buffer, const char *const *strings, unsigned count) {
  size_t bound = RL_COMMAND_FRAME;
  for (unsigned i = 0; i < count; i++) {
    bound += strlen(strings[i]) + RL_COMMAND_FRAME;
  }
  char *out = rl_buffer_reserve(buffer, bound, true);
  if (out == NULL) {
    return 0;
  }
  out = rl_command_header(out, '*', count);
  for (unsigned i = 0; i < count; i++) {
    out = rl_command_argument(out, strings[i], strlen(strings[i]));
  }
  rl_command_finish(buffer, out);
  return 1;
}
