/* Reading at any place, and writing so that a file appears whole or not at all. */
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int msa_source_read(const msa_source *s, uint64_t offset, void *to, size_t n) {
    if (offset > s->size || n > s->size - offset)
        return msa_fail(MSA_RUNTIME_ERROR, "the file ends before byte %llu: it is truncated or damaged",
                        (unsigned long long)offset + n);
    if (s->memory) {
        if (n) memcpy(to, s->memory + offset, n);
        return 0;
    }
    while (n) {
        ssize_t got = pread(s->fd, to, n < 1u << 30 ? n : 1u << 30, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return msa_fail(MSA_OS_ERROR, "cannot read the file: %s", strerror(errno));
        if (got == 0) return msa_fail(MSA_RUNTIME_ERROR, "the file became shorter while it was read");
        to = (char *)to + got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return 0;
}

int msa_source_open(msa_source *s, int fd) {
    struct stat status;
    if (fstat(fd, &status) != 0) return msa_fail(MSA_OS_ERROR, "cannot read the file: %s", strerror(errno));
    if (!S_ISREG(status.st_mode)) return msa_fail(MSA_OS_ERROR, "not a regular file");
    *s = (msa_source){NULL, fd, (uint64_t)status.st_size};
    return 0;
}

static int write_all(void *context, const void *data, size_t n) {
    int fd = *(int *)context;
    while (n) {
        ssize_t done = write(fd, data, n < 1u << 30 ? n : 1u << 30);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return msa_fail(MSA_OS_ERROR, "cannot write the file: %s", strerror(errno));
        data = (const char *)data + done;
        n -= (size_t)done;
    }
    return 0;
}

static int cannot(const char *path) { return msa_fail(MSA_OS_ERROR, "cannot write %s: %s", path, strerror(errno)); }

/* Devices and pipes cannot be replaced: they are written to. */
static int write_through(const char *path, int (*body)(void *, const msa_sink *), void *argument) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return cannot(path);
    int status = body(argument, &(msa_sink){write_all, &fd});
    if (close(fd) != 0 && status == 0) status = cannot(path);
    return status;
}

int msa_file_replace(const char *path, int (*body)(void *, const msa_sink *), void *argument) {
    static atomic_uint counter;
    char resolved[PATH_MAX], folder[PATH_MAX], temporary[PATH_MAX + 64];
    struct stat old;
    bool exists = stat(path, &old) == 0;
    if (exists && S_ISDIR(old.st_mode)) {
        errno = EISDIR;
        return cannot(path);
    }
    if (exists && !S_ISREG(old.st_mode)) return write_through(path, body, argument);
    /* The file behind a link is replaced, not the link. */
    if (exists && realpath(path, resolved)) path = resolved;
    if (strlen(path) >= sizeof folder) {
        errno = ENAMETOOLONG;
        return cannot(path);
    }
    strcpy(temporary, path);
    strcpy(folder, dirname(temporary));
    if (access(folder, F_OK) != 0) return msa_fail(MSA_RUNTIME_ERROR, "Parent directory %s does not exist.", folder);
    snprintf(temporary, sizeof temporary, "%s/.msa-%ld-%u.tmp", folder, (long)getpid(), atomic_fetch_add(&counter, 1));
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return cannot(path);
    int status = body(argument, &(msa_sink){write_all, &fd});
    if (status == 0 && exists && fchmod(fd, old.st_mode & 07777) != 0 && errno != EPERM) status = cannot(path);
    if (status == 0 && fsync(fd) != 0 && errno != EINVAL) status = cannot(path);
    if (close(fd) != 0 && status == 0) status = cannot(path);
    if (status == 0 && rename(temporary, path) != 0) status = cannot(path);
    if (status != 0) {
        unlink(temporary);
        return status;
    }
    int parent = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent >= 0) {
        fsync(parent); /* the new name; some file systems cannot, and the file is there either way */
        close(parent);
    }
    return 0;
}

int msa_bytes_add(msa_bytes *b, const void *data, size_t n) {
    if (n > b->capacity - b->size) {
        size_t capacity = b->capacity ? b->capacity : 256;
        while (capacity - b->size < n) {
            if (capacity > SIZE_MAX / 4) return msa_fail(MSA_MEMORY_ERROR, "cannot allocate %zu bytes", n);
            capacity *= 2;
        }
        uint8_t *more = realloc(b->data, capacity);
        if (!more) return msa_fail(MSA_MEMORY_ERROR, "cannot allocate %zu bytes", capacity);
        b->data = more;
        b->capacity = capacity;
    }
    if (n) memcpy(b->data + b->size, data, n);
    b->size += n;
    return 0;
}

int msa_bytes_write(void *bytes, const void *data, size_t n) { return msa_bytes_add(bytes, data, n); }
