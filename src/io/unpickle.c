/* The unpickling machine: a stack, a memo, and one operation for each opcode of protocols 0 to 5.
 *
 * Operations build objects of a document and nothing else; calls and names go to constructors.c, which knows a fixed
 * list. There is no recursion (a pickle within a pickle is counted), the stack grows by at most one a byte of input, and
 * whether the result contains itself is checked before anybody walks it. */
#include "io/pickle.h"

typedef struct {
    msa_document *document;
    const msa_unpickle_options *options;
    const uint8_t *at, *end;
    msa_object **stack; /* NULL entries are marks */
    size_t depth, capacity;
    msa_object **memo;
    size_t memo_size, memo_count;
} machine;

static int truncated(void) { return msa_fail(MSA_PICKLE_ERROR, "pickle data was truncated"); }
static int underflow(void) { return msa_fail(MSA_PICKLE_ERROR, "unexpected state: the pickle's stack is too short"); }

static int push(machine *m, msa_object *o) {
    if (!o) return -1;
    if (m->depth == m->capacity) {
        size_t capacity = m->capacity ? 2 * m->capacity : 64;
        msa_object **more = realloc(m->stack, sizeof(*more) * capacity);
        if (!more) return msa_fail(MSA_MEMORY_ERROR, "cannot allocate the pickle's stack");
        m->stack = more;
        m->capacity = capacity;
    }
    m->stack[m->depth++] = o;
    return 0;
}

static int push_mark(machine *m) {
    static msa_object mark;
    if (push(m, &mark) != 0) return -1;
    m->stack[m->depth - 1] = NULL;
    return 0;
}

/* The object at the top, left there; NULL with an error when there is none. */
static msa_object *top(machine *m) {
    if (m->depth && m->stack[m->depth - 1]) return m->stack[m->depth - 1];
    underflow();
    return NULL;
}

static msa_object *pop(machine *m) {
    msa_object *o = top(m);
    if (o) m->depth--;
    return o;
}

/* Removes the topmost mark; its items stay in the stack's memory at *items until the next push. */
static int pop_mark(machine *m, msa_object ***items, size_t *count) {
    for (size_t i = m->depth; i-- > 0;) {
        if (m->stack[i]) continue;
        *items = m->stack + i + 1;
        *count = m->depth - i - 1;
        m->depth = i;
        return 0;
    }
    return msa_fail(MSA_PICKLE_ERROR, "could not find MARK");
}

static const uint8_t *take(machine *m, uint64_t n) {
    if (n > (uint64_t)(m->end - m->at)) {
        truncated();
        return NULL;
    }
    m->at += n;
    return m->at - n;
}

/* A little-endian number of `width` bytes. */
static int take_number(machine *m, int width, uint64_t *value) {
    const uint8_t *p = take(m, (uint64_t)width);
    if (!p) return -1;
    *value = 0;
    for (int i = 0; i < width; i++) *value |= (uint64_t)p[i] << 8 * i;
    return 0;
}

static int take_line(machine *m, const char **line, size_t *length) {
    const uint8_t *stop = memchr(m->at, '\n', (size_t)(m->end - m->at));
    if (!stop) return truncated();
    *line = (const char *)m->at;
    *length = (size_t)(stop - m->at);
    m->at = stop + 1;
    return 0;
}

static int remember(machine *m, uint64_t place) {
    msa_object *o = top(m);
    if (!o) return -1;
    /* Picklers number from 0 or 1 upwards, so a place far beyond what has been stored is no pickler's doing. */
    if (place > 2 * (uint64_t)m->memo_count + 65536) return msa_fail(MSA_PICKLE_ERROR, "memo place %llu is out of bounds", (unsigned long long)place);
    if (place >= m->memo_size) {
        size_t size = m->memo_size ? 2 * m->memo_size : 64;
        while (size <= place) size *= 2;
        msa_object **more = realloc(m->memo, sizeof(*more) * size);
        if (!more) return msa_fail(MSA_MEMORY_ERROR, "cannot allocate the pickle's memo");
        memset(more + m->memo_size, 0, sizeof(*more) * (size - m->memo_size));
        m->memo = more;
        m->memo_size = size;
    }
    m->memo_count += !m->memo[place];
    m->memo[place] = o;
    return 0;
}

