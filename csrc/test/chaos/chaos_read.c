/*
 * The checker of a chaos run: reading logs.
 *
 * SPDX-License-Identifier: MIT
 */
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "chaos_check.h"
#include "grow.h"

#define append(list, ...)                                                                          \
  ((list)->items = grow((list)->items, sizeof *(list)->items, (list)->count, &(list)->capacity),   \
   (list)->items[(list)->count++] = (__VA_ARGS__))

static uint64_t number(const char *word) {
  return strtoull(word, NULL, 10);
}

static void copy(char *to, size_t size, const char *from) {
  (void)snprintf(to, size, "%s", from);
}

/* ------------------------------------------------------------------------------------- tokens */

static size_t read_place(const check *self, const char *token) {
  uint64_t hash = 1469598103934665603u;
  for (const char *c = token; *c != '\0'; c++) {
    hash = (hash ^ (unsigned char)*c) * 1099511628211u;
  }
  size_t place = (size_t)hash & (self->place_count - 1);
  while (self->places[place] != 0 &&
         strcmp(self->holds.items[self->places[place] - 1].token, token) != 0) {
    place = (place + 1) & (self->place_count - 1);
  }
  return place;
}

check_hold *check_hold_of(const check *self, const char *token) {
  size_t index = self->place_count == 0 ? 0 : self->places[read_place(self, token)];
  return index == 0 ? NULL : &self->holds.items[index - 1];
}

static void read_remember(check *self) {
  if (2 * self->holds.count >= self->place_count) {
    free(self->places);
    self->place_count = self->place_count == 0 ? 1024 : 4 * self->place_count;
    self->places = calloc(self->place_count, sizeof *self->places);
    if (self->places == NULL) {
      (void)fputs("chaos_check: out of memory\n", stderr);
      exit(1);
    }
    for (size_t i = 0; i < self->holds.count; i++) {
      self->places[read_place(self, self->holds.items[i].token)] = i + 1;
    }
    return;
  }
  size_t last = self->holds.count;
  self->places[read_place(self, self->holds.items[last - 1].token)] = last;
}

/* ------------------------------------------------------------------------------------- counts */

static check_count *read_counter(check *self, const char *what, const char *name) {
  for (size_t i = 0; i < self->counts.count; i++) {
    check_count *counter = &self->counts.items[i];
    if (strcmp(counter->what, what) == 0 && strcmp(counter->name, name) == 0) {
      return counter;
    }
  }
  check_count fresh = {.count = 0};
  copy(fresh.what, sizeof fresh.what, what);
  copy(fresh.name, sizeof fresh.name, name);
  append(&self->counts, fresh);
  return &self->counts.items[self->counts.count - 1];
}

uint64_t check_counted(const check *self, const char *what, const char *name) {
  for (size_t i = 0; i < self->counts.count; i++) {
    const check_count *counter = &self->counts.items[i];
    if (strcmp(counter->what, what) == 0 && strcmp(counter->name, name) == 0) {
      return counter->count;
    }
  }
  return 0;
}

/* -------------------------------------------------------------------------------------- lines */

static bool read_hold(check *self, unsigned worker, unsigned generation, char **words) {
  if (check_hold_of(self, words[3]) != NULL) {
    check_violated(self, "token", "worker %u has a token that was used before: %s", worker,
                   words[3]);
    return true;
  }
  check_hold hold = {.worker = worker,
                     .generation = generation,
                     .resource = (unsigned)number(words[2]),
                     .from_us = number(words[4]),
                     .deadline_us = number(words[5]),
                     .left_us = UINT64_MAX};
  copy(hold.token, sizeof hold.token, words[3]);
  append(&self->holds, hold);
  read_remember(self);
  return true;
}

static bool read_call(check *self, unsigned worker, unsigned generation, char **words) {
  check_call call = {.worker = worker,
                     .generation = generation,
                     .started_us = number(words[5]),
                     .took_us = number(words[6]),
                     .budget_us = number(words[7])};
  copy(call.name, sizeof call.name, words[2]);
  copy(call.result, sizeof call.result, words[3]);
  append(&self->calls, call);
  return true;
}

static void read_claim(unsigned worker, char **words, check_claim *claim) {
  *claim = (check_claim){
      .worker = worker, .resource = (unsigned)number(words[2]), .from_us = number(words[4])};
  copy(claim->token, sizeof claim->token, words[3]);
}

