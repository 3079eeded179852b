/* The thread-local error of include/msadapter/error.h. */
#include "msadapter/error.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local msa_error_kind current_kind;
static _Thread_local char current_message[2048];

int msa_fail(msa_error_kind kind, const char *format, ...) {
    /* Formatted aside first: an argument may be the current message itself. */
    char text[sizeof current_message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    __builtin_memcpy(current_message, text, sizeof text);
    current_kind = kind;
    return -1;
}

msa_error_kind msa_error_get(void) { return current_kind; }

const char *msa_error_message(void) { return current_message; }

void msa_error_clear(void) {
    current_kind = MSA_OK;
    current_message[0] = '\0';
}
