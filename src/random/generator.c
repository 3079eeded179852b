/* The generator: MT19937, its seeding, and its state in the bytes of torch.get_rng_state(). */
#include "random/internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/memory.h"

/* The saved state; every number of the twister takes 64 bits in it. */
typedef struct {
    uint64_t initial_seed;
    int32_t left;
    int32_t seeded;
    uint64_t next;
    uint64_t state[MT_SIZE];
    double normal_x, normal_y,
        normal_rho; /* the legacy form keeps the pair's angle / 2 pi and radius; now y is the number */
    int32_t normal_is_valid;
    int32_t padding;
    float next_float;
    uint8_t has_float;
    uint8_t end[3];
} saved_state;

_Static_assert(sizeof(saved_state) == MSA_GENERATOR_STATE_BYTES, "the saved state is PyTorch's");

static struct msa_generator default_generator = {.lock = PTHREAD_MUTEX_INITIALIZER};
static pthread_once_t default_once = PTHREAD_ONCE_INIT;

void msa_generator_refill(msa_generator *g) {
    uint32_t *s = g->state;
    for (int i = 0; i < MT_SIZE; i++) {
        uint32_t y = (s[i] & 0x80000000u) | (s[i + 1 < MT_SIZE ? i + 1 : 0] & 0x7fffffffu);
        int far = i + MT_MIDDLE < MT_SIZE ? i + MT_MIDDLE : i + MT_MIDDLE - MT_SIZE;
        s[i] = s[far] ^ (y >> 1) ^ (y & 1u ? 0x9908b0dfu : 0);
    }
    g->left = MT_SIZE;
    g->next = 0;
}

static void start(msa_generator *g, uint64_t seed) {
    g->initial_seed = seed;
    g->state[0] = (uint32_t)seed;
    for (uint32_t i = 1; i < MT_SIZE; i++) g->state[i] = 1812433253u * (g->state[i - 1] ^ (g->state[i - 1] >> 30)) + i;
    g->left = 1;
    g->next = 0;
    g->has_double = g->has_float = false;
    g->next_double = g->next_float = 0;
}

/* 53 bits, so that the seed survives a conversion to a float. */
static uint64_t system_seed(void) {
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        seed = ((uint64_t)now.tv_sec * 1000000007u) ^ ((uint64_t)now.tv_nsec << 20);
    }
    return seed & ((1ull << 53) - 1);
}

/* Another thread of the parent may have been drawing at the fork: the child must not wait for it. */
static void unlock_in_child(void) {
    pthread_mutex_init(&default_generator.lock, NULL);
}

static void start_default(void) {
    start(&default_generator, system_seed());
    pthread_atfork(NULL, NULL, unlock_in_child);
}

msa_generator *msa_generator_default(void) {
    pthread_once(&default_once, start_default);
    return &default_generator;
}

msa_generator *msa_generator_new(uint64_t seed) {
    msa_generator *g = msa_calloc(1, sizeof *g);
    if (!g) return NULL;
    pthread_mutex_init(&g->lock, NULL);
    start(g, seed);
    return g;
}

msa_generator *msa_generator_clone(msa_generator *g) {
    msa_generator *copy = msa_generator_new(0);
    if (!copy) return NULL;
    saved_state state;
    msa_generator_get_state(g, &state);
    if (msa_generator_set_state(copy, &state, sizeof state)) {
        msa_generator_free(copy);
        return NULL;
    }
    return copy;
}

void msa_generator_free(msa_generator *g) {
    if (!g || g == &default_generator) return;
    pthread_mutex_destroy(&g->lock);
    free(g);
}

msa_generator *msa_generator_lock(msa_generator *g) {
    if (!g) g = msa_generator_default();
    pthread_mutex_lock(&g->lock);
    return g;
}

void msa_generator_unlock(msa_generator *g) {
    pthread_mutex_unlock(&g->lock);
}

void msa_generator_manual_seed(msa_generator *g, uint64_t seed) {
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    start(locked, seed);
}

uint64_t msa_generator_seed(msa_generator *g) {
    uint64_t seed = system_seed();
    msa_generator_manual_seed(g, seed);
    return seed;
}

uint64_t msa_generator_initial_seed(msa_generator *g) {
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    return locked->initial_seed;
}

uint32_t msa_generator_random(msa_generator *g) {
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    return draw32(locked);
}

uint64_t msa_generator_random64(msa_generator *g) {
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    return draw64(locked);
}

void msa_generator_get_state(msa_generator *g, void *state) {
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    saved_state s;
    memset(&s, 0, sizeof s);
    s.initial_seed = locked->initial_seed;
    s.left = locked->left;
    s.seeded = 1;
    s.next = locked->next;
    for (int i = 0; i < MT_SIZE; i++) s.state[i] = locked->state[i];
    if (locked->has_double) {
        s.normal_is_valid = 1;
        s.normal_y = locked->next_double;
    }
    if (locked->has_float) {
        s.has_float = 1;
        s.next_float = locked->next_float;
    }
    memcpy(state, &s, sizeof s);
}

int msa_generator_set_state(msa_generator *g, const void *state, size_t bytes) {
    if (bytes != MSA_GENERATOR_LEGACY_BYTES && bytes != MSA_GENERATOR_STATE_BYTES)
        return msa_fail(
            MSA_RUNTIME_ERROR,
            "Expected either a CPUGeneratorImplStateLegacy of size %d or a CPUGeneratorImplState of size %d "
            "but found the input RNG state size to be %zu",
            MSA_GENERATOR_LEGACY_BYTES, MSA_GENERATOR_STATE_BYTES, bytes);
    saved_state s;
    memset(&s, 0, sizeof s);
    memcpy(&s, state, bytes);
    if (s.seeded != 1 || s.left <= 0 || s.left > MT_SIZE || s.next > MT_SIZE ||
        (s.left > 1 && s.next + (uint64_t)s.left > MT_SIZE + 1))
        return msa_fail(MSA_RUNTIME_ERROR, "Invalid mt19937 state");
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    locked->initial_seed = s.initial_seed;
    locked->left = s.left;
    locked->next = (uint32_t)s.next;
    for (int i = 0; i < MT_SIZE; i++) locked->state[i] = (uint32_t)s.state[i];
    locked->has_double = s.normal_is_valid != 0;
    locked->next_double = s.normal_y;
    if (bytes == MSA_GENERATOR_LEGACY_BYTES && locked->has_double)
        locked->next_double = s.normal_rho * sin(2 * M_PI * s.normal_x);
    locked->has_float = s.has_float != 0;
    locked->next_float = s.next_float;
    return 0;
}
