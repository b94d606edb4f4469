/*
 * What a node's reply to a command means.
 *
 * SPDX-License-Identifier: MIT
 *
 * Only the exact success reply is a vote for the lock. Whatever else a node says is no vote and a
 * reason. What no command of ours is answered with ends the connection.
 */
#include "rl_ballot.h"

#include <string.h>

typedef enum rl_ballot_kind {
  RL_BALLOT_GRANTED,   /* the node did what it was asked */
  RL_BALLOT_DENIED,    /* the key is somebody else's, or is not ours */
  RL_BALLOT_REFUSED,   /* the node did not try, and says why */
  RL_BALLOT_ERROR,     /* something went wrong; nobody knows whether the node did it */
  RL_BALLOT_NO_SCRIPT, /* the node wants the text of the script */
  RL_BALLOT_BROKEN     /* it answers no command of ours */
} rl_ballot_kind;

/* What each is, and what it proves. */
static const rl_ballot rl_ballots[] = {
    [RL_BALLOT_GRANTED] = {REDLOCK_VOTE_GRANTED, .ran = true},
    [RL_BALLOT_DENIED] = {REDLOCK_VOTE_TAKEN, .ran = true, .set_nothing = true},
    [RL_BALLOT_REFUSED] = {REDLOCK_VOTE_ERROR, .set_nothing = true},
    [RL_BALLOT_ERROR] = {.vote = REDLOCK_VOTE_ERROR},
    [RL_BALLOT_NO_SCRIPT] = {REDLOCK_VOTE_ERROR, .set_nothing = true, .wants_text = true},
    [RL_BALLOT_BROKEN] = {REDLOCK_VOTE_ERROR, .broken = true},
};

/* The replies that count, by command; any other reply but an error is RL_BALLOT_BROKEN. */
typedef struct rl_ballot_rule {
  rl_reply_type type;
  const char *text;  /* of a status */
  long long integer; /* of an integer */
  rl_ballot_kind ballot;
} rl_ballot_rule;

/* SET NX: OK when it has set the key, nil when there is one. */
static const rl_ballot_rule rl_ballot_set[] = {
    {RL_REPLY_STATUS, "OK", 0, RL_BALLOT_GRANTED},
    {RL_REPLY_NIL, NULL, 0, RL_BALLOT_DENIED},
};

/* The same of several keys: OK, or the number of one that is there; of all others: rl_ballot_key(). */
static const rl_ballot_rule rl_ballot_set_all[] = {
    {RL_REPLY_STATUS, "OK", 0, RL_BALLOT_GRANTED},
    {RL_REPLY_INTEGER, NULL, 1, RL_BALLOT_DENIED},
};

/* The scripts, and DEL: 1 when the key held our token, or was there; 0 when it did not. */
static const rl_ballot_rule rl_ballot_script[] = {
    {RL_REPLY_INTEGER, NULL, 1, RL_BALLOT_GRANTED},
    {RL_REPLY_INTEGER, NULL, 0, RL_BALLOT_DENIED},
};

/* Inspecting: nil when there is no key, else what holds it. */
static const rl_ballot_rule rl_ballot_inspect[] = {
    {RL_REPLY_STRING, NULL, 0, RL_BALLOT_GRANTED},
    {RL_REPLY_NIL, NULL, 0, RL_BALLOT_GRANTED},
};

static const rl_ballot_rule *rl_ballot_rules(const rl_owed *owed) {
  switch (owed->kind) {
  case RL_OWED_ACQUIRE:
  case RL_OWED_HEAL:
    return owed->script == RL_SCRIPT_NONE ? rl_ballot_set : rl_ballot_set_all;
  case RL_OWED_INSPECT:
    return rl_ballot_inspect;
  default:
    return rl_ballot_script;
  }
}

bool rl_ballot_is_script(const rl_owed *owed) {
  return owed->script != RL_SCRIPT_NONE;
}

unsigned rl_ballot_key(const rl_owed *owed, const rl_reply *reply) {
  bool set = owed->script == RL_SCRIPT_ACQUIRE_ALL || owed->script == RL_SCRIPT_HEAL_ALL;
  bool named = set && reply->type == RL_REPLY_INTEGER && reply->integer >= 1 &&
               reply->integer <= owed->attempt->resource->count;
  return named ? (unsigned)reply->integer : 0;
}

/*
 * What a Redis server says before it executes a command, and instead of that. It looks at all of this
 * first (processCommand() in its source), so that a SET that was answered with one of these has set
 * nothing. Other errors prove nothing: a proxy may have passed the command on before it gave up.
 */
static const char *const rl_ballot_refusals[] = {
    "LOADING ", "OOM ",       "READONLY ",   "NOAUTH ", "NOPERM ", "MISCONF ",     "NOREPLICAS ",
    "BUSY ",    "WRONGPASS ", "MASTERDOWN ", "MOVED ",  "ASK ",    "CLUSTERDOWN ",
};

static bool rl_ballot_is_refusal(const char *text) {
  for (size_t i = 0; i < sizeof rl_ballot_refusals / sizeof rl_ballot_refusals[0]; i++) {
    const char *word = rl_ballot_refusals[i];
    if (strncmp(text, word, strlen(word)) == 0) {
      return true;
    }
  }
  return false;
}

static rl_ballot_kind rl_ballot_kind_of_error(const rl_owed *owed, const char *text) {
  /* A key of another type is somebody's key. Before Redis 7 the word stands inside the text. */
  if (strstr(text, "WRONGTYPE") != NULL) {
    return RL_BALLOT_DENIED;
  }
  if (rl_ballot_is_script(owed) && !owed->by_text && strncmp(text, "NOSCRIPT", 8) == 0) {
    return RL_BALLOT_NO_SCRIPT;
  }
  return rl_ballot_is_refusal(text) ? RL_BALLOT_REFUSED : RL_BALLOT_ERROR;
}

static rl_ballot_kind rl_ballot_kind_of(const rl_owed *owed, const rl_reply *reply) {
  const rl_ballot_rule *rules = rl_ballot_rules(owed);
  if (reply->type == RL_REPLY_ERROR) {
    return rl_ballot_kind_of_error(owed, reply->text);
  }
  if (rl_ballot_key(owed, reply) != 0) {
    return RL_BALLOT_DENIED;
  }
  for (unsigned i = 0; i < 2; i++) {
    const rl_ballot_rule *rule = &rules[i];
    if (reply->type == rule->type && (rule->text == NULL || strcmp(reply->text, rule->text) == 0) &&
        (reply->type != RL_REPLY_INTEGER || reply->integer == rule->integer)) {
      return rule->ballot;
    }
  }
  return RL_BALLOT_BROKEN;
}

rl_ballot rl_ballot_read(const rl_owed *owed, const rl_reply *reply) {
  return rl_ballots[rl_ballot_kind_of(owed, reply)];
}
