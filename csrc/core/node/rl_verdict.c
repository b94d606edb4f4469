/*
 * The meaning of a node's reply to a command.
 *
 * SPDX-License-Identifier: MIT
 *
 * Only the exact success reply is a vote for the lock. Any other reply is no vote, with a reason. A
 * reply that answers no command of the library ends the connection.
 */
#include "node/rl_verdict.h"

#include <string.h>

typedef enum rl_verdict_kind {
  RL_VERDICT_GRANTED,       /* the node executed the command */
  RL_VERDICT_NOTIFIED,      /* the same, and notified a waiter */
  RL_VERDICT_NOTIFY_DENIED, /* the same, and the user may not notify */
  RL_VERDICT_DENIED,        /* the key has another token, or none */
  RL_VERDICT_REFUSED,       /* the node did not execute the command, and says why */
  RL_VERDICT_ERROR,         /* an error: the node may have executed the command */
  RL_VERDICT_OTHER_SERVER,  /* another server, which did nothing */
  RL_VERDICT_NO_SCRIPT,     /* the node needs the text of the script */
  RL_VERDICT_UNREADABLE     /* the reply answers no command of the library */
} rl_verdict_kind;

static const rl_verdict rl_verdicts[] = {
    [RL_VERDICT_GRANTED] = {REDLOCK_VOTE_GRANTED, .ran = true},
    [RL_VERDICT_NOTIFIED] = {REDLOCK_VOTE_GRANTED, .ran = true, .notified = true},
    [RL_VERDICT_NOTIFY_DENIED] = {REDLOCK_VOTE_GRANTED, .ran = true, .notify_denied = true},
    [RL_VERDICT_DENIED] = {REDLOCK_VOTE_TAKEN, .ran = true, .set_nothing = true},
    [RL_VERDICT_REFUSED] = {REDLOCK_VOTE_ERROR, .set_nothing = true},
    [RL_VERDICT_ERROR] = {.vote = REDLOCK_VOTE_ERROR},
    [RL_VERDICT_OTHER_SERVER] = {REDLOCK_VOTE_QUARANTINED, .set_nothing = true,
                                 .other_server = true},
    [RL_VERDICT_NO_SCRIPT] = {REDLOCK_VOTE_ERROR, .set_nothing = true, .wants_text = true},
    [RL_VERDICT_UNREADABLE] = {REDLOCK_VOTE_ERROR, .unreadable = true},
};

/* The valid replies, by command. Any other reply but an error is RL_VERDICT_UNREADABLE. */
typedef struct rl_verdict_rule {
  rl_reply_type type;
  const char *text; /* of a status */
  int integer;      /* of an integer */
  rl_verdict_kind kind;
} rl_verdict_rule;

/* SET NX: OK if it has set the key, nil if the key exists. SET IFEQ: nil if it lacks the token. */
static const rl_verdict_rule rl_verdict_set[] = {
    {RL_REPLY_STATUS, "OK", 0, RL_VERDICT_GRANTED},
    {RL_REPLY_NIL, NULL, 0, RL_VERDICT_DENIED},
};

/* For several keys: OK, or the number of one that exists (rl_verdict_key()). */
static const rl_verdict_rule rl_verdict_set_all[] = {
    {RL_REPLY_STATUS, "OK", 0, RL_VERDICT_GRANTED},
    {RL_REPLY_INTEGER, NULL, 1, RL_VERDICT_DENIED},
};

/* Scripts and DEL: 1 if the key had the token (DEL: existed), otherwise 0. */
static const rl_verdict_rule rl_verdict_script[] = {
    {RL_REPLY_INTEGER, NULL, 1, RL_VERDICT_GRANTED},
    {RL_REPLY_INTEGER, NULL, 0, RL_VERDICT_DENIED},
};

/* Releases that notify: 2 if they notified a waiter, 3 if that was denied. */
static const rl_verdict_rule rl_verdict_release[] = {
    {RL_REPLY_INTEGER, NULL, 1, RL_VERDICT_GRANTED},
    {RL_REPLY_INTEGER, NULL, 2, RL_VERDICT_NOTIFIED},
    {RL_REPLY_INTEGER, NULL, 0, RL_VERDICT_DENIED},
    {RL_REPLY_INTEGER, NULL, 3, RL_VERDICT_NOTIFY_DENIED},
};