static int recall(machine *m, uint64_t place) {
    if (place >= m->memo_size || !m->memo[place])
        return msa_fail(MSA_PICKLE_ERROR, "Memo value not found at index %llu", (unsigned long long)place);
    return push(m, m->memo[place]);
}

/* Two's complement, least significant byte first. */
static int push_integer(machine *m, const uint8_t *p, size_t n) {
    if (n > 8) return push(m, msa_object_new_text(m->document, MSA_OBJECT_BIG_INT, (const char *)p, n));
    uint64_t value = n && p[n - 1] & 0x80 ? UINT64_MAX : 0;
    for (size_t i = n; i-- > 0;) value = value << 8 | p[i];
    return push(m, msa_object_new_int(m->document, (int64_t)value));
}

/* Decimal digits of a number beyond 64 bits. */
static int push_big_decimal(machine *m, const char *digits, size_t n, bool negative) {
    enum { MOST = 4300 }; /* the time is quadratic; Python's own limit */
    uint8_t bytes[MOST / 2];
    if (n > MOST) return msa_fail(MSA_PICKLE_ERROR, "an integer of the pickle has more than %d digits", MOST);
    size_t size = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned carry = (unsigned)(digits[i] - '0');
        for (size_t j = 0; j < size; j++, carry >>= 8) bytes[j] = (uint8_t)(carry += bytes[j] * 10u);
        if (carry) bytes[size++] = (uint8_t)carry;
    }
    if (size && bytes[size - 1] & 0x80) bytes[size++] = 0; /* room for the sign */
    unsigned carry = 1;
    for (size_t j = 0; negative && j < size; j++, carry >>= 8) bytes[j] = (uint8_t)(carry += (uint8_t)~bytes[j]);
    return push_integer(m, bytes, size);
}

static int op_decimal(machine *m, bool is_long) {
    const char *line = NULL;
    size_t n = 0;
    if (take_line(m, &line, &n) != 0) return -1;
    if (!is_long && n == 2 && line[0] == '0' && (line[1] == '0' || line[1] == '1'))
        return push(m, msa_object_new_bool(m->document, line[1] == '1'));
    if (n && line[n - 1] == '\r') n--;
    if (is_long && n && line[n - 1] == 'L') n--;
    bool negative = n && line[0] == '-';
    if (n && (negative || line[0] == '+')) line++, n--;
    bool fits = true, good = n > 0;
    int64_t value = 0;
    for (size_t i = 0; i < n && good; i++) {
        good = line[i] >= '0' && line[i] <= '9';
        fits = fits && good && !__builtin_mul_overflow(value, 10, &value) && !__builtin_sub_overflow(value, line[i] - '0', &value);
    }
    if (!good) return msa_fail(MSA_PICKLE_ERROR, "an integer of the pickle is malformed");
    if (fits && (negative || value != INT64_MIN)) return push(m, msa_object_new_int(m->document, negative ? value : -value));
    return push_big_decimal(m, line, n, negative);
}

static int op_float_text(machine *m) {
    const char *line = NULL;
    size_t n = 0;
    char copy[512], *stop;
    if (take_line(m, &line, &n) != 0) return -1;
    if (n == 0 || n >= sizeof copy) return msa_fail(MSA_PICKLE_ERROR, "a float of the pickle is malformed");
    memcpy(copy, line, n);
    copy[n] = '\0';
    double value = strtod(copy, &stop);
    if (*stop && *stop != '\r') return msa_fail(MSA_PICKLE_ERROR, "a float of the pickle is malformed");
    return push(m, msa_object_new_float(m->document, value));
}

static int op_float(machine *m) {
    const uint8_t *p = take(m, 8);
    if (!p) return -1;
    uint64_t bits = 0;
    double value;
    for (int i = 0; i < 8; i++) bits = bits << 8 | p[i];
    memcpy(&value, &bits, sizeof value);
    return push(m, msa_object_new_float(m->document, value));
}

