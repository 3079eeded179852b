/* `msadapter run`: finds the Python interpreter and hands over to `python -m msadapter run`. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"

/* Started with -c and not with -m so that the package this executable belongs to is found even when its folder is not
 * on the interpreter's path. An installed package still comes first. */
static const char bootstrap[] = "import sys\n"
                                "site = sys.argv.pop(1)\n"
                                "if site and site not in sys.path: sys.path.append(site)\n"
                                "from msadapter.__main__ import main\n"
                                "sys.exit(main())\n";

static bool is_executable(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

/* Writes folder-of(`file`)/`relative` and says whether an executable is there. */
static bool find_beside(const char *file, const char *relative, char out[PATH_MAX]) {
    const char *slash = strrchr(file, '/');
    if (!slash) return false;
    int size = snprintf(out, PATH_MAX, "%.*s/%s", (int)(slash - file), file, relative);
    return size > 0 && size < PATH_MAX && is_executable(out);
}

/* The folder that holds the package msadapter, when this executable lies in the package's bin/; else "". */
static void find_site(const char *self, char site[PATH_MAX]) {
    char init[PATH_MAX];
    const char *slash = strrchr(self, '/');
    site[0] = 0;
    if (!slash) return;
    int size = snprintf(init, sizeof init, "%.*s/../__init__.py", (int)(slash - self), self);
    if (size < 0 || (size_t)size >= sizeof init || access(init, R_OK) < 0) return;
    snprintf(init, sizeof init, "%.*s/../..", (int)(slash - self), self);
    if (!realpath(init, site)) site[0] = 0;
}

/* Where msadapter was called from: the path itself, or the first match on PATH. Unlike /proc/self/exe it keeps links,
 * so the command of an environment finds the environment's interpreter. */
static bool find_called(const char *program, char out[PATH_MAX]) {
    if (strchr(program, '/')) return snprintf(out, PATH_MAX, "%s", program) < PATH_MAX;
    const char *path = getenv("PATH");
    for (const char *at = path ? path : ""; *at;) {
        size_t size = strcspn(at, ":");
        if (size && snprintf(out, PATH_MAX, "%.*s/%s", (int)size, at, program) < PATH_MAX && is_executable(out))
            return true;
        at += size + (at[size] == ':');
    }
    return false;
}

/* MSADAPTER_PYTHON; python3 beside the command; python3 of the prefix the package is installed in; python3 on PATH. */
static const char *find_python(const char *program, const char *self, char buffer[PATH_MAX]) {
    const char *chosen = getenv("MSADAPTER_PYTHON");
    char called[PATH_MAX];
    if (chosen && chosen[0]) return chosen;
    if (find_called(program, called) && find_beside(called, "python3", buffer)) return buffer;
    if (self[0] && find_beside(self, "python3", buffer)) return buffer;
    if (self[0] && find_beside(self, "../../../../../bin/python3", buffer))
        return buffer; /* lib/python3.N/site-packages/msadapter/bin */
    return "python3";
}

int msa_command_run(int argc, char **argv, const char *program) {
    char self[PATH_MAX], site[PATH_MAX], buffer[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    self[size > 0 ? size : 0] = 0;
    find_site(self, site);
    const char *python = find_python(program, self, buffer);
    char **arguments = calloc((size_t)argc + 5, sizeof *arguments);
    if (!arguments) {
        fputs("msadapter run: out of memory\n", stderr);
        return MSA_EXIT_FAILURE;
    }
    arguments[0] = (char *)python;
    arguments[1] = "-c";
    arguments[2] = (char *)bootstrap;
    arguments[3] = site;
    memcpy(arguments + 4, argv, (size_t)argc * sizeof *argv); /* argv[0] is "run" */
    execvp(python, arguments);
    fprintf(stderr, "msadapter run: cannot start the Python interpreter '%s': %s; set MSADAPTER_PYTHON to its path\n",
            python, strerror(errno));
    free(arguments);
    return MSA_EXIT_FAILURE;
}
