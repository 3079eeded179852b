/* Python's tokens, read one at a time from a buffer.
 *
 * The lexer follows the reference manual's lexical analysis (Python 3.8 to 3.14, whose f-strings nest) closely enough
 * to know where every statement starts and ends. Comments, blank lines and joined lines are consumed silently; every
 * token carries its byte range, so a caller can edit the source without disturbing a byte in between. It allocates
 * nothing. */
#ifndef MSADAPTER_CLI_PYTHON_TOKENS_H
#define MSADAPTER_CLI_PYTHON_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum {
    MSA_PYTHON_END,
    MSA_PYTHON_NEWLINE, /* end of a logical line */
    MSA_PYTHON_INDENT,
    MSA_PYTHON_DEDENT,
    MSA_PYTHON_NAME, /* identifiers and keywords */
    MSA_PYTHON_NUMBER,
    MSA_PYTHON_STRING,        /* a whole literal with prefix and quotes, f-strings excepted */
    MSA_PYTHON_FSTRING_START, /* prefix and opening quotes; fields between the pieces come as ordinary tokens */
    MSA_PYTHON_FSTRING_MIDDLE,
    MSA_PYTHON_FSTRING_END,
    MSA_PYTHON_OPERATOR
} msa_python_token_kind;

typedef struct {
    msa_python_token_kind kind;
    size_t start, end; /* byte range in the source; empty for INDENT, DEDENT and END */
    size_t line;       /* 1-based, of the first byte */
    int depth;         /* brackets and f-string fields open around the token */
} msa_python_token;

/* The limits are CPython's own. */
enum { MSA_PYTHON_MAX_INDENTS = 100, MSA_PYTHON_MAX_BRACKETS = 200, MSA_PYTHON_MAX_FSTRINGS = 150 };

typedef enum {
    MSA_PYTHON_UTF8,
    MSA_PYTHON_ASCII,
    MSA_PYTHON_ASCII_SUPERSET, /* no byte below 0x80 is ever part of a longer character: Latin-1, EUC, KOI8, ... */
    MSA_PYTHON_GBK,            /* lead bytes 0x81 to 0xFE, trail bytes may be ASCII: GBK, GB18030, Big5, UHC */
    MSA_PYTHON_SHIFT_JIS
} msa_python_encoding;

typedef struct {
    const char *source;
    size_t length, position, line;
    msa_python_encoding encoding;
    bool line_start;     /* the next byte begins a physical line outside brackets */
    bool line_has_token; /* a NEWLINE is owed for the current logical line */
    int pending;         /* INDENTs (positive) or DEDENTs (negative) not handed out yet */

    int indent_count;
    struct {
        int column, alternative; /* with tabs of 8 and of 1: they must agree on the order */
    } indents[MSA_PYTHON_MAX_INDENTS];

    int bracket_count;
    struct {
        char open;
        char role; /* plain bracket, f-string field, or the format specification of a field */
        size_t line;
    } brackets[MSA_PYTHON_MAX_BRACKETS];

    int fstring_count;
    struct {
        char quote;
        bool triple, raw;
        int base; /* brackets open where the literal began */
        size_t line;
    } fstrings[MSA_PYTHON_MAX_FSTRINGS];

    size_t error_line;
    char error[160];
} msa_python_lexer;

/* Prepares to read `source`, which is borrowed. Finds the encoding (byte order mark, coding cookie) and checks the
 * bytes. Returns 0, or -1 with error and error_line set. */
int msa_python_lexer_open(msa_python_lexer *lexer, const char *source, size_t length);

/* Reads the next token. Returns 0, or -1 with error and error_line set. After END it keeps returning END. */
int msa_python_lexer_next(msa_python_lexer *lexer, msa_python_token *token);

/* Whether the token's bytes are exactly `text`. */
bool msa_python_token_is(const msa_python_lexer *lexer, const msa_python_token *token, const char *text);

/* Whether a NAME is one of Python 3's reserved words (soft keywords are not). */
bool msa_python_is_keyword(const char *name, size_t length);

#endif
