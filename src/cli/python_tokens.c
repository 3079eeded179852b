/* The lexer of python_tokens.h.
 *
 * One function reads each kind of token. Which one applies is decided by the innermost open construct: inside the text
 * of an f-string (or a format specification) bytes are literal; everywhere else, fields of f-strings included, they are
 * ordinary Python. A stack of brackets, in which a field is a bracket with a role, holds all of that. */
#include "python_tokens.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "python_source.h"

enum { ROLE_PLAIN, ROLE_FIELD, ROLE_SPECIFICATION };

__attribute__((format(printf, 3, 4))) static int fail(msa_python_lexer *lx, size_t line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(lx->error, sizeof lx->error, format, arguments);
    va_end(arguments);
    lx->error_line = line;
    return -1;
}

static bool at_end(const msa_python_lexer *lx) {
    return lx->position >= lx->length;
}

/* The byte `ahead` places on, or 0 past the end (a source holds no NUL). */
static char peek(const msa_python_lexer *lx, size_t ahead) {
    return ahead < lx->length - lx->position ? lx->source[lx->position + ahead] : 0;
}

static bool is_newline(char c) {
    return c == '\n' || c == '\r';
}
static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
static bool is_name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
}
static bool is_name_part(char c) {
    return is_name_start(c) || is_digit(c);
}

static void skip_newline(msa_python_lexer *lx) {
    lx->position += peek(lx, 0) == '\r' && peek(lx, 1) == '\n' ? 2 : 1;
    lx->line++;
}

/* Steps over one character, or one line ending. */
static void skip_character(msa_python_lexer *lx) {
    if (is_newline(peek(lx, 0)))
        skip_newline(lx);
    else
        lx->position += msa_python_char_length(lx->encoding, lx->source, lx->length, lx->position);
}

static void skip_comment(msa_python_lexer *lx) {
    while (!at_end(lx) && !is_newline(peek(lx, 0))) lx->position++;
}

/* At a backslash outside strings: joins the next line. */
static int skip_continuation(msa_python_lexer *lx) {
    if (!is_newline(peek(lx, 1))) return fail(lx, lx->line, "unexpected character after a line continuation");
    lx->position++;
    skip_newline(lx);
    if (at_end(lx)) return fail(lx, lx->line, "the file ends in a line continuation");
    return 0;
}

static bool in_fstring_text(const msa_python_lexer *lx) {
    if (!lx->fstring_count) return false;
    return lx->bracket_count == lx->fstrings[lx->fstring_count - 1].base ||
           lx->brackets[lx->bracket_count - 1].role == ROLE_SPECIFICATION;
}

static int push_bracket(msa_python_lexer *lx, char open, char role) {
    if (lx->bracket_count == MSA_PYTHON_MAX_BRACKETS) return fail(lx, lx->line, "too many nested brackets");
    lx->brackets[lx->bracket_count].open = open;
    lx->brackets[lx->bracket_count].role = role;
    lx->brackets[lx->bracket_count].line = lx->line;
    lx->bracket_count++;
    return 0;
}

static int pop_bracket(msa_python_lexer *lx, char close) {
    int base = lx->fstring_count ? lx->fstrings[lx->fstring_count - 1].base : 0;
    if (lx->bracket_count == base) return fail(lx, lx->line, "unmatched '%c'", close);
    char open = lx->brackets[lx->bracket_count - 1].open;
    char expected = open == '(' ? ')' : open == '[' ? ']' : '}';
    if (close != expected) {
        size_t line = lx->brackets[lx->bracket_count - 1].line;
        return fail(lx, lx->line, "'%c' does not match '%c' on line %zu", close, open, line);
    }
    lx->bracket_count--;
    return 0;
}

static int finish(msa_python_lexer *lx, msa_python_token *token, msa_python_token_kind kind) {
    token->kind = kind;
    token->end = lx->position;
    if (kind != MSA_PYTHON_NEWLINE && kind != MSA_PYTHON_INDENT && kind != MSA_PYTHON_DEDENT) lx->line_has_token = true;
    return 0;
}

