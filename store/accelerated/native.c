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

/* Counts the changes of what the functions take and return; `choice.py` has the same number. */
enum { FORMAT = 1 };

enum { MIDDLE_AT = 36, MIDDLE_BYTES = 48, ID_BYTES = 32 };
enum { SLOTS_AT = 40, UNIT_BYTES = 20, UNITS_AHEAD = 16, ELEMENT_BODY_AT = 20 };

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

/* One message of a batch's body: see protocol/message/batch.py. */
struct element {
    const uint8_t *flag, *body, *text;
    Py_ssize_t body_bytes, text_bytes, bytes;
};

/* Whether p, of which `left` bytes may be read, begins with a whole element. */
static int read_element(const uint8_t *p, Py_ssize_t left, struct element *found)
{
    if (left < ELEMENT_BODY_AT)
        return 0;
    found->flag = p + 12;
    found->body = p + ELEMENT_BODY_AT;
    found->body_bytes = (int32_t)get32(p + 16);
    if (found->body_bytes < 0 || found->body_bytes > left - ELEMENT_BODY_AT - 2)
        return 0;
    found->text = found->body + found->body_bytes + 2;
    found->text_bytes = (int16_t)(found->text[-2] << 8 | found->text[-1]);
    found->bytes = ELEMENT_BODY_AT + found->body_bytes + 2 + found->text_bytes;
    return found->text_bytes >= 0 && found->bytes <= left;
}

struct text {
    const uint8_t *at, *end;
};

/* The value of a pair if it has this name, which ends with its separator, and is not empty. */
static void take_value(const uint8_t *pair, const uint8_t *end, const char *name, Py_ssize_t name_bytes, struct text *value)
{
    if (end - pair > name_bytes && memcmp(pair, name, name_bytes) == 0)
        value->at = pair + name_bytes, value->end = end;
}

/* The values that queue and index need; the last of equal names counts. */
static void read_properties(const uint8_t *p, const uint8_t *end, struct text *id, struct text *keys, struct text *tags)
{
    id->at = id->end = keys->at = keys->end = tags->at = tags->end = NULL;
    while (p < end) {
        const uint8_t *pair_end = memchr(p, 2, end - p);
        if (pair_end == NULL)
            pair_end = end;
        take_value(p, pair_end, "UNIQ_KEY\1", 9, id);
        take_value(p, pair_end, "KEYS\1", 5, keys);
        take_value(p, pair_end, "TAGS\1", 5, tags);
        p = pair_end + 1;
    }
}

/* Continue Java's hash of a text over the UTF-16 units of another; 0 if that is not UTF-8. */
static int extend_hash(uint32_t *hash, const uint8_t *p, const uint8_t *end)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    uint32_t h = *hash;
    while (p < end) {
        uint32_t c = *p++;
        if (c >= 0x80) {
            int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
            if (c < 0xC0 || c >= 0xF8 || end - p < more)
                return 0;
            c &= 0x3F >> more;
            for (int i = 0; i < more; i++, p++) {
                if ((*p & 0xC0) != 0x80)
                    return 0;
                c = c << 6 | (*p & 0x3F);
            }
            if (c < least[more] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
                return 0;
            if (c >= 0x10000) {
                h = h * 31 + (0xD800 + ((c - 0x10000) >> 10));
                c = 0xDC00 + ((c - 0x10000) & 0x3FF);
            }
        }
        h = h * 31 + c;
    }
    *hash = h;
    return 1;
}

static uint32_t absolute_of(uint32_t hash)
{
    return hash < 0x80000000u ? hash : (0u - hash) & 0x7FFFFFFF;
}

static int append_new(PyObject *list, PyObject *item)
{
    int done = item == NULL ? -1 : PyList_Append(list, item);
    Py_XDECREF(item);
    return done;
}

/* What a batch leaves beside its records; see element_records.py. */
struct packed {
    PyObject *positions, *sizes, *units, *hashes, *places;
};

/* The index entry of one key. 1; 0 if it is not UTF-8; -1 with an exception set. */
static int add_key(struct packed *packed, PyObject *position, uint32_t start, const uint8_t *key, const uint8_t *end)
{
    uint32_t hash = start;
    if (!extend_hash(&hash, key, end))
        return 0;
    if (append_new(packed->hashes, PyLong_FromUnsignedLong(absolute_of(hash))) < 0 ||
        PyList_Append(packed->places, position) < 0)
        return -1;
    return 1;
}

/* The index entries of a message, and its tags code. Results as of `add_key`. A start below 0: nothing is indexed. */
static int add_keys(struct packed *packed, PyObject *position, const struct element *element, long long keys_start,
                    long long tags_start, int64_t *code)
{
    struct text id, keys, tags;
    int done = 1;
    read_properties(element->text, element->text + element->text_bytes, &id, &keys, &tags);
    uint32_t hash = 0;
    if (!extend_hash(&hash, tags.at, tags.end))
        return 0;
    *code = (int32_t)hash;
    if (keys_start < 0)
        return 1;
    if (id.at != NULL)
        done = add_key(packed, position, (uint32_t)keys_start, id.at, id.end);
    for (const uint8_t *key = keys.at; done > 0 && key < keys.end;) {
        const uint8_t *end = memchr(key, ' ', keys.end - key);
        if (end == NULL)
            end = keys.end;
        if (end > key)
            done = add_key(packed, position, (uint32_t)keys_start, key, end);
        key = end + 1;
    }
    if (done > 0 && tags.at != NULL && tags_start >= 0)
        done = add_key(packed, position, (uint32_t)tags_start, tags.at, tags.end);
    return done;
}

