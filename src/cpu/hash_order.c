/* The order of a hash set: buckets are runs of one list; a value goes to its bucket's front, an empty bucket to the list's. */
#include <stdlib.h>
#include <string.h>

#include "cpu/hash_order.h"
#include "msadapter/error.h"
#include "tensor/convert.h"

/* How many buckets there are after each growth: primes, each at least twice the one before. */
static const int64_t bucket_counts[] = {
    13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933,
    351061, 712697, 1447153, 2938679, 5967347, 12117689, 24607243, 49969847, 101473717, 206062531, 418451333, 849749479, 1725587117, 3504151727,
};

/* MurmurHash64A (Austin Appleby, 2008) of at most eight bytes, with the seed of std::hash. */
static uint64_t hash_bytes(uint64_t bytes, uint64_t length) {
    const uint64_t multiplier = 0xc6a4a7935bd1e995u;
    uint64_t hash = 0xc70f6907u ^ (length * multiplier);
    if (length == 8) {
        bytes *= multiplier;
        bytes = (bytes ^ (bytes >> 47)) * multiplier;
    }
    hash = (hash ^ bytes) * multiplier;
    hash = (hash ^ (hash >> 47)) * multiplier;
    return hash ^ (hash >> 47);
}

static uint64_t hash_of(const char *values, int64_t i, bool floating, msa_dtype dtype) {
    if (!floating) return (uint64_t)((const int64_t *)values)[i];
    const double x = ((const double *)values)[i];
    uint64_t bytes = 0;
    if (dtype == MSA_BFLOAT16) return msa_to_bfloat16((float)x);
    if (dtype == MSA_FLOAT16) {
        uint16_t half;
        msa_convert(MSA_FLOAT16, &half, 1, MSA_FLOAT64, &x, 1, 1);
        return half;
    }
    if (x == 0) return 0;
    if (dtype == MSA_FLOAT64) {
        memcpy(&bytes, &x, 8);
        return hash_bytes(bytes, 8);
    }
    const float narrow = (float)x;
    memcpy(&bytes, &narrow, 4);
    return hash_bytes(bytes, 4);
}

typedef struct {
    const uint64_t *hashes;
    int64_t *next;   /* next[i + 1] follows value i; next[0] is the list's first; -1 ends it */
    int64_t *before; /* of each bucket: what precedes its first value, as an index to `next`; -1: it is empty */
    uint64_t buckets;
} hash_list;

static void put(hash_list *list, int64_t i) {
    const uint64_t bucket = list->hashes[i] % list->buckets;
    if (list->before[bucket] >= 0) {
        list->next[i + 1] = list->next[list->before[bucket]];
        list->next[list->before[bucket]] = i;
        return;
    }
    list->next[i + 1] = list->next[0];
    if (list->next[0] >= 0) list->before[list->hashes[list->next[0]] % list->buckets] = i + 1;
    list->next[0] = i;
    list->before[bucket] = 0;
}

/* The values in the list's order, put anew into more buckets. */
static void spread(hash_list *list, uint64_t buckets) {
    list->buckets = buckets;
    for (uint64_t b = 0; b < buckets; b++) list->before[b] = -1;
    int64_t i = list->next[0];
    list->next[0] = -1;
    while (i >= 0) {
        const int64_t following = list->next[i + 1];
        put(list, i);
        i = following;
    }
}

int msa_hash_order(int64_t *order, const char *values, bool floating, msa_dtype dtype, int64_t n) {
    const size_t growths = sizeof bucket_counts / sizeof *bucket_counts;
    size_t last = 0;
    while (last + 1 < growths && bucket_counts[last] < n) last++;
    const size_t places = (size_t)n + 1 + (size_t)bucket_counts[last];
    int64_t *memory = malloc(sizeof *memory * (places + (size_t)n));
    if (!memory) return msa_fail(MSA_MEMORY_ERROR, "unique: out of memory");
    uint64_t *hashes = (uint64_t *)(memory + places);
    for (int64_t i = 0; i < n; i++) hashes[i] = hash_of(values, i, floating, dtype);
    hash_list list = {hashes, memory, memory + n + 1, 0};
    list.next[0] = -1;
    size_t growth = 0;
    for (int64_t i = 0; i < n; i++) {
        if ((uint64_t)i >= list.buckets && growth <= last) spread(&list, (uint64_t)bucket_counts[growth++]);
        put(&list, i);
    }
    int64_t place = 0;
    for (int64_t i = list.next[0]; i >= 0; i = list.next[i + 1]) order[place++] = i;
    free(memory);
    return 0;
}
