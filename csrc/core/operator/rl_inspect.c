/*
 * Inspecting: what the nodes hold under the key of a lock.
 *
 * SPDX-License-Identifier: MIT
 *
 *   INSP-1. One script asks each node for the type of the key, its time to live and its value, all
 *           of one moment. It changes nothing.
 *   INSP-2. A string of at most REDLOCK_TOKEN_MAX bytes is a token, of any client. Anything else is
 *           no lock, but prevents one.
 *   INSP-3. The operation succeeds if a majority has answered.
 *   INSP-4. A token that a majority holds is the holder's. Its majority ends when so many of its
 *           keys have expired that the rest is no majority.
 *   INSP-5. The counter beside a key, if the user may read it, is the fencing token of its holder:
 *           while a node has the key, only the holder's commands raise the counter. It counts if
 *           a majority has the token and the same counter. A holder without |fence| does not raise
 *           the counter, so it is that of an earlier holder.
 */
#include "operator/rl_inspect.h"

#include <stdio.h>
#include <string.h>

#include "base/rl_number.h"
#include "base/rl_printable.h"
#include "operator/rl_ask.h"

/*
 * The answer is one string: "type ttl", and the value of a string that can be a token. Behind the
 * ttl of such a string stands "/counter", if there is a counter.
 */
static const char rl_inspect_script[] =
    "local t=redis.call('TYPE',KEYS[1])['ok'] if t=='none' then return false end "
    "local a=t..' '..string.format('%.0f',redis.call('PTTL',KEYS[1])) "
    "if t=='string' and redis.call('STRLEN',KEYS[1])<=256 then "
    "local f=redis.pcall('GET',KEYS[1]..':redlock-fence') "
    "if type(f)=='string' and #f<=16 then a=a..'/'..f end "
    "a=a..' '..redis.call('GET',KEYS[1]) end return a";

const char *redlock_key_state_name(int state) {
  switch (state) {
#define RL_KEY_STATE_NAME(value, name)                                                             \
  case value:                                                                                      \
    return #name;
    RL_KEY_STATES(RL_KEY_STATE_NAME)
  default:
    return "unknown";
  }
}

static rl_inspected *rl_inspect_nodes(const rl_lock *lock) {
  return rl_ask_answers(lock, RL_OPERATION_INSPECT);
}

/* INSP-1 */
static const char *rl_inspect_send(rl_lock *lock, redlock_time now_us, rl_node *node) {
  const rl_command_bytes arguments[] = {rl_command_word("EVAL"),
                                        rl_command_word(rl_inspect_script),
                                        rl_command_word("1"),
                                        {lock->resource->key, lock->resource->key_length}};
  return rl_ask_send(lock, now_us, node, 0, arguments, 4);
}

/*
 * Copies the word up to the next space. Returns the bytes of the word and the space; 0 if it is
 * empty.
 */
static size_t rl_inspect_word(char *word, size_t size, const char *bytes, size_t length) {
  length = length < size ? length : size - 1;
  const char *space = length > 0 ? memchr(bytes, ' ', length) : NULL;
  size_t used = space != NULL ? (size_t)(space - bytes) : length;
  rl_printable_copy(word, size, bytes, used, '!');
  return used == 0 ? 0 : used + (space != NULL);
}

/*
 * INSP-5. Cuts "/counter" off |word|. Returns the fencing token; 0 if there is none, or no number.
 */
static uint64_t rl_inspect_fence(char *word) {
  char *slash = strchr(word, '/');
  uint64_t fence;
  if (slash == NULL) {
    return 0;
  }
  *slash = '\0';
  size_t length = strlen(slash + 1);
  bool valid = rl_number_in_digits(slash + 1, length, &fence) == length && fence <= RL_NUMBER_MAX;
  return valid ? fence : 0;
}

/*
 * Returns a number of milliseconds; for any other word, as -1, REDLOCK_NEVER: the key does not
 * expire.
 */
static redlock_duration rl_inspect_ttl(const char *word) {
  size_t length = strlen(word);
  uint64_t ttl_ms;
  bool valid = rl_number_in_digits(word, length, &ttl_ms) == length &&
               ttl_ms < REDLOCK_NEVER / REDLOCK_MILLISECONDS;
  return valid ? ttl_ms * REDLOCK_MILLISECONDS : REDLOCK_NEVER;
}

