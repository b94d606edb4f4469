/*
 * Replies: what is parsed, what is refused, and how little memory that takes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_test.h"
#include "wire/rl_reply.h"

#define MEMORY_MAX ((size_t)512 * 1024)

/* Those of the test. */
static rl_reply_reader reader;
static const char *reason;

static int begin(void **state) {
  reason = NULL;
  return rl_reply_open(&reader);
}

static int end(void **state) {
  rl_reply_close(&reader);
  rl_reply_close(&reader); /* It may be closed twice. */
  return 0;
}

/* Another connection. */
static void begin_again(void) {
  rl_reply_close(&reader);
  assert_int_equal(begin(NULL), 0);
}

static void feed(const void *bytes, size_t length) {
  assert_int_equal(rl_reply_feed(&reader, bytes, length), 0);
}

static int next(void) {
  return rl_reply_next(&reader, &reason);
}

typedef struct reply_case {
  const char *bytes;
  rl_reply_type type;
  long long integer;
  const char *text;
} reply_case;

static const reply_case cases[] = {
    {"+OK\r\n", RL_REPLY_STATUS, 0, "OK"},
    {"+\r\n", RL_REPLY_STATUS, 0, ""},
    {"+PONG with spaces\r\n", RL_REPLY_STATUS, 0, "PONG with spaces"},
    {"-ERR unknown\r\n", RL_REPLY_ERROR, 0, "ERR unknown"},
    {"-\r\n", RL_REPLY_ERROR, 0, ""},
    {"-ERR tab\tbell\a del\x7f\r\n", RL_REPLY_ERROR, 0, "ERR tab?bell? del?"},
    {"-ERR \xc3\xa9\r\n", RL_REPLY_ERROR, 0, "ERR \xc3\xa9"},
    {":0\r\n", RL_REPLY_INTEGER, 0, ""},
    {":1\r\n", RL_REPLY_INTEGER, 1, ""},
    {":-1\r\n", RL_REPLY_INTEGER, -1, ""},
    {":9223372036854775807\r\n", RL_REPLY_INTEGER, 9223372036854775807LL, ""},
    {"$-1\r\n", RL_REPLY_NIL, 0, ""},
    {"*-1\r\n", RL_REPLY_NIL, 0, ""},
    {"$0\r\n\r\n", RL_REPLY_STRING, 0, ""},
    {"$2\r\nOK\r\n", RL_REPLY_STRING, 0, ""},
    {"$4\r\na\r\nb\r\n", RL_REPLY_STRING, 0, ""},
    {"*0\r\n", RL_REPLY_OTHER, 0, ""},
    {"*1\r\n+OK\r\n", RL_REPLY_OTHER, 0, ""},
    {"*2\r\n:1\r\n$-1\r\n", RL_REPLY_OTHER, 0, ""},
    {"*3\r\n*1\r\n-ERR x\r\n*0\r\n$2\r\nOK\r\n", RL_REPLY_OTHER, 0, ""},
};

static void assert_reply(const reply_case *row) {
  assert_int_equal(reader.reply.type, row->type);
  assert_int_equal(reader.reply.integer, row->integer);
  assert_string_equal(reader.reply.text, row->text);
}

TEST(every_reply_is_parsed_whole_and_byte_by_byte) {
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    size_t length = strlen(cases[i].bytes);
    feed(cases[i].bytes, length);
    assert_int_equal(next(), 1);
    assert_reply(&cases[i]);
    assert_int_equal(next(), 0);
    for (size_t at = 0; at < length; at++) {
      assert_int_equal(next(), 0);
      feed(cases[i].bytes + at, 1);
    }
    assert_int_equal(next(), 1);
    assert_reply(&cases[i]);
  }
}

/* All of them in one piece, then cut in two at every place. */
TEST(replies_arrive_in_order) {
  char all[1024] = "";
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    strcat(all, cases[i].bytes);
  }
  size_t length = strlen(all);
  for (size_t cut = 0; cut <= length; cut++) {
    unsigned got = 0;
    begin_again();
    for (unsigned part = 0; part < 2; part++) {
      const char *from = part == 0 ? all : all + cut;
      feed(from, part == 0 ? cut : length - cut);
      while (next() == 1) {
        assert_reply(&cases[got++]);
      }
    }
    assert_int_equal(got, COUNT_OF(cases));
  }
}

