/*
 * The checkers: reports each moment to all of them. See check.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "check.h"

#include <string.h>

#define CHECK_ADDRESS(name) &check_##name,
static const checker *const checkers[] = {CHECKERS(CHECK_ADDRESS)};
#define CHECK_COUNT (sizeof checkers / sizeof checkers[0])

#define CHECK_TELL_ALL(moment, parameters, arguments)                                              \
  void check_##moment parameters {                                                                 \
    _Pragma("GCC unroll 22") for (size_t i = 0; i < CHECK_COUNT; i++) {                            \
      if (checkers[i]->moment != NULL) {                                                           \
        checkers[i]->moment arguments;                                                             \
      }                                                                                            \
    }                                                                                              \
  }
CHECK_MOMENTS(CHECK_TELL_ALL)

bool sim_has_checker(const char *name) {
#define CHECK_NAME(name) #name,
  static const char *const others[] = {CHECKERS_WITHOUT_FILE(CHECK_NAME)};
  for (size_t i = 0; i < CHECK_COUNT; i++) {
    if (strcmp(checkers[i]->name, name) == 0) {
      return true;
    }
  }
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    if (strcmp(others[i], name) == 0) {
      return true;
    }
  }
  return false;
}
