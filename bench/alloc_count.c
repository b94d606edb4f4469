/*
 * Preloaded by LD_PRELOAD, it counts calls of malloc, calloc, realloc and similar functions.
 * measure.c reads the count at the start and the end of each measurement.
 *
 * It calls the real functions by glibc's internal names, because dlsym() would allocate.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static atomic_uint_fast64_t allocations;

uint64_t bench_allocation_count(void);

uint64_t bench_allocation_count(void) {
  return atomic_load(&allocations);
}

static void count_one(void) {
  atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
}

void *malloc(size_t size) {
  count_one();
  return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  count_one();
  return __libc_calloc(count, size);
}

/* realloc() with size 0 frees, but counts all the same. */
void *realloc(void *memory, size_t size) {
  if (size > 0)
    count_one();
  return __libc_realloc(memory, size);
}

void *memalign(size_t alignment, size_t size) {
  count_one();
  return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  count_one();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
  count_one();
  *memory = __libc_memalign(alignment, size);
  return *memory != NULL || size == 0 ? 0 : ENOMEM;
}
