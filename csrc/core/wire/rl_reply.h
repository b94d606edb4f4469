/*
 * Replies of a node, parsed by hiredis within limits.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_REPLY_H
#define RL_REPLY_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>

#define RL_REPLY_TEXT_MAX 160  /* kept bytes of a status or an error */
#define RL_REPLY_BYTES_MAX 512 /* kept bytes of a string */
#define RL_REPLY_WORD_MAX 15
#define RL_REPLY_LINE_MAX ((size_t)8192)
#define RL_REPLY_BULK_MAX ((size_t)65536)
#define RL_REPLY_ELEMENTS_MAX 16 /* of an array */
#define RL_REPLY_DEPTH_MAX 4     /* of nested arrays; newer hiredis has no bound */

typedef enum rl_reply_type {
  RL_REPLY_OTHER = 0, /* a type that answers no command of the library */
  RL_REPLY_STATUS,
  RL_REPLY_ERROR,
  RL_REPLY_INTEGER,
  RL_REPLY_NIL,
  RL_REPLY_STRING /* of at most RL_REPLY_BYTES_MAX bytes */
} rl_reply_type;

typedef struct rl_reply {
  rl_reply_type type;
  long long integer;
  size_t length;                    /* of a string or of a message's payload */
  char word[RL_REPLY_WORD_MAX + 1]; /* kind of a message; "" for other replies */
  char text[RL_REPLY_TEXT_MAX + 1]; /* of a status or an error: cut, printable */
  char bytes[RL_REPLY_BYTES_MAX];
} rl_reply;

typedef struct rl_reply_reader {
  redisReader *reader;
  const char *direct;   /* bytes that hiredis has not got yet, the caller's */
  size_t direct_length; /* their number; 0 except between rl_reply_feed() and rl_reply_next() */
  rl_reply reply;
  bool refused;                        /* the reply exceeds a limit */
  redisReplyObjectFunctions functions; /* a copy, because hiredis wants it non-const */
} rl_reply_reader;

/* Returns 0, or -1 if out of memory. The reader must not move while it is open. */
int rl_reply_open(rl_reply_reader *reader);

/* Idempotent. */
void rl_reply_close(rl_reply_reader *reader);

/*
 * Adds bytes from the node, which must live until rl_reply_next() returns 0 or -1. Returns 0, or -1
 * if out of memory.
 */
int rl_reply_feed(rl_reply_reader *reader, const void *bytes, size_t length);

/* Returns true if the reader has unread bytes: replies, or a part of one. */
bool rl_reply_has_bytes(const rl_reply_reader *reader);

/*
 * Reads the next complete reply. Returns 1, with the reply in reader->reply until the next use; 0
 * if more bytes are needed; -1 if the stream is broken, with |*reason|: then close the reader.
 */
int rl_reply_next(rl_reply_reader *reader, const char **reason);

/*
 * Returns the length of the quotation if it is the name of a command that the library uses, like
 * 'append' or 'client|setname'. Returns 0 for any other, which may be an argument.
 */
size_t rl_reply_quoted_command(const char *quotation);

/* Returns true if the text of an error quotes such a name. */
bool rl_reply_names_command(const char *text);

#endif
