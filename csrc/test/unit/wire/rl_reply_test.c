/*
 * Replies: what is parsed, what is refused, and how little memory that takes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_test.h"
#include "wire/rl_reply.h"

#define MEMORY_MAX ((size_t)512 * 1024)

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

static void assert_reply(const rl_reply_reader *reader, const reply_case *row) {
  assert_int_equal(reader->reply.type, row->type);
  assert_int_equal(reader->reply.integer, row->integer);
  assert_string_equal(reader->reply.text, row->text);
}

TEST(every_reply_is_parsed_whole_and_byte_by_byte) {
  rl_reply_reader reader;
  const char *reason = NULL;
  assert_int_equal(rl_reply_open(&reader), 0);
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    size_t length = strlen(cases[i].bytes);
    assert_int_equal(rl_reply_feed(&reader, cases[i].bytes, length), 0);
    assert_int_equal(rl_reply_next(&reader, &reason), 1);
    assert_reply(&reader, &cases[i]);
    assert_int_equal(rl_reply_next(&reader, &reason), 0);
    for (size_t at = 0; at < length; at++) {
      assert_int_equal(rl_reply_next(&reader, &reason), 0);
      assert_int_equal(rl_reply_feed(&reader, cases[i].bytes + at, 1), 0);
    }
    assert_int_equal(rl_reply_next(&reader, &reason), 1);
    assert_reply(&reader, &cases[i]);
  }
  rl_reply_close(&reader);
  rl_reply_close(&reader);
}

/* All of them in one piece, then cut in two at every place. */
TEST(replies_arrive_in_order) {
  char all[1024] = "";
  const char *reason = NULL;
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    strcat(all, cases[i].bytes);
  }
  size_t length = strlen(all);
  for (size_t cut = 0; cut <= length; cut++) {
    rl_reply_reader reader;
    unsigned got = 0;
    assert_int_equal(rl_reply_open(&reader), 0);
    for (unsigned part = 0; part < 2; part++) {
      const char *from = part == 0 ? all : all + cut;
      assert_int_equal(rl_reply_feed(&reader, from, part == 0 ? cut : length - cut), 0);
      while (rl_reply_next(&reader, &reason) == 1) {
        assert_reply(&reader, &cases[got++]);
      }
    }
    assert_int_equal(got, COUNT_OF(cases));
    rl_reply_close(&reader);
  }
}

TEST(long_text_is_cut_to_fit) {
  char line[4000];
  const char *reason = NULL;
  rl_reply_reader reader;
  assert_int_equal(rl_reply_open(&reader), 0);
  for (size_t length = RL_REPLY_TEXT_MAX - 1; length <= RL_REPLY_TEXT_MAX + 1; length++) {
    line[0] = '-';
    memset(line + 1, 'x', length);
    memcpy(line + 1 + length, "\r\n", 2);
    assert_int_equal(rl_reply_feed(&reader, line, length + 3), 0);
    assert_int_equal(rl_reply_next(&reader, &reason), 1);
    assert_int_equal(strlen(reader.reply.text),
                     length < RL_REPLY_TEXT_MAX ? length : RL_REPLY_TEXT_MAX);
  }
  rl_reply_close(&reader);
}

/* ------------------------------------------------------------------------------------ refusals */

static void assert_broken(const char *bytes, const char *expected) {
  rl_reply_reader reader;
  const char *reason = NULL;
  assert_int_equal(rl_reply_open(&reader), 0);
  assert_int_equal(rl_reply_feed(&reader, bytes, strlen(bytes)), 0);
  int got;
  while ((got = rl_reply_next(&reader, &reason)) == 1) {
  }
  if (got != -1) {
    print_message("not refused: %s\n", bytes);
  }
  assert_int_equal(got, -1);
  assert_string_equal(reason, expected);
  rl_reply_close(&reader);
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
    assert_broken(garbage[i], "the reply is not RESP");
  }
}

/* Of a length that is none, too, the rest of the line is waited for. */
TEST(line_is_judged_when_complete) {
  static const char *const lines[] = {"$x", "$1x", "$-", ":1a", "*x"};
  for (unsigned i = 0; i < COUNT_OF(lines); i++) {
    rl_reply_reader reader;
    const char *reason = NULL;
    assert_int_equal(rl_reply_open(&reader), 0);
    assert_int_equal(rl_reply_feed(&reader, lines[i], strlen(lines[i])), 0);
    assert_int_equal(rl_reply_next(&reader, &reason), 0);
    assert_int_equal(rl_reply_feed(&reader, "\r\n", 2), 0);
    assert_int_equal(rl_reply_next(&reader, &reason), -1);
    assert_string_equal(reason, "the reply is not RESP");
    rl_reply_close(&reader);
  }
}

