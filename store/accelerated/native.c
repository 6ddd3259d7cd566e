/* The functions of this room in C. Each has a twin in Python beside it, with the same name, arguments, results and
   bytes written; tests compare the two. Nothing here keeps a reference or a state between two calls, but the table of
   CRC-32. Whatever is written has been found to lie inside the buffer before. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "record_bytes.h"

/* Stores before this line stay before it: a process may die between any two, and what is in the map then is the file. */
#define STORES_BEFORE __asm__ __volatile__("" ::: "memory")

enum { MIDDLE_AT = 36, MIDDLE_BYTES = 48, ID_BYTES = 32 };
enum { SLOTS_AT = 40, UNIT_BYTES = 20 };

static void put32(uint8_t *p, uint32_t v)
{
    p[0] = v >> 24, p[1] = v >> 16, p[2] = v >> 8, p[3] = v;
}

static void put64(uint8_t *p, uint64_t v)
{
    put32(p, v >> 32), put32(p + 4, (uint32_t)v);
}

/* 1 if item i of a sequence is bytes; else an exception is set. */
static int bytes_at(PyObject *fast, Py_ssize_t i, const uint8_t **data, Py_ssize_t *length)
{
    PyObject *item = PySequence_Fast_GET_ITEM(fast, i);
    if (!PyBytes_Check(item)) {
        PyErr_SetString(PyExc_TypeError, "bytes are expected");
        return 0;
    }
    *data = (const uint8_t *)PyBytes_AS_STRING(item);
    *length = PyBytes_GET_SIZE(item);
    return 1;
}

/* The records of a batch; the sizes are in `sizes`. -1 with an exception set. */
static int write_batch(Py_buffer *memory, Py_ssize_t at, int64_t position, int64_t queue_offset, const Py_buffer *magic,
                       const Py_buffer *queue_and_flag, const Py_buffer *middle, const Py_buffer *up_to_id,
                       const Py_buffer *behind_id, PyObject *bodies, PyObject *ids, PyObject *sizes)
{
    Py_ssize_t count = PySequence_Fast_GET_SIZE(bodies), end = at;
    const uint8_t *body, *id;
    Py_ssize_t body_bytes, id_bytes;
    if (magic->len != 4 || queue_and_flag->len != 8 || middle->len != MIDDLE_BYTES || at < 0) {
        PyErr_SetString(PyExc_ValueError, "a piece of the record's head has another length");
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!bytes_at(bodies, i, &body, &body_bytes) || !bytes_at(ids, i, &id, &id_bytes))
            return -1;
        Py_ssize_t size = BODY_AT + body_bytes + up_to_id->len + id_bytes + behind_id->len;
        if (id_bytes != ID_BYTES || size > memory->len - end || size > INT32_MAX) {
            PyErr_SetString(PyExc_ValueError, "an id is not 32 bytes long, or the records need more room");
            return -1;
        }
        PyObject *number = PyLong_FromSsize_t(size);
        if (number == NULL)
            return -1;
        PyList_SET_ITEM(sizes, i, number);
        end += size;
    }
    uint8_t *first = (uint8_t *)memory->buf + at, *p = first;
    uint32_t first_size = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        bytes_at(bodies, i, &body, &body_bytes);
        bytes_at(ids, i, &id, &id_bytes);
        uint32_t size = (uint32_t)(BODY_AT + body_bytes + up_to_id->len + ID_BYTES + behind_id->len);
        if (i == 0)
            first_size = size;
        put32(p, i == 0 ? 0 : size);
        memcpy(p + 4, magic->buf, 4);
        put32(p + 8, crc32_of(body, body_bytes) & 0x7FFFFFFF);
        memcpy(p + 12, queue_and_flag->buf, 8);
        put64(p + 20, queue_offset++);
        put64(p + 28, position);
        memcpy(p + MIDDLE_AT, middle->buf, MIDDLE_BYTES);
        put32(p + BODY_AT - 4, (uint32_t)body_bytes);
        uint8_t *q = p + BODY_AT;
        memcpy(q, body, body_bytes), q += body_bytes;
        memcpy(q, up_to_id->buf, up_to_id->len), q += up_to_id->len;
        memcpy(q, id, ID_BYTES), q += ID_BYTES;
        memcpy(q, behind_id->buf, behind_id->len);
        p += size, position += size;
    }
    STORES_BEFORE;
    if (count)
        put32(first, first_size);
    return 0;
}