TEST(long_text_is_cut_to_fit) {
  char line[4000];
  for (size_t length = RL_REPLY_TEXT_MAX - 1; length <= RL_REPLY_TEXT_MAX + 1; length++) {
    line[0] = '-';
    memset(line + 1, 'x', length);
    memcpy(line + 1 + length, "\r\n", 2);
    feed(line, length + 3);
    assert_int_equal(next(), 1);
    assert_int_equal(strlen(reader.reply.text),
                     length < RL_REPLY_TEXT_MAX ? length : RL_REPLY_TEXT_MAX);
  }
}

/* ------------------------------------------------------------------------------------ refusals */

/* The replies before it are read. */
static void assert_broken(const char *bytes, const char *expected) {
  int got;
  begin_again();
  feed(bytes, strlen(bytes));
  while ((got = next()) == 1) {
  }
  if (got != -1) {
    fail_msg("not refused: %s", bytes);
  }
  assert_string_equal(reason, expected);
}

TEST(invalid_resp_is_rejected) {
  static const char *const garbage[] = {"HTTP/1.1 400 Bad Request\r\n",
                                        "\r\n",
                                        "OK\r\n",
                                        "\x16\x03\x01 TLS",
                                        ":\r\n",
                                        ":1a\r\n",
                                        ":99999999999999999999\r\n",
                                        "$x\r\n",
                                        "*x\r\n",
                                        "$-2\r\n",
                                        "*-2\r\n",
                                        "*1\r\nx",
                                        "+OK\r\nx",
                                        "SSH-2.0-OpenSSH_9.2\r\n"};
  for (unsigned i = 0; i < COUNT_OF(garbage); i++) {
    assert_broken(garbage[i],
                  "the reply is not RESP; is this the port of a Redis or Valkey server?");
  }
}

/* Of a length that is none, too, the rest of the line is waited for. */
TEST(line_is_judged_when_complete) {
  static const char *const lines[] = {"$x", "$1x", "$-", ":1a", "*x"};
  for (unsigned i = 0; i < COUNT_OF(lines); i++) {
    begin_again();
    feed(lines[i], strlen(lines[i]));
    assert_int_equal(next(), 0);
    feed("\r\n", 2);
    assert_int_equal(next(), -1);
    assert_string_equal(reason,
                        "the reply is not RESP; is this the port of a Redis or Valkey server?");
  }
}

TEST(too_large_reply_is_rejected_when_it_is_announced) {
  static const char *const rows[] = {"*17\r\n",
                                     "*1000000\r\n",
                                     "*2147483647\r\n",
                                     "*1\r\n*17\r\n",
                                     "*16\r\n*16\r\n*17\r\n",
                                     "$65537\r\n",
                                     "$536870912\r\n",
                                     "$2147483647\r\n",
                                     "$99999999999999999999",
                                     "*2\r\n$2000000000\r\n",
                                     "+OK\r\n$2000000000\r\n"};
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    assert_broken(rows[i], "the reply is too large");
  }
  assert_broken(
      "$99999999999999999999\r\n",
      "the reply is not RESP; is this the port of a Redis or Valkey server?"); /* no number for hiredis */
}

TEST(array_size_beyond_int_is_rejected) {
  static const char *const sizes[] = {"*2147483648\r\n", "*4294967296\r\n", "*4294967297\r\n",
                                      "*9223372036854775807\r\n", "*18446744073709551615\r\n"};
  for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
    begin_again();
    feed(sizes[i], strlen(sizes[i]));
    assert_int_equal(next(), -1);
    assert_non_null(reason);
  }
}

TEST(nesting_is_bounded) {
  char deep[1024] = "";
  for (unsigned i = 0; i < 100; i++) {
    strcat(deep, "*1\r\n");
  }
  assert_broken(deep, "the reply is too large");
}

