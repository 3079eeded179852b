/* Protects the lexer and the import rewriter: what each source becomes, what is refused and on which line. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "migrate.h"
#include "python_tokens.h"

static int failures;

static void check(int condition, const char *what, const char *detail) {
    if (condition) return;
    failures++;
    printf("FAILED: %s: %s\n", what, detail);
}

static const struct {
    const char *before, *after; /* after NULL: nothing changes */
} rewrites[] = {
    {"import torch\n", "import msadapter.pytorch as torch\n"},
    {"import torch as th\n", "import msadapter.pytorch as th\n"},
    {"import torch, os\n", "import msadapter.pytorch as torch, os\n"},
    {"import os,torch\n", "import os,msadapter.pytorch as torch\n"},
    {"import torch.nn as nn\n", "import msadapter.pytorch.nn as nn\n"},
    {"import torch.nn.functional as F", "import msadapter.pytorch.nn.functional as F"},
    {"import torch.nn\n", "import msadapter.pytorch as torch, msadapter.pytorch.nn\n"},
    {"import torch, torch.nn, torch.optim\n",
     "import msadapter.pytorch as torch, msadapter.pytorch.nn, msadapter.pytorch.optim\n"},
    {"import torch as t, torch.nn\n",
     "import msadapter.pytorch as t, msadapter.pytorch as torch, msadapter.pytorch.nn\n"},
    {"from torch import nn as n\n", "from msadapter.pytorch import nn as n\n"},
    {"from torch import *\n", "from msadapter.pytorch import *\n"},
    {"from torch.utils.data import (A, # first\n    B as C,\n)\n",
     "from msadapter.pytorch.utils.data import (A, # first\n    B as C,\n)\n"},
    {"from torch import(nn)\n", "from msadapter.pytorch import(nn)\n"},
    {"import torchvision\n", "import msadapter.torchvision as torchvision\n"},
    {"from torchvision import datasets, transforms\n", "from msadapter.torchvision import datasets, transforms\n"},
    {"import torchvision.transforms as T\n", "import msadapter.torchvision.transforms as T\n"},
    {"import torch . nn as nn # why\n", "import msadapter.pytorch . nn as nn # why\n"},
    {"import \\\n  torch \\\n  .nn as nn\n", "import \\\n  msadapter.pytorch \\\n  .nn as nn\n"},
    {"\\\nimport torch\n", "\\\nimport msadapter.pytorch as torch\n"},
    {"x = 1; import torch; y = 2\n", "x = 1; import msadapter.pytorch as torch; y = 2\n"},
    {"if x: import torch; from torch import nn\n",
     "if x: import msadapter.pytorch as torch; from msadapter.pytorch import nn\n"},
    {"try:\n\timport torch\nexcept ImportError: import torch.nn as t\nelse : pass\n",
     "try:\n\timport msadapter.pytorch as torch\nexcept ImportError: import msadapter.pytorch.nn as t\nelse : pass\n"},
    {"def f(a: int = {1: 2}[1]) -> x:\n    import torch\n",
     "def f(a: int = {1: 2}[1]) -> x:\n    import msadapter.pytorch as torch\n"},
    {"async def f():\n  async with a as b: from torch import nn\n",
     "async def f():\n  async with a as b: from msadapter.pytorch import nn\n"},
    {"match x:\n case {'a': 1}: import torch\n", "match x:\n case {'a': 1}: import msadapter.pytorch as torch\n"},
    {"import torch\r\nx\r\n", "import msadapter.pytorch as torch\r\nx\r\n"},
    {"x\rimport torch\ry\r", "x\rimport msadapter.pytorch as torch\ry\r"},
    {"\xEF\xBB\xBFimport torch\n", "\xEF\xBB\xBFimport msadapter.pytorch as torch\n"},
    {"# -*- coding: latin-1 -*-\nx = '\xE9'; import torch\n",
     "# -*- coding: latin-1 -*-\nx = '\xE9'; import msadapter.pytorch as torch\n"},
    {"#coding=gbk\nx = '\xB1\x5C'; import torch\n", "#coding=gbk\nx = '\xB1\x5C'; import msadapter.pytorch as torch\n"},
    {"# coding: shift_jis\nx = '\x83\x5C'\nimport torch\n",
     "# coding: shift_jis\nx = '\x83\x5C'\nimport msadapter.pytorch as torch\n"},
    {"\f\nimport torch\n", "\f\nimport msadapter.pytorch as torch\n"},
    {"if x:\n  y\n\f  import torch\n", "if x:\n  y\n\f  import msadapter.pytorch as torch\n"},
    {"模型 = é = 1\nimport torch\n", "模型 = é = 1\nimport msadapter.pytorch as torch\n"},
    {"x = f'{a!r:>{w}}' f\"{d[\"k\"]:{'{'}^4}\"; import torch\n",
     "x = f'{a!r:>{w}}' f\"{d[\"k\"]:{'{'}^4}\"; import msadapter.pytorch as torch\n"},
    {"x = f'''{\n  a # }\n}''' rf'\\{b}' f'\\N{DASH}{{}}'\nimport torch\n",
     "x = f'''{\n  a # }\n}''' rf'\\{b}' f'\\N{DASH}{{}}'\nimport msadapter.pytorch as torch\n"},
    {"x = f'{x:%H:%M}{y != z}{(lambda: 1)()}{q=}{t:=+5}'\nimport torch\n",
     "x = f'{x:%H:%M}{y != z}{(lambda: 1)()}{q=}{t:=+5}'\nimport msadapter.pytorch as torch\n"},
    {"x = t'{f'{f'{1}'}'}'; import torch\n", "x = t'{f'{f'{1}'}'}'; import msadapter.pytorch as torch\n"},
    {"x = 0xFFif y else 1_0.5e-3j; import torch\n", "x = 0xFFif y else 1_0.5e-3j; import msadapter.pytorch as torch\n"},
    {"def g():\n  x = yield\\\n    from_; y = (yield from torch)\n  raise A from torch\n", NULL},
    /* what stays */
    {"", NULL},
    {"from .torch import x\nfrom . import torch\nfrom .. torch import y\nfrom ... import torch as t\n", NULL},
    {"import torchaudio, mytorch.torch, torchvision_x\nfrom mytorch.torch import torch\nfrom torch_x import a\n", NULL},
    {"'import torch'\n\"\"\"\nimport torch\n\"\"\"\n# import torch\n", NULL},
    {"x = r'\\'; import torch'\nb'import torch'\nRb'''\nimport torch\n'''\n", NULL},
    {"x = '\\\nimport torch'\n", NULL},
    {"f'''\nimport torch\n{x}\nimport torch\n'''\n", NULL},
    {"import msadapter.pytorch as torch, msadapter.pytorch.nn\n", NULL},
    {"import_torch = torch.importer\nx.from_torch(torch)\n", NULL},
};

