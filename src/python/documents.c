/* Documents of src/io as Python objects, and plain Python objects as documents. */
#include "python/documents.h"

/* From documents. Both directions recurse: documents have been checked for cycles and depth, and Python objects are counted. */

typedef struct {
    PyObject **made; /* by index of the object */
    PyTypeObject *parameter_class;
} builder;

static PyObject *build(builder *b, const msa_object *o);

static PyObject *text_of(const msa_object *o) { return PyUnicode_DecodeUTF8(o->text, (Py_ssize_t)o->length, "surrogatepass"); }

/* An attribute of a module, called with what follows; steals nothing. */
static PyObject *call(const char *module_name, const char *name, PyObject *args) {
    PyObject *module = args ? PyImport_ImportModule(module_name) : NULL;
    PyObject *function = module ? PyObject_GetAttrString(module, name) : NULL;
    PyObject *result = function ? PyObject_Call(function, args, NULL) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(function);
    return result;
}

static PyObject *call_steal(const char *module, const char *name, PyObject *args) {
    PyObject *result = call(module, name, args);
    Py_XDECREF(args);
    return result;
}

/* A key, or an element of a set: shared tuples could make hashing take for ever. */
static PyObject *build_key(builder *b, const msa_object *o) {
    if (o->weight <= MSA_OBJECT_KEY_WEIGHT) return build(b, o);
    PyErr_SetString(PyExc_RuntimeError, "a key in the file is too large to be hashed");
    return NULL;
}

