/* Walking, reading and replacing source files (see files.h). */
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WHY = 160 };

static int fail_errno(char why[WHY], const char *doing) {
    snprintf(why, WHY, "%s: %s", doing, strerror(errno));
    return -1;
}

static int fail(char why[WHY], const char *message) {
    snprintf(why, WHY, "%s", message);
    return -1;
}

int msa_file_read(const char *path, msa_file *out, char why[WHY]) {
    *out = (msa_file){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* O_NONBLOCK: a pipe must not hang us */
    if (fd < 0) return fail_errno(why, "cannot open");
    int status = 0;
    if (fstat(fd, &out->status) < 0)
        status = fail_errno(why, "cannot stat");
    else if (!S_ISREG(out->status.st_mode))
        status = fail(why, "not a regular file");
    else if (out->status.st_size > MSA_SOURCE_LIMIT)
        status = fail(why, "larger than 64 MiB, which no program is");
    size_t size = status == 0 ? (size_t)out->status.st_size : 0;
    if (status == 0 && !(out->text = malloc(size + 1))) status = fail(why, "out of memory");
    while (status == 0 && out->length < size) {
        ssize_t got = read(fd, out->text + out->length, size - out->length);
        if (got > 0)
            out->length += (size_t)got;
        else if (got == 0)
            status = fail(why, "shrank while it was read");
        else if (errno != EINTR)
            status = fail_errno(why, "cannot read");
    }
    close(fd);
    if (status < 0) {
        free(out->text);
        out->text = NULL;
    }
    return status;
}

static int write_all(int fd, const char *text, size_t length) {
    while (length) {
        ssize_t put = write(fd, text, length);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return -1;
        text += put;
        length -= (size_t)put;
    }
    return 0;
}

/* Whether nobody has written the file since it was read. */
static bool is_as_read(const char *path, const msa_file *old) {
    struct stat now;
    return stat(path, &now) == 0 && now.st_ino == old->status.st_ino && now.st_dev == old->status.st_dev &&
           now.st_size == old->status.st_size && now.st_mtim.tv_sec == old->status.st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == old->status.st_mtim.tv_nsec;
}

static int fill_temporary(int fd, const msa_file *old, const char *text, size_t length, char why[WHY]) {
    mode_t mode = old->status.st_mode & 07777;
    if (fchown(fd, old->status.st_uid, old->status.st_gid) < 0) mode &= 01777; /* never set-user-id for another owner */
    if (write_all(fd, text, length) < 0) return fail_errno(why, "cannot write");
    if (fchmod(fd, mode) < 0) return fail_errno(why, "cannot set the mode");
    if (fsync(fd) < 0) return fail_errno(why, "cannot sync");
    return 0;
}

static void sync_folder(const char *folder) {
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return; /* the rename has happened; only its durability is left to the system */
    fsync(fd);
    close(fd);
}

static int replace_in_folder(const char *target, const msa_file *old, const char *text, size_t length, char why[WHY]) {
    char folder[PATH_MAX], temporary[PATH_MAX + 32];
    const char *slash = strrchr(target, '/');
    snprintf(folder, sizeof folder, "%.*s", slash == target ? 1 : (int)(slash - target), target);
    snprintf(temporary, sizeof temporary, "%s/.msadapter-XXXXXX", folder);
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) return fail_errno(why, "cannot create a file in its folder");
    int status = fill_temporary(fd, old, text, length, why);
    if (close(fd) < 0 && status == 0) status = fail_errno(why, "cannot write");
    if (status == 0 && !is_as_read(target, old)) status = fail(why, "was changed by another program meanwhile");
    if (status == 0 && rename(temporary, target) < 0) status = fail_errno(why, "cannot rename");
    if (status < 0)
        unlink(temporary);
    else
        sync_folder(folder);
    return status;
}

int msa_file_replace(const char *path, const msa_file *old, const char *text, size_t length, char why[WHY]) {
    char target[PATH_MAX];
    if (!realpath(path, target)) return fail_errno(why, "cannot resolve");
    if (access(target, W_OK) < 0) return fail_errno(why, "cannot write"); /* a rename would ignore write protection */
    sigset_t blocked, before; /* an interrupt must not leave the temporary file behind */
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGHUP);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    int status = replace_in_folder(target, old, text, length, why);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}

static bool ends_with(const char *name, const char *suffix) {
    size_t n = strlen(name), s = strlen(suffix);
    return n > s && strcmp(name + n - s, suffix) == 0;
}

static bool has_entry(const char *folder, const char *name) {
    char path[PATH_MAX];
    int size = snprintf(path, sizeof path, "%s/%s", folder, name);
    return size > 0 && (size_t)size < sizeof path && access(path, F_OK) == 0;
}

static bool is_skipped_folder(const char *path, const char *name) {
    return name[0] == '.' || strcmp(name, "__pycache__") == 0 || has_entry(path, "pyvenv.cfg") ||
           has_entry(path, "conda-meta");
}

static int is_real_entry(const struct dirent *entry) {
    return strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
}

static int by_bytes(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void walk_folder(const char *folder, const msa_file_visitor *visitor);

static void walk_entry(const char *folder, const char *name, const msa_file_visitor *visitor) {
    size_t length = strlen(folder);
    char *path = NULL;
    struct stat status;
    if (asprintf(&path, "%s%s%s", folder, folder[length - 1] == '/' ? "" : "/", name) < 0) {
        visitor->failed(visitor->context, folder, "out of memory");
        return;
    }
    if (lstat(path, &status) < 0)
        visitor->failed(visitor->context, path, strerror(errno));
    else if (S_ISDIR(status.st_mode) && !is_skipped_folder(path, name))
        walk_folder(path, visitor);
    else if (S_ISREG(status.st_mode) && (ends_with(name, ".py") || ends_with(name, ".pyi")))
        visitor->found(visitor->context, path);
    free(path);
}

/* Depth is bounded by PATH_MAX: beyond it the system refuses the path. */
static void walk_folder(const char *folder, const msa_file_visitor *visitor) {
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_real_entry, by_bytes);
    if (count < 0) {
        visitor->failed(visitor->context, folder, strerror(errno));
        return;
    }
    for (int i = 0; i < count; i++) {
        walk_entry(folder, entries[i]->d_name, visitor);
        free(entries[i]);
    }
    free(entries);
}

void msa_files_walk(const char *path, const msa_file_visitor *visitor) {
    struct stat status;
    if (!path[0])
        visitor->failed(visitor->context, "''", "an empty path");
    else if (stat(path, &status) < 0)
        visitor->failed(visitor->context, path, strerror(errno));
    else if (S_ISDIR(status.st_mode))
        walk_folder(path, visitor);
    else
        visitor->found(visitor->context, path);
}
