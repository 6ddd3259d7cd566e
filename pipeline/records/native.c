/* Scans of log files and of property texts in C. Whatever they do not find sound is left to `files/scan.py`,
   `files/queue_check.py` and `properties.py`, which find the same without this file, more slowly. Nothing here keeps a
   reference or a state between two calls, but the table of CRC-32. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "../../core/record_bytes.h"

/* The numbers of each record: as many arrays, one after another, as `sound_records.py` names. */
enum { START, SIZE, QUEUE_ID, QUEUE_OFFSET, SYS_FLAG, STORE_TIME, BODY_AT_, BODY_END, TOPIC_AT, TOPIC_END, TOPIC, COLUMNS };
enum { QUEUE_ID_AT = 12, QUEUE_OFFSET_AT = 20, POSITION_AT = 28, STORE_TIME_AT = 56 };
enum { AHEAD = 8, TAIL_BYTES = 192, KNOWN_TOPICS = 64 };

/* A topic that was met in this call: where its text is, and its number. */
struct known_topic {
    const uint8_t *text;
    Py_ssize_t bytes, number;
};

/* The number of a topic, its place in `topics`, to which a new one is added; -1 with an exception set. */
static Py_ssize_t number_of(const uint8_t *text, Py_ssize_t bytes, struct known_topic *known, PyObject *numbers,
                            PyObject *topics)
{
    uint32_t hash = (uint32_t)bytes;
    for (Py_ssize_t i = bytes < 8 ? 0 : bytes - 8; i < bytes; i++)
        hash = hash * 31 + text[i];
    struct known_topic *slot = known + hash % KNOWN_TOPICS;
    if (slot->text != NULL && slot->bytes == bytes && memcmp(slot->text, text, bytes) == 0)
        return slot->number;
    PyObject *topic = PyBytes_FromStringAndSize((const char *)text, bytes);
    if (topic == NULL)
        return -1;
    Py_ssize_t number = -1;
    PyObject *found = PyDict_GetItemWithError(numbers, topic);
    if (found != NULL) {
        number = PyLong_AsSsize_t(found);
    } else if (!PyErr_Occurred()) {
        number = PyList_GET_SIZE(topics);
        found = PyLong_FromSsize_t(number);
        if (found == NULL || PyDict_SetItem(numbers, topic, found) < 0 || PyList_Append(topics, topic) < 0)
            number = -1;
        Py_XDECREF(found);
    }
    Py_DECREF(topic);
    *slot = (struct known_topic){text, bytes, number};
    return number;
}

/* How many records were written to `out`; -1 with an exception set. */
static Py_ssize_t scan(const Py_buffer *view, Py_ssize_t at, Py_ssize_t end, int64_t base, int check_crc, int64_t *out,
                       Py_ssize_t most, PyObject *numbers, PyObject *topics)
{
    struct known_topic known[KNOWN_TOPICS] = {0};
    Py_ssize_t count = 0;
    for (; at < end && count < most; count++) {
        const uint8_t *p = (const uint8_t *)view->buf + at;
        struct record record;
        if (!read_record(p, view->len - at, &record) || (int64_t)get64(p + POSITION_AT) != base + at ||
            (check_crc && !has_own_crc(p, &record)))
            break;
        Py_ssize_t topic = number_of(p + record.topic_at, record.topic_end - record.topic_at, known, numbers, topics);
        if (topic < 0)
            return -1;
        const uint8_t *time = p + STORE_TIME_AT + (record.sys_flag & BORN_HOST_IPV6 ? LONGER_HOST_BYTES : 0);
        const int64_t values[COLUMNS] = {
            [START] = at, [SIZE] = record.size, [QUEUE_ID] = (int32_t)get32(p + QUEUE_ID_AT),
            [QUEUE_OFFSET] = (int64_t)get64(p + QUEUE_OFFSET_AT), [SYS_FLAG] = (int32_t)record.sys_flag,
            [STORE_TIME] = (int64_t)get64(time), [BODY_AT_] = at + record.body_at, [BODY_END] = at + record.body_end,
            [TOPIC_AT] = at + record.topic_at, [TOPIC_END] = at + record.topic_end, [TOPIC] = topic,
        };
        for (int column = 0; column < COLUMNS; column++)
            out[column * most + count] = values[column];
        at += record.size;
    }
    return count;
}