static const rl_verdict_rule *rl_verdict_rules(const rl_outstanding *command) {
  bool native = command->script == RL_SCRIPT_NONE;
  if (rl_outstanding_has(command, RL_CREATES)) {
    return native ? rl_verdict_set : rl_verdict_set_all;
  }
  if (rl_outstanding_has(command, RL_REMOVES)) {
    return rl_verdict_release;
  }
  return native && rl_outstanding_has(command, RL_PROLONGS) ? rl_verdict_set : rl_verdict_script;
}

static bool rl_verdict_is_watched(const rl_outstanding *command) {
  return rl_script_takes((rl_script)command->script) || command->script == RL_SCRIPT_PROLONG ||
         command->script == RL_SCRIPT_CONFIRM;
}

/* The answer of TAKE, PROLONG and CONFIRM: "word now fence". */
typedef struct rl_verdict_words {
  char word[8];
  uint64_t node_us;
  uint64_t fence;
} rl_verdict_words;

/* Reads a decimal number up to a space or |end|, and returns that. NULL if it is invalid. */
static const char *rl_verdict_number(const char *at, const char *end, uint64_t *number) {
  const char *first = at;
  *number = 0;
  for (; at < end && *at >= '0' && *at <= '9' && *number <= RL_NODE_CLOCK_MAX; at++) {
    *number = *number * 10 + (uint64_t)(*at - '0');
  }
  return at > first && *number <= RL_NODE_CLOCK_MAX && (at == end || *at == ' ') ? at : NULL;
}

static bool rl_verdict_split(const rl_reply *reply, rl_verdict_words *words) {
  const char *at = reply->bytes;
  const char *end = reply->bytes + reply->length;
  size_t length = 0;
  if (reply->type != RL_REPLY_STRING) {
    return false;
  }
  for (; at < end && *at != ' ' && length + 1 < sizeof words->word; at++) {
    words->word[length++] = *at;
  }
  words->word[length] = '\0';
  at = at < end && *at == ' ' ? rl_verdict_number(at + 1, end, &words->node_us) : NULL;
  at = at != NULL && at < end ? rl_verdict_number(at + 1, end, &words->fence) : NULL;
  return at == end && length > 0;
}

/* Returns the number of the key that TAKE found, from 1; 0 if the word is none. */
static unsigned rl_verdict_taken(const rl_outstanding *command, const char *word) {
  uint64_t number;
  unsigned count = command->attempt->resource->count;
  bool named = rl_script_takes((rl_script)command->script) &&
               rl_verdict_number(word, word + strlen(word), &number) != NULL && number >= 1 &&
               number <= (count < 2 ? 1 : count);
  return named ? (unsigned)number : 0;
}

static rl_verdict_kind rl_verdict_kind_of_words(const rl_outstanding *command, const char *word) {
  bool takes = rl_script_takes((rl_script)command->script);
  if (strcmp(word, "OK") == 0) {
    return RL_VERDICT_GRANTED;
  }
  if (takes ? rl_verdict_taken(command, word) != 0 : strcmp(word, "no") == 0) {
    return RL_VERDICT_DENIED;
  }
  return takes && strcmp(word, "other") == 0 ? RL_VERDICT_OTHER_SERVER : RL_VERDICT_UNREADABLE;
}

bool rl_verdict_is_script(const rl_outstanding *command) {
  return command->script != RL_SCRIPT_NONE;
}

unsigned rl_verdict_key(const rl_outstanding *command, const rl_reply *reply) {
  rl_verdict_words words;
  if (rl_script_takes((rl_script)command->script)) {
    bool several = command->attempt->resource->count > 1;
    return several && rl_verdict_split(reply, &words) ? rl_verdict_taken(command, words.word) : 0;
  }
  bool set = command->script == RL_SCRIPT_ACQUIRE_ALL || command->script == RL_SCRIPT_HEAL_ALL;
  bool named = set && reply->type == RL_REPLY_INTEGER && reply->integer >= 1 &&
               reply->integer <= command->attempt->resource->count;
  return named ? (unsigned)reply->integer : 0;
}

/*
 * Errors of a Redis server that precede the execution of a command (processCommand() in its
 * source): a SET with such a reply has set nothing. Other errors prove nothing, because a proxy may
 * have passed the command on. rl_queue_report_enqueue_errors (rl_queue_report.c) has those that
 * pass.
 */