static int op_text(machine *m, msa_object_kind kind, int width) {
    uint64_t n = 0;
    if (take_number(m, width, &n) != 0) return -1;
    const uint8_t *p = take(m, n);
    return p ? push(m, msa_object_new_text(m->document, kind, (const char *)p, n)) : -1;
}

/* A string that Python 2 wrote, which may be text or bytes: the caller of load() says. */
static int push_old_string(machine *m, const char *p, size_t n) {
    if (m->options->encoding == MSA_ENCODING_LATIN1) return push(m, msa_pickle_latin1(m->document, p, n));
    msa_object_kind kind = m->options->encoding == MSA_ENCODING_BYTES ? MSA_OBJECT_BYTES : MSA_OBJECT_STR;
    return push(m, msa_object_new_text(m->document, kind, p, n));
}

static int op_old_string(machine *m, int width) {
    uint64_t n = 0;
    if (take_number(m, width, &n) != 0) return -1;
    if (width == 4 && n > INT32_MAX) return msa_fail(MSA_PICKLE_ERROR, "BINSTRING pickle has negative byte count");
    const uint8_t *p = take(m, n);
    return p ? push_old_string(m, (const char *)p, n) : -1;
}

static int hex(char c) { return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1; }

/* 'text' as repr() writes it. */
static int op_quoted_string(machine *m) {
    const char *line = NULL;
    size_t n = 0, made = 0;
    if (take_line(m, &line, &n) != 0) return -1;
    if (n && line[n - 1] == '\r') n--;
    if (n < 2 || (line[0] != '\'' && line[0] != '"') || line[n - 1] != line[0])
        return msa_fail(MSA_PICKLE_ERROR, "the STRING opcode argument must be quoted");
    msa_auto_free char *text = msa_malloc(n);
    if (!text) return -1;
    for (size_t i = 1; i < n - 1; i++) {
        if (line[i] != '\\' || i + 1 >= n - 1) {
            text[made++] = line[i];
            continue;
        }
        char c = line[++i];
        static const char names[] = "n\nt\tr\r\\\\''\"\"a\ab\bf\fv\v";
        if (c == 'x' && i + 2 < n - 1 && hex(line[i + 1]) >= 0 && hex(line[i + 2]) >= 0) {
            text[made++] = (char)(hex(line[i + 1]) << 4 | hex(line[i + 2]));
            i += 2;
            continue;
        }
        const char *name = NULL;
        for (const char *p = names; *p && !name; p += 2)
            if (*p == c) name = p;
        if (!name) text[made++] = '\\';
        text[made++] = name ? name[1] : c;
    }
    return push_old_string(m, text, made);
}

static size_t put_utf8(char *to, uint32_t c) {
    if (c < 0x80) return to[0] = (char)c, 1;
    if (c < 0x800) return to[0] = (char)(0xC0 | c >> 6), to[1] = (char)(0x80 | (c & 63)), 2;
    if (c < 0x10000)
        return to[0] = (char)(0xE0 | c >> 12), to[1] = (char)(0x80 | (c >> 6 & 63)), to[2] = (char)(0x80 | (c & 63)), 3;
    return to[0] = (char)(0xF0 | c >> 18), to[1] = (char)(0x80 | (c >> 12 & 63)), to[2] = (char)(0x80 | (c >> 6 & 63)),
           to[3] = (char)(0x80 | (c & 63)), 4;
}

/* Latin-1 with \uXXXX and \UXXXXXXXX, as protocol 0 writes text. */
static int op_escaped_unicode(machine *m) {
    const char *line = NULL;
    size_t n = 0, made = 0;
    if (take_line(m, &line, &n) != 0) return -1;
    msa_auto_free char *text = msa_malloc(2 * n + 4);
    if (!text) return -1;
    for (size_t i = 0; i < n;) {
        int digits = line[i] == '\\' && i + 1 < n ? (line[i + 1] == 'u' ? 4 : line[i + 1] == 'U' ? 8 : 0) : 0;
        uint32_t c = (uint8_t)line[i++];
        if (digits) {
            c = 0;
            for (i++; digits; digits--, i++) {
                if (i >= n || hex(line[i]) < 0 || c > 0x10FFFF) break;
                c = c << 4 | (uint32_t)hex(line[i]);
            }
            if (digits || c > 0x10FFFF) return msa_fail(MSA_PICKLE_ERROR, "a string of the pickle has a malformed escape");
        }
        made += put_utf8(text + made, c);
    }
    return push(m, msa_object_new_text(m->document, MSA_OBJECT_STR, text, made));
}

