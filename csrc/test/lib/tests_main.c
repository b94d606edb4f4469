/*
 * main() of the programs whose tests need nothing around them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests.h"

int main(void) {
  static const tests_fixture none;
  return tests_run(&none);
}
