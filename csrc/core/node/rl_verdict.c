/*
 * What a node's reply to a command means.
 *
 * SPDX-License-Identifier: MIT
 *
 * Only the exact success reply is a vote for the lock. Whatever else a node says is no vote and a
 * reason. What no command of ours is answered with ends the connection.
 */
#include "node/rl_verdict.h"

#include <string.h>

typedef enum rl_verdict_kind {
  RL_VERDICT_GRANTED,       /* the node did what it was asked */
  RL_VERDICT_NOTIFIED,      /* the same, and called somebody */
  RL_VERDICT_NOTIFY_DENIED, /* the same, and may call nobody */
  RL_VERDICT_DENIED,        /* the key is somebody else's, or is not ours */
  RL_VERDICT_REFUSED,       /* the node did not try, and says why */
  RL_VERDICT_ERROR,         /* something went wrong; nobody knows whether the node did it */
  RL_VERDICT_OTHER_SERVER,  /* the node is not the one that was asked, and did nothing */
  RL_VERDICT_NO_SCRIPT,     /* the node wants the text of the script */
  RL_VERDICT_BROKEN         /* it answers no command of ours */
} rl_verdict_kind;

/* What each is, and what it proves. */
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
    [RL_VERDICT_BROKEN] = {REDLOCK_VOTE_ERROR, .broken = true},
};

/* The replies that count, by command; any other reply but an error is RL_VERDICT_BROKEN. */
typedef struct rl_verdict_rule {
  rl_reply_type type;
  const char *text; /* of a status */
  int integer;      /* of an integer */
  rl_verdict_kind verdict;
} rl_verdict_rule;

/* SET NX: OK when it has set the key, nil when there is one. */
static const rl_verdict_rule rl_verdict_set[] = {
    {RL_REPLY_STATUS, "OK", 0, RL_VERDICT_GRANTED},
    {RL_REPLY_NIL, NULL, 0, RL_VERDICT_DENIED},
};

/* The same of several keys: OK, or the number of one that is there; of all others: rl_verdict_key(). */
static const rl_verdict_rule rl_verdict_set_all[] = {
    {RL_REPLY_STATUS, "OK", 0, RL_VERDICT_GRANTED},
    {RL_REPLY_INTEGER, NULL, 1, RL_VERDICT_DENIED},
};

/* The scripts, and DEL: 1 when the key held our token, or was there; 0 when it did not. */
static const rl_verdict_rule rl_verdict_script[] = {
    {RL_REPLY_INTEGER, NULL, 1, RL_VERDICT_GRANTED},
    {RL_REPLY_INTEGER, NULL, 0, RL_VERDICT_DENIED},
};

/* Those that release, and call: 2 when they have called somebody, 3 when they were not allowed to. */
static const rl_verdict_rule rl_verdict_release[] = {
    {RL_REPLY_INTEGER, NULL, 1, RL_VERDICT_GRANTED},
    {RL_REPLY_INTEGER, NULL, 2, RL_VERDICT_NOTIFIED},
    {RL_REPLY_INTEGER, NULL, 0, RL_VERDICT_DENIED},
    {RL_REPLY_INTEGER, NULL, 3, RL_VERDICT_NOTIFY_DENIED},
};

static const rl_verdict_rule *rl_verdict_rules(const rl_outstanding *command) {
  switch (command->kind) {
  case RL_OUTSTANDING_ACQUIRE:
  case RL_OUTSTANDING_HEAL:
    return command->script == RL_SCRIPT_NONE ? rl_verdict_set : rl_verdict_set_all;
  case RL_OUTSTANDING_RELEASE:
  case RL_OUTSTANDING_OF(RL_OPERATION_FORCE_RELEASE):
    return rl_verdict_release;
  default:
    return rl_verdict_script;
  }
}

static bool rl_verdict_is_watched(const rl_outstanding *command) {
  return rl_command_takes((rl_script)command->script) || command->script == RL_SCRIPT_KEEP ||
         command->script == RL_SCRIPT_CONFIRM;
}

/* What TAKE, KEEP and CONFIRM answer: "word now fence". */
typedef struct rl_verdict_words {
  char word[8];
  uint64_t node_us;
  uint64_t fence;
} rl_verdict_words;

/* The decimal number from |at| on, up to |end| or a space; NULL if there is none, or a larger one. */
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

/* Which key TAKE found to be somebody's, from 1; 0 if it says nothing of the kind. */
static unsigned rl_verdict_taken(const rl_outstanding *command, const char *word) {
  uint64_t number;
  unsigned count = command->attempt->resource->count;
  bool named = rl_command_takes((rl_script)command->script) &&
               rl_verdict_number(word, word + strlen(word), &number) != NULL && number >= 1 &&
               number <= (count < 2 ? 1 : count);
  return named ? (unsigned)number : 0;
}

