/* The text form of tensors, as PyTorch prints them: columns aligned by one format for all values, large tensors shortened to
 * their edges, and after the values what is not the default. */
#include <math.h>

#include "autograd/internal.h"
#include "python/tensor.h"
#include "tensor/convert.h"

static struct {
    int precision;
    int64_t threshold, edge_items, line_width;
    int scientific; /* -1: as the values ask for */
} options = {4, 1000, 3, 80, -1};

typedef struct {
    char *data;
    size_t n, room;
    bool failed;
} buffer;

static void append(buffer *b, const char *text, size_t n) {
    if (b->failed) return;
    if (b->n + n > b->room) {
        size_t room = (b->n + n) * 2 + 256;
        char *grown = PyMem_Realloc(b->data, room);
        if (!grown) {
            b->failed = true;
            return;
        }
        b->data = grown;
        b->room = room;
    }
    memcpy(b->data + b->n, text, n);
    b->n += n;
}

static void append_text(buffer *b, const char *text) { append(b, text, strlen(text)); }

static void append_repeated(buffer *b, char c, int64_t n) {
    for (int64_t i = 0; i < n; i++) append(b, &c, 1);
}

/* ---- the format of all values -------------------------------------------------------------------------------------- */

enum { NUMBER_ROOM = 512 }; /* the largest double without an exponent has 309 digits; the precision is at most 100 */

/* One column of numbers: real numbers, or the real or imaginary parts of complex ones. */
typedef struct {
    bool floating, integers, scientific, any;
    int width;
    double least, most; /* magnitudes of finite values that are not 0 */
} column;

static int print_double(char *to, double v, bool scientific, int precision) {
    if (isnan(v)) return snprintf(to, NUMBER_ROOM, "nan");
    return scientific ? snprintf(to, NUMBER_ROOM, "%.*e", precision, v) : snprintf(to, NUMBER_ROOM, "%.*f", precision, v);
}

static int print_value(char *to, const column *c, msa_dtype dtype, double v, int64_t i) {
    if (!c->floating) return dtype == MSA_BOOL ? snprintf(to, NUMBER_ROOM, "%s", i ? "True" : "False") : snprintf(to, NUMBER_ROOM, "%lld", (long long)i);
    if (c->scientific) return print_double(to, v, true, options.precision);
    if (!c->integers) return print_double(to, v, false, options.precision);
    int n = print_double(to, v, false, 0);
    if (isfinite(v)) to[n++] = '.';
    to[n] = 0;
    return n;
}

typedef struct {
    const msa_tensor *tensor;
    const char *data;
    msa_dtype dtype;
    size_t item;
    bool complex, shortened;
    column columns[2];
} printer;

static void read_value(const printer *p, int64_t at, double *v, int64_t *i) {
    const char *from = p->data + at * (int64_t)p->item;
    if (p->complex) msa_convert(MSA_COMPLEX128, v, 1, p->dtype, (void *)from, 1, 1);
    else if (msa_is_integral(p->dtype, true)) msa_convert(MSA_INT64, i, 1, p->dtype, (void *)from, 1, 1);
    else msa_convert(MSA_FLOAT64, v, 1, p->dtype, (void *)from, 1, 1);
}

/* Calls `visit` for every value that is printed. */
static void each_value(printer *p, int dim, int64_t at, void (*visit)(printer *, int64_t)) {
    const msa_tensor *t = p->tensor;
    if (dim == t->ndim) {
        visit(p, at);
        return;
    }
    const int64_t size = t->sizes[dim], stride = t->strides[dim], edge = options.edge_items;
    for (int64_t i = 0; i < size; i++) {
        if (p->shortened && size > 2 * edge && i == edge) i = size - edge;
        if (i < size) each_value(p, dim + 1, at + i * stride, visit);
    }
}

static void measure_magnitude(printer *p, int64_t at) {
    double v[2] = {0};
    int64_t i = 0;
    read_value(p, at, v, &i);
    for (int k = 0; k <= p->complex; k++) {
        column *c = &p->columns[k];
        const double size = fabs(v[k]);
        if (!isfinite(v[k]) || size == 0) continue;
        if (!c->any || size < c->least) c->least = size;
        if (!c->any || size > c->most) c->most = size;
        c->any = true;
        if (v[k] != ceil(v[k])) c->integers = false;
    }
}

static void measure_width(printer *p, int64_t at) {
    char text[NUMBER_ROOM];
    double v[2] = {0};
    int64_t i = 0;
    read_value(p, at, v, &i);
    for (int k = 0; k <= p->complex; k++) {
        column *c = &p->columns[k];
        if (c->floating && (!isfinite(v[k]) || v[k] == 0)) continue;
        const int n = print_value(text, c, p->dtype, v[k], i);
        if (n > c->width) c->width = n;
    }
}

