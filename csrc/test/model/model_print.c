/*
 * States, steps and traces for people.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model.h"

static char model_letter(unsigned client) {
  return (char)('A' + client);
}

/* A1 is the first attempt of client A. */
static void model_print_attempt(FILE *out, const model_config *config, unsigned attempt) {
  unsigned client = model_client_of(config, attempt);
  (void)fprintf(out, "%c%u", model_letter(client),
                attempt - model_first_attempt(config, client) + 1);
}

static const char *const model_kind_texts[MODEL_KINDS] = {
    [MODEL_TICK] = "a tick",
    [MODEL_FREEZE] = "a tick that the clock of %c misses",
    [MODEL_START] = "%c begins an attempt: SET to all",
    [MODEL_EXECUTE_SET] = "node %u executes the SET of ",
    [MODEL_EXECUTE_JOIN] = "node %u is given the key late, for what is left: the SET of ",
    [MODEL_EXECUTE_DOUBLE] = "node %u grants a taken key: the SET of ",
    [MODEL_EXECUTE_EXTEND] = "node %u executes the extend of ",
    [MODEL_EXECUTE_STALE] = "node %u executes an old extend of ",
    [MODEL_EXECUTE_LOOSE] = "node %u executes an extend of an ended connection: ",
    [MODEL_EXECUTE_HEAL] = "node %u executes the heal of ",
    [MODEL_EXECUTE_RELEASE] = "node %u executes the release of ",
    [MODEL_EXECUTE_CONFIRM] = "node %u executes the CONFIRM of ",
    [MODEL_REPLY_SET] = "node %u's vote reaches ",
    [MODEL_REPLY_EXTEND] = "node %u's answer to the extend reaches ",
    [MODEL_REPLY_STALE] = "node %u's answer to an old extend reaches ",
    [MODEL_REPLY_CONFIRM] = "node %u's confirmation reaches ",
    [MODEL_GIVE_UP] = "%c gives its attempt up: release to all",
    [MODEL_EXTEND] = "%c begins an extend",
    [MODEL_SEND] = "the extend is sent to node %u",
    [MODEL_BREAK] = "the connection to node %u ends",
    [MODEL_END_EXTEND] = "%c's extend fails",
    [MODEL_RELEASE] = "%c releases",
    [MODEL_DETACH] = "%c detaches its lease",
    [MODEL_ATTACH] = "%c begins to attach the detached lease",
    [MODEL_ASK] = "%c reads the record of node %u",
    [MODEL_ASK_EARLY] = "%c reads the record of node %u, on a fast clock",
    [MODEL_CRASH] = "node %u restarts without its keys",
    [MODEL_CRASH_KEPT] = "node %u restarts with its record, without its keys",
    [MODEL_FLUSH] = "node %u is flushed",
    [MODEL_LOSE_KEY] = "node %u loses its key",
    [MODEL_EXPIRE_EARLY] = "node %u expires its key early",
};

static void model_print_pattern(FILE *out, const char *pattern, const model_step *step) {
  for (; *pattern != '\0'; pattern++) {
    if (*pattern != '%') {
      (void)fputc(*pattern, out);
    } else if (*++pattern == 'u') {
      (void)fprintf(out, "%u", step->node + 1u);
    } else {
      (void)fputc(model_letter(step->who), out);
    }
  }
}

static void model_print_step(FILE *out, const model_config *config, const model_step *step) {
  model_print_pattern(out, model_kind_texts[step->kind], step);
  if ((step->kind >= MODEL_EXECUTE_SET && step->kind <= MODEL_REPLY_CONFIRM)) {
    model_print_attempt(out, config, step->who);
  }
}

static void model_print_key(FILE *out, const model_config *config, const model_node *node) {
  if (node->owner == 0) {
    (void)fprintf(out, node->quarantine > 0 ? "[ quarantine %u ]" : "[      ]", node->quarantine);
    return;
  }
  (void)fprintf(out, "[");
  model_print_attempt(out, config, node->owner - 1u);
  (void)fprintf(out, " for %u%s]", node->remaining, node->quarantine > 0 ? "!" : "");
}

static void model_print_node(FILE *out, const model_config *config, const model_node *node) {
  model_print_key(out, config, node);
  if (config->fence) {
    (void)fprintf(out, "%u", node->counter);
  }
  if (config->guard) {
    (void)fprintf(out, node->record ? "r%u" : "r-", node->age);
  }
}

static void model_print_client(FILE *out, const model_config *config, const model_state *state,
                               unsigned index) {
  static const char *const phases[] = {"idle", "acquiring", "held", "extending", "done"};
  const model_client *client = &state->clients[index];
  (void)fprintf(out, "  %c %s", model_letter(index), phases[client->phase]);
  if (client->phase == MODEL_ACQUIRING) {
    (void)fprintf(out, " for %u", client->elapsed);
  } else if (model_holds(config, state, index) && client->validity > 0) {
    (void)fprintf(out, ", HOLDS for %u", client->validity);
  } else if (model_holds(config, state, index)) {
    (void)fprintf(out, ", HOLDS past its deadline");
  } else if (client->phase == MODEL_HELD || client->phase == MODEL_EXTENDING) {
    (void)fprintf(out, ", expired");
  }
  if (config->fence && model_open(config, state, client->attempt) &&
      state->tokens[client->attempt] != 0) {
    (void)fprintf(out, ", token %u", state->tokens[client->attempt]);
  }
}

static void model_print_state(FILE *out, const model_config *config, const model_state *state) {
  for (unsigned i = 0; i < config->nodes; i++) {
    model_print_node(out, config, &state->nodes[i]);
  }
  for (unsigned i = 0; i < MODEL_CLIENTS; i++) {
    model_print_client(out, config, state, i);
  }
}

/* The step in a column of its own: printed, and filled up with spaces. */
#define MODEL_PRINT_COLUMN 48

void model_print_trace(FILE *out, const model_config *config, const model_step *steps,
                       size_t count) {
  model_state state;
  model_initial(config, &state);
  for (size_t i = 0; i < count; i++) {
    char text[128] = "";
    FILE *column = fmemopen(text, sizeof text, "w");
    if (column != NULL) {
      model_print_step(column, config, &steps[i]);
      (void)fclose(column);
    }
    model_take(config, &state, &steps[i]);
    (void)fprintf(out, "  %3zu  %-*s ", i + 1, MODEL_PRINT_COLUMN, text);
    model_print_state(out, config, &state);
    (void)fputc('\n', out);
  }
}
