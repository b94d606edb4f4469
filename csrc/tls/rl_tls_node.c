/*
 * TLS by OpenSSL: what the connections to one node share.
 *
 * SPDX-License-Identifier: MIT
 *
 * Certificates are renewed while programs run. So each new connection checks the files, and reads
 * them again if one has changed. A file that is invalid, perhaps because it is being written,
 * changes nothing; the next connection tries again.
 *
 * A system has more than a hundred CAs, which take 20 ms to read and 0.8 MB to keep. So nodes of a
 * client that trust the same files share them until the files change.
 */
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rl_tls.h"

#define RL_TLS_CIPHERS_MAX 1024

/* ------------------------------------------------------------------------------------- options */

#define RL_TLS_TEXTS(X)                                                                            \
  X(host) X(ca) X(ca_path) X(crl) X(cert) X(key) X(key_password) X(server_name) X(ciphers)

static bool rl_tls_node_copy(rl_transport_node *node, const rl_transport_options *options) {
  bool ok = true;
  node->options.min_version = options->min_version;
  node->options.unverified = options->unverified;
#define RL_TLS_COPY(field)                                                                         \
  node->options.field = options->field == NULL ? NULL : strdup(options->field);                    \
  ok = ok && (node->options.field != NULL || options->field == NULL);
  RL_TLS_TEXTS(RL_TLS_COPY)
  return ok;
}

static void rl_tls_node_forget_options(rl_transport_node *node) {
  char *password = (char *)(uintptr_t)node->options.key_password;
  if (password != NULL) {
    OPENSSL_cleanse(password, strlen(password));
  }
#define RL_TLS_FREE(field) free((void *)(uintptr_t)node->options.field);
  RL_TLS_TEXTS(RL_TLS_FREE)
}

/* Sets node->peer to the name or address as certificates have it: without final dot or zone. */
static void rl_tls_node_read_peer(rl_transport_node *node) {
  unsigned char address[sizeof(struct in6_addr)];
  const char *name = node->options.server_name != NULL ? node->options.server_name
                     : node->options.host != NULL      ? node->options.host
                                                       : "";
  char *peer = (char *)(uintptr_t)name;
  size_t length = strlen(peer);
  char *zone = strchr(peer, '%');
  if (zone != NULL && strchr(peer, ':') != NULL) {
    *zone = '\0';
  } else if (length > 1 && peer[length - 1] == '.') {
    peer[length - 1] = '\0';
  }
  node->peer = peer;
  node->peer_is_address =
      inet_pton(AF_INET, peer, address) == 1 || inet_pton(AF_INET6, peer, address) == 1;
}

static const char *rl_tls_node_find_mistake(const rl_transport_node *node) {
  const rl_transport_options *options = &node->options;
  if ((options->cert == NULL) != (options->key == NULL)) {
    return "set both of tls_cert and tls_key";
  }
  if (options->key_password != NULL && options->key == NULL) {
    return "tls_key_password needs tls_key";
  }
  if (node->peer[0] == '\0' && !options->unverified) {
    return "TLS over a Unix socket needs tls_server_name, a name in the certificate";
  }
  if (options->unverified &&
      (options->ca != NULL || options->ca_path != NULL || options->crl != NULL)) {
    return "tls_dangerously_unverified excludes tls_ca, tls_ca_path and tls_crl";
  }
  struct stat path;
  if (options->ca_path != NULL && (stat(options->ca_path, &path) != 0 || !S_ISDIR(path.st_mode))) {
    return "tls_ca_path is not a directory"; /* OpenSSL would report that too late. */
  }
  return NULL;
}

/* --------------------------------------------------------------------------------------- rules */

static int rl_tls_node_password(char *room, int size, int writing, void *data) {
  const rl_transport_node *node = data;
  const char *password = node->options.key_password;
  size_t length = password == NULL ? 0 : strlen(password);
  (void)writing;
  if (length == 0 || length > (size_t)size) {
    return -1; /* OpenSSL must not ask at the terminal. */
  }
  for (size_t i = 0; i < length; i++) {
    room[i] = password[i]; /* OpenSSL wants no NUL. */
  }
  return (int)length;
}

/*
 * Names with TLS_ are ciphers of TLS 1.3, other names ciphers of TLS 1.2. A version without a name
 * keeps the default.
 */
