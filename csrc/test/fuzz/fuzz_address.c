/*
 * Fuzz target: addresses, complete and in parts. An accepted address is within its limits. A
 * refused one has a message, and no message has the password.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "../../core/options/rl_address.h"
#include "fuzz.h"

#define FUZZ_ADDRESS_TEXT 700
#define FUZZ_ADDRESS_SECRET "\x01s3cr3t\x02"

/* A string of at most |most| bytes that ends at a NUL, or NULL when it begins with 0xff. */
static const char *fuzz_address_text(fuzz_input *input, char *out, size_t most) {
  size_t used = 0;
  uint8_t byte = fuzz_byte(input);
  if (byte == 0xff) {
    return NULL;
  }
  while (byte != 0 && used + 1 < most) {
    out[used++] = (char)byte;
    byte = fuzz_byte(input);
  }
  out[used] = '\0';
  return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_input input = {data, size};
  char texts[5][FUZZ_ADDRESS_TEXT];
  char message[256];
  rl_address address;
  redlock_node node = {0};
  redlock_settings settings;
  uint8_t bits = fuzz_byte(&input);
  memset(&settings, 0, sizeof settings);
  node.address = bits & 1 ? NULL : fuzz_address_text(&input, texts[0], FUZZ_ADDRESS_TEXT);
  node.host = bits & 2 ? fuzz_address_text(&input, texts[1], FUZZ_ADDRESS_TEXT) : NULL;
  node.path = bits & 4 ? fuzz_address_text(&input, texts[2], FUZZ_ADDRESS_TEXT) : NULL;
  node.password_length = bits & 16 && bits & 1 ? sizeof FUZZ_ADDRESS_SECRET : 0;
  node.username = bits & 8 ? fuzz_address_text(&input, texts[3], FUZZ_ADDRESS_TEXT) : NULL;
  node.password = bits & 16 ? FUZZ_ADDRESS_SECRET : NULL;
  settings.username = bits & 32 ? "default" : NULL;
  settings.password = bits & 64 ? FUZZ_ADDRESS_SECRET : NULL;
  node.port = bits & 128 ? (int)fuzz_byte(&input) * 300 - 300 : 6379;
  node.db = (int)fuzz_byte(&input) - 1;
  message[0] = '\0';
  int error = rl_address_read(&address, &node, &settings, message, sizeof message);
  fuzz_require(strstr(message, "s3cr3t") == NULL || strstr(texts[0], "s3cr3t") != NULL ||
               strstr(texts[1], "s3cr3t") != NULL || strstr(texts[2], "s3cr3t") != NULL);
  if (error != REDLOCK_OK) {
    fuzz_require(message[0] != '\0');
    return 0;
  }
  fuzz_require(memchr(address.host, '\0', sizeof address.host) != NULL);
  fuzz_require(memchr(address.path, '\0', sizeof address.path) != NULL);
  fuzz_require(memchr(address.username, '\0', sizeof address.username) != NULL);
  fuzz_require(address.password_length <= RL_ADDRESS_TEXT_MAX);
  fuzz_require(address.password[address.password_length] == '\0');
  fuzz_require(memchr(address.name, '\0', sizeof address.name) != NULL && address.name[0] != '\0');
  fuzz_require(
      (address.host[0] != '\0') + (address.path[0] != '\0') + (address.sentinels.count != 0) == 1);
  fuzz_require(address.sentinels.count <= RL_ADDRESS_SENTINELS_MAX);
  fuzz_require(address.sentinels.count == 0 || !address.tls);
  fuzz_require(address.port >= 1 && address.port <= 65535);
  fuzz_require(address.db >= 0 && address.db <= RL_OPTION_DB_MAX);
  fuzz_require(address.tls == 0 || address.tls == 1);
  fuzz_require(!address.has_username || address.has_password);
  return 0;
}