static PyObject *build_tuple(builder *b, const msa_object *o, PyObject *tuple) {
    for (size_t i = 0; tuple && i < o->count; i++) {
        PyObject *item = build(b, o->items[i]);
        if (item) PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, item);
        else Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *build_list(builder *b, const msa_object *o) {
    PyObject *list = PyList_New((Py_ssize_t)o->count);
    for (size_t i = 0; list && i < o->count; i++) {
        PyObject *item = build(b, o->items[i]);
        if (item) PyList_SET_ITEM(list, (Py_ssize_t)i, item);
        else Py_CLEAR(list);
    }
    return list;
}

static PyObject *build_set(builder *b, const msa_object *o, PyObject *set) {
    for (size_t i = 0; set && i < o->count; i++) {
        PyObject *item = build_key(b, o->items[i]);
        if (!item || PySet_Add(set, item) != 0) Py_CLEAR(set);
        Py_XDECREF(item);
    }
    return set;
}

static PyObject *factory_type(const msa_object *o) {
    if (!o) return Py_None;
    switch (o->integer) {
    case MSA_GLOBAL_LIST: return (PyObject *)&PyList_Type;
    case MSA_GLOBAL_DICT: return (PyObject *)&PyDict_Type;
    case MSA_GLOBAL_SET: return (PyObject *)&PySet_Type;
    case MSA_GLOBAL_INT: return (PyObject *)&PyLong_Type;
    case MSA_GLOBAL_FLOAT: return (PyObject *)&PyFloat_Type;
    default: return (PyObject *)&PyUnicode_Type;
    }
}

/* Attributes go into the instance's dictionary, past any setter. */
static int build_attributes(builder *b, const msa_object *o, PyObject *object) {
    if (!o || !o->count) return 0;
    PyObject *attributes = build(b, o), *dict = attributes ? PyObject_GetAttrString(object, "__dict__") : NULL;
    int status = dict ? PyDict_Update(dict, attributes) : -1;
    if (status == 0 && msa_python_is_tensor(object)) status = PyObject_SetAttrString(object, "__dict__", dict);
    Py_XDECREF(attributes);
    Py_XDECREF(dict);
    return status;
}

static PyObject *build_dict(builder *b, const msa_object *o) {
    PyObject *dict;
    switch ((msa_object_kind)o->kind) {
    case MSA_OBJECT_ORDERED_DICT: dict = PyODict_New(); break;
    case MSA_OBJECT_COUNTER: dict = call_steal("collections", "Counter", PyTuple_New(0)); break;
    case MSA_OBJECT_DEFAULT_DICT: dict = call_steal("collections", "defaultdict", Py_BuildValue("(O)", factory_type(o->attributes))); break;
    default: dict = PyDict_New();
    }
    for (size_t i = 0; dict && i + 1 < o->count; i += 2) {
        PyObject *key = build_key(b, o->items[i]), *value = key ? build(b, o->items[i + 1]) : NULL;
        int status = !value ? -1 : PyODict_CheckExact(dict) ? PyODict_SetItem(dict, key, value) : PyDict_SetItem(dict, key, value);
        Py_XDECREF(key);
        Py_XDECREF(value);
        if (status != 0) Py_CLEAR(dict);
    }
    if (dict && o->kind == MSA_OBJECT_ORDERED_DICT && build_attributes(b, o->attributes, dict) != 0) Py_CLEAR(dict);
    return dict;
}

static PyObject *build_tensor(builder *b, const msa_object *o) {
    msa_tensor *t = msa_tensor_retain(o->tensor);
    PyObject *tensor = o->detail && !t->python ? msa_python_wrap_as(b->parameter_class, t) : msa_python_wrap(t);
    if (tensor && build_attributes(b, o->attributes, tensor) != 0) Py_CLEAR(tensor);
    return tensor;
}

/* The indices can be checked only now that they have been read. */
static PyObject *build_sparse(builder *b, const msa_object *o) {
    PyObject *layout = build(b, o->items[0]), *data = layout ? build(b, o->items[1]) : NULL;
    PyObject *result = data ? call_steal("msadapter.pytorch._utils", "_rebuild_sparse_tensor", Py_BuildValue("(OO)", layout, data)) : NULL;
    Py_XDECREF(layout);
    Py_XDECREF(data);
    return result;
}

static PyObject *build_array(builder *b, const msa_object *o) {
    if (o->count < 2) return PyErr_Format(PyExc_RuntimeError, "the file holds an unfinished numpy array");
    bool scalar = o->kind == MSA_OBJECT_NUMPY_SCALAR;
    PyObject *dtype = build(b, o->items[0]), *bytes = dtype ? build(b, o->items[scalar ? 1 : 2]) : NULL, *result = NULL;
    PyObject *flat = bytes ? call_steal("numpy", "frombuffer", Py_BuildValue("(OO)", bytes, dtype)) : NULL;
    if (flat && scalar) {
        result = PySequence_GetItem(flat, 0);
    } else if (flat) {
        PyObject *shape = build(b, o->items[1]), *reshape = shape ? PyObject_GetAttrString(flat, "reshape") : NULL;
        PyObject *args = shape ? PyTuple_Pack(1, shape) : NULL, *order = Py_BuildValue("{ss}", "order", o->items[3]->integer ? "F" : "C");
        PyObject *view = reshape && args && order ? PyObject_Call(reshape, args, order) : NULL;
        result = view ? PyObject_CallMethod(view, "copy", "s", "K") : NULL; /* the bytes cannot be written to */
        Py_XDECREF(shape);
        Py_XDECREF(reshape);
        Py_XDECREF(args);
        Py_XDECREF(order);
        Py_XDECREF(view);
    }
    Py_XDECREF(flat);
    Py_XDECREF(bytes);
    Py_XDECREF(dtype);
    return result;
}

static PyObject *build_slice(builder *b, const msa_object *o) {
    PyObject *parts = build_tuple(b, o, PyTuple_New(3)), *result = NULL;
    if (parts && o->kind == MSA_OBJECT_RANGE) result = PyObject_CallObject((PyObject *)&PyRange_Type, parts);
    else if (parts) result = PySlice_New(PyTuple_GET_ITEM(parts, 0), PyTuple_GET_ITEM(parts, 1), PyTuple_GET_ITEM(parts, 2));
    Py_XDECREF(parts);
    return result;
}

static PyObject *build_storage(const msa_object *o) {
    if (o->offset || (size_t)o->numel != o->storage->bytes / msa_dtype_size((msa_dtype)o->detail))
        return PyErr_Format(PyExc_NotImplementedError, "load(): views of storages are not supported outside tensors");
    return msa_python_new_storage(msa_storage_retain(o->storage), (msa_dtype)o->detail);
}

static PyObject *build_value(builder *b, const msa_object *o) {
    PyObject *text, *result;
    switch ((msa_object_kind)o->kind) {
    case MSA_OBJECT_NONE: Py_RETURN_NONE;
    case MSA_OBJECT_BOOL: return PyBool_FromLong(o->integer != 0);
    case MSA_OBJECT_INT: return PyLong_FromLongLong(o->integer);
    case MSA_OBJECT_BIG_INT: return _PyLong_FromByteArray((const unsigned char *)o->text, o->length, 1, 1);
    case MSA_OBJECT_FLOAT: return PyFloat_FromDouble(o->real[0]);
    case MSA_OBJECT_COMPLEX: return PyComplex_FromDoubles(o->real[0], o->real[1]);
    case MSA_OBJECT_STR: return text_of(o);
    case MSA_OBJECT_BYTES: return PyBytes_FromStringAndSize(o->text, (Py_ssize_t)o->length);
    case MSA_OBJECT_BYTE_ARRAY: return PyByteArray_FromStringAndSize(o->text, (Py_ssize_t)o->length);
    case MSA_OBJECT_LIST: return build_list(b, o);
    case MSA_OBJECT_TUPLE: return build_tuple(b, o, PyTuple_New((Py_ssize_t)o->count));
    case MSA_OBJECT_SIZE:
        return build_tuple(b, o, msa_python_size_type.tp_alloc(&msa_python_size_type, (Py_ssize_t)o->count));
    case MSA_OBJECT_DICT:
    case MSA_OBJECT_ORDERED_DICT:
    case MSA_OBJECT_COUNTER:
    case MSA_OBJECT_DEFAULT_DICT: return build_dict(b, o);
    case MSA_OBJECT_SET: return build_set(b, o, PySet_New(NULL));
    case MSA_OBJECT_FROZEN_SET: return build_set(b, o, PyFrozenSet_New(NULL));
    case MSA_OBJECT_SLICE:
    case MSA_OBJECT_RANGE: return build_slice(b, o);
    case MSA_OBJECT_DEVICE:
        text = text_of(o);
        result = text ? PyObject_CallOneArg((PyObject *)&msa_python_device_type, text) : NULL;
        Py_XDECREF(text);
        return result;
    case MSA_OBJECT_DTYPE: return msa_python_dtype((msa_dtype)o->detail);
    case MSA_OBJECT_LAYOUT:
        return msa_python_layout(msa_object_says(o, "sparse_coo") ? MSA_SPARSE_COO : msa_object_says(o, "sparse_csr") ? MSA_SPARSE_CSR : MSA_STRIDED);
    case MSA_OBJECT_TENSOR: return build_tensor(b, o);
    case MSA_OBJECT_SPARSE: return build_sparse(b, o);
    case MSA_OBJECT_STORAGE: return build_storage(o);
    case MSA_OBJECT_NUMPY_DTYPE: return call_steal("numpy", "dtype", Py_BuildValue("(N)", text_of(o)));
    case MSA_OBJECT_NUMPY_SCALAR:
    case MSA_OBJECT_NUMPY_ARRAY: return build_array(b, o);
    default: msa_fail(MSA_PICKLE_ERROR, "the file refers to a type by itself, which is not loaded safely"); return msa_python_raise();
    }
}

static PyObject *build(builder *b, const msa_object *o) {
    if (b->made[o->index]) return Py_NewRef(b->made[o->index]);
    PyObject *made = build_value(b, o);
    b->made[o->index] = Py_XNewRef(made);
    return made;
}

PyObject *msa_python_build_document(const msa_document *d, PyTypeObject *parameter_class) {
    builder b = {PyMem_Calloc(d->count + 1, sizeof *b.made), parameter_class};
    if (!b.made) return PyErr_NoMemory();
    PyObject *result = build(&b, d->root);
    for (uint32_t i = 0; i < d->count; i++) Py_XDECREF(b.made[i]);
    PyMem_Free(b.made);
    if (result || (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_OverflowError)))
        return result;
    /* Unhashable keys, text that is not UTF-8: the file is to blame. */
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *text = value ? PyObject_Str(value) : NULL;
    const char *why = text ? PyUnicode_AsUTF8(text) : NULL;
    msa_fail(MSA_PICKLE_ERROR, "the pickle in the file is damaged: %s", why ? why : "");
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return msa_python_raise();
}