msa_object *msa_pickle_latin1(msa_document *d, const char *text, size_t n) {
    msa_auto_free char *wide = n < SIZE_MAX / 4 ? msa_malloc(2 * n + 1) : NULL;
    if (!wide) return NULL;
    size_t made = 0;
    for (size_t i = 0; i < n; i++) made += put_utf8(wide + made, (uint8_t)text[i]);
    return msa_object_new_text(d, MSA_OBJECT_STR, wide, made);
}

static int op_container(machine *m, msa_object_kind kind) {
    msa_object **items = NULL;
    size_t n = 0;
    if (pop_mark(m, &items, &n) != 0) return -1;
    if (kind == MSA_OBJECT_DICT && n % 2) return msa_fail(MSA_PICKLE_ERROR, "odd number of items for DICT");
    return push(m, msa_object_new_view(m->document, kind, items, n));
}

static int op_short_tuple(machine *m, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (m->depth < n || !m->stack[m->depth - 1 - i]) return underflow();
    msa_object *o = msa_object_new_view(m->document, MSA_OBJECT_TUPLE, m->stack + m->depth - n, n);
    m->depth -= n;
    return push(m, o);
}

static int op_append(machine *m) {
    msa_object *item = pop(m), *list = item ? top(m) : NULL;
    if (!list) return -1;
    if (list->kind != MSA_OBJECT_LIST) return msa_fail(MSA_PICKLE_ERROR, "APPEND to what is no list");
    return msa_object_append(list, item);
}

static int op_append_all(machine *m, msa_object_kind kind) {
    msa_object **items = NULL;
    size_t n = 0;
    if (pop_mark(m, &items, &n) != 0) return -1;
    msa_object *to = top(m);
    if (!to) return -1;
    if (to->kind != kind) return msa_fail(MSA_PICKLE_ERROR, "items are added to what is no %s", kind == MSA_OBJECT_SET ? "set" : "list");
    for (size_t i = 0; i < n; i++)
        if (msa_object_append(to, items[i]) != 0) return -1;
    return 0;
}

static int op_set(machine *m) {
    msa_object *value = pop(m), *key = value ? pop(m) : NULL, *dict = key ? top(m) : NULL;
    if (!dict) return -1;
    if (!msa_object_is_dict(dict)) return msa_fail(MSA_PICKLE_ERROR, "SETITEM on what is no dictionary");
    return msa_object_set(dict, key, value);
}

static int op_set_all(machine *m) {
    msa_object **items = NULL;
    size_t n = 0;
    if (pop_mark(m, &items, &n) != 0) return -1;
    msa_object *dict = top(m);
    if (!dict) return -1;
    if (n % 2) return msa_fail(MSA_PICKLE_ERROR, "odd number of items for SETITEMS");
    if (!msa_object_is_dict(dict)) return msa_fail(MSA_PICKLE_ERROR, "SETITEMS on what is no dictionary");
    for (size_t i = 0; i < n; i += 2)
        if (msa_object_set(dict, items[i], items[i + 1]) != 0) return -1;
    return 0;
}

static int op_call(machine *m) {
    msa_object *arguments = pop(m), *function = arguments ? pop(m) : NULL;
    if (!function) return -1;
    if (function->kind != MSA_OBJECT_GLOBAL || arguments->kind != MSA_OBJECT_TUPLE)
        return msa_fail(MSA_PICKLE_ERROR, "the pickle calls what is no function");
    return push(m, msa_pickle_call(m->document, function, arguments, m->options));
}

static int op_build(machine *m) {
    msa_object *state = pop(m), *object = state ? top(m) : NULL;
    return object ? msa_pickle_build(m->document, object, state) : -1;
}

