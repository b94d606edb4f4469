/*
 * A server that misbehaves during or after the TLS handshake.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tls_hostile.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "certificates.h"
#include "resp.h"
#include "support.h"

static volatile tls_hostile_counts *counts; /* of this server's process */

void tls_hostile_drain(int fd) {
  char ignored[4096];
  while (recv(fd, ignored, sizeof ignored, 0) > 0) {
  }
}

void tls_hostile_reset(int fd) {
  struct linger at_once = {1, 0};
  (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  (void)close(fd);
}

SSL *tls_hostile_accept(int fd, SSL_CTX *context) {
  SSL *ssl = SSL_new(context);
  if (ssl == NULL || SSL_set_fd(ssl, fd) != 1 || SSL_accept(ssl) != 1) {
    _exit(0);
  }
  counts->shaken++;
  counts->resumed += SSL_session_reused(ssl) == 1;
  return ssl;
}

void tls_hostile_answer(SSL *ssl, unsigned commands) {
  static char bytes[65536];
  size_t held = 0;
  resp_request request;
  while (commands > 0) {
    long used = resp_read(&request, bytes, held);
    if (used == 0) {
      int got = SSL_read(ssl, bytes + held, (int)(sizeof bytes - held));
      held += got > 0 ? (size_t)got : 0;
      if (got <= 0) {
        _exit(0);
      }
      continue;
    }
    const char *reply =
        resp_is(&request, 0, "EVALSHA") || resp_is(&request, 0, "EVAL") ? ":1\r\n" : "+OK\r\n";
    if (used < 0 || SSL_write(ssl, reply, (int)strlen(reply)) <= 0) {
      _exit(0);
    }
    commands -= !resp_is(&request, 0, "CLIENT") || resp_is(&request, 2, "LIB-VER");
    held -= (size_t)used;
    memmove(bytes, bytes + used, held);
  }
}

static SSL_CTX *tls_hostile_context(const char *directory) {
  char path[CERTIFICATES_PATH_MAX];
  SSL_CTX *context = SSL_CTX_new(TLS_server_method());
  assert_non_null(context);
  assert_int_equal(
      SSL_CTX_use_certificate_chain_file(context, certificates_path(path, directory, "good.pem")),
      1);
  assert_int_equal(SSL_CTX_use_PrivateKey_file(
                       context, certificates_path(path, directory, "good.key"), SSL_FILETYPE_PEM),
                   1);
  assert_int_equal(SSL_CTX_set_session_id_context(context, (const unsigned char *)"hostile", 7), 1);
  return context;
}

static void tls_hostile_listen(int server_fd, SSL_CTX *context, tls_hostile_serve *serve) {
  pid_t server = getpid();
  int on = 1;
  (void)signal(SIGCHLD, SIG_IGN);
  for (;;) {
    int fd = accept(server_fd, NULL, NULL);
    counts->accepted += fd >= 0;
    if (fd >= 0 && fork() == 0) {
      (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != server) {
        _exit(0);
      }
      (void)signal(SIGPIPE, SIG_IGN);
      (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      (void)close(server_fd);
      serve(fd, context);
      _exit(0);
    }
    (void)close(fd);
  }
}

void tls_hostile_start(tls_hostile *self, const char *directory, tls_hostile_serve *serve) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  pid_t parent = getpid();
  int server_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(server_fd >= 0);
  assert_int_equal(bind(server_fd, (struct sockaddr *)&address, length), 0);
  assert_int_equal(listen(server_fd, 64), 0);
  assert_int_equal(getsockname(server_fd, (struct sockaddr *)&address, &length), 0);
  self->port = ntohs(address.sin_port);
  (void)snprintf(self->address, sizeof self->address, "rediss://127.0.0.1:%d", self->port);
  self->counts =
      mmap(NULL, sizeof *self->counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(self->counts != MAP_FAILED);
  self->pid = fork();
  assert_true(self->pid >= 0);
  if (self->pid == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
      _exit(0);
    }
    counts = self->counts;
    tls_hostile_listen(server_fd, tls_hostile_context(directory), serve);
  }
  (void)close(server_fd);
}

void tls_hostile_end(tls_hostile *self) {
  (void)kill(self->pid, SIGKILL);
  (void)waitpid(self->pid, NULL, 0);
  (void)munmap((void *)self->counts, sizeof *self->counts);
}