static PyObject *pack_batch(PyObject *self, PyObject *args)
{
    Py_buffer memory, magic, queue_and_flag, middle, up_to_id, behind_id;
    Py_ssize_t at;
    long long position, queue_offset;
    PyObject *bodies_in, *ids_in;
    if (!PyArg_ParseTuple(args, "w*nLLy*y*y*y*y*OO", &memory, &at, &position, &queue_offset, &magic, &queue_and_flag,
                          &middle, &up_to_id, &behind_id, &bodies_in, &ids_in))
        return NULL;
    PyObject *sizes = NULL, *ids = NULL, *bodies = PySequence_Fast(bodies_in, "bodies are a sequence");
    if (bodies != NULL)
        ids = PySequence_Fast(ids_in, "ids are a sequence");
    if (ids != NULL) {
        Py_ssize_t count = PySequence_Fast_GET_SIZE(bodies);
        if (count != PySequence_Fast_GET_SIZE(ids))
            PyErr_SetString(PyExc_ValueError, "there are not as many ids as bodies");
        else if ((sizes = PyList_New(count)) != NULL &&
                 write_batch(&memory, at, position, queue_offset, &magic, &queue_and_flag, &middle, &up_to_id, &behind_id,
                             bodies, ids, sizes) < 0)
            Py_CLEAR(sizes);
    }
    Py_XDECREF(bodies);
    Py_XDECREF(ids);
    PyBuffer_Release(&memory);
    PyBuffer_Release(&magic);
    PyBuffer_Release(&queue_and_flag);
    PyBuffer_Release(&middle);
    PyBuffer_Release(&up_to_id);
    PyBuffer_Release(&behind_id);
    return sizes;
}

static PyObject *hash_ids(PyObject *self, PyObject *args)
{
    unsigned int start;
    PyObject *ids_in;
    if (!PyArg_ParseTuple(args, "IO", &start, &ids_in))
        return NULL;
    PyObject *ids = PySequence_Fast(ids_in, "ids are a sequence");
    if (ids == NULL)
        return NULL;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(ids);
    PyObject *hashes = PyList_New(count);
    for (Py_ssize_t i = 0; hashes != NULL && i < count; i++) {
        const uint8_t *id;
        Py_ssize_t length;
        uint32_t hash = start;
        uint8_t seen = 0;
        if (!bytes_at(ids, i, &id, &length)) {
            Py_CLEAR(hashes);
            break;
        }
        for (Py_ssize_t at = 0; at < length; at++)
            hash = hash * 31 + id[at], seen |= id[at];
        if (length != ID_BYTES || seen & 0x80) {
            PyErr_Format(PyExc_ValueError, "a unique id is 32 ASCII characters, got %R", PySequence_Fast_GET_ITEM(ids, i));
            Py_CLEAR(hashes);
            break;
        }
        uint32_t absolute = hash < 0x80000000u ? hash : (0u - hash) & 0x7FFFFFFF;
        PyObject *number = PyLong_FromUnsignedLong(absolute);
        if (number == NULL)
            Py_CLEAR(hashes);
        else
            PyList_SET_ITEM(hashes, i, number);
    }
    Py_DECREF(ids);
    return hashes;
}

/* How many slots got their first unit; -1 with an exception set. */
static Py_ssize_t write_units(Py_buffer *memory, Py_ssize_t slots, Py_ssize_t units_at, Py_ssize_t first, PyObject *hashes,
                              PyObject *positions, int seconds)
{
    Py_ssize_t count = PySequence_Fast_GET_SIZE(hashes), used = 0;
    uint8_t *base = memory->buf;
    if (slots <= 0 || slots > memory->len / 4 || units_at < SLOTS_AT + 4 * slots || units_at > memory->len || first < 1 ||
        first > INT32_MAX - count || first + count > (memory->len - units_at) / UNIT_BYTES) {
        PyErr_SetString(PyExc_ValueError, "the file has no room for these units");
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        long hash = PyLong_AsLong(PySequence_Fast_GET_ITEM(hashes, i));
        long long position = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(positions, i));
        if (PyErr_Occurred())
            return -1;
        if (hash < 0 || hash > INT32_MAX) {
            PyErr_SetString(PyExc_ValueError, "a hash is below 0 or above 2147483647");
            return -1;
        }
        uint8_t *slot = base + SLOTS_AT + 4 * (hash % slots), *unit = base + units_at + UNIT_BYTES * (first + i);
        int64_t previous = (int32_t)get32(slot);
        int is_of_batch = previous >= first && previous < first + i &&
                          get32(base + units_at + UNIT_BYTES * previous) % slots == (uint32_t)(hash % slots);
        if (previous <= 0 || (previous >= first && !is_of_batch))
            previous = 0, used++;
        put32(unit, (uint32_t)hash);
        put64(unit + 4, (uint64_t)position);
        put32(unit + 12, (uint32_t)seconds);
        put32(unit + 16, (uint32_t)previous);
        STORES_BEFORE;
        put32(slot, (uint32_t)(first + i));
    }
    return used;
}