TEST(announced_array_is_rejected) {
  assert_broken("*17\r\n", "the reply is too large");
  assert_broken("*1000000\r\n", "the reply is too large");
  assert_broken("*2147483647\r\n", "the reply is too large");
  assert_broken("*1\r\n*17\r\n", "the reply is too large");
  assert_broken("*16\r\n*16\r\n*17\r\n", "the reply is too large");
}

TEST(array_size_beyond_int_is_rejected) {
  rl_reply_reader reader;
  static const char *const sizes[] = {"*2147483648\r\n", "*4294967296\r\n", "*4294967297\r\n",
                                      "*9223372036854775807\r\n", "*18446744073709551615\r\n"};
  for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
    const char *reason = NULL;
    assert_int_equal(rl_reply_open(&reader), 0);
    assert_int_equal(rl_reply_feed(&reader, sizes[i], strlen(sizes[i])), 0);
    assert_int_equal(rl_reply_next(&reader, &reason), -1);
    assert_non_null(reason);
    rl_reply_close(&reader);
  }
}

TEST(announced_bulk_is_rejected) {
  assert_broken("$65537\r\n", "the reply is too large");
  assert_broken("$536870912\r\n", "the reply is too large");
  assert_broken("$2147483647\r\n", "the reply is too large");
  assert_broken("$99999999999999999999", "the reply is too large");
  assert_broken("$99999999999999999999\r\n", "the reply is not RESP"); /* no number for hiredis */
  assert_broken("*2\r\n$2000000000\r\n", "the reply is too large");
  assert_broken("+OK\r\n$2000000000\r\n", "the reply is too large");
}

TEST(nesting_is_bounded) {
  char deep[1024] = "";
  rl_reply_reader reader;
  const char *reason = NULL;
  for (unsigned i = 0; i < 100; i++) {
    strcat(deep, "*1\r\n");
  }
  assert_int_equal(rl_reply_open(&reader), 0);
  assert_int_equal(rl_reply_feed(&reader, deep, strlen(deep)), 0);
  assert_int_equal(rl_reply_next(&reader, &reason), -1);
  assert_string_equal(reason, "the reply is too large");
  rl_reply_close(&reader);
}

/* Feeds |piece| repeatedly. Returns the number of bytes until the stream is rejected. */
static size_t feed_for_ever(const char *begin, const char *piece, size_t length, size_t *memory) {
  rl_reply_reader reader;
  const char *reason = NULL;
  size_t fed = strlen(begin);
  int got = 0;
  *memory = 0;
  assert_int_equal(rl_reply_open(&reader), 0);
  assert_int_equal(rl_reply_feed(&reader, begin, fed), 0);
  while (fed < ((size_t)64 << 20) && (got = rl_reply_next(&reader, &reason)) == 0) {
    assert_int_equal(rl_reply_feed(&reader, piece, length), 0);
    fed += length;
    *memory = reader.reader->len > *memory ? reader.reader->len : *memory;
  }
  assert_int_equal(got, -1);
  assert_string_equal(reason, "the reply is too large");
  rl_reply_close(&reader);
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
    rl_reply_reader reader;
    const char *reason = NULL;
    assert_non_null(bytes);
    memset(bytes, bounds[i].more, more);
    assert_int_equal(rl_reply_open(&reader), 0);
    for (unsigned small = 0; small < 100; small++) {
      assert_int_equal(rl_reply_feed(&reader, "+OK\r\n", 5), 0);
      assert_int_equal(rl_reply_next(&reader, &reason), 1);
    }
    assert_int_equal(rl_reply_feed(&reader, bounds[i].begin, length), 0);
    assert_int_equal(rl_reply_next(&reader, &reason), 0);
    assert_int_equal(rl_reply_feed(&reader, bytes, more), 0);
    assert_int_equal(rl_reply_next(&reader, &reason), 0);
    assert_int_equal(rl_reply_feed(&reader, bytes, 1), 0);
    assert_int_equal(rl_reply_next(&reader, &reason), -1);
    assert_string_equal(reason, "the reply is too large");
    rl_reply_close(&reader);
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
    rl_reply_reader reader;
    const char *reason = NULL;
    size_t length = strlen(replies[i]);
    assert_int_equal(rl_reply_open(&reader), 0);
    for (size_t at = 0, part = 1; at < length; at += part) {
      part = length - at < 16 || at < 16 ? 1 : 16;
      assert_int_equal(rl_reply_next(&reader, &reason), 0);
      assert_int_equal(rl_reply_feed(&reader, replies[i] + at, part), 0);
    }
    assert_int_equal(rl_reply_next(&reader, &reason), 1);
    assert_int_equal(reader.reply.type, RL_REPLY_OTHER);
    rl_reply_close(&reader);
  }
}