/* Compares the indentation of a line that has tokens with the open ones. */
static int settle_indentation(msa_python_lexer *lx, int column, int alternative) {
    int top = lx->indent_count - 1;
    if (column == lx->indents[top].column) {
        if (alternative != lx->indents[top].alternative)
            return fail(lx, lx->line, "inconsistent use of tabs and spaces");
        return 0;
    }
    if (column > lx->indents[top].column) {
        if (alternative <= lx->indents[top].alternative)
            return fail(lx, lx->line, "inconsistent use of tabs and spaces");
        if (lx->indent_count == MSA_PYTHON_MAX_INDENTS) return fail(lx, lx->line, "too many levels of indentation");
        lx->indents[lx->indent_count].column = column;
        lx->indents[lx->indent_count].alternative = alternative;
        lx->indent_count++;
        lx->pending = 1;
        return 0;
    }
    while (lx->indents[lx->indent_count - 1].column > column) {
        lx->indent_count--;
        lx->pending--;
    }
    if (lx->indents[lx->indent_count - 1].column != column)
        return fail(lx, lx->line, "unindent does not match any outer indentation level");
    if (lx->indents[lx->indent_count - 1].alternative != alternative)
        return fail(lx, lx->line, "inconsistent use of tabs and spaces");
    return 0;
}

/* Skips blank and comment lines and measures the indentation of the next line that has tokens. */
static int read_indentation(msa_python_lexer *lx) {
    enum { widest = 1 << 20 }; /* keeps the arithmetic far from overflow; no program gets near */
    int column = 0, alternative = 0, joined = -1, joined_alternative = -1;
    for (;;) {
        char c = peek(lx, 0);
        if (c == ' ') {
            column++;
            alternative++;
        } else if (c == '\t') {
            column = (column / 8 + 1) * 8;
            alternative++;
        } else if (c == '\f') {
            column = alternative = 0;
        } else if (c == '\\') {
            if (joined < 0) {
                joined = column;
                joined_alternative = alternative;
            }
            if (skip_continuation(lx) < 0) return -1;
            continue;
        } else if (c == '#' || is_newline(c)) {
            skip_comment(lx);
            if (!at_end(lx)) skip_newline(lx);
            column = alternative = 0;
            joined = joined_alternative = -1;
            continue;
        } else {
            break;
        }
        if (column > widest) return fail(lx, lx->line, "a line is indented too far");
        lx->position++;
    }
    lx->line_start = false;
    if (at_end(lx)) return 0;
    return joined < 0 ? settle_indentation(lx, column, alternative)
                      : settle_indentation(lx, joined, joined_alternative);
}

/* Skips what separates tokens within a logical line: spaces, comments, joined lines, and line ends inside brackets. */
static int skip_space(msa_python_lexer *lx) {
    for (;;) {
        char c = peek(lx, 0);
        if (c == ' ' || c == '\t' || c == '\f')
            lx->position++;
        else if (c == '#')
            skip_comment(lx);
        else if (c == '\\') {
            if (skip_continuation(lx) < 0) return -1;
        } else if (is_newline(c) && lx->bracket_count)
            skip_newline(lx);
        else
            return 0;
    }
}

bool msa_python_is_keyword(const char *name, size_t length) {
    static const char *const keywords[] = {"False",  "None",   "True",    "and",      "as",       "assert", "async",
                                           "await",  "break",  "class",   "continue", "def",      "del",    "elif",
                                           "else",   "except", "finally", "for",      "from",     "global", "if",
                                           "import", "in",     "is",      "lambda",   "nonlocal", "not",    "or",
                                           "pass",   "raise",  "return",  "try",      "while",    "with",   "yield"};
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strlen(keywords[i]) == length && memcmp(keywords[i], name, length) == 0) return true;
    return false;
}

/* Consumes digits of one base with single underscores between them; false where a digit had to come and did not. */
static bool skip_digits(msa_python_lexer *lx, int base) {
    for (;;) {
        size_t from = lx->position;
        for (;; lx->position++) {
            char c = peek(lx, 0);
            bool digit = base == 16 ? is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')
                                    : c >= '0' && c < '0' + base;
            if (!digit) break;
        }
        if (lx->position == from) return false;
        if (peek(lx, 0) != '_') return true;
        lx->position++;
    }
}

