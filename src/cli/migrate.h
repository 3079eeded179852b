/* Rewrites the imports of one Python source so that torch and torchvision come from msadapter. */
#ifndef MSADAPTER_CLI_MIGRATE_H
#define MSADAPTER_CLI_MIGRATE_H

#include <stddef.h>

typedef struct {
    size_t line;
    char message[120];
} msa_migration_warning;

typedef struct {
    char *text; /* the new source, or NULL when nothing changes; never more or fewer lines than before */
    size_t length;
    size_t statements;               /* import statements rewritten */
    msa_migration_warning *warnings; /* imports by name at run time, which are left to the user */
    size_t warning_count;
    size_t error_line; /* of a refusal */
    char error[160];
} msa_migration;

/* Rewrites `source`. Returns 0, or -1 when it can't be read as Python (error and error_line say where; no text then).
 *
 *   import torch                 import msadapter.pytorch as torch
 *   import torch.nn as nn        import msadapter.pytorch.nn as nn
 *   import torch.nn              import msadapter.pytorch as torch, msadapter.pytorch.nn    (also binds `msadapter`)
 *   from torch.utils import data from msadapter.pytorch.utils import data
 *
 * and torchvision likewise. Relative imports and all other packages stay as they are, so a second run changes nothing.
 */
int msa_migrate_source(const char *source, size_t length, msa_migration *out);

void msa_migration_free(msa_migration *migration);

#endif