static rl_verdict_kind rl_verdict_kind_of_words(const rl_outstanding *command, const char *word) {
  bool takes = rl_command_takes((rl_script)command->script);
  if (strcmp(word, "OK") == 0) {
    return RL_VERDICT_GRANTED;
  }
  if (takes ? rl_verdict_taken(command, word) != 0 : strcmp(word, "no") == 0) {
    return RL_VERDICT_DENIED;
  }
  return takes && strcmp(word, "other") == 0 ? RL_VERDICT_OTHER_SERVER : RL_VERDICT_BROKEN;
}

bool rl_verdict_is_script(const rl_outstanding *command) {
  return command->script != RL_SCRIPT_NONE;
}

unsigned rl_verdict_key(const rl_outstanding *command, const rl_reply *reply) {
  rl_verdict_words words;
  if (rl_command_takes((rl_script)command->script)) {
    bool several = command->attempt->resource->count > 1;
    return several && rl_verdict_split(reply, &words) ? rl_verdict_taken(command, words.word) : 0;
  }
  bool set = command->script == RL_SCRIPT_ACQUIRE_ALL || command->script == RL_SCRIPT_HEAL_ALL;
  bool named = set && reply->type == RL_REPLY_INTEGER && reply->integer >= 1 &&
               reply->integer <= command->attempt->resource->count;
  return named ? (unsigned)reply->integer : 0;
}

/*
 * What a Redis server says before it executes a command, and instead of that. It looks at all of this
 * first (processCommand() in its source), so that a SET that was answered with one of these has set
 * nothing. Other errors prove nothing: a proxy may have passed the command on before it gave up.
 */
static const char *const rl_verdict_refusals[] = {
    "LOADING ", "OOM ",       "READONLY ",   "NOAUTH ", "NOPERM ", "MISCONF ",     "NOREPLICAS ",
    "BUSY ",    "WRONGPASS ", "MASTERDOWN ", "MOVED ",  "ASK ",    "CLUSTERDOWN ",
};

static bool rl_verdict_is_refusal(const char *text) {
  for (size_t i = 0; i < sizeof rl_verdict_refusals / sizeof rl_verdict_refusals[0]; i++) {
    const char *word = rl_verdict_refusals[i];
    if (strncmp(text, word, strlen(word)) == 0) {
      return true;
    }
  }
  return false;
}

static rl_verdict_kind rl_verdict_kind_of_error(const rl_outstanding *command, const char *text) {
  /* A key of another type is somebody's key. Before Redis 7 the word stands inside the text. */
  if (strstr(text, "WRONGTYPE") != NULL) {
    return RL_VERDICT_DENIED;
  }
  if (rl_verdict_is_script(command) && !command->by_text && strncmp(text, "NOSCRIPT", 8) == 0) {
    return command->script == RL_SCRIPT_TAKE_HERE ? RL_VERDICT_OTHER_SERVER : RL_VERDICT_NO_SCRIPT;
  }
  return rl_verdict_is_refusal(text) ? RL_VERDICT_REFUSED : RL_VERDICT_ERROR;
}

static rl_verdict_kind rl_verdict_kind_of(const rl_outstanding *command, const rl_reply *reply) {
  const rl_verdict_rule *rules = rl_verdict_rules(command);
  if (reply->type == RL_REPLY_ERROR) {
    return rl_verdict_kind_of_error(command, reply->text);
  }
  if (command->kind >= RL_OUTSTANDING_ASK && rules != rl_verdict_release) {
    return RL_VERDICT_GRANTED; /* The operation reads it. */
  }
  if (rl_verdict_key(command, reply) != 0) {
    return RL_VERDICT_DENIED;
  }
  if (command->kind == RL_OUTSTANDING_ATTACH && reply->type == RL_REPLY_INTEGER &&
      reply->integer == -1) {
    return RL_VERDICT_OTHER_SERVER;
  }
  for (unsigned i = 0; i < (rules == rl_verdict_release ? 4u : 2u); i++) {
    const rl_verdict_rule *rule = &rules[i];
    if (reply->type == rule->type && (rule->text == NULL || strcmp(reply->text, rule->text) == 0) &&
        (reply->type != RL_REPLY_INTEGER || reply->integer == rule->integer)) {
      return rule->verdict;
    }
  }
  return RL_VERDICT_BROKEN;
}

rl_verdict rl_verdict_read(const rl_outstanding *command, const rl_reply *reply) {
  rl_verdict_words words;
  if (rl_verdict_is_watched(command) && reply->type != RL_REPLY_ERROR) {
    if (!rl_verdict_split(reply, &words)) {
      return rl_verdicts[RL_VERDICT_BROKEN];
    }
    rl_verdict verdict = rl_verdicts[rl_verdict_kind_of_words(command, words.word)];
    verdict.node_us = words.node_us;
    verdict.fence = words.fence;
    return verdict;
  }
  return rl_verdicts[rl_verdict_kind_of(command, reply)];
}