static int op_global(machine *m) {
    const char *module = NULL, *name = NULL;
    size_t module_length = 0, name_length = 0;
    if (take_line(m, &module, &module_length) != 0 || take_line(m, &name, &name_length) != 0) return -1;
    return push(m, msa_pickle_global(m->document, module, module_length, name, name_length));
}

static int op_stack_global(machine *m) {
    msa_object *name = pop(m), *module = name ? pop(m) : NULL;
    if (!module) return -1;
    if (name->kind != MSA_OBJECT_STR || module->kind != MSA_OBJECT_STR) return msa_fail(MSA_PICKLE_ERROR, "STACK_GLOBAL requires str");
    return push(m, msa_pickle_global(m->document, module->text, module->length, name->text, name->length));
}

static int op_persistent(machine *m) {
    msa_object *id = pop(m);
    if (!id) return -1;
    if (!m->options->persistent)
        return msa_fail(MSA_PICKLE_ERROR, "A load persistent id instruction was encountered, but no persistent_load function was specified.");
    return push(m, m->options->persistent(m->options->context, id));
}

/* GET and PUT of protocol 0: the place in decimal. */
static int op_memo_text(machine *m, bool put) {
    const char *line = NULL;
    size_t n = 0;
    uint64_t place = 0;
    if (take_line(m, &line, &n) != 0) return -1;
    if (n && line[n - 1] == '\r') n--;
    if (n == 0 || n > 18) return msa_fail(MSA_PICKLE_ERROR, "a memo place of the pickle is malformed");
    for (size_t i = 0; i < n; i++) {
        if (line[i] < '0' || line[i] > '9') return msa_fail(MSA_PICKLE_ERROR, "a memo place of the pickle is malformed");
        place = 10 * place + (uint64_t)(line[i] - '0');
    }
    return put ? remember(m, place) : recall(m, place);
}

static int op_memo(machine *m, int width, bool put) {
    uint64_t place = 0;
    if (take_number(m, width, &place) != 0) return -1;
    return put ? remember(m, place) : recall(m, place);
}

static int op_integer(machine *m, int width) {
    const uint8_t *p = take(m, (uint64_t)width);
    if (!p) return -1;
    if (width == 4) return push_integer(m, p, 4);
    return push(m, msa_object_new_int(m->document, width == 1 ? p[0] : p[0] | p[1] << 8));
}

static int op_long(machine *m, int width) {
    uint64_t n = 0;
    if (take_number(m, width, &n) != 0) return -1;
    if (width == 4 && n > INT32_MAX) return msa_fail(MSA_PICKLE_ERROR, "LONG pickle has negative byte count");
    const uint8_t *p = take(m, n);
    return p ? push_integer(m, p, n) : -1;
}

static int op_pop(machine *m) {
    if (!m->depth) return underflow();
    m->depth--;
    return 0;
}

static int op_pop_mark(machine *m) {
    msa_object **items = NULL;
    size_t n = 0;
    return pop_mark(m, &items, &n);
}

static int op_protocol(machine *m) {
    uint64_t version = 0;
    if (take_number(m, 1, &version) != 0) return -1;
    return version <= 5 ? 0 : msa_fail(MSA_PICKLE_ERROR, "unsupported pickle protocol: %d", (int)version);
}

static int op_frame(machine *m) {
    uint64_t n; /* only a hint for readers of streams, but Python checks it too */
    if (take_number(m, 8, &n) != 0) return -1;
    return n <= (uint64_t)(m->end - m->at) ? 0 : truncated();
}

