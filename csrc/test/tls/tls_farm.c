/*
 * Temporary redis-servers with TLS.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tls_farm.h"

#include "support.h"

#define TLS_FARM_FILES 16

const char *tls_farm_file(const tls_farm *self, const char *name) {
  static char paths[TLS_FARM_FILES][CERTIFICATES_PATH_MAX];
  static unsigned next;
  return name == NULL
             ? NULL
             : certificates_path(paths[next++ % TLS_FARM_FILES], self->certificates.path, name);
}

void tls_farm_start(tls_farm *self, unsigned count) {
  static const char *const files[3] = {"good.pem", "good.key", "ca.pem"};
  static const char *const options[3] = {"--tls-cert-file", "--tls-key-file", "--tls-ca-cert-file"};
  memset(self, 0, sizeof *self);
  assert_true(scratch_open(&self->certificates, "tls"));
  certificates_write(self->certificates.path);
  for (unsigned i = 0; i < 3; i++) {
    self->arguments[2 * i] = options[i];
    self->arguments[2 * i + 1] =
        certificates_path(self->paths[i], self->certificates.path, files[i]);
  }
  self->arguments[6] = "--tls-auth-clients";
  self->arguments[7] = "no";
  farm_start_tls(&self->farm, count, self->arguments);
}

void tls_farm_end(tls_farm *self) {
  farm_end(&self->farm);
  scratch_close(&self->certificates);
}

void tls_farm_set(tls_farm *self, unsigned node, const char *setting, const char *value) {
  const char *reply = farm_command(&self->farm, node, "CONFIG", "SET", setting, value, NULL);
  if (reply == NULL || strcmp(reply, "OK") != 0) {
    fail_msg("CONFIG SET %s %s: %s", setting, value, reply == NULL ? "no reply" : reply);
  }
}

void tls_farm_show(tls_farm *self, unsigned node, const char *certificate) {
  char pem[64];
  char key[64];
  (void)snprintf(pem, sizeof pem, "%s.pem", certificate);
  (void)snprintf(key, sizeof key, "%s.key", certificate);
  const char *reply =
      farm_command(&self->farm, node, "CONFIG", "SET", "tls-cert-file", tls_farm_file(self, pem),
                   "tls-key-file", tls_farm_file(self, key), NULL);
  if (reply == NULL || strcmp(reply, "OK") != 0) {
    fail_msg("no certificate %s: %s", certificate, reply == NULL ? "no reply" : reply);
  }
}

void tls_farm_reset(tls_farm *self) {
  farm_reset(&self->farm);
  for (unsigned i = 0; i < self->farm.count; i++) {
    tls_farm_show(self, i, "good");
    tls_farm_set(self, i, "tls-auth-clients", "no");
    tls_farm_set(self, i, "tls-protocols", "");
  }
}

redlock_client *tls_client(const tls_farm *self, const redlock_settings *base) {
  redlock_client *client;
  redlock_settings settings = {0};
  redlock_options usual = once();
  char message[256] = "";
  if (base != NULL) {
    settings = *base;
  }
  settings.transport = redlock_tls();
  if (settings.options == NULL) {
    settings.options = &usual;
  }
  if (settings.tls_ca == NULL && settings.tls_dangerously_unverified != REDLOCK_YES) {
    settings.tls_ca = tls_farm_file(self, "ca.pem");
  }
  if (redlock_client_new(&client, &settings, message, sizeof message) != REDLOCK_OK) {
    fail_msg("%s", message);
  }
  return client;
}

redlock_client *tls_client_of(const tls_farm *self, unsigned count,
                              const redlock_options *options) {
  redlock_settings settings = {0};
  char message[256] = "";
  settings.options = options;
  redlock_client *client = tls_client(self, &settings);
  for (unsigned i = 0; i < count; i++) {
    if (redlock_client_add(client, self->farm.nodes[i].tls_address, message, sizeof message) !=
        REDLOCK_OK) {
      fail_msg("%s", message);
    }
  }
  return client;
}
