/* Checkpoints in Python: what msadapter.pytorch.serialization calls.
 *
 * Objects beyond the kinds a document has are left to that module, which uses Python's pickle; the containers around the
 * pickles are the library's either way. */
#include "io/crc32c.h"
#include "python/documents.h"

/* A sink that calls Python: f.write. */
static int write_python(void *function, const void *data, size_t n) {
    enum { SMALL = 1 << 16 };
    while (n) {
        bool small = n <= SMALL;
        size_t part = n < PY_SSIZE_T_MAX ? n : PY_SSIZE_T_MAX;
        PyObject *bytes = small ? PyBytes_FromStringAndSize(data, (Py_ssize_t)n) : PyMemoryView_FromMemory((char *)data, (Py_ssize_t)part, PyBUF_READ);
        PyObject *written = bytes ? PyObject_CallOneArg(function, bytes) : NULL;
        PyObject *released = written && !small ? PyObject_CallMethod(bytes, "release", NULL) : Py_XNewRef(written);
        if (written && PyLong_CheckExact(written)) {
            size_t done = PyLong_AsSize_t(written);
            if (!PyErr_Occurred() && done < part && done > 0) part = done;
            PyErr_Clear();
        }
        Py_XDECREF(bytes);
        Py_XDECREF(written);
        if (!released) return msa_fail(MSA_FOREIGN_ERROR, "write() failed");
        Py_DECREF(released);
        data = (const char *)data + part;
        n -= part;
    }
    return 0;
}

typedef struct {
    const char *name;
    const msa_document *document; /* or a pickle and its storages */
    const void *pickle;
    size_t size;
    const msa_storage_list *storages;
    bool zip;
} saving;

static int save_to(void *argument, const msa_sink *sink) {
    const saving *s = argument;
    return s->document ? msa_pth_write(sink, s->name, s->document, s->zip)
                       : msa_pth_write_pickle(sink, s->name, s->pickle, s->size, s->storages, s->zip);
}

/* `target`: a path, or what is called with the bytes. */
static int save(saving *s, PyObject *target) {
    int status;
    char name[300] = "archive";
    s->name = name;
    if (PyCallable_Check(target)) {
        status = save_to(s, &(msa_sink){write_python, target});
    } else {
        PyObject *path;
        if (!PyUnicode_FSConverter(target, &path)) return -1;
        msa_pth_archive_name(PyBytes_AS_STRING(path), name, sizeof name);
        Py_BEGIN_ALLOW_THREADS
        status = msa_file_replace(PyBytes_AS_STRING(path), save_to, s);
        Py_END_ALLOW_THREADS
        Py_DECREF(path);
    }
    if (status != 0) msa_python_raise();
    return status;
}

/* _pth_save(object, target, parameter_class, zip) -> bool: False when only Python's pickle can save the object. */
static PyObject *pth_save(PyObject *module, PyObject *args) {
    PyObject *object, *target, *parameter_class;
    int zip;
    if (!PyArg_ParseTuple(args, "OOO!p:_pth_save", &object, &target, &PyType_Type, &parameter_class, &zip)) return NULL;
    msa_document *d = msa_python_take_document(object, (PyTypeObject *)parameter_class);
    if (!d) {
        if (PyErr_Occurred()) return NULL;
        Py_RETURN_FALSE;
    }
    saving s = {.document = d, .zip = zip};
    int status = save(&s, target);
    msa_document_free(d);
    if (status != 0) return NULL;
    Py_RETURN_TRUE;
}

/* _pth_save_pickle(pickle, storages, target, zip): storages are numbered as the pickle's persistent ids. */
static PyObject *pth_save_pickle(PyObject *module, PyObject *args) {
    Py_buffer pickle;
    PyObject *list, *target;
    int zip, status = 0;
    if (!PyArg_ParseTuple(args, "y*O!Op:_pth_save_pickle", &pickle, &PyList_Type, &list, &target, &zip)) return NULL;
    msa_storage_list storages = {0};
    for (Py_ssize_t i = 0; status == 0 && i < PyList_GET_SIZE(list); i++) {
        msa_dtype dtype;
        size_t position;
        msa_storage *s = msa_python_storage_of(PyList_GET_ITEM(list, i), &dtype);
        status = s ? msa_storage_list_find(&storages, s, dtype == MSA_NO_DTYPE ? MSA_UINT8 : dtype, &position) : -1;
        if (s && status != 0) msa_python_raise();
        if (status == 0 && position != (size_t)i) {
            PyErr_SetString(PyExc_ValueError, "_pth_save_pickle(): a storage is listed twice");
            status = -1;
        }
    }
    saving s = {.pickle = pickle.buf, .size = (size_t)pickle.len, .storages = &storages, .zip = zip};
    if (status == 0) status = save(&s, target);
    msa_storage_list_free(&storages);
    PyBuffer_Release(&pickle);
    if (status != 0) return NULL;
    Py_RETURN_NONE;
}

/* Hands each storage to `locate`. On this machine all memory is the CPU's: another storage's bytes are taken over. */
static int relocate(const msa_document *d, PyObject *locate) {
    for (size_t i = 0; i < d->stored_count; i++) {
        msa_stored *stored = &d->stored[i];
        PyObject *storage = msa_python_new_storage(msa_storage_retain(stored->storage), stored->dtype);
        PyObject *result = storage ? PyObject_CallFunction(locate, "Os", storage, stored->location) : NULL;
        Py_XDECREF(storage);
        if (!result) return -1;
        msa_dtype dtype;
        msa_storage *other = result == Py_None ? stored->storage : msa_python_storage_of(result, &dtype);
        int status = other ? 0 : -1;
        if (other && other != stored->storage) {
            if (other->bytes != stored->storage->bytes || msa_storage_make_plain(other) != 0) {
                PyErr_SetString(PyExc_RuntimeError, "map_location gave back a storage of another size");
                status = -1;
            } else if (other->bytes) {
                memcpy(stored->storage->data, other->data, other->bytes);
            }
        }
        Py_DECREF(result);
        if (status != 0) return -1;
    }
    return 0;
}

