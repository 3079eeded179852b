/* Shared memory under storages: making it, finding it again, and counting who uses it. See shared.h. */
#include "tensor/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER = 64 }; /* in front of the data of a named file: the count, and alignment for the data */
static const char PREFIX[] = "/msadapter_";

typedef struct shared {
    msa_storage *storage; /* borrowed */
    struct shared *next, *previous;
    char *base;
    size_t mapped;
    int descriptor; /* -1: by name */
    dev_t device;   /* which file it is */
    ino_t inode;
    pid_t counted_by; /* by name: the process whose reference this is; a fork's child has none of its own */
    char name[64];
    void (*release_former)(
        void *); /* memory that somebody outside may still look at (`lent`), kept as long as the storage */
    void *former;
} shared;

/* All shared storages of this process. */
static shared all = {.next = &all, .previous = &all};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void) {
    pthread_mutex_lock(&lock);
}
static void after_fork(void) {
    pthread_mutex_unlock(&lock);
}
__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(before_fork, after_fork, after_fork);
}

static atomic_int *count_of(const shared *m) {
    return (atomic_int *)m->base;
}

/* Give up one reference by name; the last one removes the file. */
static void leave(shared *m) {
    if (m->descriptor >= 0 || m->counted_by != getpid()) return;
    m->counted_by = 0;
    if (atomic_fetch_sub(count_of(m), 1) <= 1) shm_unlink(m->name);
}

static void release(void *context) {
    shared *m = context;
    pthread_mutex_lock(&lock);
    m->next->previous = m->previous;
    m->previous->next = m->next;
    pthread_mutex_unlock(&lock);
    leave(m);
    munmap(m->base, m->mapped);
    if (m->descriptor >= 0) close(m->descriptor);
    if (m->release_former) m->release_former(m->former);
    free(m);
}

static void free_data(void *data) {
    msa_data_free(data);
}

static const shared *shared_of(const msa_storage *s) {
    return s->release == release ? s->context : NULL;
}
bool msa_storage_is_shared(const msa_storage *s) {
    return shared_of(s) != NULL;
}
int msa_storage_shared_descriptor(const msa_storage *s) {
    return shared_of(s) ? shared_of(s)->descriptor : -1;
}
const char *msa_storage_shared_name(const msa_storage *s) {
    return shared_of(s) && shared_of(s)->descriptor < 0 ? shared_of(s)->name : NULL;
}

static void enter(shared *m, msa_storage *s) {
    m->storage = s;
    pthread_mutex_lock(&lock);
    m->next = all.next;
    m->previous = &all;
    all.next->previous = m;
    all.next = m;
    pthread_mutex_unlock(&lock);
}

/* Map an open file, whose size is checked first: reading past its end would kill the process. The descriptor passes to
 * the mapping or is closed. */
