/* The `msadapter` command: picks the subcommand. It links nothing but the C library, so that it works before, and
 * without, the rest of the package. */
#include <stdio.h>
#include <string.h>

#include "commands.h"

static const char usage[] =
    "usage: msadapter COMMAND [ARGUMENTS ...]\n"
    "\n"
    "  migrate [--dry-run] [PATH ...]   rewrite imports of torch and torchvision to msadapter's\n"
    "  run SCRIPT [ARGUMENTS ...]       run an unchanged PyTorch script on msadapter\n"
    "  run -m MODULE [ARGUMENTS ...]    the same for a module\n"
    "\n"
    "  -h, --help      show this help; `msadapter COMMAND --help` says more\n"
    "  -V, --version   show the version\n";

int main(int argc, char **argv) {
    const char *command = argc > 1 ? argv[1] : NULL;
    int status = MSA_EXIT_OK;
    if (!command) {
        fputs(usage, stderr);
        return MSA_EXIT_USAGE;
    }
    if (strcmp(command, "migrate") == 0) {
        status = msa_command_migrate(argc - 1, argv + 1);
    } else if (strcmp(command, "run") == 0) {
        status = msa_command_run(argc - 1, argv + 1, argv[0]);
    } else if (strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0) {
        fputs(usage, stdout);
    } else if (strcmp(command, "--version") == 0 || strcmp(command, "-V") == 0) {
        puts("msadapter " MSA_VERSION);
    } else {
        const char *kind = command[0] == '-' ? "option" : "command";
        fprintf(stderr, "msadapter: unknown %s '%s'; see msadapter --help\n", kind, command);
        return MSA_EXIT_USAGE;
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("msadapter: cannot write the output");
        return MSA_EXIT_FAILURE;
    }
    return status;
}
