/*
 * redlock(1): the addresses of the nodes.
 *
 * SPDX-License-Identifier: MIT
 *
 * No message quotes an address, which may contain a password.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define CLI_SPACES " \t\r\n"
#define CLI_SEPARATORS "," CLI_SPACES
#define CLI_SENTINELS "sentinel://"        /* begins a list of its own, with commas */
#define CLI_BYTE_ORDER_MARK "\xef\xbb\xbf" /* begins a text of some editors */

/*
 * Adds the addresses in |text|, and changes it. With |comments|, a word that begins with '#' begins
 * a comment up to the end of its line. Returns -1, or the exit status after a message.
 */
static int cli_addresses_add(cli_settings *settings, char *text, bool comments) {
  for (;;) {
    text += strspn(text, CLI_SEPARATORS);
    if (comments && *text == '#') {
      text += strcspn(text, "\n");
      continue;
    }
    if (*text == '\0') {
      return -1;
    }
    if (settings->node_count == REDLOCK_NODES_MAX) {
      return cli_fail(CLI_USAGE, "more than %d nodes", REDLOCK_NODES_MAX);
    }
    settings->nodes[settings->node_count++] = text;
    bool sentinels = strncmp(text, CLI_SENTINELS, strlen(CLI_SENTINELS)) == 0;
    text += strcspn(text, sentinels ? CLI_SPACES : CLI_SEPARATORS);
    if (*text != '\0') {
      *text++ = '\0';
    }
  }
}

/* An unset shell variable as value must not stand for the nodes of REDLOCK_NODES. */
int cli_addresses_option(cli_settings *settings, char *text) {
  size_t before = settings->node_count;
  int status = cli_addresses_add(settings, text, false);
  return status < 0 && settings->node_count == before ? cli_fail(CLI_USAGE, "--node names no node")
                                                      : status;
}

/*
 * Adds the addresses of the |length| bytes that were written behind the other texts. Returns as
 * above.
 */
static int cli_addresses_keep(cli_settings *settings, size_t length, const char *source,
                              bool comments) {
  char *text = settings->texts + settings->texts_length;
  if (length >= sizeof settings->texts - settings->texts_length ||
      memchr(text, '\0', length) != NULL) {
    return cli_fail(CLI_USAGE, "%s must be a text of at most %zu bytes, with all files", source,
                    sizeof settings->texts - 1);
  }
  text[length] = '\0';
  settings->texts_length += length + 1;
  bool marked = strncmp(text, CLI_BYTE_ORDER_MARK, strlen(CLI_BYTE_ORDER_MARK)) == 0;
  return cli_addresses_add(settings, text + (marked ? strlen(CLI_BYTE_ORDER_MARK) : 0), comments);
}

int cli_addresses_file(cli_settings *settings, const char *path) {
  size_t before = settings->node_count;
  FILE *file = fopen(path, "re");
  if (file == NULL) {
    return cli_fail(CLI_USAGE, "cannot read the nodes from %s: %m", path);
  }
  size_t length = fread(settings->texts + settings->texts_length, 1,
                        sizeof settings->texts - settings->texts_length, file);
  int status = ferror(file) != 0 ? cli_fail(CLI_USAGE, "cannot read the nodes from %s: %m", path)
                                 : cli_addresses_keep(settings, length, path, true);
  (void)fclose(file);
  return status < 0 && settings->node_count == before
             ? cli_fail(CLI_USAGE, "%s names no node", path)
             : status;
}

int cli_addresses_environment(cli_settings *settings) {
  const char *text = getenv("REDLOCK_NODES"); /* NOLINT(concurrency-mt-unsafe) */
  int status = -1;
  if (settings->node_count == 0 && text != NULL) {
    size_t size = sizeof settings->texts - settings->texts_length;
    int length = snprintf(settings->texts + settings->texts_length, size, "%s", text);
    status = cli_addresses_keep(settings, (size_t)length, "REDLOCK_NODES", false);
  }
  return status < 0 && settings->node_count == 0
             ? cli_fail(CLI_USAGE, "no nodes; use --node or --nodes-file, or set REDLOCK_NODES")
             : status;
}