/* To documents. */

typedef struct {
    msa_document *document;
    PyObject *memo; /* address of a Python object: address of the document's */
    PyTypeObject *parameter_class;
    PyObject *counter, *default_dict; /* types */
    bool foreign; /* something no document can hold was met: no exception is set */
    int depth;
} taker;

static msa_object *take(taker *k, PyObject *o);

static msa_object *foreign(taker *k) {
    k->foreign = true;
    return NULL;
}

static msa_object *checked(msa_object *o) {
    if (!o && !PyErr_Occurred()) msa_python_raise();
    return o;
}

static msa_object *take_int(taker *k, PyObject *o) {
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow) return checked(msa_object_new_int(k->document, value));
    PyObject *bits = PyObject_CallMethod(o, "bit_length", NULL);
    size_t n = bits ? PyLong_AsSize_t(bits) / 8 + 1 : 0;
    PyObject *method = PyObject_GetAttrString(o, "to_bytes"), *args = Py_BuildValue("(ns)", (Py_ssize_t)n, "little");
    PyObject *keywords = Py_BuildValue("{sO}", "signed", Py_True);
    PyObject *bytes = bits && method && args && keywords ? PyObject_Call(method, args, keywords) : NULL;
    msa_object *result =
        bytes ? checked(msa_object_new_text(k->document, MSA_OBJECT_BIG_INT, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes))) : NULL;
    Py_XDECREF(bits);
    Py_XDECREF(method);
    Py_XDECREF(args);
    Py_XDECREF(keywords);
    Py_XDECREF(bytes);
    return result;
}