static void choose_format(printer *p) {
    for (int k = 0; k < 2; k++) p->columns[k] = (column){.floating = msa_is_inexact(p->dtype), .integers = true, .width = 1};
    if (p->columns[0].floating) each_value(p, 0, 0, measure_magnitude);
    for (int k = 0; k <= p->complex; k++) {
        column *c = &p->columns[k];
        if (c->any) c->scientific = c->most / c->least > 1000 || c->most > 1e8 || (!c->integers && c->least < 1e-4);
    }
    each_value(p, 0, 0, measure_width);
    for (int k = 0; k <= p->complex; k++)
        if (options.scientific >= 0 && p->columns[k].any) p->columns[k].scientific = options.scientific != 0;
}

/* ---- the values ----------------------------------------------------------------------------------------------------- */

static void print_element(printer *p, buffer *b, int64_t at) {
    char text[NUMBER_ROOM];
    double v[2] = {0};
    int64_t i = 0;
    read_value(p, at, v, &i);
    int n = print_value(text, &p->columns[0], p->dtype, v[0], i);
    append_repeated(b, ' ', p->columns[0].width - n);
    append(b, text, (size_t)n);
    if (!p->complex) return;
    n = print_value(text, &p->columns[1], p->dtype, v[1], i);
    if (text[0] != '-') append(b, "+", 1);
    append(b, text, (size_t)n);
    append(b, "j", 1);
}

static void print_row(printer *p, buffer *b, int64_t at, int64_t indent) {
    const int64_t size = p->tensor->sizes[p->tensor->ndim - 1], stride = p->tensor->strides[p->tensor->ndim - 1], edge = options.edge_items;
    const int64_t width = p->columns[0].width + 2 + (p->complex ? p->columns[1].width + 1 : 0);
    int64_t per_line = (options.line_width - indent) / width, on_line = 0;
    if (per_line < 1) per_line = 1;
    const bool gap = p->shortened && size > 2 * edge;
    append(b, "[", 1);
    for (int64_t i = 0; i < size; i++) {
        const bool dots = gap && i == edge;
        if (on_line == per_line) {
            append_text(b, ",\n");
            append_repeated(b, ' ', indent + 1);
            on_line = 0;
        } else if (i) {
            append_text(b, ", ");
        }
        on_line++;
        if (dots) {
            append_text(b, " ...");
            i = size - edge - 1;
        } else {
            print_element(p, b, at + i * stride);
        }
    }
    append(b, "]", 1);
}

static void print_dim(printer *p, buffer *b, int dim, int64_t at, int64_t indent) {
    const int ndim = p->tensor->ndim;
    if (ndim == 0) {
        print_element(p, b, at);
        return;
    }
    if (dim == ndim - 1) {
        print_row(p, b, at, indent);
        return;
    }
    const int64_t size = p->tensor->sizes[dim], stride = p->tensor->strides[dim], edge = options.edge_items;
    append(b, "[", 1);
    for (int64_t i = 0; i < size; i++) {
        if (i) {
            append(b, ",", 1);
            append_repeated(b, '\n', ndim - dim - 1);
            append_repeated(b, ' ', indent + 1);
        }
        if (p->shortened && size > 2 * edge && i == edge) {
            append_text(b, "...");
            i = size - edge - 1;
        } else {
            print_dim(p, b, dim + 1, at + i * stride, indent + 1);
        }
    }
    append(b, "]", 1);
}

/* ---- what follows them ---------------------------------------------------------------------------------------------- */

static void add_suffix(buffer *b, int64_t *line, const char *text) {
    const int64_t n = (int64_t)strlen(text), indent = 7; /* "tensor(" */
    if (*line + n + 2 > options.line_width) {
        append_text(b, ",\n");
        append_repeated(b, ' ', indent);
        *line = indent + n;
    } else {
        append_text(b, ", ");
        *line += n + 2;
    }
    append_text(b, text);
}

static void add_suffixes(msa_tensor *t, buffer *b, const char *grad_fn) {
    const msa_dtype dtype = (msa_dtype)t->dtype, usual = msa_default_dtype();
    char text[256];
    int64_t line = (int64_t)b->n + 2;
    for (size_t i = b->n; i > 0; i--) {
        if (b->data[i - 1] != '\n') continue;
        line = (int64_t)(b->n - (i - 1)) + 1;
        break;
    }
    if (t->numel == 0 && t->ndim != 1) {
        buffer sizes = {0};
        append_text(&sizes, "size=(");
        for (int i = 0; i < t->ndim; i++) {
            snprintf(text, sizeof text, i ? ", %lld" : "%lld", (long long)t->sizes[i]);
            append_text(&sizes, text);
        }
        append(&sizes, ")", 2);
        if (sizes.failed) b->failed = true;
        else add_suffix(b, &line, sizes.data);
        PyMem_Free(sizes.data);
    }
    const bool plain = t->numel == 0 ? dtype == usual
                                     : dtype == usual || dtype == MSA_INT64 || dtype == MSA_BOOL || dtype == (usual == MSA_FLOAT64 ? MSA_COMPLEX128 : MSA_COMPLEX64);
    if (!plain) {
        snprintf(text, sizeof text, "dtype=torch.%s", msa_dtype_name(dtype));
        add_suffix(b, &line, text);
    }
    if (grad_fn) {
        snprintf(text, sizeof text, "grad_fn=<%.200s>", grad_fn);
        add_suffix(b, &line, text);
    } else if (t->requires_grad) {
        add_suffix(b, &line, "requires_grad=True");
    }
    append(b, ")", 1);
}