static const struct {
    const char *source;
    size_t line;
} refusals[] = {
    {"x = (1\n", 1},
    {"a\nb = [1, {2)]\n", 2},
    {"a\n)\n", 2},
    {"a\n'abc\n", 2},
    {"a\n\n'''abc\n\n", 3},
    {"a\nf'{x\n", 2},
    {"f'{x:'\n", 1},
    {"f'a}'\n", 1},
    {"f'''{x'''\n", 1},
    {"def f():\n    x\n  y\n", 3},
    {"if x:\n\ty\n        z\n", 3},
    {"x = 1 \\ \n", 1},
    {"x = 1\nx \\", 2},
    {"a\rb\r\nc\n$\n", 4},
    {"x = y ? z\n", 1},
    {"x = 12abc\n", 1},
    {"x = 0777\n", 1},
    {"x = 1__0\n", 1},
    {"x = 1\nimport torch.\n", 2},
    {"import torch as\n", 1},
    {"import torch nn\n", 1},
    {"import\n", 1},
    {"import torch,\n", 1},
    {"from torch import\n", 1},
    {"from torch import a,\n", 1},
    {"from torch import ()\n", 1},
    {"from torch nn\n", 1},
    {"from import x\n", 1},
    {"(import torch)\n", 1},
    {"x import torch\n", 1},
    {"from torch.if import a\n", 1},
    {"a\n\nx = '\xFF'\n", 3},
    {"# coding: utf-16\nx\n", 1},
    {"\n# coding: nonsense\nx\n", 2},
    {"\xEF\xBB\xBF# coding: latin-1\n", 1},
    {"# coding: ascii\nx = '\xC3\xA9'\n", 2},
    {"x = 1\ny\xEF\xBC\x8Cz\n", 2}, /* a full-width comma */
};

static const struct {
    const char *source;
    size_t line; /* of the one warning; 0: none */
} warned[] = {
    {"import importlib\nimportlib.import_module(\"torch.nn\")\n", 2},
    {"m = __import__('torchvision')\n", 1},
    {"\nx = import_module(\n  name='''torch''')\n", 2},
    {"f'{__import__(\"torch\").x}'\n", 1},
    {"import_module(f'torch.{name}')\n", 1},
    {"import_module(f'torch{name}')\n", 0},
    {"import_module('torchaudio')\nimport_module('.torch')\nprint('torch')\n", 0},
    {"# import_module('torch')\n", 0},
};

