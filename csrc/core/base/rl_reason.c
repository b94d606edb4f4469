/* SPDX-License-Identifier: MIT */
#include "base/rl_reason.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Returns a reference to a reason with |text|; NULL if out of memory. */
static rl_reason *rl_reason_copy(rl_reason **last, const char *text) {
  if (*last == NULL || strncmp((*last)->text, text, RL_REASON_MAX) != 0) {
    size_t length = strnlen(text, RL_REASON_MAX);
    rl_reason *made = malloc(sizeof *made + length + 1);
    if (made == NULL) {
      return NULL;
    }
    made->references = 1;
    memcpy(made->text, text, length);
    made->text[length] = '\0';
    rl_reason_unref(*last);
    *last = made;
  }
  (*last)->references++;
  return *last;
}

void rl_reason_unref(rl_reason *reason) {
  if (reason == NULL) {
    return;
  }
  assert(reason->references > 0);
  if (--reason->references == 0) {
    free(reason);
  }
}

void rl_reasons_set(rl_reason ***reasons, unsigned count, unsigned node, rl_reason **last,
                    const char *text) {
  if (*reasons == NULL) {
    *reasons = calloc(count, sizeof **reasons);
    if (*reasons == NULL) {
      return;
    }
  }
  rl_reasons_drop(*reasons, node);
  (*reasons)[node] = rl_reason_copy(last, text);
}

const char *rl_reasons_text(rl_reason *const *reasons, unsigned node) {
  return reasons == NULL || reasons[node] == NULL ? NULL : reasons[node]->text;
}

void rl_reasons_drop(rl_reason **reasons, unsigned node) {
  if (reasons != NULL) {
    rl_reason_unref(reasons[node]);
    reasons[node] = NULL;
  }
}

void rl_reasons_clear(rl_reason **reasons, unsigned count) {
  for (unsigned i = 0; reasons != NULL && i < count; i++) {
    rl_reasons_drop(reasons, i);
  }
}
