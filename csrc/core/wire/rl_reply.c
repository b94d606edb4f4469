/*
 * Replies of a node, parsed by hiredis within limits.
 *
 * SPDX-License-Identifier: MIT
 *
 * hiredis has no limits: it would buffer an endless line, a bulk of 2 GiB or an array of 2^31
 * items. The object functions below allocate nothing, and reject each reply that answers no command
 * of the library.
 */
#include "wire/rl_reply.h"

#include <assert.h>
#include <string.h>

#include "base/rl_number.h"

#if HIREDIS_MAJOR >= 1
typedef size_t rl_reply_count;
#else
typedef int rl_reply_count;
#endif

static rl_reply_reader *rl_reply_of(const redisReadTask *task) {
  return task->privdata;
}

static void rl_reply_clear(rl_reply *reply, rl_reply_type type) {
  reply->type = type;
  reply->integer = 0;
  reply->length = 0;
  reply->text[0] = '\0';
  reply->word[0] = '\0';
}

/* An element of an array does not change the type of the reply. */
static rl_reply *rl_reply_begin(const redisReadTask *task, rl_reply_type type) {
  rl_reply *reply = &rl_reply_of(task)->reply;
  reply->type = task->parent == NULL ? type : reply->type;
  return reply;
}

/* A message is an array: its kind, the channel, the payload. */
static void rl_reply_message(rl_reply *reply, const redisReadTask *task, const char *text,
                             size_t length) {
  if (task->idx == 0 && length <= RL_REPLY_WORD_MAX) {
    memcpy(reply->word, text, length);
    reply->word[length] = '\0';
  } else if (task->idx == 2) {
    reply->length = length;
    memcpy(reply->bytes, text, length < RL_REPLY_BYTES_MAX ? length : RL_REPLY_BYTES_MAX);
  }
}

static void *rl_reply_string(const redisReadTask *task, char *text, size_t length) {
  bool answers = task->type == REDIS_REPLY_STRING && length <= RL_REPLY_BYTES_MAX;
  rl_reply_type type = task->type == REDIS_REPLY_STATUS  ? RL_REPLY_STATUS
                       : task->type == REDIS_REPLY_ERROR ? RL_REPLY_ERROR
                       : answers                         ? RL_REPLY_STRING
                                                         : RL_REPLY_OTHER;
  rl_reply *reply = rl_reply_begin(task, type);
  if (task->parent != NULL && task->parent->parent == NULL && task->type == REDIS_REPLY_STRING) {
    rl_reply_message(reply, task, text, length);
  }
  if (task->parent != NULL || type == RL_REPLY_OTHER) {
    return reply;
  }
  if (type == RL_REPLY_STRING) {
    reply->length = length;
    memcpy(reply->bytes, text, length);
    return reply;
  }
  if (length > RL_REPLY_TEXT_MAX) {
    length = RL_REPLY_TEXT_MAX;
  }
  for (size_t i = 0; i < length; i++) {
    unsigned char byte = (unsigned char)text[i];
    reply->text[i] = byte < 0x20 || byte == 0x7f ? '?' : text[i];
  }
  reply->text[length] = '\0';
  return reply;
}

static void *rl_reply_array(const redisReadTask *task, rl_reply_count elements) {
  unsigned depth = 1;
  for (const redisReadTask *parent = task->parent; parent != NULL; parent = parent->parent) {
    depth++;
  }
  if (elements > RL_REPLY_ELEMENTS_MAX || depth > RL_REPLY_DEPTH_MAX) {
    rl_reply_of(task)->refused = true;
    return NULL;
  }
  return rl_reply_begin(task, RL_REPLY_OTHER);
}

static void *rl_reply_integer(const redisReadTask *task, long long integer) {
  rl_reply *reply = rl_reply_begin(task, RL_REPLY_INTEGER);
  if (task->parent == NULL) {
    reply->integer = integer;
  }
  return reply;
}

static void *rl_reply_nil(const redisReadTask *task) {
  return rl_reply_begin(task, RL_REPLY_NIL);
}

static void rl_reply_free(void *reply) {
  (void)reply; /* part of the reader */
}

/* hiredis creates doubles and booleans, which answer no command, without a function. */
int rl_reply_open(rl_reply_reader *reader) {
  memset(reader, 0, sizeof *reader);
  reader->functions.createString = rl_reply_string;
  reader->functions.createArray = rl_reply_array;
  reader->functions.createInteger = rl_reply_integer;
  reader->functions.createNil = rl_reply_nil;
  reader->functions.freeObject = rl_reply_free;
  reader->reader = redisReaderCreateWithFunctions(&reader->functions);
  if (reader->reader == NULL) {
    return -1;
  }
  reader->reader->privdata = reader;
  reader->reader->maxbuf = 0; /* Keep the buffer, which the limits bound. */
  return 0;
}

void rl_reply_close(rl_reply_reader *reader) {
  if (reader->reader != NULL) {
    redisReaderFree(reader->reader);
    reader->reader = NULL;
    reader->direct_length = 0;
  }
}