static PyObject *scan_sound(PyObject *self, PyObject *args)
{
    Py_buffer view, out;
    Py_ssize_t at, end, count = -1;
    long long base;
    int check_crc;
    if (!PyArg_ParseTuple(args, "y*nnLpw*", &view, &at, &end, &base, &check_crc, &out))
        return NULL;
    if (end > view.len)
        end = view.len;
    PyObject *numbers = PyDict_New(), *topics = PyList_New(0);
    if (at < 0 || (uintptr_t)out.buf % sizeof(int64_t) != 0)
        PyErr_SetString(PyExc_ValueError, "the position is below 0, or the room for numbers is not aligned");
    else if (numbers != NULL && topics != NULL)
        count = scan(&view, at, end, base, check_crc, out.buf, out.len / (Py_ssize_t)sizeof(int64_t) / COLUMNS, numbers,
                     topics);
    PyObject *found = count < 0 ? NULL : Py_BuildValue("nO", count, topics);
    Py_XDECREF(numbers);
    Py_XDECREF(topics);
    PyBuffer_Release(&view);
    PyBuffer_Release(&out);
    return found;
}

/* Whether the record of a queue and offset, of this size, lies at a place in the file. */
static int is_own(const Py_buffer *view, int64_t base, int64_t position, int64_t size, int32_t queue_id, int64_t offset)
{
    if (position < base || position - base >= view->len)
        return 0;
    Py_ssize_t at = (Py_ssize_t)(position - base);
    const uint8_t *p = (const uint8_t *)view->buf + at;
    struct record record;
    return read_record(p, view->len - at, &record) && record.size == size &&
           (int32_t)get32(p + QUEUE_ID_AT) == queue_id && (int64_t)get64(p + QUEUE_OFFSET_AT) == offset &&
           (int64_t)get64(p + POSITION_AT) == position;
}

/* Bring the bytes of a record that is looked at later into the processor's cache: of queues in turn, all are cold. */
static void fetch(const Py_buffer *view, int64_t base, int64_t position, int64_t size)
{
    if (position < base || position - base >= view->len || size <= 0 || size > view->len - (position - base))
        return;
    const uint8_t *p = (const uint8_t *)view->buf + (position - base);
    __builtin_prefetch(p);
    __builtin_prefetch(p + 64);
    for (int64_t at = size > TAIL_BYTES ? size - TAIL_BYTES : 128; at < size; at += 64)
        __builtin_prefetch(p + at);
}

static PyObject *match_units(PyObject *self, PyObject *args)
{
    Py_buffer view, positions, sizes, out;
    long long base, offset;
    int queue_id;
    if (!PyArg_ParseTuple(args, "y*Ly*y*iLw*", &view, &base, &positions, &sizes, &queue_id, &offset, &out))
        return NULL;
    Py_ssize_t count = out.len;
    int fits = positions.len == count * (Py_ssize_t)sizeof(int64_t) && sizes.len == positions.len &&
               (uintptr_t)positions.buf % sizeof(int64_t) == 0 && (uintptr_t)sizes.buf % sizeof(int64_t) == 0;
    const int64_t *position = positions.buf, *size = sizes.buf;
    for (Py_ssize_t i = 0; fits && i < count; i++) {
        if (i + AHEAD < count)
            fetch(&view, base, position[i + AHEAD], size[i + AHEAD]);
        ((uint8_t *)out.buf)[i] = is_own(&view, base, position[i], size[i], queue_id, offset + i);
    }
    PyBuffer_Release(&view);
    PyBuffer_Release(&positions);
    PyBuffer_Release(&sizes);
    PyBuffer_Release(&out);
    if (!fits)
        return PyErr_Format(PyExc_ValueError, "positions, sizes and answers must be as many, and aligned");
    Py_RETURN_NONE;
}

/* Property texts, drawn in `properties.py`. */

enum { NAME_END = 1, PAIR_END = 2, KNOWN_PAIRS = 16 };

/* What a pair of the text before was: most texts have the same names in the same order. */
struct known_pair {
    const uint8_t *name;
    Py_ssize_t bytes, wanted;
};

static int is_ascii(const uint8_t *p, Py_ssize_t n)
{
    uint64_t seen = 0, word;
    for (; n >= 8; n -= 8, p += 8)
        memcpy(&word, p, 8), seen |= word;
    for (; n; n--, p++)
        seen |= *p;
    return (seen & 0x8080808080808080u) == 0;
}

