/*
 * Replies of a node, parsed by hiredis within limits of our own.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_REPLY_H
#define RL_REPLY_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>

#define RL_REPLY_TEXT_MAX 160  /* bytes of a status or an error that are kept */
#define RL_REPLY_BYTES_MAX 512 /* bytes of a string that are kept */
#define RL_REPLY_WORD_MAX 15
#define RL_REPLY_LINE_MAX ((size_t)8192)  /* a line that has not ended by then never will */
#define RL_REPLY_BULK_MAX ((size_t)65536) /* no answer to a command of ours is longer */
#define RL_REPLY_ELEMENTS_MAX 16          /* of an array; no command of ours is answered by one */
#define RL_REPLY_DEPTH_MAX 4              /* of arrays in arrays; newer hiredis has no bound */

typedef enum rl_reply_type {
  RL_REPLY_OTHER = 0, /* a type that no command of ours is answered with */
  RL_REPLY_STATUS,
  RL_REPLY_ERROR,
  RL_REPLY_INTEGER,
  RL_REPLY_NIL,
  RL_REPLY_STRING /* of at most RL_REPLY_BYTES_MAX bytes */
} rl_reply_type;

typedef struct rl_reply {
  rl_reply_type type;
  long long integer;
  char text[RL_REPLY_TEXT_MAX + 1]; /* of a status or an error, cut to fit, printable */
  size_t length; /* of a string; of a message what it says, of which |bytes| has the beginning */
  char bytes[RL_REPLY_BYTES_MAX];
  char word[RL_REPLY_WORD_MAX + 1]; /* of a message: what it is; "" of all else */
} rl_reply;

typedef struct rl_reply_reader {
  redisReader *reader;
  redisReplyObjectFunctions functions; /* a copy each, because hiredis takes it non-const */
  rl_reply reply;                      /* the one being parsed */
  bool refused;                        /* a limit of ours was exceeded */
} rl_reply_reader;

/* Returns 0, or -1 when out of memory. The reader must not move while it is open. */
int rl_reply_open(rl_reply_reader *reader);

/* Idempotent. */
void rl_reply_close(rl_reply_reader *reader);

/* Adds bytes from the node. Returns 0, or -1 when out of memory. */
int rl_reply_feed(rl_reply_reader *reader, const void *bytes, size_t length);

/*
 * Takes the next complete reply: 1, and it is in reader->reply until the next call; 0 when more
 * bytes are needed; -1 when the stream is broken, with |*reason| saying how. A broken reader must be
 * closed.
 */
int rl_reply_next(rl_reply_reader *reader, const char **reason);

/*
 * Returns the length of the quotation at |quotation| if it is the name of a command that a client
 * or its scripts may need a right for: 'append', 'client|setname'. Returns 0 otherwise: what else
 * is quoted may be an argument.
 */
size_t rl_reply_quoted_command(const char *quotation);

/*
 * Returns true if the text of an error quotes such a name. Servers differ in the words around it.
 */
bool rl_reply_names_command(const char *text);

#endif
