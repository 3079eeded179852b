/* The algorithms described in select.h. */
#include "cpu/select.h"

#include <string.h>

enum { SHORT_SORT = 16, SHORT_SELECT = 3, RUN = 16 };

static void exchange(msa_item *a, msa_item *b) {
    const msa_item t = *a;
    *a = *b;
    *b = t;
}

/* Merge sort, bottom up, from runs sorted by insertion. */
void msa_items_merge_sort(msa_item *items, msa_item *scratch, int64_t n) {
    for (int64_t i = 0; i < n; i += RUN) {
        int64_t end = i + RUN < n ? i + RUN : n;
        for (int64_t j = i + 1; j < end; j++) {
            msa_item x = items[j];
            int64_t k = j;
            for (; k > i && items[k - 1].key > x.key; k--) items[k] = items[k - 1];
            items[k] = x;
        }
    }
    for (int64_t width = RUN; width < n; width *= 2) {
        for (int64_t i = 0; i < n; i += 2 * width) {
            int64_t middle = i + width < n ? i + width : n, end = i + 2 * width < n ? i + 2 * width : n;
            int64_t a = i, b = middle, k = i;
            while (a < middle && b < end) scratch[k++] = items[b].key < items[a].key ? items[b++] : items[a++];
            while (a < middle) scratch[k++] = items[a++];
            while (b < end) scratch[k++] = items[b++];
        }
        memcpy(items, scratch, sizeof *items * (size_t)n);
    }
}

/* ---- a heap with the largest in front --------------------------------------------------------------------------- */

static void sift_up(msa_item *heap, int64_t hole, int64_t top, msa_item x) {
    int64_t parent = (hole - 1) / 2;
    while (hole > top && heap[parent].key < x.key) {
        heap[hole] = heap[parent];
        hole = parent;
        parent = (hole - 1) / 2;
    }
    heap[hole] = x;
}

/* Let the hole sink to the bottom along the larger children, then x rise from there. */
static void sift(msa_item *heap, int64_t hole, int64_t n, msa_item x) {
    const int64_t top = hole;
    int64_t child = hole;
    while (child < (n - 1) / 2) {
        child = 2 * (child + 1);
        if (heap[child].key < heap[child - 1].key) child--;
        heap[hole] = heap[child];
        hole = child;
    }
    if (n % 2 == 0 && child == (n - 2) / 2) {
        child = 2 * child + 1;
        heap[hole] = heap[child];
        hole = child;
    }
    sift_up(heap, hole, top, x);
}

void msa_heap_make(msa_item *heap, int64_t n) {
    for (int64_t parent = (n - 2) / 2; n >= 2 && parent >= 0; parent--) sift(heap, parent, n, heap[parent]);
}

void msa_heap_replace_top(msa_item *heap, int64_t n, msa_item x) { sift(heap, 0, n, x); }

void msa_heap_sort(msa_item *heap, int64_t n) {
    for (int64_t last = n - 1; last > 0; last--) {
        const msa_item x = heap[last];
        heap[last] = heap[0];
        sift(heap, 0, last, x);
    }
}

/* The smallest `count` become a heap at the front. */
static void heap_front(msa_item *items, int64_t n, int64_t count) {
    msa_heap_make(items, count);
    for (int64_t i = count; count > 0 && i < n; i++)
        if (items[i].key < items[0].key) {
            const msa_item x = items[i];
            items[i] = items[0];
            sift(items, 0, count, x);
        }
}

void msa_items_sort_front(msa_item *items, int64_t n, int64_t count) {
    heap_front(items, n, count);
    msa_heap_sort(items, count);
}

/* ---- quicksort and quickselect ---------------------------------------------------------------------------------- */

/* The median of a, b and c exchanged with *to. */
static void median_to(msa_item *to, msa_item *a, msa_item *b, msa_item *c) {
    if (a->key < b->key) exchange(to, b->key < c->key ? b : a->key < c->key ? c : a);
    else exchange(to, a->key < c->key ? a : b->key < c->key ? c : b);
}

/* Split items[first, last) around the median of three; where the upper part begins. Both parts hold the pivot's equals. */
static int64_t partition(msa_item *items, int64_t first, int64_t last) {
    median_to(items + first, items + first + 1, items + first + (last - first) / 2, items + last - 1);
    const int64_t pivot = items[first].key;
    int64_t low = first + 1, high = last;
    for (;;) {
        while (items[low].key < pivot) low++;
        high--;
        while (pivot < items[high].key) high--;
        if (low >= high) return low;
        exchange(items + low, items + high);
        low++;
    }
}

static void insert(msa_item *items, int64_t at) {
    const msa_item x = items[at];
    int64_t k = at;
    for (; k > 0 && x.key < items[k - 1].key; k--) items[k] = items[k - 1];
    items[k] = x;
}

static int depth_limit(int64_t n) {
    int depth = 0;
    for (; n > 1; n >>= 1) depth += 2;
    return depth;
}

static void split_to_short(msa_item *items, int64_t first, int64_t last, int depth) {
    while (last - first > SHORT_SORT) {
        if (depth-- == 0) {
            msa_items_sort_front(items + first, last - first, last - first);
            return;
        }
        const int64_t cut = partition(items, first, last);
        split_to_short(items, cut, last, depth);
        last = cut;
    }
}

void msa_items_sort(msa_item *items, int64_t n) {
    split_to_short(items, 0, n, depth_limit(n));
    for (int64_t i = 1; i < n; i++) insert(items, i); /* nothing is far from its place any more */
}

void msa_items_select(msa_item *items, int64_t n, int64_t nth) {
    int64_t first = 0, last = n;
    for (int depth = depth_limit(n); last - first > SHORT_SELECT; depth--) {
        if (depth == 0) {
            heap_front(items + first, last - first, nth + 1 - first);
            exchange(items + first, items + nth);
            return;
        }
        const int64_t cut = partition(items, first, last);
        if (cut <= nth) first = cut;
        else last = cut;
    }
    for (int64_t i = first + 1; i < last; i++) insert(items + first, i - first);
}

void msa_items_quickselect(msa_item *items, int64_t n, int64_t nth) {
    int64_t low = 0, high = n - 1;
    while (low + 1 < high) {
        exchange(items + (low + high) / 2, items + low + 1);
        if (items[low + 1].key > items[high].key) exchange(items + low + 1, items + high);
        if (items[low].key > items[high].key) exchange(items + low, items + high);
        if (items[low + 1].key > items[low].key) exchange(items + low + 1, items + low);
        int64_t i = low + 1, j = high;
        const int64_t pivot = items[low].key;
        for (;;) {
            do i++;
            while (items[i].key < pivot);
            do j--;
            while (items[j].key > pivot);
            if (j < i) break;
            exchange(items + i, items + j);
        }
        exchange(items + low, items + j);
        if (j <= nth) low = i;
        if (j >= nth) high = j - 1;
    }
    if (low + 1 == high && items[low].key > items[high].key) exchange(items + low, items + high);
}
