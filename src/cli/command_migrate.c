/* `msadapter migrate`: takes files and folders, rewrites or shows what it would rewrite, and counts. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "diff.h"
#include "files.h"
#include "migrate.h"

static const char usage[] =
    "usage: msadapter migrate [--dry-run] [PATH ...]\n"
    "\n"
    "Rewrites the imports of torch and torchvision to msadapter.pytorch and msadapter.torchvision, in files and in "
    "all\n"
    "*.py and *.pyi below folders (default: ./). Hidden folders, __pycache__ and virtual environments are skipped.\n"
    "\n"
    "  -n, --dry-run   print a unified diff and write nothing\n"
    "  -h, --help      show this help\n"
    "\n"
    "Exit status: 0 when every file could be read as Python and written, 1 when some were refused (each is named with "
    "its\n"
    "line; the others are done), 2 for wrong usage.\n";

typedef struct {
    bool dry_run;
    size_t changed, unchanged, refused;
} session;

static void report(const char *path, size_t line, const char *kind, const char *message) {
    fflush(stdout);
    msa_path_print(stderr, "", path);
    if (line) fprintf(stderr, ":%zu", line);
    fprintf(stderr, ": %s%s\n", kind, message);
}

static void refuse(void *context, const char *path, const char *why) {
    session *s = context;
    s->refused++;
    report(path, 0, "refused: ", why);
}

/* Shows or writes a file's migrated text. */
static void deliver(session *s, const char *path, const msa_file *file, const msa_migration *migration) {
    char why[160];
    if (s->dry_run) {
        msa_diff_print(stdout, path, file->text, file->length, migration->text, migration->length);
    } else if (msa_file_replace(path, file, migration->text, migration->length, why) < 0) {
        refuse(s, path, why);
        return;
    } else {
        fputs("changed ", stdout);
        msa_path_print(stdout, "", path);
        putchar('\n');
    }
    s->changed++;
}

static void migrate_file(void *context, const char *path) {
    session *s = context;
    char why[160];
    msa_file file;
    msa_migration migration;
    if (msa_file_read(path, &file, why) < 0) {
        refuse(s, path, why);
        return;
    }
    if (msa_migrate_source(file.text, file.length, &migration) < 0) {
        s->refused++;
        report(path, migration.error_line, "refused: ", migration.error);
    } else if (migration.text) {
        deliver(s, path, &file, &migration);
    } else {
        s->unchanged++;
    }
    for (size_t i = 0; i < migration.warning_count; i++)
        report(path, migration.warnings[i].line, "warning: ", migration.warnings[i].message);
    msa_migration_free(&migration);
    free(file.text);
}

/* Reads the options; moves the paths to the front of argv. Returns their number, or -1 - status to exit at once. */
static int parse_options(int argc, char **argv, session *s) {
    int paths = 0;
    bool options = true;
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i];
        if (!options || argument[0] != '-' || !argument[1]) {
            argv[paths++] = argv[i];
        } else if (strcmp(argument, "--") == 0) {
            options = false;
        } else if (strcmp(argument, "--dry-run") == 0 || strcmp(argument, "-n") == 0) {
            s->dry_run = true;
        } else if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
            fputs(usage, stdout);
            return -1 - MSA_EXIT_OK;
        } else {
            fprintf(stderr, "msadapter migrate: unknown option '%s'; see msadapter migrate --help\n", argument);
            return -1 - MSA_EXIT_USAGE;
        }
    }
    return paths;
}

int msa_command_migrate(int argc, char **argv) {
    session s = {0};
    int paths = parse_options(argc, argv, &s);
    if (paths < 0) return -1 - paths;
    msa_file_visitor visitor = {migrate_file, refuse, &s};
    for (int i = 0; i < paths; i++) msa_files_walk(argv[i], &visitor);
    if (!paths) msa_files_walk("./", &visitor);
    printf("%zu file%s changed, %zu unchanged, %zu refused%s\n", s.changed, s.changed == 1 ? "" : "s", s.unchanged,
           s.refused, s.dry_run ? " (dry run: nothing written)" : "");
    return s.refused ? MSA_EXIT_FAILURE : MSA_EXIT_OK;
}