/* Feeds |piece| repeatedly. Returns the number of bytes until the stream is rejected. */
static size_t feed_for_ever(const char *begin, const char *piece, size_t length, size_t *memory) {
  size_t fed = strlen(begin);
  int got = 0;
  *memory = 0;
  begin_again();
  feed(begin, fed);
  while (fed < ((size_t)64 << 20) && (got = next()) == 0) {
    feed(piece, length);
    fed += length;
    *memory = reader.reader->len > *memory ? reader.reader->len : *memory;
  }
  assert_int_equal(got, -1);
  assert_string_equal(reason, "the reply is too large");
  return fed;
}

TEST(endless_line_is_refused_and_costs_little_memory) {
  static const char *const begins[] = {"+", "-", ":", "$", "*", "*1\r\n+", "*1\r\n$", "$000"};
  char piece[1000];
  memset(piece, '0', sizeof piece);
  for (unsigned i = 0; i < COUNT_OF(begins); i++) {
    size_t memory;
    size_t fed = feed_for_ever(begins[i], piece, sizeof piece, &memory);
    assert_true(fed <= RL_REPLY_BULK_MAX + RL_REPLY_LINE_MAX + 2 * sizeof piece);
    assert_true(memory <= MEMORY_MAX);
    fed = feed_for_ever(begins[i], "0", 1, &memory);
    assert_true(fed <= RL_REPLY_BULK_MAX + RL_REPLY_LINE_MAX + 2);
  }
}

/* As much as may be held of a reply that is not complete is held, and not one byte more. */
TEST(every_bound_is_exact) {
  static const struct {
    const char *begin; /* after small replies, which do not count any more */
    char more;
    size_t bound;
  } bounds[] = {{"+", 'x', RL_REPLY_LINE_MAX},
                {"$", '0', RL_REPLY_LINE_MAX},
                {"$1x", 'x', RL_REPLY_BULK_MAX + RL_REPLY_LINE_MAX}};
  for (unsigned i = 0; i < COUNT_OF(bounds); i++) {
    size_t length = strlen(bounds[i].begin);
    size_t more = bounds[i].bound + 1 - length; /* The type itself does not count. */
    char *bytes = malloc(more);
    assert_non_null(bytes);
    memset(bytes, bounds[i].more, more);
    begin_again();
    for (unsigned small = 0; small < 100; small++) {
      feed("+OK\r\n", 5);
      assert_int_equal(next(), 1);
    }
    feed(bounds[i].begin, length);
    assert_int_equal(next(), 0);
    feed(bytes, more);
    assert_int_equal(next(), 0);
    feed(bytes, 1);
    assert_int_equal(next(), -1);
    assert_string_equal(reason, "the reply is too large");
    free(bytes);
  }
}

/* The largest bulk and the largest arrays, in every piece. */
TEST(largest_replies_are_read) {
  char bulk[RL_REPLY_BULK_MAX + 16];
  char array[8 + 4 * RL_REPLY_ELEMENTS_MAX] = "*16\r\n";
  const char *const nested = "*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n";
  memset(bulk, 'b', sizeof bulk);
  memcpy(bulk, "$65536\r\n", 8);
  memcpy(bulk + 8 + RL_REPLY_BULK_MAX, "\r\n", 3);
  for (unsigned i = 0; i < RL_REPLY_ELEMENTS_MAX; i++) {
    strcat(array, ":1\r\n");
  }
  const char *const replies[] = {bulk, array, nested};
  for (unsigned i = 0; i < COUNT_OF(replies); i++) {
    size_t length = strlen(replies[i]);
    begin_again();
    for (size_t at = 0, part = 1; at < length; at += part) {
      part = length - at < 16 || at < 16 ? 1 : 16;
      assert_int_equal(next(), 0);
      feed(replies[i] + at, part);
    }
    assert_int_equal(next(), 1);
    assert_int_equal(reader.reply.type, RL_REPLY_OTHER);
  }
}

