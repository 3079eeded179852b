/* The commands of `msadapter`. Each takes its own arguments (argv[0] is the command's name) and returns the exit
 * status. */
#ifndef MSADAPTER_CLI_COMMANDS_H
#define MSADAPTER_CLI_COMMANDS_H

enum { MSA_EXIT_OK = 0, MSA_EXIT_FAILURE = 1, MSA_EXIT_USAGE = 2 };

int msa_command_migrate(int argc, char **argv);

/* Replaces this process by the Python interpreter; returns only when that fails. `program` is the path msadapter was
 * called by. */
int msa_command_run(int argc, char **argv, const char *program);

#endif