static bool read_worker(check *self, unsigned count, char **words) {
  unsigned worker = 0;
  unsigned generation = 0;
  check_claim claim;
  if (sscanf(words[0], "w%u.%u", &worker, &generation) != 2) {
    return false;
  }
  if (strcmp(words[1], "hold") == 0 && count == 6) {
    return read_hold(self, worker, generation, words);
  }
  if (strcmp(words[1], "call") == 0 && count == 8) {
    return read_call(self, worker, generation, words);
  }
  if (strcmp(words[1], "child") == 0 && count == 4) {
    read_counter(self, "child", words[2])->count++;
    if (strcmp(words[3], "0") != 0) {
      check_violated(self, "child", "worker %u: a child to %s ended with status %s", worker,
                     words[2], words[3]);
    }
    return true;
  }
  if (strcmp(words[1], "witness") == 0 && count == 8) {
    check_violated(self, "witness",
                   "resource %s: worker %u, inside from %s until %s, met %s, from %s until %s",
                   words[2], worker, words[3], words[4], words[5], words[6], words[7]);
    return true;
  }
  if (strcmp(words[1], "attach") == 0 && count == 5) {
    read_claim(worker, words, &claim);
    append(&self->attaches, claim);
    return true;
  }
  if (strcmp(words[1], "inspect") == 0 && count == 6) {
    read_claim(worker, words, &claim);
    claim.until_us = number(words[5]);
    append(&self->inspections, claim);
    return true;
  }
  if (strcmp(words[1], "late") == 0 && count == 4) {
    append(&self->spans, (check_span){worker, number(words[2]), number(words[3])});
    return true;
  }
  check_hold *hold = count >= 5 ? check_hold_of(self, words[3]) : NULL;
  if (hold != NULL && strcmp(words[1], "extend") == 0 && count == 6) {
    uint64_t deadline_us = number(words[5]);
    hold->deadline_us = deadline_us > hold->deadline_us ? deadline_us : hold->deadline_us;
    read_counter(self, "holds", "extended")->count++;
    return true;
  }
  if (hold != NULL && strcmp(words[1], "detach") == 0 && count == 5) {
    hold->left_us = number(words[4]);
    hold->detached = true;
    return true;
  }
  if (hold != NULL && strcmp(words[1], "leave") == 0 && count == 5) {
    hold->left_us = number(words[4]);
    return true;
  }
  return false;
}

static bool read_event(check *self, unsigned count, char **words) {
  if (strcmp(words[1], "fault") == 0 && count == 7) {
    uint64_t length_us = number(words[5]) - number(words[4]);
    check_count *counter = read_counter(self, "fault", words[2]);
    counter->longest_us = length_us > counter->longest_us ? length_us : counter->longest_us;
    counter->count += number(words[6]) > 0;
    read_counter(self, "fault-unheld", words[2])->count += number(words[6]) == 0;
    return true;
  }
  if (strcmp(words[1], "stop") == 0 && count == 5) {
    append(&self->spans,
           (check_span){(unsigned)number(words[2]), number(words[3]), number(words[4])});
    return true;
  }
  if (strcmp(words[1], "late") == 0 && count == 4) {
    append(&self->spans, (check_span){UINT_MAX, number(words[2]), number(words[3])});
    return true;
  }
  if (strcmp(words[1], "bound") == 0 && count == 4) {
    append(&self->bounds, (check_span){UINT_MAX, number(words[2]), number(words[3])});
    return true;
  }
  if (strcmp(words[1], "key") == 0 && count == 6) {
    check_key key = {.at_us = number(words[2]),
                     .node = (unsigned)number(words[3]),
                     .resource = (unsigned)number(words[4])};
    copy(key.token, sizeof key.token, words[5]);
    append(&self->keys, key);
    return true;
  }
  if (strcmp(words[1], "memory") == 0 && count == 8) {
    check_memory memory = {.worker = (unsigned)number(words[2]),
                           .generation = (unsigned)number(words[3]),
                           .at_us = number(words[4]),
                           .kilobytes = number(words[5]),
                           .descriptors = number(words[6])};
    copy(memory.phase, sizeof memory.phase, words[7]);
    append(&self->memories, memory);
    return true;
  }
  return false;
}

static bool read_main(check *self, unsigned count, char **words) {
  if (read_event(self, count, words)) {
    return true;
  }
  if (strcmp(words[1], "phase") == 0 && count == 4) {
    read_counter(self, "phase", words[2])->count++;
    return true;
  }
  if (strcmp(words[1], "died") == 0 && count == 6) {
    read_counter(self, "died", words[5])->count++;
    if (strcmp(words[5], "expected") != 0) {
      check_violated(self, "death", "worker %s.%s: %s end, status %s", words[2], words[3], words[5],
                     words[4]);
    }
    return true;
  }
  if (strcmp(words[1], "empty") == 0 && count == 4) {
    read_counter(self, "end", "empty")->count++;
    read_counter(self, "end", "empty-us")->count = number(words[2]);
    read_counter(self, "end", "left")->count = number(words[3]);
    return true;
  }
  if ((strcmp(words[1], "count") == 0 || strcmp(words[1], "set") == 0) && count == 4) {
    read_counter(self, words[1], words[2])->count = number(words[3]);
    return true;
  }
  if (strcmp(words[1], "need") == 0 && count == 5) {
    char what[CHECK_WORD];
    (void)snprintf(what, sizeof what, "need %s", words[2]);
    read_counter(self, what, words[3])->count = number(words[4]);
    return true;
  }
  return false;
}

void check_read(check *self, const char *path) {
  char line[512];
  unsigned row = 0;
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    check_violated(self, "log", "%s cannot be opened", path);
    return;
  }
  while (fgets(line, sizeof line, file) != NULL) {
    char *words[CHECK_WORDS] = {NULL};
    char *rest = NULL;
    unsigned count = 0;
    row++;
    for (char *word = strtok_r(line, " \n", &rest); word != NULL && count < CHECK_WORDS;
         word = strtok_r(NULL, " \n", &rest)) {
      words[count++] = word;
    }
    if (count == 0 || words[0][0] == '#') {
      continue;
    }
    bool known = count >= 2 && (strcmp(words[0], "main") == 0 ? read_main(self, count, words)
                                                              : read_worker(self, count, words));
    if (!known) {
      check_violated(self, "log", "%s:%u cannot be understood", path, row);
    }
  }
  (void)fclose(file);
}