static bool read_decimal(msa_python_lexer *lx) {
    size_t start = lx->position;
    bool whole = true;
    if (is_digit(peek(lx, 0)) && !skip_digits(lx, 10)) return false;
    size_t digits = lx->position - start;
    if (peek(lx, 0) == '.') {
        whole = false;
        lx->position++;
        if (is_digit(peek(lx, 0)) && !skip_digits(lx, 10)) return false;
    }
    char c = peek(lx, 0), sign = peek(lx, 1);
    if ((c == 'e' || c == 'E') && (is_digit(sign) || ((sign == '+' || sign == '-') && is_digit(peek(lx, 2))))) {
        whole = false;
        lx->position += is_digit(sign) ? 1 : 2;
        if (!skip_digits(lx, 10)) return false;
    }
    c = peek(lx, 0);
    if (c == 'j' || c == 'J') {
        lx->position++;
        return true;
    }
    if (!whole || digits < 2 || lx->source[start] != '0') return true;
    for (size_t i = start; i < start + digits; i++) /* 0777 is refused, 000 is zero */
        if (lx->source[i] != '0' && lx->source[i] != '_') return false;
    return true;
}

static int read_number(msa_python_lexer *lx, msa_python_token *token) {
    char second = peek(lx, 0) == '0' ? (char)(peek(lx, 1) | 0x20) : 0;
    bool valid;
    if (second == 'x' || second == 'o' || second == 'b') {
        lx->position += peek(lx, 2) == '_' ? 3 : 2;
        valid = skip_digits(lx, second == 'x' ? 16 : second == 'o' ? 8 : 2);
    } else {
        valid = read_decimal(lx);
    }
    size_t after = 0;
    while (is_name_part(peek(lx, after))) after++;
    /* `1if x else 2` is legal: a keyword may follow a number without a space */
    if (after && !msa_python_is_keyword(lx->source + lx->position, after)) valid = false;
    if (!valid) return fail(lx, token->line, "invalid number");
    return finish(lx, token, MSA_PYTHON_NUMBER);
}

/* After the prefix, at the opening quote: reads to the closing one. */
static int read_string(msa_python_lexer *lx, msa_python_token *token) {
    char quote = peek(lx, 0);
    bool triple = peek(lx, 1) == quote && peek(lx, 2) == quote;
    lx->position += triple ? 3 : 1;
    while (!at_end(lx)) {
        char c = peek(lx, 0);
        if (c == quote && (!triple || (peek(lx, 1) == quote && peek(lx, 2) == quote))) {
            lx->position += triple ? 3 : 1;
            return finish(lx, token, MSA_PYTHON_STRING);
        }
        if (is_newline(c) && !triple) break;
        if (c == '\\') {
            lx->position++;
            if (at_end(lx)) break;
        }
        skip_character(lx);
    }
    return fail(lx, token->line, triple ? "unterminated triple-quoted string" : "unterminated string");
}

static int open_fstring(msa_python_lexer *lx, msa_python_token *token, bool raw) {
    if (lx->fstring_count == MSA_PYTHON_MAX_FSTRINGS) return fail(lx, lx->line, "too many nested f-strings");
    char quote = peek(lx, 0);
    bool triple = peek(lx, 1) == quote && peek(lx, 2) == quote;
    lx->fstrings[lx->fstring_count].quote = quote;
    lx->fstrings[lx->fstring_count].triple = triple;
    lx->fstrings[lx->fstring_count].raw = raw;
    lx->fstrings[lx->fstring_count].base = lx->bracket_count;
    lx->fstrings[lx->fstring_count].line = lx->line;
    lx->fstring_count++;
    lx->position += triple ? 3 : 1;
    return finish(lx, token, MSA_PYTHON_FSTRING_START);
}

/* At a backslash in an f-string's text: steps over the escape. A brace after it still opens a field. */
static void skip_fstring_escape(msa_python_lexer *lx, bool raw, char quote) {
    lx->position++;
    char c = peek(lx, 0);
    if (at_end(lx) || c == '{' || c == '}') return;
    if (raw || c != 'N' || peek(lx, 1) != '{') {
        skip_character(lx);
        return;
    }
    lx->position += 2; /* \N{NAME}: these braces are no field */
    while (!at_end(lx) && peek(lx, 0) != '}' && peek(lx, 0) != quote && !is_newline(peek(lx, 0))) skip_character(lx);
    if (peek(lx, 0) == '}') lx->position++;
}

