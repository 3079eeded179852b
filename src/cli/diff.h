/* The unified diff of a file before and after migration. */
#ifndef MSADAPTER_CLI_DIFF_H
#define MSADAPTER_CLI_DIFF_H

#include <stdio.h>

/* Prints the diff in the form `patch -p1` and `git apply` read (an absolute path is shown as it is, for `patch -p0`).
 * Both texts must have the same number of lines, as a migration guarantees: line n is compared with line n. */
void msa_diff_print(FILE *out, const char *path, const char *before, size_t before_length, const char *after,
                    size_t after_length);

/* Prints a path so that it can't break a line or reach a terminal's control codes: quoted as git quotes where needed.
 */
void msa_path_print(FILE *out, const char *prefix, const char *path);

#endif