static shared *map(int descriptor, const char *name, size_t bytes) {
    struct stat file;
    size_t needed;
    shared *m = NULL;
    if (__builtin_add_overflow(bytes, name ? HEADER : 0, &needed))
        msa_fail(MSA_VALUE_ERROR, "shared memory of %zu bytes is too large", bytes);
    else if (fstat(descriptor, &file) != 0)
        msa_fail(MSA_OS_ERROR, "cannot use descriptor %d as shared memory: %s", descriptor, strerror(errno));
    else if (!S_ISREG(file.st_mode) || file.st_size < 0 || (size_t)file.st_size < needed)
        msa_fail(MSA_RUNTIME_ERROR, "shared memory of %lld bytes cannot hold a storage of %zu bytes",
                 (long long)file.st_size, bytes);
    else
        m = msa_calloc(1, sizeof *m);
    if (!m) {
        close(descriptor);
        return NULL;
    }
    m->mapped = needed ? needed : 1;
    m->device = file.st_dev;
    m->inode = file.st_ino;
    m->base = mmap(NULL, m->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (m->base == MAP_FAILED) {
        msa_fail(MSA_MEMORY_ERROR, "cannot map %zu bytes of shared memory: %s", m->mapped, strerror(errno));
        close(descriptor);
        free(m);
        return NULL;
    }
    m->descriptor = name ? -1 : descriptor;
    if (name) {
        snprintf(m->name, sizeof m->name, "%s", name);
        m->counted_by = getpid();
        close(descriptor);
    }
    return m;
}

static shared *create(size_t bytes, msa_sharing how) {
    static atomic_uint counter;
    char name[64] = "";
    size_t size = bytes + (how == MSA_SHARED_BY_NAME ? HEADER : 0);
    int descriptor = -1;
    if (how == MSA_SHARED_BY_DESCRIPTOR) {
        descriptor = memfd_create("msadapter", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    } else {
        for (int tries = 0; descriptor < 0 && tries < 100; tries++) {
            snprintf(name, sizeof name, "%s%ld_%u", PREFIX, (long)getpid(), atomic_fetch_add(&counter, 1));
            descriptor = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
            if (descriptor < 0 && errno != EEXIST) break;
        }
    }
    if (descriptor < 0) return msa_fail_null(MSA_RUNTIME_ERROR, "cannot create shared memory: %s", strerror(errno));
    /* Reserved now: a full /dev/shm is an error here instead of a signal at the first write. */
    int status = size ? posix_fallocate(descriptor, 0, (off_t)size) : 0;
    if (status != 0) {
        close(descriptor);
        if (name[0]) shm_unlink(name);
        return msa_fail_null(MSA_RUNTIME_ERROR, "cannot make shared memory of %zu bytes: %s", size, strerror(status));
    }
    if (how == MSA_SHARED_BY_DESCRIPTOR) fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    shared *m = map(descriptor, name[0] ? name : NULL, bytes);
    if (m && name[0])
        atomic_store(count_of(m), 1);
    else if (!m && name[0])
        shm_unlink(name);
    return m;
}

static void *data_of(const shared *m) {
    return m->base + (m->descriptor < 0 ? HEADER : 0);
}

static msa_storage *storage_over(shared *m, size_t bytes) {
    msa_storage *s = m ? msa_calloc(1, sizeof *s) : NULL;
    if (!s) {
        if (m) { /* not entered yet */
            m->next = m->previous = m;
            release(m);
        }
        return NULL;
    }
    s->references = 1;
    s->bytes = bytes;
    s->data = data_of(m);
    s->release = release;
    s->context = m;
    enter(m, s);
    return s;
}

msa_storage *msa_storage_new_shared(size_t bytes, msa_sharing how) {
    return storage_over(create(bytes, how), bytes);
}

int msa_storage_share(msa_storage *s, msa_sharing how) {
    shared *now = s->release == release ? s->context : NULL;
    if (now && (now->descriptor < 0) == (how == MSA_SHARED_BY_NAME)) {
        if (how == MSA_SHARED_BY_NAME && now->counted_by != getpid()) { /* inherited by a fork: from here on counted */
            atomic_fetch_add(count_of(now), 1);
            now->counted_by = getpid();
        }
        return 0;
    }
    if (msa_storage_make_plain(s) != 0) return -1;
    shared *m = create(s->bytes, how);
    if (!m) return -1;
    if (s->bytes) memcpy(data_of(m), s->data, s->bytes);
    m->release_former = s->release ? s->release : free_data;
    m->former = s->release ? s->context : s->data;
    if (!s->lent) {
        m->release_former(m->former);
        m->release_former = NULL;
    }
    s->data = data_of(m);
    s->release = release;
    s->context = m;
    s->resizable = false;
    s->read_only = false;
    enter(m, s);
    return 0;
}

/* The storage of this process over a file, retained, or NULL. One whose last reference is just going counts as gone. */
static msa_storage *find(dev_t device, ino_t inode, size_t bytes) {
    msa_storage *found = NULL;
    pthread_mutex_lock(&lock);
    for (shared *m = all.next; m != &all && !found; m = m->next) {
        if (m->device != device || m->inode != inode || m->storage->bytes != bytes) continue;
        int references = atomic_load(&m->storage->references);
        while (references > 0 && !atomic_compare_exchange_weak(&m->storage->references, &references, references + 1)) {
        }
        if (references > 0) found = m->storage;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

msa_storage *msa_storage_from_descriptor(int descriptor, size_t bytes) {
    struct stat file;
    if (fstat(descriptor, &file) != 0)
        return msa_fail_null(MSA_RUNTIME_ERROR, "cannot use descriptor %d as shared memory: %s", descriptor,
                             strerror(errno));
    msa_storage *known = find(file.st_dev, file.st_ino, bytes);
    if (known) return known;
    int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return msa_fail_null(MSA_RUNTIME_ERROR, "cannot keep descriptor %d open: %s", descriptor, strerror(errno));
    return storage_over(map(own, NULL, bytes), bytes);
}

msa_storage *msa_storage_from_name(const char *name, size_t bytes) {
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0 || strchr(name + 1, '/') || strlen(name) >= sizeof all.name)
        return msa_fail_null(MSA_RUNTIME_ERROR, "'%.80s' is no name of shared memory", name);
    int descriptor = shm_open(name, O_RDWR | O_CLOEXEC, 0600);
    struct stat file;
    if (descriptor < 0 || fstat(descriptor, &file) != 0) {
        if (descriptor >= 0) close(descriptor);
        return msa_fail_null(MSA_RUNTIME_ERROR, "cannot open the shared memory <%s>: %s", name, strerror(errno));
    }
    msa_storage *known = find(file.st_dev, file.st_ino, bytes);
    if (!known) return storage_over(map(descriptor, name, bytes), bytes);
    close(descriptor);
    msa_shared_count(known, -1);
    return known;
}

void msa_shared_count(const msa_storage *s, int change) {
    const shared *m = shared_of(s);
    if (m && m->descriptor < 0) atomic_fetch_add(count_of(m), change);
}

void msa_shared_leave(void) {
    pthread_mutex_lock(&lock);
    for (shared *m = all.next; m != &all; m = m->next) leave(m);
    pthread_mutex_unlock(&lock);
}
