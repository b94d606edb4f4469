/*
 * The properties. Each checks one step, and the states before and after it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model.h"

static bool model_in_lease(const model_client *client) {
  return client->phase == MODEL_HELD || client->phase == MODEL_EXTENDING;
}

static bool model_violates_exclusion(const model_config *config, const model_state *after) {
  return model_holds(config, after, 0) && model_holds(config, after, 1);
}

static bool model_violates_revival(const model_client *before, const model_client *after) {
  return model_in_lease(before) && model_in_lease(after) && before->attempt == after->attempt &&
         before->validity == 0 && after->validity > 0;
}

/* An extend has just been confirmed, and the other client has held meanwhile. */
static bool model_violates_continuity(const model_client *before, const model_client *after) {
  return before->phase == MODEL_EXTENDING && after->phase == MODEL_HELD && after->confirmed != 0 &&
         after->overtaken != 0;
}

/* A lease has just been attached, and a client has held since it was detached. */
static bool model_violates_hand_over(const model_state *before, const model_client *was,
                                     const model_client *is) {
  return was->phase == MODEL_ACQUIRING && is->phase == MODEL_HELD && was->attempt == is->attempt &&
         model_attaches(before, was->attempt) && before->taken != 0;
}

static bool model_violates_touch(const model_state *before, const model_step *step,
                                 const model_state *after) {
  const model_node *from = &before->nodes[step->node];
  const model_node *to = &after->nodes[step->node];
  return (step->kind == MODEL_EXECUTE_RELEASE || step->kind == MODEL_EXECUTE_EXTEND ||
          step->kind == MODEL_EXECUTE_STALE || step->kind == MODEL_EXECUTE_LOOSE) &&
         from->owner != 0 && from->owner != step->who + 1 &&
         (from->owner != to->owner || from->remaining != to->remaining);
}

static bool model_violates_orphan(const model_config *config, const model_state *before,
                                  const model_step *step, const model_state *after) {
  const model_node *from = &before->nodes[step->node];
  const model_node *to = &after->nodes[step->node];
  return (step->kind == MODEL_EXECUTE_SET || step->kind == MODEL_EXECUTE_JOIN ||
          step->kind == MODEL_EXECUTE_HEAL) &&
         from->owner == 0 && to->owner == step->who + 1 && to->messages[step->who].release == 0 &&
         !model_open(config, after, step->who);
}

/* A fencing token has just been issued: greater than all before its attempt, and none twice. */
static bool model_violates_fence(const model_config *config, const model_state *before,
                                 const model_state *after) {
  unsigned fresh = after->issued & ~(unsigned)before->issued;
  for (unsigned i = 0; i < MODEL_ATTEMPTS_MAX; i++) {
    if ((fresh >> i & 1) == 0) {
      continue;
    }
    if (after->tokens[i] <= before->clients[model_client_of(config, i)].floor) {
      return true;
    }
    for (unsigned j = 0; j < MODEL_ATTEMPTS_MAX; j++) {
      if (j != i && (after->issued >> j & 1) != 0 && after->tokens[j] == after->tokens[i]) {
        return true;
      }
    }
  }
  return false;
}

unsigned model_violation(const model_config *config, const model_state *before,
                         const model_step *step, const model_state *after) {
  unsigned found = 0;
  found |= model_violates_exclusion(config, after) ? MODEL_EXCLUSION : 0;
  for (unsigned i = 0; i < MODEL_CLIENTS; i++) {
    const model_client *was = &before->clients[i];
    const model_client *is = &after->clients[i];
    found |= model_violates_revival(was, is) ? MODEL_REVIVAL : 0;
    found |= model_violates_continuity(was, is) ? MODEL_CONTINUITY : 0;
    found |= model_violates_hand_over(before, was, is) ? MODEL_CONTINUITY : 0;
  }
  found |= model_violates_touch(before, step, after) ? MODEL_TOUCH : 0;
  found |= model_violates_orphan(config, before, step, after) ? MODEL_ORPHAN : 0;
  found |= model_violates_fence(config, before, after) ? MODEL_FENCE : 0;
  found &= config->properties;
  return found & (0u - found); /* one of them */
}

const char *model_property_text(unsigned property) {
  switch (property) {
  case 0:
    return "safe";
  case MODEL_EXCLUSION:
    return "two holders";
  case MODEL_REVIVAL:
    return "a lease comes back to life";
  case MODEL_CONTINUITY:
    return "another client held in between";
  case MODEL_TOUCH:
    return "another's key is touched";
  case MODEL_ORPHAN:
    return "an orphan key";
  case MODEL_FENCE:
    return "a fencing token is not greater";
  default:
    return "unknown";
  }
}
