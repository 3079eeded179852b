/* Files for `msadapter migrate`: finding Python sources, reading them whole, replacing them atomically. */
#ifndef MSADAPTER_CLI_FILES_H
#define MSADAPTER_CLI_FILES_H

#include <stddef.h>
#include <sys/stat.h>

enum { MSA_SOURCE_LIMIT = 64 << 20 }; /* bytes; a larger file is data, not a program */

typedef struct {
    char *text;
    size_t length;
    struct stat status; /* as it was when read */
} msa_file;

typedef struct {
    void (*found)(void *context, const char *path);                   /* a file to look at */
    void (*failed)(void *context, const char *path, const char *why); /* a path that can't be walked */
    void *context;
} msa_file_visitor;

/* Calls `found` for a file given by name, or for every *.py and *.pyi below a folder, in order of names. Skipped below
 * the folder: hidden folders, __pycache__, virtual environments, symbolic links, and what is not a regular file. */
void msa_files_walk(const char *path, const msa_file_visitor *visitor);

/* Reads a regular file. Returns 0, or -1 with `why` set. free() the text. */
int msa_file_read(const char *path, msa_file *out, char why[160]);

/* Replaces the file that was read by new text: a temporary file in the same folder, with the same mode, is synced and
 * renamed over it. A symbolic link is followed. Returns 0, or -1 with `why` set and the old file untouched. */
int msa_file_replace(const char *path, const msa_file *old, const char *text, size_t length, char why[160]);

#endif
