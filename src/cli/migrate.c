/* The rewriter of migrate.h: walks the tokens once, parses import statements as it meets them, and notes the byte
 * ranges to replace. Everything outside those ranges is copied as it is, so comments, line ends and odd spacing
 * survive. */
#include "migrate.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python_tokens.h"

enum { ROOT_TORCH, ROOT_TORCHVISION, ROOT_COUNT, ROOT_NONE = ROOT_COUNT };

static const struct {
    const char *name, *replacement, *as_name, *bind_then_import;
} roots[ROOT_COUNT] = {
    {"torch", "msadapter.pytorch", " as torch", "msadapter.pytorch as torch, msadapter.pytorch"},
    {"torchvision", "msadapter.torchvision", " as torchvision",
     "msadapter.torchvision as torchvision, msadapter.torchvision"},
};

typedef struct {
    size_t start, end;
    const char *text; /* static */
} edit;

typedef struct {
    msa_python_lexer lexer;
    msa_python_token token; /* the current one */
    edit *edits;
    size_t edit_count, edit_capacity;
    size_t warning_capacity;
    msa_migration *out;
} rewriter;

static int fail(rewriter *rw, size_t line, const char *message) {
    rw->out->error_line = line;
    snprintf(rw->out->error, sizeof rw->out->error, "%s", message);
    return -1;
}

static int advance(rewriter *rw) {
    if (msa_python_lexer_next(&rw->lexer, &rw->token) == 0) return 0;
    return fail(rw, rw->lexer.error_line, rw->lexer.error);
}

static bool token_is(const rewriter *rw, const char *text) {
    msa_python_token_kind kind = rw->token.kind;
    return (kind == MSA_PYTHON_NAME || kind == MSA_PYTHON_OPERATOR) &&
           msa_python_token_is(&rw->lexer, &rw->token, text);
}

/* Makes room for one more element; NULL when memory is short (the old block stays valid). */
static void *grow(void *block, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity) return block;
    size_t wanted = *capacity ? *capacity * 2 : 16;
    void *larger = reallocarray(block, wanted, size);
    if (larger) *capacity = wanted;
    return larger;
}

static int add_edit(rewriter *rw, size_t start, size_t end, const char *text) {
    edit *edits = grow(rw->edits, rw->edit_count, &rw->edit_capacity, sizeof *edits);
    if (!edits) return fail(rw, rw->token.line, "out of memory");
    rw->edits = edits;
    edits[rw->edit_count++] = (edit){start, end, text};
    return 0;
}

static int add_warning(rewriter *rw, size_t line, const char *callee, int root) {
    msa_migration *out = rw->out;
    msa_migration_warning *list = grow(out->warnings, out->warning_count, &rw->warning_capacity, sizeof *list);
    if (!list) return fail(rw, line, "out of memory");
    out->warnings = list;
    msa_migration_warning *warning = &list[out->warning_count++];
    warning->line = line;
    snprintf(warning->message, sizeof warning->message, "%s() names %s in a string, which is left as it is", callee,
             roots[root].name);
    return 0;
}

static int root_of(const char *text, size_t length) {
    for (int root = 0; root < ROOT_COUNT; root++)
        if (strlen(roots[root].name) == length && memcmp(roots[root].name, text, length) == 0) return root;
    return ROOT_NONE;
}

static bool is_identifier(const rewriter *rw) {
    const msa_python_token *token = &rw->token;
    return token->kind == MSA_PYTHON_NAME &&
           !msa_python_is_keyword(rw->lexer.source + token->start, token->end - token->start);
}

typedef struct {
    msa_python_token first;
    size_t end; /* of the last part */
    bool dotted;
    int root;
} module_name;

/* NAME ("." NAME)* */
static int parse_module(rewriter *rw, module_name *out) {
    if (!is_identifier(rw)) return fail(rw, rw->token.line, "malformed import statement: a module name is missing");
    out->first = rw->token;
    out->dotted = false;
    out->root = root_of(rw->lexer.source + rw->token.start, rw->token.end - rw->token.start);
    for (;;) {
        out->end = rw->token.end;
        if (advance(rw) < 0) return -1;
        if (!token_is(rw, ".")) return 0;
        if (advance(rw) < 0) return -1;
        if (!is_identifier(rw)) return fail(rw, rw->token.line, "malformed import statement: a name must follow '.'");
        out->dotted = true;
    }
}

