/*
 * An allocator whose k-th allocation fails, once or from there on. Included by one file of a
 * program: it defines malloc().
 *
 * SPDX-License-Identifier: MIT
 *
 * malloc() and the related functions are this program's own, so that allocations of hiredis and the
 * C library fail too (glibc: __libc_malloc). A sanitizer has its own malloc(): there only
 * allocations of the library can fail, by the linker's --wrap. The names of the wrappers are in the
 * file that includes this, where the Makefile finds them.
 */
#ifndef FAILING_MEMORY_H
#define FAILING_MEMORY_H

#include "rl_test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static struct memory {
  bool armed;
  bool for_good;  /* everything from |fail_at| on fails */
  size_t fail_at; /* 0: nothing fails, allocations are only counted */
  size_t calls;
  size_t failed;
  long live;
} memory;

static bool out_of_memory(void) {
  if (!memory.armed) {
    return false;
  }
  memory.calls++;
  bool fails = memory.fail_at != 0 &&
               (memory.for_good ? memory.calls >= memory.fail_at : memory.calls == memory.fail_at);
  memory.failed += fails;
  return fails;
}

#if SANITIZED
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);
#define REAL(name) __real_##name
#else
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);
#define REAL(name) __libc_##name

#define EXPORTED __attribute__((visibility("default")))
EXPORTED void *malloc(size_t size) {
  return __wrap_malloc(size);
}
EXPORTED void *calloc(size_t count, size_t size) {
  return __wrap_calloc(count, size);
}
EXPORTED void *realloc(void *block, size_t size) {
  return __wrap_realloc(block, size);
}
EXPORTED void free(void *block) {
  __wrap_free(block);
}
#endif

void *__wrap_malloc(size_t size) {
  void *block = out_of_memory() ? NULL : REAL(malloc)(size);
  memory.live += block != NULL;
  return block;
}

void *__wrap_calloc(size_t count, size_t size) {
  void *block = out_of_memory() ? NULL : REAL(calloc)(count, size);
  memory.live += block != NULL;
  return block;
}

void *__wrap_realloc(void *block, size_t size) {
  void *moved = out_of_memory() ? NULL : REAL(realloc)(block, size);
  memory.live += block == NULL && moved != NULL;
  return moved;
}

char *__wrap_strdup(const char *text) {
  size_t size = strlen(text) + 1;
  char *copy = __wrap_malloc(size);
  return copy == NULL ? NULL : memcpy(copy, text, size);
}

void __wrap_free(void *block) {
  memory.live -= block != NULL;
  REAL(free)(block);
}

static void arm(size_t fail_at, bool for_good) {
  memory = (struct memory){true, for_good, fail_at, 0, 0, memory.live};
}

/* A failure has to be reported, which takes memory. */
#define assert_now(condition)                                                                      \
  do {                                                                                             \
    bool holds = (condition);                                                                      \
    memory.armed = memory.armed && holds;                                                          \
    assert_true(holds &&#condition);                                                               \
  } while (0)

/* Fails if |call| allocates. */
#define assert_allocates_nothing(call)                                                             \
  do {                                                                                             \
    arm(0, false);                                                                                 \
    call;                                                                                          \
    memory.armed = false;                                                                          \
    assert_int_equal(memory.calls, 0);                                                             \
  } while (0)

#endif