static int rl_reply_parse(rl_reply_reader *reader, const void *bytes, size_t length) {
  return redisReaderFeed(reader->reader, bytes, length) == REDIS_OK ? 0 : -1;
}

/* Returns true if hiredis has no part of a reply. */
static bool rl_reply_is_between(const redisReader *reader) {
  return reader->ridx < 0 && reader->pos == reader->len;
}

bool rl_reply_has_bytes(const rl_reply_reader *reader) {
  return reader->direct_length > 0 || !rl_reply_is_between(reader->reader);
}

int rl_reply_feed(rl_reply_reader *reader, const void *bytes, size_t length) {
  assert(reader->direct_length == 0);
  if (!rl_reply_is_between(reader->reader)) {
    return rl_reply_parse(reader, bytes, length);
  }
  reader->direct = bytes;
  reader->direct_length = length;
  return 0;
}

/* Returns true if hiredis is inside a bulk, of which it has consumed the type. */
static bool rl_reply_in_bulk(const redisReader *reader) {
  if (reader->ridx < 0) {
    return false;
  }
#if HIREDIS_MAJOR >= 1
  return reader->task[reader->ridx]->type == REDIS_REPLY_STRING;
#else
  return reader->rstack[reader->ridx].type == REDIS_REPLY_STRING;
#endif
}

/* Rejects a length when it is announced, before that many bytes have arrived. */
static bool rl_reply_too_large(const redisReader *reader) {
  size_t held = reader->len - reader->pos;
  const char *bytes = reader->buf + reader->pos;
  if (!rl_reply_in_bulk(reader)) {
    return held > RL_REPLY_LINE_MAX;
  }
  uint64_t announced;
  bool announcing =
      rl_number_in_digits(bytes, held, &announced) == held; /* Its line is incomplete. */
  return announced > RL_REPLY_BULK_MAX ||
         held > (announcing ? RL_REPLY_LINE_MAX : RL_REPLY_BULK_MAX + RL_REPLY_LINE_MAX);
}

/*
 * Reads a complete "+OK" or one-digit integer, as nearly all replies are: hiredis needs six times
 * as many instructions. Returns false for any other reply.
 */
static bool rl_reply_take_short(rl_reply_reader *reader) {
  const char *bytes = reader->direct;
  size_t length = reader->direct_length;
  size_t taken = 0;
  if (length >= 4 && bytes[0] == ':' && bytes[1] >= '0' && bytes[1] <= '9' &&
      memcmp(bytes + 2, "\r\n", 2) == 0) {
    rl_reply_clear(&reader->reply, RL_REPLY_INTEGER);
    reader->reply.integer = bytes[1] - '0';
    taken = 4;
  } else if (length >= 5 && memcmp(bytes, "+OK\r\n", 5) == 0) {
    rl_reply_clear(&reader->reply, RL_REPLY_STATUS);
    memcpy(reader->reply.text, "OK", 3);
    taken = 5;
  }
  reader->direct += taken;
  reader->direct_length -= taken;
  return taken > 0;
}

int rl_reply_next(rl_reply_reader *reader, const char **reason) {
  void *object = NULL;
  if (reader->direct_length > 0) {
    if (rl_reply_take_short(reader)) {
      return 1;
    }
    size_t length = reader->direct_length;
    reader->direct_length = 0;
    if (rl_reply_parse(reader, reader->direct, length) != 0) {
      *reason = "out of memory";
      return -1;
    }
  }
  if (rl_reply_is_between(reader->reader)) {
    return 0;
  }
  if (reader->reader->ridx < 0) {
    rl_reply_clear(&reader->reply, RL_REPLY_OTHER);
  }
  if (redisReaderGetReply(reader->reader, &object) != REDIS_OK) {
    *reason = reader->refused ? "the reply is too large"
              : reader->reader->err == REDIS_ERR_OOM
                  ? "out of memory"
                  : "the reply is not RESP; is this the port of a Redis or Valkey "
                    "server?";
    return -1;
  }
  if (object != NULL) {
    return 1;
  }
  if (rl_reply_too_large(reader->reader)) {
    *reason = "the reply is too large";
    return -1;
  }
  return 0;
}

/* -------------------------------------------------------------------------- texts of errors */

size_t rl_reply_quoted_command(const char *quotation) {
  static const char *const commands[] = {
      "append",    "auth",    "client",  "client|setname", "del",
      "delex",     "delifeq", "eval",    "evalsha",        "exists",
      "get",       "info",    "mget",    "object",         "pexpire",
      "ping",      "pttl",    "publish", "scan",           "object|encoding",
      "select",    "set",     "strlen",  "time",           "type",
      "subscribe",
  };
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
    size_t length = strlen(commands[i]);
    if (quotation[0] == '\'' && strncmp(quotation + 1, commands[i], length) == 0 &&
        quotation[1 + length] == '\'') {
      return length + 2;
    }
  }
  return 0;
}

bool rl_reply_names_command(const char *text) {
  for (const char *at = strchr(text, '\''); at != NULL; at = strchr(at + 1, '\'')) {
    if (rl_reply_quoted_command(at) > 0) {
      return true;
    }
  }
  return false;
}