static PyObject *add_units(PyObject *self, PyObject *args)
{
    Py_buffer memory;
    Py_ssize_t slots, units_at, first, used = -1;
    int seconds;
    PyObject *hashes_in, *positions_in;
    if (!PyArg_ParseTuple(args, "w*nnnOOi", &memory, &slots, &units_at, &first, &hashes_in, &positions_in, &seconds))
        return NULL;
    PyObject *positions = NULL, *hashes = PySequence_Fast(hashes_in, "hashes are a sequence");
    if (hashes != NULL)
        positions = PySequence_Fast(positions_in, "positions are a sequence");
    if (positions != NULL) {
        if (PySequence_Fast_GET_SIZE(hashes) != PySequence_Fast_GET_SIZE(positions))
            PyErr_SetString(PyExc_ValueError, "there are not as many positions as hashes");
        else
            used = write_units(&memory, slots, units_at, first, hashes, positions, seconds);
    }
    Py_XDECREF(hashes);
    Py_XDECREF(positions);
    PyBuffer_Release(&memory);
    return used < 0 ? NULL : PyLong_FromSsize_t(used);
}

/* A record of the plain form at p, of which `left` bytes may be read: its size, or 0. */
static Py_ssize_t plain_record(const uint8_t *p, Py_ssize_t left, int check_crc, Py_ssize_t *tail_at)
{
    struct record found;
    if (!read_record(p, left, &found) || found.body_at != BODY_AT || found.topic_at != found.body_end + 1)
        return 0;
    if (check_crc && !has_own_crc(p, &found))
        return 0;
    *tail_at = found.body_end;
    return found.size;
}

static PyObject *scan_plain(PyObject *self, PyObject *args)
{
    Py_buffer view;
    Py_ssize_t at, end, most;
    int check_crc;
    if (!PyArg_ParseTuple(args, "y*nnpn", &view, &at, &end, &check_crc, &most))
        return NULL;
    PyObject *topic = NULL, *records = PyList_New(0);
    if (end > view.len)
        end = view.len;
    while (records != NULL && at >= 0 && at < end && most-- > 0) {
        const uint8_t *p = (const uint8_t *)view.buf + at;
        Py_ssize_t tail, size = plain_record(p, end - at, check_crc, &tail);
        if (size == 0)
            break;
        Py_ssize_t topic_bytes = p[tail], properties_at = tail + 3 + topic_bytes;
        if (topic == NULL || PyBytes_GET_SIZE(topic) != topic_bytes ||
            memcmp(PyBytes_AS_STRING(topic), p + tail + 1, topic_bytes) != 0) {
            Py_XDECREF(topic);
            topic = PyBytes_FromStringAndSize((const char *)p + tail + 1, topic_bytes);
        }
        PyObject *record = topic == NULL ? NULL
                                         : Py_BuildValue("nniLiLOy#", at, size, (int)get32(p + 12), (long long)get64(p + 20),
                                                         (int)get32(p + 36), (long long)get64(p + 56), topic,
                                                         (const char *)p + properties_at, size - properties_at);
        if (record == NULL || PyList_Append(records, record) < 0)
            Py_CLEAR(records);
        Py_XDECREF(record);
        at += size;
    }
    Py_XDECREF(topic);
    PyBuffer_Release(&view);
    return records;
}

static PyMethodDef functions[] = {
    {"pack_batch", pack_batch, METH_VARARGS, "See batch_records.py."},
    {"hash_ids", hash_ids, METH_VARARGS, "See id_hashes.py."},
    {"add_units", add_units, METH_VARARGS, "See index_units.py."},
    {"scan_plain", scan_plain, METH_VARARGS, "See record_scan.py."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "native", "Functions of this room in C.", -1, functions};

PyMODINIT_FUNC PyInit_native(void)
{
    make_crc_tables();
    return PyModule_Create(&module);
}