static const char *const rl_verdict_refusals[] = {
    "LOADING ", "OOM ",       "READONLY ",   "NOAUTH ", "NOPERM ", "MISCONF ",     "NOREPLICAS ",
    "BUSY ",    "WRONGPASS ", "MASTERDOWN ", "MOVED ",  "ASK ",    "CLUSTERDOWN ",
};

bool rl_verdict_is_refusal(const char *text) {
  for (size_t i = 0; i < sizeof rl_verdict_refusals / sizeof rl_verdict_refusals[0]; i++) {
    const char *word = rl_verdict_refusals[i];
    if (strncmp(text, word, strlen(word)) == 0) {
      return true;
    }
  }
  return false;
}

static rl_verdict_kind rl_verdict_kind_of_error(const rl_outstanding *command, const char *text) {
  /* A key of another type is taken. Before Redis 7 the code is inside the text. */
  if (strstr(text, "WRONGTYPE") != NULL) {
    return RL_VERDICT_DENIED;
  }
  if (rl_verdict_is_script(command) && !command->by_text && strncmp(text, "NOSCRIPT", 8) == 0) {
    return command->script == RL_SCRIPT_TAKE_HERE ? RL_VERDICT_OTHER_SERVER : RL_VERDICT_NO_SCRIPT;
  }
  return rl_verdict_is_refusal(text) ? RL_VERDICT_REFUSED : RL_VERDICT_ERROR;
}

/* Reads the answer of the script that attaches: "OK" and the time that was left, or 0, or -1. */
static rl_verdict rl_verdict_attached(const rl_reply *reply) {
  rl_verdict verdict = rl_verdicts[RL_VERDICT_UNREADABLE];
  if (reply->type == RL_REPLY_INTEGER && (reply->integer == 0 || reply->integer == -1)) {
    return rl_verdicts[reply->integer == 0 ? RL_VERDICT_DENIED : RL_VERDICT_OTHER_SERVER];
  }
  if (reply->type == RL_REPLY_STATUS && strncmp(reply->text, "OK ", 3) == 0) {
    const char *end = reply->text + strlen(reply->text);
    uint64_t left_ms;
    if (rl_verdict_number(reply->text + 3, end, &left_ms) == end) {
      verdict = rl_verdicts[RL_VERDICT_GRANTED];
      verdict.left_ms = left_ms;
    }
  }
  return verdict;
}

static rl_verdict_kind rl_verdict_kind_of(const rl_outstanding *command, const rl_reply *reply) {
  const rl_verdict_rule *rules = rl_verdict_rules(command);
  if (reply->type == RL_REPLY_ERROR) {
    return rl_verdict_kind_of_error(command, reply->text);
  }
  if (rl_outstanding_has(command, RL_READS)) {
    return RL_VERDICT_GRANTED;
  }
  for (unsigned i = 0; i < (rules == rl_verdict_release ? 4u : 2u); i++) {
    const rl_verdict_rule *rule = &rules[i];
    if (reply->type == rule->type && (rule->text == NULL || strcmp(reply->text, rule->text) == 0) &&
        (reply->type != RL_REPLY_INTEGER || reply->integer == rule->integer)) {
      return rule->kind;
    }
  }
  return rl_verdict_key(command, reply) != 0 ? RL_VERDICT_DENIED : RL_VERDICT_UNREADABLE;
}

rl_verdict rl_verdict_read(const rl_outstanding *command, const rl_reply *reply) {
  rl_verdict_words words;
  if (rl_verdict_is_watched(command) && reply->type != RL_REPLY_ERROR) {
    if (!rl_verdict_split(reply, &words)) {
      return rl_verdicts[RL_VERDICT_UNREADABLE];
    }
    rl_verdict verdict = rl_verdicts[rl_verdict_kind_of_words(command, words.word)];
    verdict.node_us = words.node_us;
    verdict.fence = words.fence;
    return verdict;
  }
  if (command->kind == RL_OUTSTANDING_ATTACH && reply->type != RL_REPLY_ERROR) {
    return rl_verdict_attached(reply);
  }
  return rl_verdicts[rl_verdict_kind_of(command, reply)];
}
