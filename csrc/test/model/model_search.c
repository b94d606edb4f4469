/*
 * All states, breadth first: so a shortest way leads to the first violation.
 *
 * SPDX-License-Identifier: MIT
 *
 * States are kept complete, in canonical form, in the order of their discovery; a hash table finds
 * known ones. A hash alone never makes a state known, so none is missed. The trace to a violation
 * follows the numbers of the parents. A run through the uncanonical model then picks the step from
 * each state to the next.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "grow.h"
#include "model.h"

#define MODEL_SEARCH_FIRST (UINT64_C(1) << 16)

typedef struct model_space {
  const model_config *config;
  size_t width;        /* words of a state */
  uint64_t *words;     /* of all states */
  uint32_t *parents;   /* of all states, by number */
  uint64_t count;      /* of states */
  uint64_t capacity;   /* of both arrays */
  uint32_t *table;     /* number + 1 of a state, or 0 */
  uint64_t table_size; /* a power of two, at least twice the capacity */
  size_t memory_max;
  bool full;
} model_space;

static uint64_t model_mix(uint64_t value) {
  value ^= value >> 33;
  value *= UINT64_C(0xff51afd7ed558ccd);
  value ^= value >> 33;
  value *= UINT64_C(0xc4ceb9fe1a85ec53);
  return value ^ value >> 33;
}

static uint64_t model_hash(const uint64_t *words, size_t width) {
  uint64_t hash = UINT64_C(0x9e3779b97f4a7c15);
  for (size_t i = 0; i < width; i++) {
    hash = model_mix(hash ^ words[i]) + i;
  }
  return hash;
}

static size_t model_space_bytes(const model_space *space, uint64_t capacity) {
  return capacity * (space->width * sizeof *space->words + sizeof *space->parents) +
         2 * capacity * sizeof *space->table;
}

static void *model_must(void *memory) {
  if (memory == NULL) {
    (void)fprintf(stderr, "model: out of memory\n");
    abort();
  }
  return memory;
}

static void model_space_rehash(model_space *space) {
  free(space->table);
  space->table_size = 2 * space->capacity;
  space->table = model_must(calloc(space->table_size, sizeof *space->table));
  for (uint64_t i = 0; i < space->count; i++) {
    uint64_t at = model_hash(space->words + i * space->width, space->width);
    for (at &= space->table_size - 1; space->table[at] != 0;
         at = (at + 1) & (space->table_size - 1)) {
    }
    space->table[at] = (uint32_t)i + 1;
  }
}

/* Makes room for twice as many states. False when that is more than the limit. */
static bool model_space_grow(model_space *space) {
  uint64_t capacity = space->capacity == 0 ? MODEL_SEARCH_FIRST : 2 * space->capacity;
  if (capacity > UINT32_MAX || model_space_bytes(space, capacity) > space->memory_max) {
    return false;
  }
  space->words = model_must(realloc(space->words, capacity * space->width * sizeof *space->words));
  space->parents = model_must(realloc(space->parents, capacity * sizeof *space->parents));
  space->capacity = capacity;
  model_space_rehash(space);
  return true;
}

/* Adds the state that was written behind the last one, unless it is known or there is no room. */
static void model_space_add(model_space *space, uint64_t parent) {
  const uint64_t *words = space->words + space->count * space->width;
  uint64_t at = model_hash(words, space->width) & (space->table_size - 1);
  while (space->table[at] != 0) {
    const uint64_t *known = space->words + (space->table[at] - 1) * space->width;
    if (memcmp(known, words, space->width * sizeof *words) == 0) {
      return;
    }
    at = (at + 1) & (space->table_size - 1);
  }
  space->parents[space->count] = (uint32_t)parent;
  space->count++;
  space->table[at] = (uint32_t)space->count;
  /* One slot stays free for the next state. */
  space->full = space->count + 1 >= space->capacity && !model_space_grow(space);
}

static void model_space_free(model_space *space) {
  free(space->words);
  free(space->parents);
  free(space->table);
}