/* ["as" NAME] */
static int parse_alias(rewriter *rw, bool *present) {
    *present = token_is(rw, "as");
    if (!*present) return 0;
    if (advance(rw) < 0) return -1;
    if (!is_identifier(rw)) return fail(rw, rw->token.line, "malformed import statement: a name must follow 'as'");
    return advance(rw);
}

static int expect_statement_end(rewriter *rw) {
    if (rw->token.kind == MSA_PYTHON_NEWLINE || rw->token.kind == MSA_PYTHON_END || token_is(rw, ";")) return 0;
    return fail(rw, rw->token.line, "malformed import statement");
}

/* Notes the edits for one module of an `import` statement; `bound` says which roots the statement has bound already. */
static int rewrite_module(rewriter *rw, const module_name *module, bool aliased, bool bound[ROOT_COUNT]) {
    int root = module->root;
    const char *text = roots[root].replacement;
    if (!aliased && module->dotted && !bound[root]) text = roots[root].bind_then_import;
    if (add_edit(rw, module->first.start, module->first.end, text) < 0) return -1;
    if (!aliased && !module->dotted && add_edit(rw, module->end, module->end, roots[root].as_name) < 0) return -1;
    if (!aliased) bound[root] = true;
    return 0;
}

/* "import" module ["as" NAME] ("," module ["as" NAME])* */
static int parse_import(rewriter *rw) {
    bool bound[ROOT_COUNT] = {false}, changed = false;
    do {
        module_name module;
        bool aliased;
        if (advance(rw) < 0 || parse_module(rw, &module) < 0 || parse_alias(rw, &aliased) < 0) return -1;
        if (module.root == ROOT_NONE) continue;
        if (rewrite_module(rw, &module, aliased, bound) < 0) return -1;
        changed = true;
    } while (token_is(rw, ","));
    rw->out->statements += changed;
    return expect_statement_end(rw);
}

/* The names after "from module import", with or without parentheses, or "*". */
static int parse_imported_names(rewriter *rw) {
    if (token_is(rw, "*")) return advance(rw);
    bool parenthesized = token_is(rw, "("), aliased;
    if (parenthesized && advance(rw) < 0) return -1;
    for (;;) {
        if (!is_identifier(rw))
            return fail(rw, rw->token.line, "malformed import statement: a name to import is missing");
        if (advance(rw) < 0 || parse_alias(rw, &aliased) < 0) return -1;
        if (!token_is(rw, ",")) break;
        if (advance(rw) < 0) return -1;
        if (parenthesized && token_is(rw, ")")) break;
    }
    if (!parenthesized) return 0;
    if (!token_is(rw, ")")) return fail(rw, rw->token.line, "malformed import statement: ')' expected");
    return advance(rw);
}

/* "from" "."* [module] "import" names */
static int parse_from(rewriter *rw) {
    module_name module = {.root = ROOT_NONE};
    bool relative = false;
    if (advance(rw) < 0) return -1;
    for (; token_is(rw, ".") || token_is(rw, "..."); relative = true)
        if (advance(rw) < 0) return -1;
    if (!(relative && token_is(rw, "import")) && parse_module(rw, &module) < 0) return -1;
    if (!token_is(rw, "import")) return fail(rw, rw->token.line, "malformed import statement: 'import' expected");
    if (advance(rw) < 0 || parse_imported_names(rw) < 0) return -1;
    if (!relative && module.root != ROOT_NONE) {
        if (add_edit(rw, module.first.start, module.first.end, roots[module.root].replacement) < 0) return -1;
        rw->out->statements++;
    }
    return expect_statement_end(rw);
}

/* The root that a dotted module name in a string starts with, given the bytes between its quotes. `cut` says that an
 * f-string's field follows, so the name may go on. */
static int root_in_string(const char *text, size_t length, bool cut) {
    size_t size = 0;
    while (size < length && text[size] != '.') size++;
    return size == length && cut ? ROOT_NONE : root_of(text, size);
}

/* Recognises callee "(" [name "="] string, fed one token at a time. */
typedef struct {
    enum { SEEK, CALLEE, ARGUMENT, KEYWORD, VALUE, FSTRING } state;
    const char *callee;
    size_t line;
} call_matcher;

static const char *import_function(const rewriter *rw) {
    static const char *const functions[] = {"import_module", "__import__", "find_spec", "importorskip"};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (token_is(rw, functions[i])) return functions[i];
    return NULL;
}