static msa_object *take_str(taker *k, PyObject *o) {
    Py_ssize_t n;
    const char *text = PyUnicode_AsUTF8AndSize(o, &n);
    if (text) return checked(msa_object_new_text(k->document, MSA_OBJECT_STR, text, (size_t)n));
    PyErr_Clear(); /* lone surrogates */
    PyObject *bytes = PyUnicode_AsEncodedString(o, "utf-8", "surrogatepass");
    if (!bytes) return NULL;
    msa_object *s = checked(msa_object_new_text(k->document, MSA_OBJECT_STR, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes)));
    Py_DECREF(bytes);
    return s;
}

static msa_object *take_items(taker *k, PyObject *o, msa_object_kind kind) {
    msa_object *to = checked(msa_object_new_container(k->document, kind));
    PyObject *iterator = to ? PyObject_GetIter(o) : NULL, *item;
    if (!iterator) return NULL;
    while (to && (item = PyIter_Next(iterator))) {
        if (msa_object_append(to, take(k, item)) != 0) {
            if (!k->foreign) checked(NULL);
            to = NULL;
        }
        Py_DECREF(item);
    }
    Py_DECREF(iterator);
    return PyErr_Occurred() ? NULL : to;
}

static int take_pairs(taker *k, PyObject *o, msa_object *to, PyObject *without) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    /* The order of an OrderedDict is not always that of the dict beneath it. */
    PyObject *items = PyODict_CheckExact(o) ? PyObject_CallMethod(o, "items", NULL) : NULL, *list = items ? PySequence_List(items) : NULL;
    Py_XDECREF(items);
    if (PyODict_CheckExact(o) && !list) return -1;
    int status = 0;
    while (status == 0) {
        if (list) {
            if (at >= PyList_GET_SIZE(list)) break;
            PyObject *pair = PyList_GET_ITEM(list, at);
            at++;
            key = PyTuple_GET_ITEM(pair, 0);
            value = PyTuple_GET_ITEM(pair, 1);
        } else if (!PyDict_Next(o, &at, &key, &value)) {
            break;
        }
        if (without && PyUnicode_Check(key) && PyUnicode_Compare(key, without) == 0) continue;
        msa_object *k1 = take(k, key), *v1 = k1 ? take(k, value) : NULL;
        status = v1 ? msa_object_set(to, k1, v1) : -1;
    }
    Py_XDECREF(list);
    if (status != 0 && !k->foreign) checked(NULL);
    return status;
}

static msa_object *take_factory(taker *k, PyObject *o) {
    PyObject *factory = PyObject_GetAttrString(o, "default_factory");
    if (!factory) return NULL;
    Py_DECREF(factory); /* the dictionary keeps it */
    static const struct {
        PyTypeObject *type;
        msa_global code;
    } known[] = {{&PyList_Type, MSA_GLOBAL_LIST}, {&PyDict_Type, MSA_GLOBAL_DICT}, {&PySet_Type, MSA_GLOBAL_SET},
                 {&PyLong_Type, MSA_GLOBAL_INT}, {&PyFloat_Type, MSA_GLOBAL_FLOAT}, {&PyUnicode_Type, MSA_GLOBAL_STR}};
    msa_object *to = checked(msa_object_new_container(k->document, MSA_OBJECT_DEFAULT_DICT));
    if (!to || factory == Py_None) return to;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (factory == (PyObject *)known[i].type) {
            to->attributes = checked(msa_object_new_global(k->document, known[i].code, MSA_BOOL));
            return to->attributes ? to : NULL;
        }
    return foreign(k);
}

