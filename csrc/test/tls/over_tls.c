/*
 * Makes all clients of an integration test that it is linked into use TLS.
 *
 * SPDX-License-Identifier: MIT
 */
#include "certificates.h"
#include "farm.h"
#include "redlock_tls.h"
#include "support.h"

static scratch_directory scratch; /* removed at the end of the program */
static char pem[CERTIFICATES_PATH_MAX];
static char key[CERTIFICATES_PATH_MAX];
static char ca[CERTIFICATES_PATH_MAX];

static void over_tls_certify(void) {
  if (scratch.path[0] == '\0') {
    assert_true(scratch_open(&scratch, "tls"));
    certificates_write(scratch.path);
    (void)certificates_path(pem, scratch.path, "good.pem");
    (void)certificates_path(key, scratch.path, "good.key");
    (void)certificates_path(ca, scratch.path, "ca.pem");
  }
}

static const char *const *over_tls_arguments(void) {
  static const char *arguments[] = {"--tls-cert-file",
                                    pem,
                                    "--tls-key-file",
                                    key,
                                    "--tls-ca-cert-file",
                                    ca,
                                    "--tls-auth-clients",
                                    "no",
                                    NULL};
  over_tls_certify();
  return arguments;
}

static void over_tls_fill(redlock_settings *settings) {
  over_tls_certify();
  settings->transport = redlock_tls();
  settings->tls = REDLOCK_YES;
  settings->tls_ca = ca;
}

__attribute__((constructor)) static void over_tls_begin(void) {
  static const farm_tls over = {over_tls_arguments, over_tls_fill};
  farm_over_tls = &over;
}