/* In the text of an f-string or of a format specification: the next piece of text, brace or closing quote. */
static int read_fstring_text(msa_python_lexer *lx, msa_python_token *token) {
    char quote = lx->fstrings[lx->fstring_count - 1].quote;
    bool triple = lx->fstrings[lx->fstring_count - 1].triple, raw = lx->fstrings[lx->fstring_count - 1].raw;
    bool specification = lx->bracket_count > lx->fstrings[lx->fstring_count - 1].base;
    size_t opened = lx->fstrings[lx->fstring_count - 1].line;
    while (!at_end(lx)) {
        char c = peek(lx, 0);
        bool closing = c == quote && (!triple || (peek(lx, 1) == quote && peek(lx, 2) == quote));
        bool doubled = !specification && (c == '{' || c == '}') && peek(lx, 1) == c;
        if (doubled) {
            lx->position += 2;
            continue;
        }
        if (closing || c == '{' || c == '}') {
            if (lx->position > token->start) return finish(lx, token, MSA_PYTHON_FSTRING_MIDDLE);
            if (closing) {
                if (specification) return fail(lx, opened, "a field of an f-string is not closed");
                lx->position += triple ? 3 : 1;
                lx->fstring_count--;
                return finish(lx, token, MSA_PYTHON_FSTRING_END);
            }
            if (c == '}' && !specification) return fail(lx, lx->line, "single '}' in an f-string");
            if ((c == '{' ? push_bracket(lx, '{', ROLE_FIELD) : pop_bracket(lx, '}')) < 0) return -1;
            lx->position++;
            return finish(lx, token, MSA_PYTHON_OPERATOR);
        }
        if (is_newline(c) && !triple) break;
        if (c == '\\')
            skip_fstring_escape(lx, raw, quote);
        else
            skip_character(lx);
    }
    return fail(lx, opened, triple ? "unterminated triple-quoted f-string" : "unterminated f-string");
}

/* Reads an identifier or, where its letters turn out to be a prefix, a string. */
static int read_name(msa_python_lexer *lx, msa_python_token *token) {
    bool raw = false, bytes = false, formatted = false, unicode = false, prefix = true;
    while (is_name_part(peek(lx, 0))) {
        char c = peek(lx, 0);
        if (c & 0x80) {
            if (lx->encoding == MSA_PYTHON_UTF8) {
                unsigned code = msa_python_utf8_decode(lx->source + lx->position);
                if (!msa_python_is_name_char(code)) return fail(lx, lx->line, "invalid character U+%04X", code);
            }
            prefix = false;
            skip_character(lx);
            continue;
        }
        char lower = (char)(c | 0x20);
        if (lower == 'r' && !raw && !unicode)
            raw = true;
        else if (lower == 'b' && !bytes && !formatted && !unicode)
            bytes = true;
        else if ((lower == 'f' || lower == 't') && !bytes && !formatted && !unicode)
            formatted = true;
        else if (lower == 'u' && lx->position == token->start)
            unicode = true;
        else
            prefix = false;
        lx->position++;
        if (prefix && (peek(lx, 0) == '\'' || peek(lx, 0) == '"'))
            return formatted ? open_fstring(lx, token, raw) : read_string(lx, token);
    }
    return finish(lx, token, MSA_PYTHON_NAME);
}

static size_t operator_length(const msa_python_lexer *lx) {
    static const char *const operators[] = {
        "**=", "//=", ">>=", "<<=", "...", "==", "!=", "<=", ">=", "->", ":=", "+=", "-=",
        "*=",  "/=",  "%=",  "@=",  "&=",  "|=", "^=", "**", "//", ">>", "<<", "<>"};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        size_t size = strlen(operators[i]);
        if (lx->length - lx->position >= size && memcmp(lx->source + lx->position, operators[i], size) == 0)
            return size;
    }
    return strchr("()[]{}:;,.=+-*/%@&|^~<>", peek(lx, 0)) ? 1 : 0;
}