static msa_object *take_attributes(taker *k, PyObject *dict, msa_object *to) {
    PyObject *hooks = PyUnicode_InternFromString("_backward_hooks"); /* functions, which files do not hold */
    msa_object *attributes = hooks ? checked(msa_object_new_container(k->document, MSA_OBJECT_DICT)) : NULL;
    int status = attributes ? take_pairs(k, dict, attributes, hooks) : -1;
    Py_XDECREF(hooks);
    if (status != 0) return NULL;
    if (attributes->count) to->attributes = attributes;
    return to;
}

static msa_object *take_dict(taker *k, PyObject *o, msa_object *to) {
    if (!to || take_pairs(k, o, to, NULL) != 0) return NULL;
    if (!PyODict_CheckExact(o)) return to;
    PyObject *dict = PyObject_GetAttrString(o, "__dict__");
    if (!dict) return NULL;
    if (PyDict_Check(dict) && PyDict_GET_SIZE(dict)) to = take_attributes(k, dict, to);
    Py_DECREF(dict);
    return to;
}

static msa_object *take_tensor(taker *k, PyObject *o) {
    if (msa_python_tensor_of(o)->layout) return foreign(k); /* Python's pickler writes it */
    msa_object *to = checked(msa_object_new_tensor(k->document, msa_python_tensor_of(o), Py_TYPE(o) == k->parameter_class));
    PyObject *dict = ((python_tensor *)o)->dict;
    return to && dict && PyDict_GET_SIZE(dict) ? take_attributes(k, dict, to) : to;
}

static msa_object *take_device(taker *k, PyObject *o) {
    PyObject *text = PyObject_Str(o);
    const char *name = text ? PyUnicode_AsUTF8(text) : NULL;
    msa_object *to = name ? checked(msa_object_new_text(k->document, MSA_OBJECT_DEVICE, name, strlen(name))) : NULL;
    Py_XDECREF(text);
    return to;
}

static msa_object *take_layout(taker *k, PyObject *o) {
    int layout;
    if (msa_python_match_layout(o, &layout) == 1) return checked(msa_object_new_text(k->document, MSA_OBJECT_LAYOUT, "strided", 7));
    PyErr_Clear();
    return foreign(k);
}

static msa_object *take_slice(taker *k, PyObject *o, msa_object_kind kind) {
    static const char *const names[] = {"start", "stop", "step"};
    msa_object *to = checked(msa_object_new_container(k->document, kind));
    for (int i = 0; to && i < 3; i++) {
        PyObject *part = PyObject_GetAttrString(o, names[i]);
        if (part && part != Py_None && !PyLong_CheckExact(part)) to = foreign(k);
        else if (!part || msa_object_append(to, take(k, part)) != 0) to = checked(NULL);
        Py_XDECREF(part);
    }
    return to;
}

static msa_object *take_bytes(taker *k, PyObject *o) {
    bool array = PyByteArray_CheckExact(o);
    const char *data = array ? PyByteArray_AS_STRING(o) : PyBytes_AS_STRING(o);
    Py_ssize_t n = array ? PyByteArray_GET_SIZE(o) : PyBytes_GET_SIZE(o);
    return checked(msa_object_new_text(k->document, array ? MSA_OBJECT_BYTE_ARRAY : MSA_OBJECT_BYTES, data, (size_t)n));
}

static msa_object *take_storage(taker *k, PyObject *o) {
    msa_dtype dtype;
    msa_storage *s = msa_python_storage_of(o, &dtype);
    if (dtype == MSA_NO_DTYPE) return foreign(k);
    return checked(msa_object_new_storage(k->document, s, dtype, 0, (int64_t)(s->bytes / msa_dtype_size(dtype))));
}

