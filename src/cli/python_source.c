/* Encoding declarations, UTF-8 validity and identifier characters of Python sources (see python_source.h). */
#include "python_source.h"

#include <stdio.h>
#include <string.h>

static int fail(msa_python_source *out, size_t line, const char *message) {
    out->error_line = line;
    snprintf(out->error, sizeof out->error, "%s", message);
    return -1;
}

static size_t line_of(const char *source, size_t position) {
    size_t line = 1;
    for (size_t i = 0; i < position; i++)
        if (source[i] == '\n' || (source[i] == '\r' && source[i + 1] != '\n')) line++;
    return line;
}

/* Length of the well-formed UTF-8 sequence at `at`, or 0. */
static size_t utf8_length(const unsigned char *at, size_t left) {
    unsigned char c = at[0];
    if (c < 0x80) return 1;
    size_t need = c >= 0xC2 && c <= 0xDF ? 2 : (c & 0xF0) == 0xE0 ? 3 : c >= 0xF0 && c <= 0xF4 ? 4 : 0;
    if (!need || need > left) return 0;
    for (size_t i = 1; i < need; i++)
        if ((at[i] & 0xC0) != 0x80) return 0;
    if (c == 0xE0 && at[1] < 0xA0) return 0; /* longer than necessary */
    if (c == 0xED && at[1] > 0x9F) return 0; /* surrogates */
    if (c == 0xF0 && at[1] < 0x90) return 0;
    if (c == 0xF4 && at[1] > 0x8F) return 0; /* beyond U+10FFFF */
    return need;
}

unsigned msa_python_utf8_decode(const char *at) {
    const unsigned char *u = (const unsigned char *)at;
    if (u[0] < 0x80) return u[0];
    if (u[0] < 0xE0) return (u[0] & 0x1Fu) << 6 | (u[1] & 0x3Fu);
    if (u[0] < 0xF0) return (u[0] & 0x0Fu) << 12 | (u[1] & 0x3Fu) << 6 | (u[2] & 0x3Fu);
    return (u[0] & 0x07u) << 18 | (u[1] & 0x3Fu) << 12 | (u[2] & 0x3Fu) << 6 | (u[3] & 0x3Fu);
}

size_t msa_python_char_length(msa_python_encoding encoding, const char *source, size_t length, size_t position) {
    unsigned char c = (unsigned char)source[position];
    if (c < 0x80 || encoding == MSA_PYTHON_ASCII || encoding == MSA_PYTHON_ASCII_SUPERSET) return 1;
    size_t left = length - position;
    const unsigned char *next = (const unsigned char *)source + position + 1;
    if (encoding == MSA_PYTHON_UTF8) {
        size_t need = c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
        return need <= left ? need : left;
    }
    if (encoding == MSA_PYTHON_SHIFT_JIS) {
        bool lead = (c >= 0x81 && c <= 0x9F) || (c >= 0xE0 && c <= 0xFC);
        return lead && left > 1 && next[0] >= 0x40 ? 2 : 1;
    }
    if (c >= 0x81 && c <= 0xFE && left > 1) {
        if (next[0] >= 0x40) return 2;
        if (left > 3 && next[0] >= '0' && next[0] <= '9' && next[1] >= 0x81 && next[2] >= '0' && next[2] <= '9')
            return 4;
    }
    return 1;
}

bool msa_python_is_name_char(unsigned code) {
    static const unsigned refused[][2] = {
        {0x80, 0xA9},     {0xAB, 0xB4},       {0xB6, 0xB6},       {0xB8, 0xB9},       {0xBB, 0xBF},
        {0xD7, 0xD7},     {0xF7, 0xF7},       {0x1680, 0x1680},   {0x2000, 0x203E},   {0x2041, 0x2053},
        {0x2055, 0x2070}, {0x207A, 0x207E},   {0x208A, 0x208E},   {0x20A0, 0x20CF},   {0x2190, 0x2BFF},
        {0x2E00, 0x2E2E}, {0x2E30, 0x2FFF},   {0x3000, 0x3004},   {0x3008, 0x3020},   {0x3030, 0x3030},
        {0xE000, 0xF8FF}, {0xFE10, 0xFE1F},   {0xFE30, 0xFE32},   {0xFE35, 0xFE4C},   {0xFEFF, 0xFEFF},
        {0xFF01, 0xFF0F}, {0xFF1A, 0xFF20},   {0xFF3B, 0xFF3E},   {0xFF40, 0xFF40},   {0xFF5B, 0xFF65},
        {0xFFE0, 0xFFFF}, {0x1F000, 0x1FBEF}, {0xE0000, 0xE00FF}, {0xF0000, 0x10FFFF}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (code >= refused[i][0] && code <= refused[i][1]) return false;
    return true;
}

static bool is_cookie_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
}

/* Copies the encoding a comment line declares (PEP 263) into `name`, lower case with '_' as '-'. */
static bool find_cookie(const char *line, size_t length, char name[32]) {
    size_t i = 0;
    while (i < length && (line[i] == ' ' || line[i] == '\t' || line[i] == '\f')) i++;
    if (i == length || line[i] != '#') return false;
    for (; i + 7 <= length; i++) {
        if (memcmp(line + i, "coding", 6) != 0 || (line[i + 6] != ':' && line[i + 6] != '=')) continue;
        size_t at = i + 7;
        while (at < length && (line[at] == ' ' || line[at] == '\t')) at++;
        size_t size = 0;
        for (; at < length && is_cookie_char(line[at]); at++) {
            char c = line[at] == '_' ? '-' : line[at] >= 'A' && line[at] <= 'Z' ? (char)(line[at] + 32) : line[at];
            if (size < 31) name[size++] = c;
        }
        name[size] = 0;
        if (size) return true;
    }
    return false;
}