static bool rl_tls_node_set_ciphers(SSL_CTX *context, const char *ciphers) {
  char all[RL_TLS_CIPHERS_MAX];
  char older[RL_TLS_CIPHERS_MAX] = "";
  char newer[RL_TLS_CIPHERS_MAX] = "";
  char *rest = NULL;
  if (strlen(ciphers) >= sizeof all) {
    return false;
  }
  memcpy(all, ciphers, strlen(ciphers) + 1);
  for (char *name = strtok_r(all, ":, ", &rest); name != NULL;
       name = strtok_r(NULL, ":, ", &rest)) {
    char *list = strncmp(name, "TLS_", 4) == 0 ? newer : older;
    size_t length = strlen(list);
    (void)snprintf(list + length, RL_TLS_CIPHERS_MAX - length, "%s%s", length > 0 ? ":" : "", name);
  }
  return (older[0] != '\0' || newer[0] != '\0') &&
         (older[0] == '\0' || SSL_CTX_set_cipher_list(context, older) == 1) &&
         (newer[0] == '\0' || SSL_CTX_set_ciphersuites(context, newer) == 1);
}

static bool rl_tls_node_is_same(const char *a, const char *b) {
  return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Shares the CAs that |like| has read, if both nodes trust the same files. */
static void rl_tls_node_share(rl_transport_node *node, const rl_transport_node *like) {
  const rl_transport_options *ours = &node->options;
  if (like == NULL || like->store == NULL || ours->unverified ||
      !rl_tls_node_is_same(ours->ca, like->options.ca) ||
      !rl_tls_node_is_same(ours->ca_path, like->options.ca_path) ||
      !rl_tls_node_is_same(ours->crl, like->options.crl) || X509_STORE_up_ref(like->store) != 1) {
    return;
  }
  node->store = like->store;
  node->files[RL_TLS_CA].seen = like->files[RL_TLS_CA].seen; /* The files may have changed since. */
  node->files[RL_TLS_CRL].seen = like->files[RL_TLS_CRL].seen;
}

static void rl_tls_node_forget_store(rl_transport_node *node) {
  X509_STORE_free(node->store);
  node->store = NULL;
}

/* Keeps the CAs of |context|. */
static void rl_tls_node_keep_store(rl_transport_node *node, const SSL_CTX *context) {
  X509_STORE *store = SSL_CTX_get_cert_store(context);
  if (!node->options.unverified && store != node->store && X509_STORE_up_ref(store) == 1) {
    rl_tls_node_forget_store(node);
    node->store = store;
  }
}

/* Keeps |session| for the next connection. */
static int rl_tls_node_remember(SSL *ssl, SSL_SESSION *session) {
  const rl_transport_stream *stream = SSL_get_app_data(ssl);
  rl_tls_node_forget_session(stream->node);
  stream->node->session = session;
  return 1;
}

static void rl_tls_node_set_rules(rl_transport_node *node, SSL_CTX *context) {
  bool newest = node->options.min_version == REDLOCK_TLS_1_3;
  (void)SSL_CTX_set_min_proto_version(context, newest ? TLS1_3_VERSION : TLS1_2_VERSION);
  (void)SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  (void)SSL_CTX_set_mode(context, SSL_MODE_AUTO_RETRY);
  (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, rl_tls_node_remember);
  SSL_CTX_set_default_passwd_cb(context, rl_tls_node_password);
  SSL_CTX_set_default_passwd_cb_userdata(context, node);
  rl_tls_verify_begin(context, &node->options);
}

/*
 * Reads all files into |context|. Returns NULL, or the beginning of a sentence on the file |*path|.
 */
static const char *rl_tls_node_load(const rl_transport_node *node, SSL_CTX *context,
                                    const char **path) {
  const rl_transport_options *options = &node->options;
  if (options->ciphers != NULL && !rl_tls_node_set_ciphers(context, options->ciphers)) {
    return "tls_ciphers has no cipher that OpenSSL knows";
  }
  if (node->store != NULL) {
    SSL_CTX_set1_cert_store(context, node->store);
  } else {
    *path = options->ca != NULL ? options->ca : options->ca_path;
    if (!options->unverified && !rl_tls_verify_trust(context, options)) {
      return options->ca != NULL ? "tls_ca cannot be read" : "the CA certificates cannot be read";
    }
    *path = options->crl;
    if (options->crl != NULL && !rl_tls_verify_revoke(context, options->crl)) {
      return "tls_crl cannot be read";
    }
  }
  *path = options->cert;
  if (options->cert != NULL && SSL_CTX_use_certificate_chain_file(context, options->cert) != 1) {
    return "tls_cert cannot be read";
  }
  *path = options->key;
  if (options->key != NULL &&
      SSL_CTX_use_PrivateKey_file(context, options->key, SSL_FILETYPE_PEM) != 1) {
    return ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH
               ? "tls_key is not the key of tls_cert"
           : options->key_password != NULL ? "tls_key cannot be read with its password"
                                           : "tls_key cannot be read, or needs a tls_key_password";
  }
  if (options->key != NULL && SSL_CTX_check_private_key(context) != 1) {
    return "tls_key is not the key of tls_cert";
  }
  return NULL;
}

/* --------------------------------------------------------------------------------------- files */

/* Returns true if |file| has changed, and keeps its new state. */
static bool rl_tls_node_has_changed(rl_tls_file *file) {
  struct stat now;
  if (file->path == NULL || stat(file->path, &now) != 0) {
    return false;
  }
  bool changed = now.st_mtim.tv_sec != file->seen.st_mtim.tv_sec ||
                 now.st_mtim.tv_nsec != file->seen.st_mtim.tv_nsec ||
                 now.st_size != file->seen.st_size || now.st_ino != file->seen.st_ino;
  file->seen = now;
  return changed;
}

/* Sets node->outdated if a file has changed, and forgets changed CAs. */
static void rl_tls_node_check_files(rl_transport_node *node) {
  for (unsigned i = 0; i < RL_TLS_FILES; i++) {
    if (rl_tls_node_has_changed(&node->files[i])) {
      node->outdated = true;
      if (i == RL_TLS_CA || i == RL_TLS_CRL) {
        rl_tls_node_forget_store(node); /* node->context keeps its own reference. */
      }
    }
  }
}

/* Returns a context with the current contents of the files, or NULL with a message. */
static SSL_CTX *rl_tls_node_context(rl_transport_node *node, char *message, size_t message_size) {
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  if (context == NULL) {
    rl_tls_format_error(message, message_size, "cannot start OpenSSL: ", "out of memory");
    return NULL;
  }
  rl_tls_node_set_rules(node, context);
  const char *path = NULL;
  const char *wrong = rl_tls_node_load(node, context, &path);
  if (wrong != NULL) {
    char before[RL_TLS_REFUSAL_MAX];
    rl_tls_format(before, sizeof before, "%s%s%.80s%s: ", wrong, path == NULL ? "" : " (",
                  path == NULL ? "" : path, path == NULL ? "" : ")");
    rl_tls_format_error(message, message_size, before, "it is empty or has another format");
    SSL_CTX_free(context);
    return NULL;
  }
  return context;
}

void rl_tls_node_refresh(rl_transport_node *node) {
  char message[RL_TLS_REFUSAL_MAX];
  rl_tls_node_check_files(node);
  if (!node->outdated) {
    return;
  }
  SSL_CTX *context = rl_tls_node_context(node, message, sizeof message);
  if (context != NULL) {
    node->outdated = false;
    rl_tls_node_keep_store(node, context);
    SSL_CTX_free(node->context); /* Its connections have references. */
    node->context = context;
    rl_tls_node_forget_session(node);
  }
}

/* ---------------------------------------------------------------------------------------- life */

void rl_tls_node_forget_session(rl_transport_node *node) {
  SSL_SESSION_free(node->session);
  node->session = NULL;
}

static int rl_tls_node_fill(rl_transport_node *node, const rl_transport_options *options,
                            char *message, size_t message_size) {
  node->bio = rl_tls_bio_method();
  if (node->bio == NULL || !rl_tls_node_copy(node, options)) {
    rl_tls_format(message, message_size, "out of memory");
    return REDLOCK_E_NO_MEMORY;
  }
  rl_tls_node_read_peer(node);
  const char *wrong = rl_tls_node_find_mistake(node);
  if (wrong != NULL) {
    rl_tls_format(message, message_size, "%s", wrong);
    return REDLOCK_E_INVALID;
  }
  node->files[RL_TLS_CA].path = node->options.ca;
  node->files[RL_TLS_CRL].path = node->options.crl;
  node->files[RL_TLS_CERT].path = node->options.cert;
  node->files[RL_TLS_KEY].path = node->options.key;
  rl_tls_node_share(node, options->like);
  rl_tls_node_check_files(node);
  node->context = rl_tls_node_context(node, message, message_size);
  if (node->context == NULL) {
    return REDLOCK_E_INVALID;
  }
  node->outdated = false;
  rl_tls_node_keep_store(node, node->context);
  return REDLOCK_OK;
}

int rl_tls_node_new(rl_transport_node **made, const rl_transport_options *options, char *message,
                    size_t message_size) {
  rl_transport_node *node = calloc(1, sizeof *node);
  *made = NULL;
  if (node == NULL) {
    rl_tls_format(message, message_size, "out of memory");
    return REDLOCK_E_NO_MEMORY;
  }
  ERR_clear_error();
  int error = rl_tls_node_fill(node, options, message, message_size);
  ERR_clear_error();
  if (error != REDLOCK_OK) {
    rl_tls_node_free(node);
    return error;
  }
  *made = node;
  return REDLOCK_OK;
}

void rl_tls_node_free(rl_transport_node *node) {
  rl_tls_node_forget_session(node);
  rl_tls_node_forget_store(node);
  SSL_CTX_free(node->context);
  BIO_meth_free(node->bio);
  rl_tls_node_forget_options(node);
  free(node);
}