static PyObject *locations(const msa_document *d) {
    PyObject *set = PySet_New(NULL);
    const char *last = NULL;
    for (size_t i = 0; set && i < d->stored_count; i++) {
        if (last && strcmp(last, d->stored[i].location) == 0) continue;
        last = d->stored[i].location;
        PyObject *text = PyUnicode_DecodeUTF8(last, (Py_ssize_t)strlen(last), "replace");
        if (!text || PySet_Add(set, text) != 0) Py_CLEAR(set);
        Py_XDECREF(text);
    }
    return set;
}

/* _pth_load(source, parameter_class, map, encoding, locate) -> (object, locations, bytes read); source: a file number or a
 * buffer. */
static PyObject *pth_load(PyObject *module, PyObject *args) {
    PyObject *from, *parameter_class, *locate;
    int map;
    const char *encoding;
    if (!PyArg_ParseTuple(args, "OO!psO:_pth_load", &from, &PyType_Type, &parameter_class, &map, &encoding, &locate)) return NULL;
    msa_pth_options options = {.map = map};
    if (strcmp(encoding, "latin1") == 0) options.encoding = MSA_ENCODING_LATIN1;
    else if (strcmp(encoding, "bytes") == 0) options.encoding = MSA_ENCODING_BYTES;
    msa_source source = {0};
    Py_buffer buffer = {0};
    if (PyLong_Check(from)) {
        int fd = (int)PyLong_AsLong(from);
        if (fd == -1 && PyErr_Occurred()) return NULL;
        if (msa_source_open(&source, fd) != 0) return msa_python_raise();
    } else {
        if (PyObject_GetBuffer(from, &buffer, PyBUF_SIMPLE) != 0) return NULL;
        source = (msa_source){.memory = buffer.buf ? buffer.buf : (const void *)"", .size = (uint64_t)buffer.len};
    }
    msa_document *d;
    Py_BEGIN_ALLOW_THREADS
    d = msa_pth_read(&source, &options);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&buffer);
    if (!d) return msa_python_raise();
    PyObject *result = NULL;
    if (locate == Py_None || relocate(d, locate) == 0) result = msa_python_build_document(d, (PyTypeObject *)parameter_class);
    PyObject *where = result ? locations(d) : NULL;
    PyObject *all = where ? Py_BuildValue("OOK", result, where, (unsigned long long)d->consumed) : NULL;
    Py_XDECREF(result);
    Py_XDECREF(where);
    msa_document_free(d);
    return all;
}

/* _storage_from_bytes(bytes, dtype) -> storage */
static PyObject *storage_from_bytes(PyObject *module, PyObject *args) {
    Py_buffer buffer;
    PyObject *dtype_object;
    msa_dtype dtype;
    if (!PyArg_ParseTuple(args, "y*O:_storage_from_bytes", &buffer, &dtype_object)) return NULL;
    msa_storage *s = NULL;
    if (msa_python_as_dtype(dtype_object, &dtype) == 0) {
        s = msa_storage_new((size_t)buffer.len);
        if (s && buffer.len) memcpy(s->data, buffer.buf, (size_t)buffer.len);
        if (!s) msa_python_raise();
    }
    PyBuffer_Release(&buffer);
    return s ? msa_python_new_storage(s, dtype) : NULL;
}

/* _storage_fill(storage, bytes): the same number of bytes. */
static PyObject *storage_fill(PyObject *module, PyObject *args) {
    Py_buffer buffer;
    PyObject *storage;
    msa_dtype dtype;
    if (!PyArg_ParseTuple(args, "Oy*:_storage_fill", &storage, &buffer)) return NULL;
    msa_storage *s = msa_python_storage_of(storage, &dtype);
    bool fits = s && s->bytes == (size_t)buffer.len;
    if (fits && buffer.len) memcpy(s->data, buffer.buf, (size_t)buffer.len);
    PyBuffer_Release(&buffer);
    if (fits) Py_RETURN_NONE;
    return s ? PyErr_Format(PyExc_RuntimeError, "the file does not hold all of a storage: it is truncated or damaged") : NULL;
}

/* _storage_address(storage) -> int: the same for all objects of one storage. */
static PyObject *storage_address(PyObject *module, PyObject *storage) {
    msa_dtype dtype;
    msa_storage *s = msa_python_storage_of(storage, &dtype);
    return s ? PyLong_FromVoidPtr(s) : NULL;
}

static PyObject *crc32c(PyObject *module, PyObject *data) {
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) != 0) return NULL;
    const uint32_t crc = msa_crc32c(view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLong(crc);
}

static PyMethodDef functions[] = {
    {"_crc32c", crc32c, METH_O, "Castagnoli's checksum of bytes."},
    {"_pth_save", pth_save, METH_VARARGS, NULL},
    {"_pth_save_pickle", pth_save_pickle, METH_VARARGS, NULL},
    {"_pth_load", pth_load, METH_VARARGS, NULL},
    {"_storage_from_bytes", storage_from_bytes, METH_VARARGS, NULL},
    {"_storage_fill", storage_fill, METH_VARARGS, NULL},
    {"_storage_address", storage_address, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int msa_python_add_serialization(PyObject *module) { return PyModule_AddFunctions(module, functions); }