static bool is_blank_or_comment(const char *line, size_t length) {
    size_t i = 0;
    while (i < length && (line[i] == ' ' || line[i] == '\t' || line[i] == '\f')) i++;
    return i == length || line[i] == '#';
}

static bool starts_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool encoding_by_name(const char *name, msa_python_encoding *encoding) {
    static const struct {
        const char *prefix;
        msa_python_encoding encoding;
    } known[] = {{"utf-8", MSA_PYTHON_UTF8},
                 {"utf8", MSA_PYTHON_UTF8},
                 {"u8", MSA_PYTHON_UTF8},
                 {"ascii", MSA_PYTHON_ASCII},
                 {"us-ascii", MSA_PYTHON_ASCII},
                 {"latin", MSA_PYTHON_ASCII_SUPERSET},
                 {"iso-8859", MSA_PYTHON_ASCII_SUPERSET},
                 {"iso8859", MSA_PYTHON_ASCII_SUPERSET},
                 {"8859", MSA_PYTHON_ASCII_SUPERSET},
                 {"l1", MSA_PYTHON_ASCII_SUPERSET},
                 {"cp125", MSA_PYTHON_ASCII_SUPERSET},
                 {"windows-125", MSA_PYTHON_ASCII_SUPERSET},
                 {"cp437", MSA_PYTHON_ASCII_SUPERSET},
                 {"cp850", MSA_PYTHON_ASCII_SUPERSET},
                 {"cp866", MSA_PYTHON_ASCII_SUPERSET},
                 {"koi8", MSA_PYTHON_ASCII_SUPERSET},
                 {"mac", MSA_PYTHON_ASCII_SUPERSET},
                 {"euc", MSA_PYTHON_ASCII_SUPERSET},
                 {"gb2312", MSA_PYTHON_ASCII_SUPERSET},
                 {"ujis", MSA_PYTHON_ASCII_SUPERSET},
                 {"tis-620", MSA_PYTHON_ASCII_SUPERSET},
                 {"gbk", MSA_PYTHON_GBK},
                 {"gb18030", MSA_PYTHON_GBK},
                 {"cp936", MSA_PYTHON_GBK},
                 {"ms936", MSA_PYTHON_GBK},
                 {"big5", MSA_PYTHON_GBK},
                 {"cp950", MSA_PYTHON_GBK},
                 {"cp949", MSA_PYTHON_GBK},
                 {"uhc", MSA_PYTHON_GBK},
                 {"shift-jis", MSA_PYTHON_SHIFT_JIS},
                 {"shiftjis", MSA_PYTHON_SHIFT_JIS},
                 {"sjis", MSA_PYTHON_SHIFT_JIS},
                 {"cp932", MSA_PYTHON_SHIFT_JIS},
                 {"ms932", MSA_PYTHON_SHIFT_JIS}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (starts_with(name, known[i].prefix)) {
            *encoding = known[i].encoding;
            return true;
        }
    return false;
}

/* Looks for a coding cookie in the first two lines and settles the encoding. */
static int settle_encoding(msa_python_source *out, const char *source, size_t length) {
    size_t start = out->start;
    for (size_t line = 1; line <= 2 && start < length; line++) {
        size_t end = start;
        while (end < length && source[end] != '\n' && source[end] != '\r') end++;
        char name[32];
        if (find_cookie(source + start, end - start, name)) {
            if (!encoding_by_name(name, &out->encoding)) {
                out->error_line = line;
                snprintf(out->error, sizeof out->error, "encoding '%s' is unknown or not supported here", name);
                return -1;
            }
            if (out->start && out->encoding != MSA_PYTHON_UTF8)
                return fail(out, line, "the coding cookie contradicts the UTF-8 byte order mark");
            return 0;
        }
        if (!is_blank_or_comment(source + start, end - start)) return 0;
        start = end + 1;
        if (end + 1 < length && source[end] == '\r' && source[end + 1] == '\n') start++;
    }
    return 0;
}

int msa_python_source_check(msa_python_source *out, const char *source, size_t length) {
    *out = (msa_python_source){.encoding = MSA_PYTHON_UTF8};
    const char *nul = length ? memchr(source, 0, length) : NULL;
    if (nul) return fail(out, line_of(source, (size_t)(nul - source)), "NUL byte in the source");
    if (length >= 3 && memcmp(source, "\xEF\xBB\xBF", 3) == 0) out->start = 3;
    if (settle_encoding(out, source, length) < 0) return -1;
    if (out->encoding != MSA_PYTHON_UTF8 && out->encoding != MSA_PYTHON_ASCII) return 0;
    for (size_t i = out->start; i < length;) {
        size_t step = utf8_length((const unsigned char *)source + i, length - i);
        if (!step) return fail(out, line_of(source, i), "invalid UTF-8, and no other encoding is declared");
        if (step > 1 && out->encoding == MSA_PYTHON_ASCII)
            return fail(out, line_of(source, i), "non-ASCII byte in a source declared as ASCII");
        i += step;
    }
    return 0;
}