/* Which of the wanted names a name is, or -1. */
static Py_ssize_t wanted_name(const uint8_t *p, Py_ssize_t bytes, PyObject *names)
{
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(names); n++) {
        PyObject *name = PyTuple_GET_ITEM(names, n);
        if (PyBytes_GET_SIZE(name) == bytes && memcmp(PyBytes_AS_STRING(name), p, bytes) == 0)
            return n;
    }
    return -1;
}

/* Where the wanted values of the text [p, end) are: in the last pair of a name whose name and value are not empty. */
static void find_places(const uint8_t *base, const uint8_t *p, const uint8_t *end, PyObject *names,
                        struct known_pair *known, int64_t *places, Py_ssize_t count)
{
    for (int pair = 0; p < end; pair++) {
        struct known_pair fresh, *seen = pair < KNOWN_PAIRS ? known + pair : &fresh;
        if (seen == &fresh || !seen->bytes || end - p <= seen->bytes || p[seen->bytes] != NAME_END ||
            memcmp(p, seen->name, seen->bytes) != 0) {
            const uint8_t *pair_end = memchr(p, PAIR_END, end - p);
            pair_end = pair_end == NULL ? end : pair_end;
            const uint8_t *name_end = memchr(p, NAME_END, pair_end - p);
            if (name_end == NULL || name_end == p) {
                p = pair_end + 1;
                continue;
            }
            *seen = (struct known_pair){p, name_end - p, wanted_name(p, name_end - p, names)};
        }
        const uint8_t *value = p + seen->bytes + 1;
        const uint8_t *value_end = memchr(value, PAIR_END, end - value);
        value_end = value_end == NULL ? end : value_end;
        if (seen->wanted >= 0 && value_end > value) {
            places[2 * seen->wanted * count] = value - base;
            places[(2 * seen->wanted + 1) * count] = value_end - base;
        }
        p = value_end + 1;
    }
}

/* Whether all texts are ASCII; then `places` has where each wanted value begins and ends, both 0 where there is none. */
static PyObject *find_values(PyObject *self, PyObject *args)
{
    Py_buffer view, begins, ends, places;
    PyObject *names;
    int found = -1;
    if (!PyArg_ParseTuple(args, "y*y*y*O!w*", &view, &begins, &ends, &PyTuple_Type, &names, &places))
        return NULL;
    Py_ssize_t count = begins.len / (Py_ssize_t)sizeof(int64_t), wanted = PyTuple_GET_SIZE(names);
    int fits = ends.len == begins.len && places.len == 2 * wanted * begins.len &&
               ((uintptr_t)begins.buf | (uintptr_t)ends.buf | (uintptr_t)places.buf) % sizeof(int64_t) == 0;
    for (Py_ssize_t n = 0; n < wanted; n++)
        fits = fits && PyBytes_Check(PyTuple_GET_ITEM(names, n));
    if (fits) {
        struct known_pair known[KNOWN_PAIRS] = {0};
        const int64_t *begin = begins.buf, *end = ends.buf;
        const uint8_t *base = view.buf;
        memset(places.buf, 0, places.len);
        found = 1;
        for (Py_ssize_t row = 0; row < count && found == 1; row++) {
            if (begin[row] < 0 || begin[row] > end[row] || end[row] > view.len)
                found = -1;
            else if (!is_ascii(base + begin[row], end[row] - begin[row]))
                found = 0;
            else
                find_places(base, base + begin[row], base + end[row], names, known, (int64_t *)places.buf + row, count);
        }
    }
    PyBuffer_Release(&view);
    PyBuffer_Release(&begins);
    PyBuffer_Release(&ends);
    PyBuffer_Release(&places);
    if (found < 0)
        return PyErr_Format(PyExc_ValueError, "texts must lie in the buffer, places be as many, and names be bytes");
    return PyBool_FromLong(found);
}

static PyMethodDef functions[] = {
    {"scan_sound", scan_sound, METH_VARARGS, "See sound_records.py."},
    {"match_units", match_units, METH_VARARGS, "See sound_records.py."},
    {"find_values", find_values, METH_VARARGS, "See stored_properties.py."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "native", "Scans of log files and of property texts in C.", -1, functions};

PyMODINIT_FUNC PyInit_native(void)
{
    make_crc_tables();
    return PyModule_Create(&module);
}