TEST(string_is_kept_with_all_its_bytes) {
  for (size_t length = 0; length <= RL_REPLY_BYTES_MAX + 1; length++) {
    char bytes[RL_REPLY_BYTES_MAX + 32];
    int head = snprintf(bytes, sizeof bytes, "$%zu\r\n", length);
    for (size_t i = 0; i < length; i++) {
      bytes[(size_t)head + i] = (char)(i * 7);
    }
    memcpy(bytes + head + length, "\r\n", 2);
    begin_again();
    feed(bytes, (size_t)head + length + 2);
    assert_int_equal(next(), 1);
    if (length > RL_REPLY_BYTES_MAX) {
      assert_int_equal(reader.reply.type, RL_REPLY_OTHER);
    } else {
      assert_int_equal(reader.reply.type, RL_REPLY_STRING);
      assert_int_equal(reader.reply.length, length);
      assert_memory_equal(reader.reply.bytes, bytes + head, length);
    }
  }
}

TEST(stream_of_small_replies_costs_no_more_memory_with_time) {
  char many[5 * 3000];
  for (unsigned i = 0; i < 3000; i++) {
    memcpy(many + 5 * i, "+OK\r\n", 5);
  }
  for (unsigned round = 0; round < 500; round++) {
    /* In two pieces that cut a reply. */
    size_t cut = 7001;
    for (unsigned part = 0; part < 2; part++) {
      feed(part == 0 ? many : many + cut, part == 0 ? cut : sizeof many - cut);
      while (next() == 1) {
      }
    }
    assert_true(reader.reader->len <= 2 * sizeof many);
  }
}

TEST(message_has_kind_and_payload) {
  static const struct {
    const char *bytes, *word, *said;
  } rows[] = {
      {"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$10\r\n00000001ab\r\n", "message", "00000001ab"},
      {"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$0\r\n\r\n", "message", ""},
      {"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n", "subscribe", ""},
      {"*2\r\n$4\r\npong\r\n$0\r\n\r\n", "pong", ""},
      {"*3\r\n$16\r\n0123456789abcdef\r\n$1\r\nc\r\n$1\r\nx\r\n", "", "x"},
      {"*3\r\n*1\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n", "", "x"},
      {"+message\r\n", "", ""},
      {"$7\r\nmessage\r\n", "", "message"},
      {"*0\r\n", "", ""},
      {"*1\r\n$7\r\nmessage\r\n", "message", ""},
      {"*3\r\n:7\r\n:7\r\n:7\r\n", "", ""},
  };
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    feed(rows[i].bytes, strlen(rows[i].bytes));
    assert_int_equal(next(), 1);
    assert_string_equal(reader.reply.word, rows[i].word);
    assert_int_equal(reader.reply.length, strlen(rows[i].said));
    assert_memory_equal(reader.reply.bytes, rows[i].said, strlen(rows[i].said));
  }
}

TEST(message_keeps_any_bytes_and_is_cut) {
  static char bytes[RL_REPLY_BYTES_MAX * 2 + 100];
  for (size_t length = RL_REPLY_BYTES_MAX - 1; length <= RL_REPLY_BYTES_MAX * 2;
       length += length < RL_REPLY_BYTES_MAX + 1 ? 1 : RL_REPLY_BYTES_MAX - 1) {
    int used = snprintf(bytes, sizeof bytes, "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$%zu\r\n", length);
    for (size_t i = 0; i < length; i++) {
      bytes[(size_t)used + i] = (char)i;
    }
    memcpy(bytes + used + length, "\r\n", 2);
    feed(bytes, (size_t)used + length + 2);
    assert_int_equal(next(), 1);
    assert_string_equal(reader.reply.word, "message");
    assert_int_equal(reader.reply.length, length);
    assert_memory_equal(reader.reply.bytes, bytes + used,
                        length < RL_REPLY_BYTES_MAX ? length : RL_REPLY_BYTES_MAX);
  }
}

int main(void) {
  return tests_run(&(tests_fixture){.before = begin, .after = end});
}
