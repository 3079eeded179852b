/* Sorting and selecting items by key, the order of equal ones included.
 *
 * Where the caller asks for no stable order, PyTorch's results for equal elements are those of the C++ library's algorithms; these
 * here make the same comparisons and exchanges, so that the places of equal elements agree. */
#ifndef MSA_CPU_SELECT_H
#define MSA_CPU_SELECT_H

#include <stdint.h>

typedef struct {
    int64_t key;
    int64_t place;
} msa_item;

/* Doubles as keys: the order of the integers is that of the values, -0 and 0 are equal, every NaN comes last. */
static inline int64_t msa_key_of_double(int64_t bits) {
    return (bits & INT64_MAX) > 0x7ff0000000000000 ? INT64_MAX : bits < 0 ? INT64_MIN - bits : bits;
}

/* Stable; `scratch` holds n items. */
void msa_items_merge_sort(msa_item *items, msa_item *scratch, int64_t n);
/* Introsort: median-of-three quicksort, a heap when it degenerates, insertion for the rest (Musser 1997). */
void msa_items_sort(msa_item *items, int64_t n);
/* The smallest `count` in order at the front, by a heap of that size; in three steps, where not all items lie in memory: a heap of
 * the first `count`, each further one offered to it, and the heap sorted. */
void msa_items_sort_front(msa_item *items, int64_t n, int64_t count);
void msa_heap_make(msa_item *heap, int64_t count);
void msa_heap_replace_top(msa_item *heap, int64_t count, msa_item x); /* for x with a key below heap[0].key */
void msa_heap_sort(msa_item *heap, int64_t count);
/* Introselect: items[nth] is what sorting would put there, nothing larger before it. */
void msa_items_select(msa_item *items, int64_t n, int64_t nth);
/* The same by Hoare's quickselect with the median of three in front (Devillard 1998). */
void msa_items_quickselect(msa_item *items, int64_t n, int64_t nth);

#endif
