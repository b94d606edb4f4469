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

#define CLI_FILE_MAX ((size_t)65536)
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

/* Allocates |size| bytes that live as long as the settings. Returns NULL after a message. */
static char *cli_addresses_room(cli_settings *settings, size_t size) {
  cli_text *room = malloc(sizeof *room + size);
  if (room == NULL) {
    (void)cli_fail(CLI_SYSTEM, "out of memory");
    return NULL;
  }
  room->next = settings->texts;
  settings->texts = room;
  return room->bytes;
}

int cli_addresses_file(cli_settings *settings, const char *path) {
  char *text = cli_addresses_room(settings, CLI_FILE_MAX + 1);
  if (text == NULL) {
    return CLI_SYSTEM;
  }
  FILE *file = fopen(path, "re");
  if (file == NULL) {
    return cli_fail(CLI_USAGE, "cannot read the nodes from %s: %m", path);
  }
  size_t length = fread(text, 1, CLI_FILE_MAX + 1, file);
  bool failed = ferror(file) != 0;
  int status = failed ? cli_fail(CLI_USAGE, "cannot read the nodes from %s: %m", path) : -1;
  (void)fclose(file);
  if (failed) {
    return status;
  }
  if (length > CLI_FILE_MAX || memchr(text, '\0', length) != NULL) {
    return cli_fail(CLI_USAGE, "%s must be a text of at most %zu bytes", path, CLI_FILE_MAX);
  }
  text[length] = '\0';
  size_t before = settings->node_count;
  bool marked = strncmp(text, CLI_BYTE_ORDER_MARK, strlen(CLI_BYTE_ORDER_MARK)) == 0;
  status = cli_addresses_add(settings, text + (marked ? strlen(CLI_BYTE_ORDER_MARK) : 0), true);
  return status < 0 && settings->node_count == before
             ? cli_fail(CLI_USAGE, "%s names no node", path)
             : status;
}

int cli_addresses_environment(cli_settings *settings) {
  const char *text = getenv("REDLOCK_NODES"); /* NOLINT(concurrency-mt-unsafe) */
  if (settings->node_count > 0) {
    return -1;
  }
  if (text != NULL) {
    size_t size = strlen(text) + 1;
    char *copy = cli_addresses_room(settings, size);
    if (copy == NULL) {
      return CLI_SYSTEM;
    }
    memcpy(copy, text, size);
    int status = cli_addresses_add(settings, copy, false);
    if (status >= 0) {
      return status;
    }
  }
  return settings->node_count > 0
             ? -1
             : cli_fail(CLI_USAGE, "no nodes; use --node or --nodes-file, or set REDLOCK_NODES");
}

void cli_addresses_free(cli_settings *settings) {
  while (settings->texts != NULL) {
    cli_text *text = settings->texts;
    settings->texts = text->next;
    free(text);
  }
}