/* ------------------------------------------------------------------------------------- traces */

void model_trace_add(model_trace *trace, const model_step *step) {
  trace->steps = grow(trace->steps, sizeof *step, trace->count, &trace->capacity);
  trace->steps[trace->count++] = *step;
}

void model_trace_free(model_trace *trace) {
  free(trace->steps);
  memset(trace, 0, sizeof *trace);
}

/*
 * Takes a step from |state| to one whose canonical form is |words|, with |violation| if that is not
 * 0.
 */
static void model_trace_step(const model_space *space, model_state *state, const uint64_t *words,
                             unsigned violation, model_trace *trace) {
  model_step steps[MODEL_STEPS_MAX];
  unsigned count = model_steps(space->config, state, false, steps);
  for (unsigned i = 0; i < count; i++) {
    uint64_t reached[MODEL_WORDS_MAX];
    model_state next = *state;
    model_take(space->config, &next, &steps[i]);
    model_pack_canonical(space->config, &next, reached);
    if (memcmp(reached, words, space->width * sizeof *words) == 0 &&
        (violation == 0 || model_violation(space->config, state, &steps[i], &next) == violation)) {
      model_trace_add(trace, &steps[i]);
      *state = next;
      return;
    }
  }
  (void)fprintf(stderr, "model: the canonical form hides a difference\n");
  abort();
}

/* The way to state |number|, and from there to the words behind the last state. */
static void model_space_trace(const model_space *space, uint64_t number, unsigned violation,
                              unsigned depth, model_trace *trace) {
  uint64_t *way = model_must(calloc(depth + 2, sizeof *way));
  size_t length = 0;
  model_state state;
  assert(space->parents != NULL);
  for (; number != 0; number = space->parents[number]) {
    assert(length <= depth);
    way[length++] = number;
  }
  model_initial(space->config, &state);
  while (length > 0) {
    model_trace_step(space, &state, space->words + way[--length] * space->width, 0, trace);
  }
  model_trace_step(space, &state, space->words + space->count * space->width, violation, trace);
  free(way);
}

/* ------------------------------------------------------------------------------------- search */

/* All steps from one state. Returns the property that one violates, or 0. */
static unsigned model_space_expand(model_space *space, uint64_t number, uint64_t *transitions) {
  const model_config *config = space->config;
  model_step steps[MODEL_STEPS_MAX];
  model_state state;
  model_unpack(config, space->words + number * space->width, &state);
  unsigned count = model_steps(config, &state, true, steps);
  for (unsigned i = 0; i < count && !space->full; i++) {
    model_state next = state;
    model_take(config, &next, &steps[i]);
    ++*transitions;
    model_pack_canonical(config, &next, space->words + space->count * space->width);
    unsigned violation = model_violation(config, &state, &steps[i], &next);
    if (violation != 0) {
      return violation;
    }
    model_space_add(space, number);
  }
  return 0;
}

static double model_seconds(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void model_search(const model_config *config, size_t memory_max, model_result *result) {
  model_space space = {config, model_width(config), NULL, NULL, 0, 0, NULL, 0, memory_max, false};
  model_state state;
  double began = model_seconds();
  uint64_t at = 0;
  uint64_t level_end = 1;
  memset(result, 0, sizeof *result);
  if (model_space_grow(&space)) {
    model_initial(config, &state);
    model_pack_canonical(config, &state, space.words);
    model_space_add(&space, 0);
  }
  while (at < space.count && !space.full && result->violation == 0) {
    if (at == level_end) {
      result->depth++;
      level_end = space.count;
    }
    result->violation = model_space_expand(&space, at, &result->transitions);
    at++;
  }
  if (result->violation != 0) {
    model_space_trace(&space, at - 1, result->violation, result->depth, &result->trace);
    result->depth++;
  }
  result->states = space.count;
  result->exhausted = at == space.count && !space.full && result->violation == 0;
  result->seconds = model_seconds() - began;
  result->bytes = model_space_bytes(&space, space.capacity);
  model_space_free(&space);
}