static int match_string(rewriter *rw, const call_matcher *matcher) {
    const char *text = rw->lexer.source + rw->token.start;
    size_t length = rw->token.end - rw->token.start, prefix = 0;
    bool fstring = matcher->state == FSTRING;
    if (!fstring) {
        while (text[prefix] != '"' && text[prefix] != '\'') prefix++;
        size_t quotes =
            length - prefix >= 6 && text[prefix + 1] == text[prefix] && text[prefix + 2] == text[prefix] ? 3 : 1;
        text += prefix + quotes;
        length -= prefix + 2 * quotes;
    }
    int root = root_in_string(text, length, fstring);
    return root == ROOT_NONE ? 0 : add_warning(rw, matcher->line, matcher->callee, root);
}

static int watch_calls(rewriter *rw, call_matcher *matcher) {
    const char *callee = rw->token.kind == MSA_PYTHON_NAME ? import_function(rw) : NULL;
    int state = matcher->state, status = 0;
    matcher->state = SEEK;
    if (callee) {
        *matcher = (call_matcher){CALLEE, callee, rw->token.line};
    } else if (state == CALLEE && token_is(rw, "(")) {
        matcher->state = ARGUMENT;
    } else if (state == ARGUMENT && token_is(rw, "name")) {
        matcher->state = KEYWORD;
    } else if (state == KEYWORD && token_is(rw, "=")) {
        matcher->state = VALUE;
    } else if ((state == ARGUMENT || state == VALUE) && rw->token.kind == MSA_PYTHON_STRING) {
        status = match_string(rw, matcher);
    } else if ((state == ARGUMENT || state == VALUE) && rw->token.kind == MSA_PYTHON_FSTRING_START) {
        matcher->state = FSTRING;
    } else if (state == FSTRING && rw->token.kind == MSA_PYTHON_FSTRING_MIDDLE) {
        matcher->state = FSTRING;
        status = match_string(rw, matcher);
        matcher->state = SEEK;
    }
    return status;
}

/* A simple statement may start after the current token. */
static bool opens_statement(const rewriter *rw) {
    switch (rw->token.kind) {
    case MSA_PYTHON_NEWLINE:
    case MSA_PYTHON_INDENT:
    case MSA_PYTHON_DEDENT:
        return true;
    case MSA_PYTHON_OPERATOR:
        return rw->token.depth == 0 && (token_is(rw, ";") || token_is(rw, ":"));
    default:
        return false;
    }
}

static int read_statements(rewriter *rw) {
    bool start = true;
    call_matcher matcher = {SEEK, NULL, 0};
    if (advance(rw) < 0) return -1;
    while (rw->token.kind != MSA_PYTHON_END) {
        if (start && token_is(rw, "import")) {
            if (parse_import(rw) < 0) return -1;
        } else if (start && token_is(rw, "from")) {
            if (parse_from(rw) < 0) return -1;
        } else if (token_is(rw, "import")) {
            return fail(rw, rw->token.line, "'import' is not at the start of a statement");
        } else {
            if (watch_calls(rw, &matcher) < 0) return -1;
            start = opens_statement(rw);
            if (advance(rw) < 0) return -1;
        }
    }
    return 0;
}

static int apply_edits(rewriter *rw) {
    const char *source = rw->lexer.source;
    size_t length = rw->lexer.length, from = 0, size = 0;
    for (size_t i = 0; i < rw->edit_count; i++) size += strlen(rw->edits[i].text);
    char *text = malloc(length + size + 1), *to = text;
    if (!text) return fail(rw, 1, "out of memory");
    for (size_t i = 0; i < rw->edit_count; i++) {
        const edit *e = &rw->edits[i];
        to = mempcpy(to, source + from, e->start - from);
        to = mempcpy(to, e->text, strlen(e->text));
        from = e->end;
    }
    to = mempcpy(to, source + from, length - from);
    rw->out->text = text;
    rw->out->length = (size_t)(to - text);
    return 0;
}

int msa_migrate_source(const char *source, size_t length, msa_migration *out) {
    *out = (msa_migration){0};
    rewriter rw = {.out = out};
    int status = msa_python_lexer_open(&rw.lexer, source, length);
    if (status < 0) fail(&rw, rw.lexer.error_line, rw.lexer.error);
    if (status == 0) status = read_statements(&rw);
    if (status == 0 && rw.edit_count) status = apply_edits(&rw);
    free(rw.edits);
    return status;
}

void msa_migration_free(msa_migration *migration) {
    free(migration->text);
    free(migration->warnings);
    *migration = (msa_migration){0};
}
