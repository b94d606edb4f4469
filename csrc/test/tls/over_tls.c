/*
 * Linked into an integration test, it has all of its clients speak TLS.
 *
 * SPDX-License-Identifier: MIT
 */
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "certificates.h"
#include "farm.h"
#include "redlock_tls.h"
#include "support.h"

static scratch_directory scratch; /* goes with the program */
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
  settings->carrier = redlock_tls();
  settings->tls = REDLOCK_YES;
  settings->tls_ca = ca;
}

/* Until one of both has ended. */
static void over_tls_relay(SSL *ssl, int fd) {
  char bytes[16384];
  struct pollfd fds[2] = {{SSL_get_fd(ssl), POLLIN, 0}, {fd, POLLIN, 0}};
  for (;;) {
    (void)poll(fds, 2, SSL_pending(ssl) > 0 ? 0 : -1);
    if (fds[0].revents != 0 || SSL_pending(ssl) > 0) {
      int got = SSL_read(ssl, bytes, sizeof bytes);
      if (got <= 0 || send(fd, bytes, (size_t)got, MSG_NOSIGNAL) != got) {
        return;
      }
    }
    if (fds[1].revents != 0) {
      ssize_t got = recv(fd, bytes, sizeof bytes, 0);
      if (got <= 0 || SSL_write(ssl, bytes, (int)got) != (int)got) {
        return;
      }
    }
  }
}

/* A process of its own, which ends with the connection. */
static int over_tls_serve(int fd) {
  int ends[2];
  char ignored[512];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    _exit(1);
  }
  if (fork() == 0) {
    (void)close(ends[1]);
    (void)signal(SIGPIPE, SIG_IGN);
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    SSL *ssl = NULL;
    if (SSL_CTX_use_certificate_chain_file(context, pem) == 1 &&
        SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1 &&
        (ssl = SSL_new(context)) != NULL && SSL_set_fd(ssl, fd) == 1 && SSL_accept(ssl) == 1) {
      over_tls_relay(ssl, ends[0]);
      (void)SSL_shutdown(ssl);
    }
    (void)shutdown(fd, SHUT_WR);
    while (recv(fd, ignored, sizeof ignored, 0) > 0) {
    }
    _exit(0);
  }
  (void)close(ends[0]);
  (void)close(fd);
  return ends[1];
}

__attribute__((constructor)) static void over_tls_begin(void) {
  static const farm_tls over = {over_tls_arguments, over_tls_fill, over_tls_serve};
  farm_over_tls = &over;
}
