/* The smallest of test harnesses: CHECK counts, and main returns what failed. */
#ifndef MSA_TESTS_CHECK_H
#define MSA_TESTS_CHECK_H

#include <math.h>
#include <stdio.h>

#include "msadapter/error.h"

static int checks_failed, checks_passed;

#define CHECK(condition) \
    do { \
        if (condition) { \
            checks_passed++; \
        } else { \
            checks_failed++; \
            fprintf(stderr, "%s:%d: %s (last error: %s)\n", __FILE__, __LINE__, #condition, msa_error_message()); \
        } \
    } while (0)
#define CHECK_NEAR(a, b, tolerance) CHECK(fabs((double)(a) - (double)(b)) <= (tolerance))

static inline int check_report(void) {
    printf("%d passed, %d failed\n", checks_passed, checks_failed);
    return checks_failed != 0;
}

#endif
