/* The bytes of a Python source file: its declared encoding, its validity, and which characters may stand in a name. */
#ifndef MSADAPTER_CLI_PYTHON_SOURCE_H
#define MSADAPTER_CLI_PYTHON_SOURCE_H

#include "python_tokens.h"

typedef struct {
    msa_python_encoding encoding;
    size_t start; /* bytes of byte order mark to skip */
    size_t error_line;
    char error[160];
} msa_python_source;

/* Finds the encoding as Python does and checks that the bytes are text in it. Returns 0, or -1 with the error set. */
int msa_python_source_check(msa_python_source *out, const char *source, size_t length);

/* Bytes of the character at `position` (< length), at least 1 and never past the end. */
size_t msa_python_char_length(msa_python_encoding encoding, const char *source, size_t length, size_t position);

/* The code point of a character in checked UTF-8. */
unsigned msa_python_utf8_decode(const char *at);

/* Whether a code point above 127 may stand in an identifier. An approximation of XID_Continue from the refusing side:
 * it turns down controls, spaces, punctuation and symbols, the characters that stray into programs. */
bool msa_python_is_name_char(unsigned code);

#endif
