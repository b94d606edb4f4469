/*
 * Names: which families a look-up asks for.
 *
 * SPDX-License-Identifier: MIT
 *
 * The linker replaces getaddrinfo(): this host has no address of IPv4 but that of loopback.
 */
#include "net/rl_lookup.h"

#include <netdb.h>
#include <strings.h>

#include "rl_test.h"

int __real_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **addresses);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **addresses);

static unsigned limited; /* look-ups of families with an address */

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **addresses) {
  if ((hints->ai_flags & AI_ADDRCONFIG) != 0) {
    limited++;
    return EAI_FAMILY;
  }
  bool local = strcasecmp(host, "localhost") == 0 && (hints->ai_flags & AI_NUMERICHOST) == 0;
  return __real_getaddrinfo(local ? "127.0.0.1" : host, service, hints, addresses);
}

TEST(local_address_is_found_without_an_interface_of_its_family) {
  static const char *const hosts[] = {"127.0.0.1", "::1", "localhost", "LOCALHOST"};
  for (unsigned i = 0; i < COUNT_OF(hosts); i++) {
    struct addrinfo *addresses = NULL;
    assert_int_equal(rl_lookup_name(hosts[i], "6379", &addresses), 0);
    assert_non_null(addresses);
    freeaddrinfo(addresses);
  }
  assert_int_equal(limited, 0);
}

TEST(other_name_is_asked_for_families_of_interfaces) {
  struct addrinfo *addresses = NULL;
  assert_int_equal(rl_lookup_name("redis.test", "6379", &addresses), EAI_FAMILY);
  assert_null(addresses);
  assert_int_equal(limited, 1);
}
