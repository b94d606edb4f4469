/*
 * redlock(1) and TLS: its options, its variables, and the library that it loads.
 *
 * SPDX-License-Identifier: MIT
 */
#include <fcntl.h>
#include <libgen.h>

#include "support.h"
#include "tls_farm.h"

static tls_farm nodes;
static char tool[512];
static char told[8192]; /* both outputs of the last program */

static int start(void **state) {
  (void)state;
  char self[256] = "";
  tls_farm_start(&nodes, 1);
  assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  (void)snprintf(tool, sizeof tool, "%s/../../bin/redlock", dirname(self));
  return 0;
}

static int end(void **state) {
  (void)state;
  tls_farm_end(&nodes);
  return 0;
}

static int reset(void **state) {
  (void)state;
  tls_farm_reset(&nodes);
  return 0;
}

/*
 * What a shell returns for |script|, in which $R is the tool, $TLS a node over TLS, $HOST the same without its scheme,
 * $PLAIN the same without TLS, $OLD where the certificates are.
 */
__attribute__((format(printf, 1, 2))) static int shell(const char *format, ...) {
  char script[2048];
  int ends[2];
  size_t length = 0;
  ssize_t got;
  int state;
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(script, sizeof script, format, arguments);
  va_end(arguments);
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  pid_t pid = fork();
  if (pid == 0) {
    const farm_node *node = &nodes.farm.nodes[0];
    (void)setenv("R", tool, 1);
    (void)setenv("TLS", node->tls_address, 1);
    (void)setenv("HOST", strstr(node->tls_address, "://") + 3, 1);
    (void)setenv("PLAIN", node->address, 1);
    (void)setenv("OLD", nodes.certificates.path, 1);
    (void)dup2(ends[1], STDOUT_FILENO);
    (void)dup2(ends[1], STDERR_FILENO);
    (void)execl("/bin/sh", "sh", "-c", script, (char *)NULL);
    _exit(99);
  }
  (void)close(ends[1]);
  while (length < sizeof told - 1 &&
         (got = read(ends[0], told + length, sizeof told - 1 - length)) > 0) {
    length += (size_t)got;
  }
  told[length] = '\0';
  (void)close(ends[0]);
  assert_int_equal(waitpid(pid, &state, 0), pid);
  return WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
}

static void assert_status(int status, int expected) {
  if (status != expected) {
    fail_msg("exit status %d, not %d: %s", status, expected, told);
  }
}

/* A loaded machine may need longer for a handshake than 100 ms. */
#define PATIENT " --node-timeout 5s -t 60s "
/* For a node that does not answer. */
#define IMPATIENT " --node-timeout 200ms -w 0 "

static void options_say_how_tls_is_spoken(void **state) {
  (void)state;
  tls_farm_set(&nodes, 0, "tls-auth-clients", "yes");
#define CERTIFIED " --tls-cert $OLD/client.pem --tls-key $OLD/client.key "
  assert_status(shell("$R" PATIENT "-n $TLS --tls-ca $OLD/ca.pem" CERTIFIED "run job -- true"), 0);
  assert_string_equal(told, "");
  assert_status(shell("$R" PATIENT "-n $HOST --tls --tls-min-version 1.3 --tls-crl $OLD/crl.pem "
                      "--tls-ciphers TLS_AES_128_GCM_SHA256 --tls-ca $OLD/ca.pem" CERTIFIED
                      "run job -- true"),
                0);
  assert_status(
      shell("$R" PATIENT "-n $HOST --tls-dangerously-unverified" CERTIFIED "run job -- true"), 0);
  assert_status(shell("$R" PATIENT
                      "-n $TLS --tls-ca $OLD/ca.pem --tls-server-name elsewhere.test" CERTIFIED
                      "nodes"),
                69);
  assert_contains(told, "elsewhere.test");
  assert_status(shell("$R" PATIENT "-n $TLS" CERTIFIED "nodes"), 69);
  assert_contains(told, "certificate");
  assert_status(shell("$R" PATIENT "-n $TLS --tls-ca $OLD/ca.pem nodes"), 69);
}

/* Whoever writes one of them wants TLS: without it the password would go to anybody. */
static void any_option_of_tls_asks_for_tls(void **state) {
  (void)state;
  assert_status(shell("$R" PATIENT "-n $HOST --tls-ca $OLD/ca.pem nodes"), 0);
  assert_status(shell("$R" IMPATIENT "-n $PLAIN --tls-ca $OLD/ca.pem nodes"), 69);
  assert_status(shell("REDLOCK_TLS_CA=$OLD/ca.pem $R" PATIENT "-n $HOST nodes"), 0);
  assert_status(shell("REDLOCK_TLS_CA= $R" PATIENT "-n $PLAIN nodes"), 0);
}

