/* Size-class caching allocator. Each block carries a 64-byte header in front of the data with its class. */
#include "base/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { LARGE = 1 << 20 }; /* blocks that count when the caches are judged too full */
enum { ALIGNMENT = 64, CLASSES = 4 * 48, SMALL_LIMIT = 4096, THREAD_CACHE = 64 };

typedef struct block {
    struct block *next; /* in a free list */
    size_t capacity;
    size_t bytes; /* asked for */
    uint32_t size_class;
} block;

_Static_assert(sizeof(block) <= ALIGNMENT, "the header fits in front of the data");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block *free_lists[CLASSES];
static _Thread_local struct {
    block *list[CLASSES];
    uint8_t count[CLASSES];
    int64_t balance; /* bytes taken less bytes given back, for the profiler */
    bool watched;    /* empty_thread runs when the thread ends */
} local; /* small blocks only; what a thread keeps is bounded by THREAD_CACHE blocks a class */
static atomic_size_t in_use, peak, most; /* peak may be reset, most not */
static size_t cached;                     /* in free_lists */

static pthread_key_t thread_end;

/* What an ending thread has kept goes to the system. */
static void empty_thread(void *unused) {
    (void)unused;
    local.watched = false; /* other keys' destructors may free more */
    for (int c = 0; c < CLASSES; c++) {
        for (block *b = local.list[c], *next; b; b = next) next = b->next, free(b);
        local.list[c] = NULL;
        local.count[c] = 0;
    }
}

__attribute__((constructor)) static void make_thread_end(void) { pthread_key_create(&thread_end, empty_thread); }

/* Classes grow by quarters of a power of two: at most 25% of a block is wasted. */
static uint32_t class_of(size_t bytes, size_t *capacity) {
    if (bytes < ALIGNMENT) bytes = ALIGNMENT;
    unsigned log = 63u - (unsigned)__builtin_clzll(bytes - 1);
    if (bytes == ALIGNMENT) log = 5;
    size_t base = (size_t)1 << log, quarter = base / 4;
    size_t steps = (bytes - base + quarter - 1) / quarter; /* 1..4 */
    *capacity = base + steps * quarter;
    return (log - 5) * 4 + (uint32_t)steps;
}

static void count_allocation(size_t capacity) {
    size_t now = atomic_fetch_add_explicit(&in_use, capacity, memory_order_relaxed) + capacity;
    size_t seen = atomic_load_explicit(&peak, memory_order_relaxed);
    while (now > seen && !atomic_compare_exchange_weak(&peak, &seen, now)) {}
    seen = atomic_load_explicit(&most, memory_order_relaxed);
    while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now)) {}
}

/* Gives all cached blocks to the system; under the lock. */
static void empty_lists(void) {
    for (int c = 0; c < CLASSES; c++)
        while (free_lists[c]) {
            block *b = free_lists[c];
            free_lists[c] = b->next;
            cached -= b->capacity;
            free(b);
        }
}

void *msa_data_alloc(size_t bytes) {
    if (bytes > SIZE_MAX / 4) return msa_fail_null(MSA_MEMORY_ERROR, "cannot allocate %zu bytes", bytes);
    size_t capacity;
    uint32_t c = class_of(bytes, &capacity);
    block *b = NULL;
    if (capacity <= SMALL_LIMIT && local.list[c]) {
        b = local.list[c];
        local.list[c] = b->next;
        local.count[c]--;
    } else {
        pthread_mutex_lock(&lock);
        b = free_lists[c];
        if (b) {
            free_lists[c] = b->next;
            cached -= capacity;
        }
        pthread_mutex_unlock(&lock);
    }
    if (!b) {
        /* Blocks of a megabyte and more start on huge-page boundaries where the system offers huge pages. */
        size_t alignment = capacity >= LARGE ? (size_t)2 << 20 : ALIGNMENT;
        if (posix_memalign((void **)&b, alignment, capacity + ALIGNMENT) != 0) {
            msa_data_trim();
            if (posix_memalign((void **)&b, alignment, capacity + ALIGNMENT) != 0)
                return msa_fail_null(MSA_RUNTIME_ERROR,
                                     "DefaultCPUAllocator: can't allocate memory: you tried to allocate %zu bytes",
                                     bytes);
        }
        if (alignment > ALIGNMENT) madvise(b, capacity + ALIGNMENT, MADV_HUGEPAGE);
        b->capacity = capacity;
        b->size_class = c;
    }
    b->bytes = bytes;
    local.balance += (int64_t)bytes;
    count_allocation(capacity);
    return (char *)b + ALIGNMENT;
}

void msa_data_free(void *data) {
    if (!data) return;
    block *b = (block *)((char *)data - ALIGNMENT);
    atomic_fetch_sub_explicit(&in_use, b->capacity, memory_order_relaxed);
    local.balance -= (int64_t)b->bytes;
    uint32_t c = b->size_class;
    if (b->capacity <= SMALL_LIMIT && local.count[c] < THREAD_CACHE) {
        if (!local.watched) local.watched = pthread_setspecific(thread_end, &local) == 0;
        b->next = local.list[c];
        local.list[c] = b;
        local.count[c]++;
        return;
    }
    pthread_mutex_lock(&lock);
    /* Sizes that change from step to step would fill lists that nobody asks for again: beyond what was ever in use they all go. */
    if (b->capacity >= LARGE && cached + b->capacity > atomic_load_explicit(&most, memory_order_relaxed)) empty_lists();
    b->next = free_lists[c];
    free_lists[c] = b;
    cached += b->capacity;
    pthread_mutex_unlock(&lock);
}

void msa_data_trim(void) {
    pthread_mutex_lock(&lock);
    empty_lists();
    pthread_mutex_unlock(&lock);
}

size_t msa_data_in_use(void) { return atomic_load_explicit(&in_use, memory_order_relaxed); }

int64_t msa_data_thread_balance(void) { return local.balance; }

void msa_data_reset_peak(void) { atomic_store_explicit(&peak, msa_data_in_use(), memory_order_relaxed); }

size_t msa_data_peak(void) { return atomic_load_explicit(&peak, memory_order_relaxed); }

void *msa_malloc(size_t bytes) {
    void *p = malloc(bytes ? bytes : 1);
    return p ? p : msa_fail_null(MSA_MEMORY_ERROR, "cannot allocate %zu bytes", bytes);
}

void *msa_calloc(size_t count, size_t size) {
    void *p = calloc(count ? count : 1, size ? size : 1);
    return p ? p : msa_fail_null(MSA_MEMORY_ERROR, "cannot allocate %zu x %zu bytes", count, size);
}
