/*
 * Makes certificates of all kinds.
 *
 * SPDX-License-Identifier: MIT
 *
 * Each has a file <name>.pem with the certificate and its intermediate CAs, and a key <name>.key.
 *
 *   ca                  the CA; ca_renewed is another CA of the same name
 *   intermediate        a CA below it; intermediate_revoked is revoked
 *   good                for localhost, 127.0.0.1 and ::1, by ca; the following certificates differ
 *                       as described
 *   good_renewed        by ca_renewed
 *   below               by intermediate; below_revoked by intermediate_revoked
 *   wrong_host          for elsewhere.example; wrong_address for 127.0.0.9; subject_only has
 *                       localhost only as subject
 *   expired, not_yet_valid, self_signed, revoked
 *   stranger            by ca_stranger
 *   client, client_stranger, client_expired
 *
 * client_locked.key is the key of client, encrypted with CERTIFICATES_PASSWORD; empty.pem is empty.
 * crl.pem has the lists of ca and the CAs below it; crl_expired.pem expired yesterday.
 */
#ifndef CERTIFICATES_H
#define CERTIFICATES_H

#define CERTIFICATES_PASSWORD "a \"secret\" of ours"
#define CERTIFICATES_PATH_MAX 128

/* Writes all files into |directory|. Aborts the program if that fails. */
void certificates_write(const char *directory);

/* Writes "<directory>/<name>" into |path|, and returns it. */
const char *certificates_path(char path[CERTIFICATES_PATH_MAX], const char *directory,
                              const char *name);

#endif