/* INSP-2. Reads "type ttl", or "string ttl value". */
static void rl_inspect_read(rl_inspected *node, const rl_reply *reply, rl_answer *answer) {
  char type[32], ttl[48];
  const char *bytes = reply->bytes;
  size_t used = rl_inspect_word(type, sizeof type, bytes, reply->length);
  size_t end = used + rl_inspect_word(ttl, sizeof ttl, bytes + used, reply->length - used);
  node->fence = rl_inspect_fence(ttl);
  node->ttl_us = rl_inspect_ttl(ttl);
  if (end > used && bytes[end - 1] == ' ' && reply->length - end <= REDLOCK_TOKEN_MAX) {
    node->state = REDLOCK_KEY_HELD;
    node->token_length = (uint16_t)(reply->length - end);
    memcpy(node->token, bytes + end, node->token_length);
    return;
  }
  node->state = REDLOCK_KEY_OTHER;
  (void)snprintf(answer->text, sizeof answer->text, "it is a %s%s", type,
                 strcmp(type, "string") == 0 ? " that is too long for a token" : "");
  answer->reason = answer->text;
}

static bool rl_inspect_note(rl_core *core, redlock_time now_us, rl_answer *answer) {
  const rl_reply *reply = &answer->node->link.reader.reply;
  (void)core;
  (void)now_us;
  if (reply->type != RL_REPLY_STRING && reply->type != RL_REPLY_NIL) {
    answer->verdict = reply->type == RL_REPLY_ERROR ? answer->verdict : rl_verdict_unreadable();
    return true;
  }
  if (rl_ask_awaits(answer->command)) {
    rl_inspected *inspected =
        &rl_inspect_nodes(answer->command->attempt->lock)[answer->node->index];
    inspected->state = REDLOCK_KEY_FREE;
    if (reply->type == RL_REPLY_STRING) {
      rl_inspect_read(inspected, reply, answer);
    }
  }
  return true;
}

const rl_inspected *rl_inspect_of(const rl_lock *lock, unsigned node) {
  const rl_inspected *inspected = rl_inspect_nodes(lock);
  return inspected == NULL || node >= lock->core->node_count ? NULL : &inspected[node];
}

static bool rl_inspect_same(const rl_inspected *a, const rl_inspected *b) {
  return a->state == REDLOCK_KEY_HELD && b->state == REDLOCK_KEY_HELD &&
         a->token_length == b->token_length && memcmp(a->token, b->token, a->token_length) == 0;
}

/*
 * Returns how many nodes hold the token of |one| for at least as long as |one|. |*nodes| receives
 * how many hold it at all.
 */
static unsigned rl_inspect_count(const rl_inspected *inspected, unsigned count,
                                 const rl_inspected *one, unsigned *nodes) {
  unsigned longer = 0;
  *nodes = 0;
  for (unsigned i = 0; i < count; i++) {
    const rl_inspected *other = &inspected[i];
    bool same = rl_inspect_same(other, one);
    *nodes += same;
    longer += same && other->ttl_us >= one->ttl_us;
  }
  return longer;
}

const rl_inspected *rl_inspect_holder(const rl_lock *lock, redlock_duration *ttl_us,
                                      unsigned *nodes) {
  const rl_inspected *inspected = rl_inspect_nodes(lock);
  unsigned count = inspected == NULL ? 0 : lock->core->node_count;
  const rl_inspected *holder = NULL;
  for (unsigned i = 0; i < count; i++) {
    const rl_inspected *one = &inspected[i];
    unsigned same;
    if (rl_inspect_count(inspected, count, one, &same) >= rl_quorum_majority(count) &&
        (holder == NULL || one->ttl_us > *ttl_us)) {
      holder = one;
      *ttl_us = one->ttl_us;
      *nodes = same;
    }
  }
  return holder;
}

uint64_t rl_inspect_holder_fence(const rl_lock *lock, const rl_inspected *holder) {
  const rl_inspected *inspected = rl_inspect_nodes(lock);
  unsigned count = inspected == NULL ? 0 : lock->core->node_count;
  for (unsigned i = 0; i < count; i++) {
    unsigned same = 0;
    for (unsigned j = 0; j < count; j++) {
      same += inspected[j].fence == inspected[i].fence && rl_inspect_same(&inspected[j], holder);
    }
    if (same >= rl_quorum_majority(count)) {
      return inspected[i].fence;
    }
  }
  return 0;
}

const rl_steps rl_inspect_steps = {
    .answer_size = sizeof(rl_inspected),
    .send = rl_inspect_send,
    .note = rl_inspect_note,
    .decide = rl_ask_decide,
};