/* All but the records. Results as of `add_key`. */
static int list_elements(struct packed *packed, const Py_buffer *elements, Py_ssize_t around, int64_t position,
                         long long keys_start, long long tags_start)
{
    const uint8_t *p = elements->buf, *end = p + elements->len;
    uint8_t *unit = (uint8_t *)PyBytes_AS_STRING(packed->units);
    const uint8_t *end_of_units = unit + PyBytes_GET_SIZE(packed->units);
    struct element element;
    for (; p < end; p += element.bytes, unit += UNIT_BYTES) {
        /* The elements were counted for the room of the units: who changed them since must not write behind it. */
        if (!read_element(p, end - p, &element) || unit + UNIT_BYTES > end_of_units)
            return 0;
        Py_ssize_t size = around + element.body_bytes + element.text_bytes;
        int64_t code;
        PyObject *place = PyLong_FromLongLong(position);
        int done = place == NULL ? -1 : add_keys(packed, place, &element, keys_start, tags_start, &code);
        if (done > 0 && (append_new(packed->sizes, PyLong_FromSsize_t(size)) < 0 || PyList_Append(packed->positions, place) < 0))
            done = -1;
        Py_XDECREF(place);
        if (done <= 0)
            return done;
        put64(unit, (uint64_t)position), put32(unit + 8, (uint32_t)size), put64(unit + 12, (uint64_t)code);
        position += size;
    }
    return 1;
}

/* The records of elements that were all read before. The first length is written last. */
static void write_elements(uint8_t *first, int64_t position, int64_t queue_offset, const Py_buffer *magic,
                           const Py_buffer *queue_id, const Py_buffer *middle, const Py_buffer *topic,
                           const Py_buffer *elements)
{
    const uint8_t *from = elements->buf, *end = from + elements->len;
    uint8_t *p = first;
    uint32_t first_size = 0;
    struct element element;
    for (; from < end && read_element(from, end - from, &element); from += element.bytes) {
        uint32_t size = (uint32_t)(BODY_AT + element.body_bytes + topic->len + 2 + element.text_bytes);
        if (p == first)
            first_size = size;
        put32(p, p == first ? 0 : size);
        memcpy(p + 4, magic->buf, 4);
        put32(p + 8, crc32_of(element.body, element.body_bytes) & 0x7FFFFFFF);
        memcpy(p + 12, queue_id->buf, 4);
        memcpy(p + 16, element.flag, 4);
        put64(p + 20, queue_offset++);
        put64(p + 28, position);
        memcpy(p + MIDDLE_AT, middle->buf, MIDDLE_BYTES);
        put32(p + BODY_AT - 4, (uint32_t)element.body_bytes);
        uint8_t *q = p + BODY_AT;
        memcpy(q, element.body, element.body_bytes), q += element.body_bytes;
        memcpy(q, topic->buf, topic->len), q += topic->len;
        memcpy(q, element.text - 2, element.text_bytes + 2);
        p += size, position += size;
    }
    STORES_BEFORE;
    if (p > first)
        put32(first, first_size);
}

/* How many elements there are; 0 if one cannot be read, has too long a body, or if the records need more than `room`. */
static Py_ssize_t count_elements(const Py_buffer *elements, Py_ssize_t around, Py_ssize_t room, Py_ssize_t most_body_bytes)
{
    const uint8_t *p = elements->buf, *end = p + elements->len;
    Py_ssize_t count = 0;
    struct element element;
    for (; p < end; p += element.bytes, count++) {
        if (!read_element(p, end - p, &element) || element.body_bytes > most_body_bytes)
            return 0;
        Py_ssize_t size = around + element.body_bytes + element.text_bytes;
        if (size > room || size > INT32_MAX)
            return 0;
        room -= size;
    }
    return count;
}