static int run_opcode(machine *m, uint8_t op) {
    msa_document *d = m->document;
    switch (op) {
    case '(': return push_mark(m);
    case '0': return op_pop(m);
    case '1': return op_pop_mark(m);
    case '2': return push(m, top(m));
    case 'N': return push(m, msa_object_new_none(d));
    case 0x88: return push(m, msa_object_new_bool(d, true));
    case 0x89: return push(m, msa_object_new_bool(d, false));
    case 'I': return op_decimal(m, false);
    case 'L': return op_decimal(m, true);
    case 'J': return op_integer(m, 4);
    case 'K': return op_integer(m, 1);
    case 'M': return op_integer(m, 2);
    case 0x8a: return op_long(m, 1);
    case 0x8b: return op_long(m, 4);
    case 'F': return op_float_text(m);
    case 'G': return op_float(m);
    case 'S': return op_quoted_string(m);
    case 'T': return op_old_string(m, 4);
    case 'U': return op_old_string(m, 1);
    case 'V': return op_escaped_unicode(m);
    case 'X': return op_text(m, MSA_OBJECT_STR, 4);
    case 0x8c: return op_text(m, MSA_OBJECT_STR, 1);
    case 0x8d: return op_text(m, MSA_OBJECT_STR, 8);
    case 'B': return op_text(m, MSA_OBJECT_BYTES, 4);
    case 'C': return op_text(m, MSA_OBJECT_BYTES, 1);
    case 0x8e: return op_text(m, MSA_OBJECT_BYTES, 8);
    case 0x96: return op_text(m, MSA_OBJECT_BYTE_ARRAY, 8);
    case ']': return push(m, msa_object_new(d, MSA_OBJECT_LIST));
    case ')': return push(m, msa_object_new(d, MSA_OBJECT_TUPLE));
    case '}': return push(m, msa_object_new(d, MSA_OBJECT_DICT));
    case 0x8f: return push(m, msa_object_new(d, MSA_OBJECT_SET));
    case 'l': return op_container(m, MSA_OBJECT_LIST);
    case 't': return op_container(m, MSA_OBJECT_TUPLE);
    case 'd': return op_container(m, MSA_OBJECT_DICT);
    case 0x91: return op_container(m, MSA_OBJECT_FROZEN_SET);
    case 0x85: return op_short_tuple(m, 1);
    case 0x86: return op_short_tuple(m, 2);
    case 0x87: return op_short_tuple(m, 3);
    case 'a': return op_append(m);
    case 'e': return op_append_all(m, MSA_OBJECT_LIST);
    case 0x90: return op_append_all(m, MSA_OBJECT_SET);
    case 's': return op_set(m);
    case 'u': return op_set_all(m);
    case 'c': return op_global(m);
    case 0x93: return op_stack_global(m);
    case 'R':
    case 0x81: return op_call(m); /* NEWOBJ: of the types on the list, the same as a call */
    case 'b': return op_build(m);
    case 'Q': return op_persistent(m);
    case 'g': return op_memo_text(m, false);
    case 'h': return op_memo(m, 1, false);
    case 'j': return op_memo(m, 4, false);
    case 'p': return op_memo_text(m, true);
    case 'q': return op_memo(m, 1, true);
    case 'r': return op_memo(m, 4, true);
    case 0x94: return remember(m, m->memo_count);
    case 0x80: return op_protocol(m);
    case 0x95: return op_frame(m);
    default: break;
    }
    if (op == 'P' || op == 'i' || op == 'o' || op == 0x92 || (op >= 0x82 && op <= 0x84) || op == 0x97 || op == 0x98)
        return msa_fail(MSA_PICKLE_ERROR, "pickle opcode 0x%02x is not among those that are loaded safely", op);
    return msa_fail(MSA_PICKLE_ERROR, "invalid load key, '\\x%02x'.", op);
}

msa_object *msa_unpickle(msa_document *d, const void *data, size_t size, size_t *used, const msa_unpickle_options *options) {
    machine m = {.document = d, .options = options, .at = data, .end = (const uint8_t *)data + size};
    msa_object *result = NULL;
    size_t before = d->budget;
    if (__builtin_add_overflow(d->budget, size, &d->budget)) d->budget = before;
    for (;;) {
        if (m.at == m.end) {
            msa_fail(MSA_EOF_ERROR, "Ran out of input");
            break;
        }
        uint8_t op = *m.at++;
        if (op == '.') {
            result = pop(&m);
            break;
        }
        if (run_opcode(&m, op) != 0) break;
    }
    if (used) *used = (size_t)(m.at - (const uint8_t *)data);
    free(m.stack);
    free(m.memo);
    return result;
}
