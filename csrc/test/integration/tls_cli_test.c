/*
 * redlock(1) and TLS: its options, its environment variables and its library.
 *
 * SPDX-License-Identifier: MIT
 */
#include "support.h"
#include "tls_farm.h"
#include "tool.h"

static tls_farm nodes;
static tool_run last; /* the run that has ended last */

static int start(void **state) {
  tls_farm_start(&nodes, 1);
  return 0;
}

static int end(void **state) {
  tls_farm_end(&nodes);
  return 0;
}

static int reset(void **state) {
  tls_farm_reset(&nodes);
  return 0;
}

static void set_variables(void) {
  const farm_node *node = &nodes.farm.nodes[0];
  (void)setenv("R", tool_path(), 1);
  (void)setenv("TLS", node->tls_address, 1);
  (void)setenv("HOST", strstr(node->tls_address, "://") + 3, 1);
  (void)setenv("PLAIN", node->address, 1);
  (void)setenv("DIR", nodes.certificates.path, 1);
}

/*
 * Runs |script| by a shell, in which $R is the tool, $TLS a node over TLS, $HOST the same without
 * its scheme, $PLAIN the same node without TLS, and $DIR the directory of the certificates.
 */
static void check(const char *script, int expected) {
  last = tool_start(set_variables, (const char *[]){"/bin/sh", "-c", script, NULL});
  tool_check_status(&last, tool_wait(&last), expected);
}

/* A loaded machine may need longer for a handshake than 100 ms. */
#define TOOL "$R --node-timeout 5s -t 60s "
/* For a node that does not answer. */
#define IMPATIENT "$R --node-timeout 200ms -w 0 "
#define CA "--tls-ca $DIR/ca.pem "
#define OWN "--tls-cert $DIR/client.pem --tls-key $DIR/client.key "
#define VARIABLES                                                                                  \
  "export REDLOCK_NODES=$TLS REDLOCK_TLS_CA=$DIR/ca.pem REDLOCK_TLS_CERT=$DIR/client.pem "         \
  "REDLOCK_TLS_KEY=$DIR/client_locked.key REDLOCK_TLS_MIN_VERSION=1.2; "
#define PASSWORD "REDLOCK_TLS_KEY_PASSWORD='" CERTIFICATES_PASSWORD "' "

typedef struct shell_case {
  const char *script;
  int status;
  const char *output; /* a part of it, or NULL */
} shell_case;

static void check_all(const shell_case *cases, size_t count) {
  for (size_t i = 0; i < count; i++) {
    check(cases[i].script, cases[i].status);
    assert_contains(last.text, cases[i].output != NULL ? cases[i].output : "");
    assert_null(strstr(last.text, "secret"));
  }
}
#define CHECK_ALL(cases) check_all(cases, sizeof(cases) / sizeof(cases)[0])

TEST(options_configure_tls) {
  static const shell_case cases[] = {
      {TOOL "-n $TLS " CA OWN "run job -- true", 0, NULL},
      {TOOL "-n $HOST --tls --tls-min-version 1.3 --tls-crl $DIR/crl.pem "
            "--tls-ciphers TLS_AES_128_GCM_SHA256 " CA OWN "run job -- true",
       0, NULL},
      {TOOL "-n $HOST --tls-dangerously-unverified " OWN "run job -- true", 0, NULL},
      {TOOL "-n $TLS --tls-server-name elsewhere.test " CA OWN "nodes", 69, "elsewhere.test"},
      {TOOL "-n $TLS " OWN "nodes", 69, "certificate"},
      {TOOL "-n $TLS " CA "nodes", 69, NULL},
      {VARIABLES PASSWORD TOOL "nodes", 0, NULL},
      {VARIABLES "printf '%s\nmore\n' '" CERTIFICATES_PASSWORD "' >$DIR/password; " TOOL
                 "--tls-key-password-file $DIR/password nodes",
       0, NULL},
      {VARIABLES "REDLOCK_TLS_KEY=/none " TOOL "--tls-key $DIR/client.key --tls-min-version 1.3 "
                 "nodes",
       0, NULL},
      {VARIABLES PASSWORD TOOL "run job -- env | grep PASSWORD", 1, NULL}, /* grep finds none. */
      {VARIABLES PASSWORD TOOL "run job -- env | grep TLS_KEY=", 0, NULL},
      {VARIABLES "REDLOCK_TLS_KEY_PASSWORD=wrong-secret $R nodes", 64, "tls_key"},
  };
  tls_farm_set(&nodes, 0, "tls-auth-clients", "yes");
  CHECK_ALL(cases);
}

