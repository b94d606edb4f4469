/*
 * Certificates of every kind, made when they are needed.
 *
 * SPDX-License-Identifier: MIT
 *
 * Each is a file <name>.pem, with what is between it and the CA, and its key, <name>.key.
 *
 *   ca                  the CA; ca_renewed has the same name, and is another
 *   intermediate        a CA below it; intermediate_revoked
 *   good                for localhost, 127.0.0.1 and ::1, by ca; so are those that follow, but for what they say
 *   good_renewed        by ca_renewed
 *   below               by intermediate; below_revoked by intermediate_revoked
 *   wrong_host          for elsewhere.example; wrong_address: for 127.0.0.9; subject_only: localhost, as its subject alone
 *   expired, not_yet_valid, self_signed, revoked
 *   stranger            by a CA that nobody knows
 *   client, client_stranger, client_expired
 *
 * client_locked.key is that of client behind the password CERTIFICATES_PASSWORD; empty.pem is empty. crl.pem holds the
 * lists of ca and the CAs below it; crl_expired.pem has been out of date since yesterday.
 */
#ifndef CERTIFICATES_H
#define CERTIFICATES_H

#define CERTIFICATES_PASSWORD "a \"secret\" of ours"
#define CERTIFICATES_PATH_MAX 128

/* Writes all of them into |directory|. Aborts the program when that cannot be had. */
void certificates_write(const char *directory);

/* "<directory>/<name>" in |path|, which is returned. */
const char *certificates_path(char path[CERTIFICATES_PATH_MAX], const char *directory,
                              const char *name);

#endif
