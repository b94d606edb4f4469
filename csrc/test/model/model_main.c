/*
 * The model checker's command line.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include "model.h"

#define MODEL_MEMORY_MIB 2048

typedef struct model_arguments {
  bool table, lengthy, quiet;
  const char *name;
  size_t memory_mib;
  model_config config;
} model_arguments;

static int model_usage(void) {
  (void)fprintf(stderr, "usage: model [name=value...]   searches one configuration\n"
                        "       model --table           all configurations of the suite\n"
                        "       model --long            the lengthy ones\n"
                        "       model --only NAME       one of them\n"
                        "options: --quiet              no counter-examples\n"
                        "         --memory MIB         at most [2048]\n"
                        "names:\n");
  model_config_print_names(stderr);
  return 2;
}

static bool model_read(int count, char **words, model_arguments *arguments) {
  arguments->config = model_config_default();
  for (int i = 1; i < count; i++) {
    const char *value = i + 1 < count ? words[i + 1] : NULL;
    if (strcmp(words[i], "--table") == 0) {
      arguments->table = true;
    } else if (strcmp(words[i], "--long") == 0) {
      arguments->table = arguments->lengthy = true;
    } else if (strcmp(words[i], "--quiet") == 0) {
      arguments->quiet = true;
    } else if (strcmp(words[i], "--only") == 0 && value != NULL) {
      arguments->name = value;
      i++;
    } else if (strcmp(words[i], "--memory") == 0 && value != NULL) {
      char *end;
      arguments->memory_mib = strtoul(value, &end, 10);
      if (*end != '\0' || arguments->memory_mib == 0) {
        return false;
      }
      i++;
    } else if (!model_config_set(&arguments->config, words[i])) {
      (void)fprintf(stderr, "model: %s: not known, or out of bounds\n", words[i]);
      return false;
    }
  }
  return true;
}

static const char *model_outcome(const model_result *result) {
  if (result->violation != 0) {
    return model_property_text(result->violation);
  }
  return result->exhausted ? "safe, exhausted" : "not exhausted: the memory limit is reached";
}

static void model_report(const model_config *config, const model_result *result, bool quiet) {
  printf("    %s; %llu states, %llu transitions, depth %u, %.1f s, %zu MiB; ",
         model_outcome(result), (ull)result->states, (ull)result->transitions, result->depth,
         result->seconds, result->bytes >> 20);
  model_config_print(stdout, config);
  printf("\n");
  if (!quiet) {
    model_print_trace(stdout, config, result->trace.steps, result->trace.count);
  }
  (void)fflush(stdout);
}

static bool model_run_entry(const model_entry *entry, const model_arguments *arguments) {
  model_config config = model_entry_config(entry);
  model_result result;
  model_search(&config, arguments->memory_mib << 20, &result);
  bool ok = result.violation == entry->expected && (result.violation != 0 || result.exhausted);
  printf("%s - model %s: %s\n", ok ? "ok" : "not ok", entry->name, entry->text);
  if (!ok) {
    printf("    expected: %s\n", model_property_text(entry->expected));
  }
  model_report(&config, &result, arguments->quiet && ok);
  model_trace_free(&result.trace);
  return ok;
}

static int model_run_table(const model_arguments *arguments) {
  unsigned ran = 0;
  unsigned failed = 0;
  for (unsigned i = 0; i < model_table_size; i++) {
    const model_entry *entry = &model_table[i];
    if (arguments->name != NULL ? strcmp(arguments->name, entry->name) == 0
                                : entry->lengthy == arguments->lengthy) {
      ran++;
      failed += !model_run_entry(entry, arguments);
    }
  }
  if (ran == 0) {
    (void)fprintf(stderr, "model: no configuration of that name\n");
    return 2;
  }
  return failed > 0 ? 1 : 0;
}

int main(int count, char **words) {
  model_arguments arguments = {.memory_mib = MODEL_MEMORY_MIB};
  if (!model_read(count, words, &arguments)) {
    return model_usage();
  }
  if (arguments.table || arguments.name != NULL) {
    return model_run_table(&arguments);
  }
  model_result result;
  model_search(&arguments.config, arguments.memory_mib << 20, &result);
  model_report(&arguments.config, &result, arguments.quiet);
  bool safe = result.violation == 0;
  model_trace_free(&result.trace);
  return safe ? 0 : 1;
}