static void the_environment_says_what_the_command_line_does_not(void **state) {
  (void)state;
  tls_farm_set(&nodes, 0, "tls-auth-clients", "yes");
  assert_status(
      shell("export REDLOCK_NODES=$TLS REDLOCK_TLS_CA=$OLD/ca.pem REDLOCK_TLS_CERT=$OLD/client.pem "
            "REDLOCK_TLS_KEY=$OLD/client_locked.key REDLOCK_TLS_MIN_VERSION=1.2; "
            "REDLOCK_TLS_KEY_PASSWORD='%s' $R" PATIENT "nodes && "
            "printf '%%s\\nmore\\n' '%s' >$OLD/password && "
            "$R" PATIENT "--tls-key-password-file $OLD/password nodes && "
            "REDLOCK_TLS_KEY=/none $R" PATIENT
            "--tls-key $OLD/client.key --tls-min-version 1.3 nodes",
            CERTIFICATES_PASSWORD, CERTIFICATES_PASSWORD),
      0);
  assert_status(
      shell(
          "REDLOCK_TLS_CA=$OLD/ca.pem REDLOCK_TLS_CERT=$OLD/client.pem "
          "REDLOCK_TLS_KEY=$OLD/client_locked.key REDLOCK_TLS_KEY_PASSWORD=wrong-secret $R -n $TLS nodes"),
      64);
  assert_contains(told, "tls_key");
  assert_null(strstr(told, "wrong-secret"));
}

static void mistakes_are_told(void **state) {
  (void)state;
  static const struct {
    const char *arguments;
    const char *says;
  } cases[] = {
      {"--tls-ca /none nodes", "tls_ca"},
      {"--tls-ca '' nodes", "tls_ca must be a file"},
      {"--tls-cert $OLD/client.pem nodes", "go together"},
      {"--tls-min-version 1.1 nodes", "not a version of TLS from 1.2 to 1.3: '1.1'"},
      {"--tls-ciphers nonsense nodes", "cipher"},
      {"--tls-key-password-file /none nodes", "cannot read /none: No such file"},
      {"--tls-key-password-file /dev/null nodes", "/dev/null has no password of up to 1024 bytes"},
      {"--tls-key-password-file /dev/zero nodes", "/dev/zero has no password of up to 1024 bytes"},
      {"--tls-key-password hush nodes", "--tls-key-password-file, or REDLOCK_TLS_KEY_PASSWORD"},
      {"--tls-verify nodes", "unknown option '--tls-verify'"},
      {"--tls-ca", "a value is missing"},
  };
  for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_status(shell("$R -n $TLS %s", cases[i].arguments), 64);
    assert_contains(told, cases[i].says);
    assert_null(strstr(told, "hush"));
  }
}

/* Without TLS nobody needs it, and so nobody needs OpenSSL. */
static void the_library_is_loaded_when_a_node_wants_it(void **state) {
  (void)state;
  assert_status(shell("mkdir $OLD/bin && cp $R $OLD/bin/redlock && $OLD/bin/redlock" PATIENT
                      "-n $PLAIN nodes"),
                0);
  assert_status(shell("$OLD/bin/redlock -n rediss://u:secret@h run job true"), 71);
  assert_contains(told, "TLS needs libredlock_tls.so.0, a library of its own: ");
  assert_contains(told, "cannot open shared object file");
  assert_null(strstr(told, "secret"));
  assert_status(shell("mkdir $OLD/lib && cp ${R%%/bin/redlock}/lib/libredlock_tls.so.0 $OLD/lib && "
                      "$OLD/bin/redlock" PATIENT "-n $TLS --tls-ca $OLD/ca.pem nodes"),
                0);
  assert_status(shell("readelf -d $R | grep -i ssl; LD_DEBUG=libs $R" PATIENT
                      "-n $PLAIN nodes 2>&1 | grep -c libssl"),
                1);
  assert_string_equal(told, "0\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(options_say_how_tls_is_spoken, reset),
      cmocka_unit_test_setup(any_option_of_tls_asks_for_tls, reset),
      cmocka_unit_test_setup(the_environment_says_what_the_command_line_does_not, reset),
      cmocka_unit_test_setup(mistakes_are_told, reset),
      cmocka_unit_test_setup(the_library_is_loaded_when_a_node_wants_it, reset),
  };
  return cmocka_run_group_tests(tests, start, end);
}
