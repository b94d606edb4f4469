/*
 * Labels: which bytes are one, and where a token has one.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_label.h"
#include "rl_test.h"

#define DIGITS "0123456789abcdef0123456789abcdef01234567"
#define SIXTEEN "sixteen letters "

typedef struct text_case {
  const char *text;
  bool valid;
} text_case;

static const text_case cases[] = {
    {"host a, pid 7, nightly", true},
    {"a", true},
    {"", false},
    {" ", true},
    {"'\"\\:", true},
    {SIXTEEN SIXTEEN SIXTEEN SIXTEEN, true},
    {SIXTEEN SIXTEEN SIXTEEN SIXTEEN "x", false},
    {"\xc3\xa9t\xc3\xa9, \xe5\xa4\x9c\xe9\x97\xb4 \xf0\x9f\x94\x92", true}, /* 2, 3 and 4 bytes */
    {SIXTEEN SIXTEEN SIXTEEN "sixteen letter\xc3\xa9", true},               /* 64 bytes */
    {SIXTEEN SIXTEEN SIXTEEN "sixteen letters\xc3\xa9", false},             /* 65 bytes */
    {"line\nbreak", false},
    {"tab\t", false},
    {"escape\x1b[2J", false},
    {"delete\x7f", false},
    {"\xc2\x80", false}, /* C1 */
    {"\xc2\x9b", false}, /* an escape sequence in one character */
    {"\xc2\x9f", false},
    {"\xc2\xa0", true},
    {"\xc2\xad", false},         /* soft hyphen */
    {"\xe2\x80\xa8", false},     /* line separator */
    {"\xe2\x80\xae", false},     /* right-to-left override */
    {"\xe2\x81\xa6", false},     /* isolate */
    {"\xef\xbb\xbf", false},     /* byte order mark */
    {"\xef\xbf\xbf", false},     /* no character */
    {"\xef\xbf\xbd", true},      /* replacement character */
    {"\xf3\xa0\x81\xa1", false}, /* invisible tag */
    {"\x80", false},             /* a continuation */
    {"\xc3", false},             /* cut */
    {"\xe5\xa4", false},
    {"\xf0\x9f\x94", false},
    {"\xc3(", false},
    {"\xc0\x80", false}, /* too long a form */
    {"\xc1\xbf", false},
    {"\xe0\x9f\xbf", false},
    {"\xf0\x8f\xbf\xbf", false},
    {"\xed\x9f\xbf", true},
    {"\xed\xa0\x80", false}, /* surrogate */
    {"\xee\x80\x80", true},
    {"\xf4\x8f\xbf\xbd", true},
    {"\xf4\x90\x80\x80", false}, /* beyond the last character */
    {"\xf8\x88\x80\x80\x80", false},
    {"\xff", false},
};

TEST(label_is_printable_utf8_of_at_most_64_bytes) {
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    if (rl_label_is_valid(cases[i].text, strlen(cases[i].text)) != cases[i].valid) {
      print_message("case %u\n", i);
    }
    assert_int_equal(rl_label_is_valid(cases[i].text, strlen(cases[i].text)), cases[i].valid);
  }
  assert_false(rl_label_is_valid("a\0b", 3));
  assert_false(rl_label_is_valid(NULL, 0));
}

TEST(invalid_label_is_none) {
  rl_label label = {9, "something"};
  rl_label_set(&label, "text", 4);
  assert_int_equal(label.length, 4);
  assert_string_equal(label.text, "text");
  rl_label_set(&label, "te\nxt", 5);
  assert_int_equal(label.length, 0);
  assert_string_equal(label.text, "");
}

TEST(token_has_a_label_behind_its_digits) {
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    char token[REDLOCK_TOKEN_MAX];
    size_t length = 99;
    int written = snprintf(token, sizeof token, DIGITS ":%s", cases[i].text);
    const char *label = rl_label_of(token, (size_t)written, &length);
    assert_int_equal(length, cases[i].valid ? strlen(cases[i].text) : 0);
    if (cases[i].valid) {
      assert_ptr_equal(label, token + 41);
    } else {
      assert_null(label);
    }
    assert_int_equal(rl_label_secret(token, (size_t)written),
                     cases[i].valid ? 40u : (size_t)written);
  }
}

/* Tokens of other programs, and of this one without a label. */
TEST(other_token_has_no_label) {
  static const char *const tokens[] = {
      "",
      DIGITS,
      DIGITS ":",
      DIGITS ";label",
      DIGITS "0:label",
      "0123456789ABCDEF0123456789ABCDEF01234567:label",
      "0123456789abcdef0123456789abcdef0123456:label",
      "0123456789abcdef0123456789abcdef0123456g:label",
      "6f1ed002ab5595859014ebf0951522d9-host:12",
      ":label",
  };
  for (unsigned i = 0; i < COUNT_OF(tokens); i++) {
    size_t length = 99;
    assert_null(rl_label_of(tokens[i], strlen(tokens[i]), &length));
    assert_int_equal(length, 0);
    assert_int_equal(rl_label_secret(tokens[i], strlen(tokens[i])), strlen(tokens[i]));
  }
}

TEST(token_of_a_semaphore_names_its_permits) {
  static const struct {
    const char *token;
    unsigned permits;
    const char *label;
  } tokens[] = {
      {DIGITS "/1", 1, NULL},
      {DIGITS "/1024", 1024, NULL},
      {DIGITS "/12:a/3", 12, "a/3"},
      {DIGITS "/1025", 0, NULL},
      {DIGITS "/0", 0, NULL},
      {DIGITS "/03", 0, NULL},
      {DIGITS "/", 0, NULL},
      {DIGITS "/3x", 0, NULL},
      {DIGITS "/99999", 0, NULL},
      {DIGITS ":host/3", 0, "host/3"},
      {DIGITS, 0, NULL},
      {"short/3", 0, NULL},
      {DIGITS "/3:", 3, NULL},
  };
  for (unsigned i = 0; i < COUNT_OF(tokens); i++) {
    size_t length, size = strlen(tokens[i].token);
    const char *label = rl_label_of(tokens[i].token, size, &length);
    assert_int_equal(rl_label_permits(tokens[i].token, size), tokens[i].permits);
    assert_true((label == NULL) == (tokens[i].label == NULL));
    assert_true(label == NULL || strcmp(label, tokens[i].label) == 0);
    assert_int_equal(rl_label_secret(tokens[i].token, size),
                     label != NULL || tokens[i].permits > 0 ? 40 : size);
  }
}
