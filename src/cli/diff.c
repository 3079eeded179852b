/* Unified diffs of texts that correspond line by line (see diff.h). */
#include "diff.h"

#include <stdbool.h>
#include <string.h>

enum { CONTEXT = 3 };

typedef struct {
    const char *at, *end;
} cursor;

typedef struct {
    const char *text;
    size_t length; /* with the line feed, where there is one */
} line;

static bool next_line(cursor *c, line *out) {
    if (c->at == c->end) return false;
    const char *feed = memchr(c->at, '\n', (size_t)(c->end - c->at));
    const char *stop = feed ? feed + 1 : c->end;
    *out = (line){c->at, (size_t)(stop - c->at)};
    c->at = stop;
    return true;
}

static bool same(const line *a, const line *b) {
    return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

static void print_line(FILE *out, char mark, const line *l) {
    putc(mark, out);
    fwrite(l->text, 1, l->length, out);
    if (l->text[l->length - 1] != '\n') fputs("\n\\ No newline at end of file\n", out);
}

/* Prints one hunk of `count` lines that starts where the cursors stand. */
static void print_hunk(FILE *out, cursor before, cursor after, size_t first, size_t count) {
    fprintf(out, count == 1 ? "@@ -%zu +%zu @@\n" : "@@ -%zu,%zu +%zu,%zu @@\n", first, count == 1 ? first : count,
            first, count);
    cursor plus = after;
    line a, b;
    size_t done = 0;
    while (done < count) {
        next_line(&before, &a);
        next_line(&after, &b);
        if (same(&a, &b)) {
            print_line(out, ' ', &a);
            next_line(&plus, &b);
            done++;
            continue;
        }
        size_t run = 0; /* changed lines come as one block of minuses and one of pluses */
        for (;;) {
            print_line(out, '-', &a);
            run++;
            cursor ahead_before = before, ahead_after = after;
            if (done + run == count) break;
            next_line(&ahead_before, &a);
            next_line(&ahead_after, &b);
            if (same(&a, &b)) break;
            before = ahead_before;
            after = ahead_after;
        }
        for (size_t i = 0; i < run; i++) {
            next_line(&plus, &b);
            print_line(out, '+', &b);
        }
        done += run;
    }
}

static void print_header(FILE *out, const char *mark, const char *side, const char *path) {
    while (strncmp(path, "./", 2) == 0) path += 2;
    fputs(mark, out);
    msa_path_print(out, path[0] == '/' ? "" : side, path);
    fputs(strchr(path, ' ') ? "\t\n" : "\n", out); /* the tab ends a name with spaces, for patch */
}

void msa_path_print(FILE *out, const char *prefix, const char *path) {
    bool plain = true;
    for (const char *c = path; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F || *c == '"' || *c == '\\') plain = false;
    if (plain) {
        fprintf(out, "%s%s", prefix, path);
        return;
    }
    fprintf(out, "\"%s", prefix);
    for (const char *c = path; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if ((unsigned char)*c < ' ' || *c == 0x7F)
            fprintf(out, "\\%03o", (unsigned char)*c);
        else
            putc(*c, out);
    }
    putc('"', out);
}

void msa_diff_print(FILE *out, const char *path, const char *before, size_t before_length, const char *after,
                    size_t after_length) {
    print_header(out, "--- ", "a/", path);
    print_header(out, "+++ ", "b/", path);
    cursor a = {before, before + before_length}, b = {after, after + after_length};
    cursor tail_a[CONTEXT + 1], tail_b[CONTEXT + 1]; /* where the last lines started, by line number modulo the size */
    cursor hunk_a = a, hunk_b = b;
    size_t number = 0, hunk_first = 0, last_change = 0; /* 0: no hunk open */
    line la, lb;
    for (;;) {
        tail_a[(number + 1) % (CONTEXT + 1)] = a;
        tail_b[(number + 1) % (CONTEXT + 1)] = b;
        bool more = next_line(&a, &la) && next_line(&b, &lb);
        if (more) number++;
        bool changed = more && !same(&la, &lb);
        /* a hunk ends with the text, or when more unchanged lines follow than two contexts would share */
        if (hunk_first && (!more || (!changed && number - last_change > 2 * CONTEXT))) {
            size_t last = last_change + CONTEXT < number ? last_change + CONTEXT : number;
            print_hunk(out, hunk_a, hunk_b, hunk_first, last - hunk_first + 1);
            hunk_first = 0;
        }
        if (!more) return;
        if (!changed) continue;
        last_change = number;
        if (hunk_first) continue;
        hunk_first = number > CONTEXT ? number - CONTEXT : 1;
        hunk_a = tail_a[hunk_first % (CONTEXT + 1)];
        hunk_b = tail_b[hunk_first % (CONTEXT + 1)];
    }
}
