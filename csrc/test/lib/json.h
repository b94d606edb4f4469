/*
 * Checks that a text is JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>

/* Returns true if each line of |text| is one JSON object in valid UTF-8, and there is a line. */
bool json_lines_are_valid(const char *text);

#endif
