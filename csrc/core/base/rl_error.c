/*
 * Errors: names, sentences and kinds. The rows are in rl_error.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_error.h"

const char *redlock_strerror(int error) {
  switch (error) {
#define RL_ERROR_SENTENCE(code, name, kind, sentence)                                              \
  case code:                                                                                       \
    return sentence;
    RL_ERRORS(RL_ERROR_SENTENCE)
  default:
    return "unknown error";
  }
}

const char *redlock_error_name(int error) {
  switch (error) {
#define RL_ERROR_NAME(code, name, kind, sentence)                                                  \
  case code:                                                                                       \
    return #name;
    RL_ERRORS(RL_ERROR_NAME)
  default:
    return "unknown";
  }
}

rl_error_kind rl_error_kind_of(int error) {
#define RL_ERROR_KIND(code, name, kind, sentence) {code, RL_ERROR_##kind},
  static const struct {
    int error;
    rl_error_kind kind;
  } kinds[] = {RL_ERRORS(RL_ERROR_KIND)};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    if (kinds[i].error == error) {
      return kinds[i].kind;
    }
  }
  return RL_ERROR_STRANGE;
}

const char *redlock_version(void) {
  return REDLOCK_VERSION;
}