static PyObject *pack_elements(PyObject *self, PyObject *args)
{
    Py_buffer memory, magic, queue_id, middle, topic, elements;
    Py_ssize_t at, end, most_body_bytes;
    long long position, queue_offset, keys_start, tags_start;
    if (!PyArg_ParseTuple(args, "w*nnLLy*y*y*y*y*nLL", &memory, &at, &end, &position, &queue_offset, &magic, &queue_id,
                          &middle, &topic, &elements, &most_body_bytes, &keys_start, &tags_start))
        return NULL;
    PyObject *result = NULL;
    struct packed packed = {NULL, NULL, NULL, NULL, NULL};
    if (magic.len != 4 || queue_id.len != 4 || middle.len != MIDDLE_BYTES || topic.len > INT16_MAX || at < 0 || at > end ||
        end > memory.len) {
        PyErr_SetString(PyExc_ValueError, "a piece of the record's head has another length, or the file has no such bytes");
    } else {
        Py_ssize_t around = BODY_AT + topic.len + 2, count = count_elements(&elements, around, end - at, most_body_bytes);
        packed.positions = PyList_New(0), packed.sizes = PyList_New(0), packed.hashes = PyList_New(0);
        packed.places = PyList_New(0), packed.units = PyBytes_FromStringAndSize(NULL, count * UNIT_BYTES);
        int done = count > 0;
        if (!packed.positions || !packed.sizes || !packed.hashes || !packed.places || !packed.units)
            done = -1;
        if (done > 0)
            done = list_elements(&packed, &elements, around, position, keys_start, tags_start);
        if (done > 0)
            result = PyTuple_Pack(5, packed.positions, packed.sizes, packed.units, packed.hashes, packed.places);
        else if (done == 0)
            result = Py_NewRef(Py_None);
        if (done > 0 && result != NULL)
            write_elements((uint8_t *)memory.buf + at, position, queue_offset, &magic, &queue_id, &middle, &topic, &elements);
    }
    Py_XDECREF(packed.positions);
    Py_XDECREF(packed.sizes);
    Py_XDECREF(packed.units);
    Py_XDECREF(packed.hashes);
    Py_XDECREF(packed.places);
    PyBuffer_Release(&memory);
    PyBuffer_Release(&magic);
    PyBuffer_Release(&queue_id);
    PyBuffer_Release(&middle);
    PyBuffer_Release(&topic);
    PyBuffer_Release(&elements);
    return result;
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
        PyObject *number = PyLong_FromUnsignedLong(absolute_of(hash));
        if (number == NULL)
            Py_CLEAR(hashes);
        else
            PyList_SET_ITEM(hashes, i, number);
    }
    Py_DECREF(ids);
    return hashes;
}

/* Begin to fetch the slot of a hash. Slots of a batch lie all over the file, so each would have to be waited for. */
static void fetch_slot(const uint8_t *base, Py_ssize_t slots, PyObject *hash)
{
    if (PyLong_CheckExact(hash))
        __builtin_prefetch(base + SLOTS_AT + 4 * ((uint32_t)PyLong_AsUnsignedLongMask(hash) % slots));
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
        if (i + UNITS_AHEAD < count)
            fetch_slot(base, slots, PySequence_Fast_GET_ITEM(hashes, i + UNITS_AHEAD));
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

static PyObject *gather_records(PyObject *self, PyObject *args)
{
    Py_buffer units, log;
    long long base;
    PyObject *records = NULL;
    if (!PyArg_ParseTuple(args, "y*y*L", &units, &log, &base))
        return NULL;
    const uint8_t *first = units.buf, *end = first + units.len;
    Py_ssize_t total = 0;
    if (units.len % UNIT_BYTES != 0)
        PyErr_SetString(PyExc_ValueError, "a unit is cut off");
    for (const uint8_t *p = first; p < end && !PyErr_Occurred(); p += UNIT_BYTES) {
        int64_t position = (int64_t)get64(p), size = (int32_t)get32(p + 8);
        if (position < base || size < 0 || (uint64_t)position - (uint64_t)base > (uint64_t)log.len ||
            size > log.len - (position - base) || total > PY_SSIZE_T_MAX - size)
            PyErr_SetString(PyExc_ValueError, "a record does not lie in this part of the log");
        else
            total += size;
    }
    if (!PyErr_Occurred())
        records = PyBytes_FromStringAndSize(NULL, total);
    if (records != NULL) {
        char *to = PyBytes_AS_STRING(records);
        for (const uint8_t *p = first; p < end; p += UNIT_BYTES) {
            uint32_t size = get32(p + 8);
            memcpy(to, (const char *)log.buf + ((int64_t)get64(p) - base), size);
            to += size;
        }
    }
    PyBuffer_Release(&units);
    PyBuffer_Release(&log);
    return records;
}

static PyMethodDef functions[] = {
    {"pack_batch", pack_batch, METH_VARARGS, "See batch_records.py."},
    {"pack_elements", pack_elements, METH_VARARGS, "See element_records.py."},
    {"hash_ids", hash_ids, METH_VARARGS, "See id_hashes.py."},
    {"add_units", add_units, METH_VARARGS, "See index_units.py."},
    {"gather_records", gather_records, METH_VARARGS, "See gathered_records.py."},
    {"scan_plain", scan_plain, METH_VARARGS, "See record_scan.py."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "native", "Functions of this room in C.", -1, functions};

PyMODINIT_FUNC PyInit_native(void)
{
    make_crc_tables();
    PyObject *made = PyModule_Create(&module);
    if (made == NULL)
        return NULL;
#ifdef Py_GIL_DISABLED
    /* Lists are read without locks, and the flusher relies on the GIL, too. */
    PyUnstable_Module_SetGIL(made, Py_MOD_GIL_USED);
#endif
    if (PyModule_AddIntConstant(made, "FORMAT", FORMAT) < 0)
        Py_CLEAR(made);
    return made;
}