/* Without TLS the password of the node would go to whatever server answers. */
TEST(each_option_of_tls_turns_it_on) {
  static const shell_case cases[] = {
      {TOOL "-n $HOST " CA "nodes", 0, NULL},
      {IMPATIENT "-n $PLAIN " CA "run job -- true", 69, NULL},
      {"REDLOCK_TLS_CA=$DIR/ca.pem " TOOL "-n $HOST nodes", 0, NULL},
      {"REDLOCK_TLS_CA= " TOOL "-n $PLAIN nodes", 0, NULL},
  };
  CHECK_ALL(cases);
}

TEST(mistakes_are_reported) {
  static const shell_case cases[] = {
      {"$R -n $TLS --tls-ca /none nodes", 64, "tls_ca"},
      {"$R -n $TLS --tls-ca '' nodes", 64, "tls_ca must be a file"},
      {"$R -n $TLS --tls-cert $DIR/client.pem nodes", 64, "set both of tls_cert and tls_key"},
      {"$R -n $TLS --tls-min-version 1.1 nodes", 64,
       "invalid value '1.1' for --tls-min-version: use"},
      {"$R -n $TLS --tls-ciphers nonsense nodes", 64, "cipher"},
      {"$R --tls-key-password-file /none nodes", 64, "cannot read /none: No such file"},
      {"$R --tls-key-password-file /dev/null nodes", 64, "must have a password of 1 to 1024 bytes"},
      {"$R --tls-key-password-file /dev/zero nodes", 64, "must have a password of 1 to 1024 bytes"},
      {"$R --tls-key-password secret nodes", 64,
       "--tls-key-password-file or REDLOCK_TLS_KEY_PASSWORD"},
      {"$R --tls-verify nodes", 64, "unknown option '--tls-verify'"},
      {"$R --tls-ca", 64, "missing value after '--tls-ca'"},
  };
  CHECK_ALL(cases);
}

/* A crontab may have set it long ago: the command line has no such option. */
TEST(message_names_a_wrong_variable) {
  static const shell_case cases[] = {
      {"REDLOCK_TLS_MIN_VERSION=1.1 $R -n $TLS nodes", 64,
       "invalid value '1.1' for REDLOCK_TLS_MIN_VERSION: use 1.2 or 1.3"},
  };
  CHECK_ALL(cases);
}

TEST(library_is_loaded_only_for_tls) {
  static const shell_case cases[] = {
      {"mkdir $DIR/bin && cp $R $DIR/bin && R=$DIR/bin/redlock; " TOOL "-n $PLAIN nodes", 0, NULL},
      {"$DIR/bin/redlock -n rediss://u:secret@h run job true", 71,
       "TLS needs the library libredlock_tls.so.0: "},
      {"mkdir $DIR/lib && cp ${R%/bin/redlock}/lib/libredlock_tls.so.0 $DIR/lib && "
       "R=$DIR/bin/redlock; " TOOL "-n $TLS " CA "nodes",
       0, NULL},
      {"readelf -d $R | grep -i ssl; LD_DEBUG=libs " TOOL "-n $PLAIN nodes 2>&1 | grep -c libssl",
       1, "0\n"},
  };
  CHECK_ALL(cases);
}

int main(void) {
  return tests_run(&(tests_fixture){.start = start, .before = reset, .end = end});
}