/* What may be shared or hold others. */
static msa_object *take_object(taker *k, PyObject *o) {
    msa_dtype dtype;
    PyTypeObject *type = Py_TYPE(o);
    if (type == msa_python_tensor_class || type == k->parameter_class) return take_tensor(k, o);
    if (PyUnicode_CheckExact(o)) return take_str(k, o);
    if (PyDict_CheckExact(o)) return take_dict(k, o, checked(msa_object_new_container(k->document, MSA_OBJECT_DICT)));
    if (PyODict_CheckExact(o)) return take_dict(k, o, checked(msa_object_new_container(k->document, MSA_OBJECT_ORDERED_DICT)));
    if (PyList_CheckExact(o)) return take_items(k, o, MSA_OBJECT_LIST);
    if (PyTuple_CheckExact(o)) return take_items(k, o, MSA_OBJECT_TUPLE);
    if (PyBytes_CheckExact(o) || PyByteArray_CheckExact(o)) return take_bytes(k, o);
    if (type == &msa_python_size_type) return take_items(k, o, MSA_OBJECT_SIZE);
    if (type == &PySet_Type) return take_items(k, o, MSA_OBJECT_SET);
    if (type == &PyFrozenSet_Type) return take_items(k, o, MSA_OBJECT_FROZEN_SET);
    if (type == &msa_python_device_type) return take_device(k, o);
    if (type == &PySlice_Type) return take_slice(k, o, MSA_OBJECT_SLICE);
    if (type == &PyRange_Type) return take_slice(k, o, MSA_OBJECT_RANGE);
    if ((PyObject *)type == k->counter) return take_dict(k, o, checked(msa_object_new_container(k->document, MSA_OBJECT_COUNTER)));
    if ((PyObject *)type == k->default_dict) return take_dict(k, o, take_factory(k, o));
    if (type == &msa_python_dtype_type) return msa_python_as_dtype(o, &dtype) == 0 ? checked(msa_object_new_dtype(k->document, dtype)) : NULL;
    if (type == &msa_python_layout_type) return take_layout(k, o);
    if (type == &msa_python_storage_type) return take_storage(k, o);
    return foreign(k);
}

static msa_object *take(taker *k, PyObject *o) {
    if (o == Py_None) return checked(msa_object_new_none(k->document));
    if (PyBool_Check(o)) return checked(msa_object_new_bool(k->document, o == Py_True));
    if (PyFloat_CheckExact(o)) return checked(msa_object_new_float(k->document, PyFloat_AS_DOUBLE(o)));
    if (PyLong_CheckExact(o)) return take_int(k, o);
    if (PyComplex_CheckExact(o)) return checked(msa_object_new_complex(k->document, PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)));
    PyObject *id = PyLong_FromVoidPtr(o);
    if (!id) return NULL;
    PyObject *known = PyDict_GetItemWithError(k->memo, id);
    msa_object *result = NULL;
    if (known) {
        result = PyLong_AsVoidPtr(known);
        if (!result) foreign(k); /* not finished: it contains itself */
    } else if (PyErr_Occurred() || PyDict_SetItem(k->memo, id, Py_False) != 0) {
        result = NULL;
    } else if (k->depth >= MSA_OBJECT_DEPTH - 10) {
        foreign(k);
    } else {
        k->depth++;
        result = take_object(k, o);
        k->depth--;
        PyObject *address = result ? PyLong_FromVoidPtr(result) : NULL;
        if (!address || PyDict_SetItem(k->memo, id, address) != 0) result = NULL;
        Py_XDECREF(address);
    }
    Py_DECREF(id);
    return result;
}

/* The document of an object, or NULL: with an exception, or without where only Python's pickle can save it. */
msa_document *msa_python_take_document(PyObject *o, PyTypeObject *parameter_class) {
    PyObject *collections = PyImport_ImportModule("collections");
    taker k = {.document = msa_document_new(), .memo = PyDict_New(), .parameter_class = parameter_class};
    k.counter = collections ? PyObject_GetAttrString(collections, "Counter") : NULL;
    k.default_dict = collections ? PyObject_GetAttrString(collections, "defaultdict") : NULL;
    msa_object *root = k.document && k.memo && k.counter && k.default_dict ? take(&k, o) : checked(NULL);
    Py_XDECREF(collections);
    Py_XDECREF(k.counter);
    Py_XDECREF(k.default_dict);
    Py_XDECREF(k.memo);
    if (root) {
        msa_document_set_root(k.document, root);
        return k.document;
    }
    msa_document_free(k.document);
    if (k.foreign) PyErr_Clear();
    return NULL;
}