static int read_operator(msa_python_lexer *lx, msa_python_token *token) {
    char c = peek(lx, 0);
    bool field = lx->bracket_count && lx->brackets[lx->bracket_count - 1].role == ROLE_FIELD;
    size_t size = operator_length(lx);
    if (field && c == ':') {
        lx->brackets[lx->bracket_count - 1].role = ROLE_SPECIFICATION;
        size = 1; /* `:=` here is a specification that begins with '=' */
    } else if (field && c == '!' && !size) {
        size = 1; /* a conversion such as !r */
    }
    if (!size) {
        if (c > ' ' && c < 0x7F) return fail(lx, lx->line, "invalid character '%c'", c);
        return fail(lx, lx->line, "invalid character 0x%02X", (unsigned char)c);
    }
    if ((c == '(' || c == '[' || c == '{') && push_bracket(lx, c, ROLE_PLAIN) < 0) return -1;
    if ((c == ')' || c == ']' || c == '}') && pop_bracket(lx, c) < 0) return -1;
    lx->position += size;
    return finish(lx, token, MSA_PYTHON_OPERATOR);
}

/* The end of the file: the owed NEWLINE, then the open indentations, then END for ever. */
static int read_end(msa_python_lexer *lx, msa_python_token *token) {
    if (lx->bracket_count) {
        char open = lx->brackets[lx->bracket_count - 1].open;
        return fail(lx, lx->brackets[lx->bracket_count - 1].line, "'%c' was never closed", open);
    }
    if (lx->line_has_token) {
        lx->line_has_token = false;
        return finish(lx, token, MSA_PYTHON_NEWLINE);
    }
    if (lx->indent_count > 1) {
        lx->indent_count--;
        return finish(lx, token, MSA_PYTHON_DEDENT);
    }
    token->kind = MSA_PYTHON_END;
    token->end = lx->position;
    return 0;
}

static void begin(const msa_python_lexer *lx, msa_python_token *token) {
    *token =
        (msa_python_token){.start = lx->position, .end = lx->position, .line = lx->line, .depth = lx->bracket_count};
}

int msa_python_lexer_next(msa_python_lexer *lx, msa_python_token *token) {
    begin(lx, token);
    if (in_fstring_text(lx)) return read_fstring_text(lx, token);
    if (lx->line_start && read_indentation(lx) < 0) return -1;
    begin(lx, token);
    if (lx->pending) {
        bool indent = lx->pending > 0;
        lx->pending += indent ? -1 : 1;
        return finish(lx, token, indent ? MSA_PYTHON_INDENT : MSA_PYTHON_DEDENT);
    }
    if (skip_space(lx) < 0) return -1;
    begin(lx, token);
    if (at_end(lx)) return read_end(lx, token);
    char c = peek(lx, 0);
    if (is_newline(c)) {
        skip_newline(lx);
        lx->line_start = true;
        lx->line_has_token = false;
        return finish(lx, token, MSA_PYTHON_NEWLINE);
    }
    if (is_name_start(c)) return read_name(lx, token);
    if (is_digit(c) || (c == '.' && is_digit(peek(lx, 1)))) return read_number(lx, token);
    if (c == '\'' || c == '"') return read_string(lx, token);
    return read_operator(lx, token);
}

int msa_python_lexer_open(msa_python_lexer *lx, const char *source, size_t length) {
    memset(lx, 0, sizeof *lx);
    lx->source = source;
    lx->length = length;
    lx->line = 1;
    lx->line_start = true;
    lx->indent_count = 1;
    msa_python_source checked;
    int status = msa_python_source_check(&checked, source, length);
    lx->encoding = checked.encoding;
    lx->position = checked.start;
    return status < 0 ? fail(lx, checked.error_line, "%s", checked.error) : 0;
}

bool msa_python_token_is(const msa_python_lexer *lx, const msa_python_token *token, const char *text) {
    size_t size = token->end - token->start;
    return strlen(text) == size && memcmp(lx->source + token->start, text, size) == 0;
}