static void check_rewrites(void) {
    for (size_t i = 0; i < sizeof rewrites / sizeof *rewrites; i++) {
        const char *before = rewrites[i].before, *after = rewrites[i].after;
        msa_migration first, second;
        int status = msa_migrate_source(before, strlen(before), &first);
        check(status == 0, before, first.error);
        if (status == 0 && !after) check(!first.text, before, "should not change");
        if (status == 0 && after) {
            bool equal = first.text && first.length == strlen(after) && memcmp(first.text, after, first.length) == 0;
            check(equal, before, "became something else");
            if (first.text) {
                check(msa_migrate_source(first.text, first.length, &second) == 0 && !second.text, before,
                      "not idempotent");
                msa_migration_free(&second);
            }
        }
        msa_migration_free(&first);
    }
}

static void check_refusals(void) {
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        msa_migration out;
        int status = msa_migrate_source(refusals[i].source, strlen(refusals[i].source), &out);
        check(status < 0 && !out.text && out.error[0], refusals[i].source, "should be refused");
        if (out.error_line != refusals[i].line) printf("line %zu: %s\n", out.error_line, out.error);
        check(out.error_line == refusals[i].line, refusals[i].source, "refused on another line");
        msa_migration_free(&out);
    }
    msa_migration out;
    check(msa_migrate_source("a\nb\0c", 5, &out) < 0 && out.error_line == 2, "NUL byte", "should be refused on line 2");
    msa_migration_free(&out);
}

static void check_warnings(void) {
    for (size_t i = 0; i < sizeof warned / sizeof *warned; i++) {
        msa_migration out;
        int status = msa_migrate_source(warned[i].source, strlen(warned[i].source), &out);
        check(status == 0, warned[i].source, out.error);
        check(out.warning_count == (warned[i].line != 0), warned[i].source, "another number of warnings");
        if (out.warning_count)
            check(out.warnings[0].line == warned[i].line, warned[i].source, "warned on another line");
        msa_migration_free(&out);
    }
}

/* Each token as one letter: what the lexer makes of a source. */
static void check_tokens(const char *source, const char *expected) {
    static const char letters[] =
        ".|><nds[t]o"; /* by kind: END NEWLINE INDENT DEDENT NAME NUMBER STRING FSTRING_* OPERATOR */
    static msa_python_lexer lexer;
    char got[128];
    size_t count = 0;
    msa_python_token token = {.kind = MSA_PYTHON_NAME};
    if (msa_python_lexer_open(&lexer, source, strlen(source)) == 0)
        while (count < sizeof got - 1 && token.kind != MSA_PYTHON_END && msa_python_lexer_next(&lexer, &token) == 0)
            got[count++] = letters[token.kind];
    got[count] = 0;
    check(strcmp(got, expected) == 0, source, got);
}

static void check_limits(void) {
    static char deep[2000];
    msa_migration out;
    memset(deep, '(', sizeof deep);
    check(msa_migrate_source(deep, sizeof deep, &out) < 0, "2000 brackets", "should be refused");
    for (size_t i = 0; i + 3 <= sizeof deep; i += 3) memcpy(deep + i, "f'{", 3);
    check(msa_migrate_source(deep, sizeof deep, &out) < 0, "600 f-strings", "should be refused");
    size_t size = 0;
    for (int i = 0; i < 60; i++) {
        memset(deep + size, ' ', (size_t)i);
        memcpy(deep + size + i, "x\n", 2);
        size += (size_t)i + 2;
    }
    check(msa_migrate_source(deep, size, &out) == 0, "60 indentations", out.error);
}

int main(void) {
    check_rewrites();
    check_refusals();
    check_warnings();
    check_limits();
    check_tokens("", ".");
    check_tokens("\n\n# c\n   \n", ".");
    check_tokens("x", "n|.");
    check_tokens("if x:\n  y # c\n\n# d\n  z\nw\n", "nno|>n|n|<n|.");
    check_tokens("if x:\n  if y:\n    z", "nno|>nno|>n|<<.");
    check_tokens("a = [\n1,\n\n# c\n2]\n", "noododo|.");
    check_tokens("x = .5 + 1.e3 - ...\n", "nododoo|.");
    check_tokens("rb'' Br\"\" u'' ur'' fr'{a}b'\n", "sssns[onot]|.");
    check_tokens("f'a{b:c{d}e}' f''\n", "[tonotonoto][]|.");
    printf("%d failures\n", failures);
    return failures != 0;
}