PyObject *msa_python_repr(PyObject *self) {
    msa_tensor *t = msa_python_tensor_of(self);
    int status = 0;
    msa_node *node = t->requires_grad ? msa_tensor_grad_fn(t, &status) : NULL;
    if (status != 0) return msa_python_raise();
    if (t->layout) {
        PyObject *module = PyImport_ImportModule("msadapter.pytorch._sparse_text"), *text = NULL;
        if (module) text = PyObject_CallMethod(module, "text", "Oz", self, node ? node->name : NULL);
        Py_XDECREF(module);
        return text;
    }
    buffer b = {0};
    append_text(&b, "tensor(");
    if (t->numel == 0) {
        append_text(&b, "[]");
    } else {
        printer p = {.tensor = t, .data = msa_data(t), .dtype = (msa_dtype)t->dtype, .item = msa_dtype_size((msa_dtype)t->dtype),
                     .complex = msa_is_complex((msa_dtype)t->dtype), .shortened = t->numel > options.threshold};
        if (!p.data) {
            PyMem_Free(b.data);
            return msa_python_raise();
        }
        choose_format(&p);
        print_dim(&p, &b, 0, 0, 7);
    }
    add_suffixes(t, &b, node ? node->name : NULL);
    PyObject *text = b.failed ? PyErr_NoMemory() : PyUnicode_DecodeUTF8(b.data, (Py_ssize_t)b.n, "replace");
    PyMem_Free(b.data);
    return text;
}

/* ---- options -------------------------------------------------------------------------------------------------------- */

static int read_count(PyObject *value, const char *name, int64_t most, int64_t *to) {
    if (!value || value == Py_None) return 0;
    if (PyFloat_Check(value)) { /* inf: print everything */
        const double number = PyFloat_AS_DOUBLE(value);
        if (number >= 0) {
            *to = number < (double)most ? (int64_t)number : most;
            return 0;
        }
    }
    long long number = PyFloat_Check(value) ? -1 : PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred()) return -1;
    if (number < 0) {
        PyErr_Format(PyExc_ValueError, "set_printoptions: %s must not be negative", name);
        return -1;
    }
    *to = number < most ? number : most;
    return 0;
}

static PyObject *set_printoptions(PyObject *module, PyObject *args, PyObject *keywords) {
    static char *names[] = {"precision", "threshold", "edgeitems", "linewidth", "profile", "sci_mode", NULL};
    PyObject *precision = NULL, *threshold = NULL, *edge_items = NULL, *line_width = NULL, *profile = NULL, *scientific = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OOOOOO:set_printoptions", names, &precision, &threshold, &edge_items, &line_width, &profile,
                                     &scientific))
        return NULL;
    int64_t digits = options.precision, limit = options.threshold, edge = options.edge_items, width = options.line_width;
    if (profile && profile != Py_None) {
        const char *name = PyUnicode_Check(profile) ? PyUnicode_AsUTF8(profile) : "";
        if (!name) return NULL;
        if (strcmp(name, "default") == 0 || strcmp(name, "full") == 0 || strcmp(name, "short") == 0) {
            digits = name[0] == 's' ? 2 : 4;
            limit = name[0] == 'f' ? INT64_MAX : 1000;
            edge = name[0] == 's' ? 2 : 3;
            width = 80;
        }
    }
    if (read_count(precision, "precision", 100, &digits) != 0 || read_count(threshold, "threshold", INT64_MAX, &limit) != 0 ||
        read_count(edge_items, "edgeitems", INT64_MAX / 4, &edge) != 0 || read_count(line_width, "linewidth", INT32_MAX, &width) != 0)
        return NULL;
    int mode = -1;
    if (scientific && scientific != Py_None && (mode = PyObject_IsTrue(scientific)) < 0) return NULL;
    options.precision = (int)digits;
    options.threshold = limit;
    options.edge_items = edge;
    options.line_width = width;
    options.scientific = mode;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"set_printoptions", (PyCFunction)(void (*)(void))set_printoptions, METH_VARARGS | METH_KEYWORDS,
     "set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None)\n\n"
     "How tensors print: digits, when and to how many edge items they are shortened, columns of a line; profile is default, short or full."},
    {NULL, NULL, 0, NULL},
};

int msa_python_add_text(PyObject *module) { return PyModule_AddFunctions(module, functions); }