TEST(string_is_kept_with_all_its_bytes) {
  for (size_t length = 0; length <= RL_REPLY_BYTES_MAX + 1; length++) {
    char bytes[RL_REPLY_BYTES_MAX + 32];
    rl_reply_reader reader;
    const char *reason = NULL;
    int head = snprintf(bytes, sizeof bytes, "$%zu\r\n", length);
    for (size_t i = 0; i < length; i++) {
      bytes[(size_t)head + i] = (char)(i * 7);
    }
    memcpy(bytes + head + length, "\r\n", 2);
    assert_int_equal(rl_reply_open(&reader), 0);
    assert_int_equal(rl_reply_feed(&reader, bytes, (size_t)head + length + 2), 0);
    assert_int_equal(rl_reply_next(&reader, &reason), 1);
    if (length > RL_REPLY_BYTES_MAX) {
      assert_int_equal(reader.reply.type, RL_REPLY_OTHER);
    } else {
      assert_int_equal(reader.reply.type, RL_REPLY_STRING);
      assert_int_equal(reader.reply.length, length);
      assert_memory_equal(reader.reply.bytes, bytes + head, length);
    }
    rl_reply_close(&reader);
  }
}

TEST(stream_of_small_replies_costs_no_more_memory_with_time) {
  rl_reply_reader reader;
  const char *reason = NULL;
  char many[5 * 3000];
  for (unsigned i = 0; i < 3000; i++) {
    memcpy(many + 5 * i, "+OK\r\n", 5);
  }
  assert_int_equal(rl_reply_open(&reader), 0);
  for (unsigned round = 0; round < 500; round++) {
    /* In two pieces that cut a reply. */
    size_t cut = 7001;
    for (unsigned part = 0; part < 2; part++) {
      assert_int_equal(rl_reply_feed(&reader, part == 0 ? many : many + cut,
                                     part == 0 ? cut : sizeof many - cut),
                       0);
      while (rl_reply_next(&reader, &reason) == 1) {
      }
    }
    assert_true(reader.reader->len <= 2 * sizeof many);
  }
  rl_reply_close(&reader);
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
  rl_reply_reader reader;
  const char *reason = NULL;
  assert_int_equal(rl_reply_open(&reader), 0);
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    assert_int_equal(rl_reply_feed(&reader, rows[i].bytes, strlen(rows[i].bytes)), 0);
    assert_int_equal(rl_reply_next(&reader, &reason), 1);
    assert_string_equal(reader.reply.word, rows[i].word);
    assert_int_equal(reader.reply.length, strlen(rows[i].said));
    assert_memory_equal(reader.reply.bytes, rows[i].said, strlen(rows[i].said));
  }
  rl_reply_close(&reader);
}

TEST(message_keeps_any_bytes_and_is_cut) {
  static char bytes[RL_REPLY_BYTES_MAX * 2 + 100];
  rl_reply_reader reader;
  const char *reason = NULL;
  assert_int_equal(rl_reply_open(&reader), 0);
  for (size_t length = RL_REPLY_BYTES_MAX - 1; length <= RL_REPLY_BYTES_MAX * 2;
       length += length < RL_REPLY_BYTES_MAX + 1 ? 1 : RL_REPLY_BYTES_MAX - 1) {
    int used = snprintf(bytes, sizeof bytes, "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$%zu\r\n", length);
    for (size_t i = 0; i < length; i++) {
      bytes[(size_t)used + i] = (char)i;
    }
    memcpy(bytes + used + length, "\r\n", 2);
    assert_int_equal(rl_reply_feed(&reader, bytes, (size_t)used + length + 2), 0);
    assert_int_equal(rl_reply_next(&reader, &reason), 1);
    assert_string_equal(reader.reply.word, "message");
    assert_int_equal(reader.reply.length, length);
    assert_memory_equal(reader.reply.bytes, bytes + used,
                        length < RL_REPLY_BYTES_MAX ? length : RL_REPLY_BYTES_MAX);
  }
  rl_reply_close(&reader);
}
