/* Property texts: the bytes between a request and a record. See properties.py for the rules in Python. */

#include "core.h"

enum { MAX_PAIRS = 96, MAX_COPY_KIND_BYTES = 4096, FIXED_KIND_BYTES = 12 };

/* The character that begins at p; returns where the next one begins, NULL for bytes that are not UTF-8. */
static inline const uint8_t *next_character(const uint8_t *p, const uint8_t *end, uint32_t *character)
{
    static const uint32_t min[] = {0, 0x80, 0x800, 0x10000};
    uint32_t c = *p++;
    if (c >= 0x80) {
        int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
        if (c < 0xC0 || c >= 0xF8 || end - p < more)
            return NULL;
        c &= 0x3F >> more;
        for (int i = 0; i < more; i++, p++) {
            if ((*p & 0xC0) != 0x80)
                return NULL;
            c = c << 6 | (*p & 0x3F);
        }
        if (c < min[more] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
            return NULL;
    }
    *character = c;
    return p;
}

int is_utf8(const uint8_t *p, const uint8_t *end)
{
    while (p != NULL && p < end) {
        uint64_t eight;
        uint32_t character;
        if (end - p >= 8 && (memcpy(&eight, p, 8), (eight & 0x8080808080808080u) == 0))
            p += 8;
        else
            p = next_character(p, end, &character);
    }
    return p == end;
}

int extend_hash(uint32_t *hash, const uint8_t *p, const uint8_t *end)
{
    uint32_t h = *hash, c;
    while (p < end) {
        if ((p = next_character(p, end, &c)) == NULL)
            return 0;
        if (c >= 0x10000) {
            h = h * 31 + (0xD800 + ((c - 0x10000) >> 10));
            c = 0xDC00 + ((c - 0x10000) & 0x3FF);
        }
        h = h * 31 + c;
    }
    *hash = h;
    return 1;
}

/* A property on its way into a map. */
struct entry {
    struct span name, value;
    uint32_t hash;
};

struct map {
    struct entry entries[MAX_PAIRS];
    int count;
    char queue_id[24]; /* of the send, if a value is that */
};

/* 0 if the map is full, or the name is not UTF-8. A value without bytes removes the property. */
static int put(struct map *map, struct span name, struct span value)
{
    uint32_t hash = 0;
    if (!extend_hash(&hash, name.at, name.end))
        return 0;
    for (int i = 0; i < map->count; i++) {
        struct entry *entry = &map->entries[i];
        if (entry->hash == hash && span_is(entry->name, (const char *)name.at, span_bytes(name))) {
            if (value.at != NULL)
                entry->value = value;
            else
                memmove(entry, entry + 1, (--map->count - i) * sizeof *entry);
            return 1;
        }
    }
    if (value.at == NULL)
        return 1;
    if (map->count == MAX_PAIRS)
        return 0;
    map->entries[map->count++] = (struct entry){name, value, hash};
    return 1;
}

/* The properties in the order of Java's hash map, as one text. */
static PyObject *text_of(struct map *map, uint32_t buckets, int has_final_separator)
{
    uint8_t order[MAX_PAIRS];
    uint32_t bucket[MAX_PAIRS];
    Py_ssize_t bytes = 0;
    while ((uint32_t)map->count > buckets * 3 / 4)
        buckets *= 2;
    for (int i = 0; i < map->count; i++) {
        uint32_t hash = map->entries[i].hash;
        int at = i;
        bucket[i] = (hash ^ hash >> 16) & (buckets - 1);
        for (; at > 0 && bucket[order[at - 1]] > bucket[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
        bytes += span_bytes(map->entries[i].name) + span_bytes(map->entries[i].value) + 2;
    }
    if (map->count && !has_final_separator)
        bytes--;
    PyObject *text = PyBytes_FromStringAndSize(NULL, bytes);
    if (text == NULL)
        return NULL;
    uint8_t *p = (uint8_t *)PyBytes_AS_STRING(text);
    for (int i = 0; i < map->count; i++) {
        const struct entry *entry = &map->entries[order[i]];
        memcpy(p, entry->name.at, span_bytes(entry->name)), p += span_bytes(entry->name);
        *p++ = 1;
        memcpy(p, entry->value.at, span_bytes(entry->value)), p += span_bytes(entry->value);
        if (i + 1 < map->count || has_final_separator)
            *p++ = 2;
    }
    return text;
}

static struct span span_of(const Py_buffer *bytes)
{
    const uint8_t *first = bytes->buf;
    return (struct span){first, first + bytes->len};
}

static int bytes_span(PyObject *item, struct span *s)
{
    if (!PyBytes_Check(item))
        return 0;
    s->at = (const uint8_t *)PyBytes_AS_STRING(item), s->end = s->at + PyBytes_GET_SIZE(item);
    return 1;
}

/* The UTF-8 of a text; 0 for anything else. One with half a surrogate pair has none: then no exception is set. */
static int text_span(PyObject *item, struct span *s)
{
    Py_ssize_t bytes;
    if (!PyUnicode_Check(item)) {
        PyErr_SetString(PyExc_TypeError, "names are texts, and values texts or None");
        return 0;
    }
    s->at = (const uint8_t *)PyUnicode_AsUTF8AndSize(item, &bytes);
    if (s->at == NULL) {
        PyErr_Clear();
        return 0;
    }
    s->end = s->at + bytes;
    return 1;
}

/* The value of a change: a text, None for no bytes, or a number, which names a value of the send. Results of `text_span`. */
static int change_span(struct map *map, PyObject *value, PyObject *send, struct span *s)
{
    s->at = s->end = NULL;
    if (value == Py_None)
        return 1;
    if (send == NULL || !PyLong_Check(value))
        return text_span(value, s);
    if (PyLong_AsLong(value) == UNIQUE_ID_ITEM)
        return PyTuple_GET_ITEM(send, UNIQUE_ID_ITEM) == Py_None || bytes_span(PyTuple_GET_ITEM(send, UNIQUE_ID_ITEM), s);
    if (PyLong_AsLong(value) != QUEUE_ID_ITEM)
        PyErr_SetString(PyExc_ValueError, "a send has no such value");
    long queue_id = PyLong_AsLong(PyTuple_GET_ITEM(send, QUEUE_ID_ITEM));
    if (PyErr_Occurred())
        return 0;
    s->at = (const uint8_t *)map->queue_id;
    s->end = s->at + PyOS_snprintf(map->queue_id, sizeof map->queue_id, "%ld", queue_id);
    return 1;
}

/* The properties of a text; 0 if Python has to read it. */
static int read_map(struct map *map, struct span text)
{
    struct pair pair;
    map->count = 0;
    if (!is_utf8(text.at, text.end))
        return 0;
    for (const uint8_t *p = text.at; next_pair(p, text.end, &pair); p = pair.next)
        if (!put(map, pair.name, pair.value))
            return 0;
    return 1;
}

/* 0 if that fails, without an exception if Python has to do it. */
static int change_map(struct map *map, PyObject *changes, PyObject *send)
{
    struct span name, value;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(changes); i += 2) {
        if (!text_span(PyTuple_GET_ITEM(changes, i), &name) ||
            !change_span(map, PyTuple_GET_ITEM(changes, i + 1), send, &value) || !put(map, name, value))
            return 0;
    }
    return 1;
}

/* The value of a property; no bytes if the map does not have it. */
static struct span find_value(const struct map *map, struct span name)
{
    for (int i = 0; i < map->count; i++)
        if (span_is(map->entries[i].name, (const char *)name.at, span_bytes(name)))
            return map->entries[i].value;
    return (struct span){NULL, NULL};
}

static PyObject *restate(struct span text, PyObject *changes, PyObject *send, uint32_t buckets, int has_final_separator)
{
    struct map map;
    return read_map(&map, text) && change_map(&map, changes, send) ? text_of(&map, buckets, has_final_separator) : NULL;
}

static int are_possible(PyObject *changes, uint32_t buckets)
{
    if (buckets >= 1 && buckets <= 1 << 16 && PyTuple_GET_SIZE(changes) % 2 == 0)
        return 1;
    PyErr_SetString(PyExc_ValueError, "names and values in turns, and 1 to 65536 buckets, are expected");
    return 0;
}

PyObject *stored_text(PyObject *self, PyObject *args)
{
    Py_buffer text;
    PyObject *changes, *stored = NULL;
    unsigned int buckets;
    int has_final_separator;
    if (!PyArg_ParseTuple(args, "y*O!Ip", &text, &PyTuple_Type, &changes, &buckets, &has_final_separator))
        return NULL;
    if (are_possible(changes, buckets))
        stored = restate(span_of(&text), changes, NULL, buckets, has_final_separator);
    PyBuffer_Release(&text);
    return or_none(stored);
}

PyObject *read_values(PyObject *self, PyObject *args)
{
    Py_buffer text;
    PyObject *changes, *names, *values = NULL;
    struct span name;
    struct map map;
    if (!PyArg_ParseTuple(args, "y*O!O!", &text, &PyTuple_Type, &changes, &PyTuple_Type, &names))
        return NULL;
    if (are_possible(changes, 1) && read_map(&map, span_of(&text)) && change_map(&map, changes, NULL))
        values = PyTuple_New(PyTuple_GET_SIZE(names));
    for (Py_ssize_t i = 0; values != NULL && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *value = NULL;
        if (text_span(PyTuple_GET_ITEM(names, i), &name)) {
            struct span found = find_value(&map, name);
            value = found.at == NULL ? Py_NewRef(Py_None)
                                     : PyUnicode_FromStringAndSize((const char *)found.at, span_bytes(found));
        }
        if (value == NULL)
            Py_CLEAR(values);
        else
            PyTuple_SET_ITEM(values, i, value);
    }
    PyBuffer_Release(&text);
    return or_none(values);
}

/* The value of a property; no bytes if a text does not have it. */
static struct span value_in(struct span text, struct span name)
{
    struct pair pair;
    struct span value = {NULL, NULL};
    for (const uint8_t *p = text.at; next_pair(p, text.end, &pair); p = pair.next)
        if (span_is(pair.name, (const char *)name.at, span_bytes(name)))
            value = pair.value;
    return value;
}

/* Whether two texts have the same values of the properties with these names. */
static int have_same(PyObject *names, struct span text, struct span other)
{
    struct span name;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        if (!text_span(PyTuple_GET_ITEM(names, i), &name))
            return 0;
        struct span value = value_in(text, name), other_value = value_in(other, name);
        if (span_bytes(value) != span_bytes(other_value) ||
            (value.at != NULL && memcmp(value.at, other_value.at, span_bytes(value)) != 0))
            return 0;
    }
    return 1;
}

/* Whether a send has the kind of another, a unique id, and a queue below a number. */
static int is_alike(PyObject *first, PyObject *send, int queues)
{
    PyObject *kind = PyTuple_GET_ITEM(send, KIND_ITEM), *of_first = PyTuple_GET_ITEM(first, KIND_ITEM);
    long queue_id = PyLong_AsLong(PyTuple_GET_ITEM(send, QUEUE_ID_ITEM));
    if (PyTuple_GET_ITEM(send, UNIQUE_ID_ITEM) == Py_None || queue_id < 0 || queue_id >= queues)
        return 0;
    return kind == of_first || PyObject_RichCompareBool(kind, of_first, Py_EQ) > 0;
}

PyObject *messages_of_sends(PyObject *self, PyObject *args)
{
    PyObject *sends, *same, *head, *queue_id, *changes;
    struct span first = {NULL, NULL};
    Py_ssize_t start, end, max_text_bytes;
    unsigned int buckets;
    int queues, has_final_separator;
    if (!PyArg_ParseTuple(args, "O!nninO!OOO!Ip", &PyList_Type, &sends, &start, &end, &queues, &max_text_bytes, &PyTuple_Type,
                          &same, &head, &queue_id, &PyTuple_Type, &changes, &buckets, &has_final_separator) ||
        !are_possible(changes, buckets))
        return NULL;
    if (start < 0 || end > PyList_GET_SIZE(sends)) {
        PyErr_SetString(PyExc_ValueError, "there are not so many sends");
        return NULL;
    }
    PyObject *messages = PyList_New(0), *zero = PyLong_FromLong(0);
    for (Py_ssize_t i = start; messages != NULL && zero != NULL && i < end; i++) {
        PyObject *send = PyList_GET_ITEM(sends, i), *message = NULL, *body = NULL, *text = NULL;
        struct span sent;
        if (!is_send(send) || !bytes_span(PyTuple_GET_ITEM(send, TEXT_ITEM), &sent)) {
            PyErr_SetString(PyExc_TypeError, "sends are expected");
        } else if (i > start && !is_alike(PyList_GET_ITEM(sends, start), send, queues)) {
            if (!PyErr_Occurred())
                break;
        } else if (i > start && (span_bytes(sent) > max_text_bytes || !have_same(same, first, sent))) {
            if (!PyErr_Occurred())
                break;
        } else if ((text = restate(sent, changes, send, buckets, has_final_separator)) != NULL) {
            Py_ssize_t body_at = PyLong_AsSsize_t(PyTuple_GET_ITEM(send, BODY_ITEM));
            Py_ssize_t body_end = PyLong_AsSsize_t(PyTuple_GET_ITEM(send, END_ITEM));
            if (!PyErr_Occurred())
                body = PySequence_GetSlice(PyTuple_GET_ITEM(send, RECEIVED_ITEM), body_at, body_end);
        } else if (!PyErr_Occurred()) {
            break;
        }
        if (body != NULL)
            message = PyTuple_Pack(7, head, queue_id == Py_None ? PyTuple_GET_ITEM(send, QUEUE_ID_ITEM) : queue_id, body, text,
                                   PyTuple_GET_ITEM(send, BORN_ITEM), zero, Py_None);
        if (i == start)
            first = sent;
        if (message == NULL || PyList_Append(messages, message) < 0)
            Py_CLEAR(messages);
        Py_XDECREF(message);
        Py_XDECREF(body);
        Py_XDECREF(text);
    }
    Py_XDECREF(zero);
    return messages;
}

/* What copies of a record share: queue id, flag, sysFlag, hosts and reconsumeTimes, topic, and the values of properties;
   the newest if that is the same. NULL without an exception if it is long. */
static PyObject *kind_of_copy(const uint8_t *p, const struct record *record, const struct map *map, PyObject *names, PyObject *newest)
{
    uint8_t kind[MAX_COPY_KIND_BYTES], *to = kind + FIXED_KIND_BYTES;
    Py_ssize_t born_bytes = record->sys_flag & BORN_HOST_IPV6 ? 20 : 8;
    const uint8_t *store_host = p + BORN_HOST_AT + born_bytes + 8, *behind = p + record->body_at - 12;
    struct span name, value = {p + record->topic_at, p + record->topic_end};
    memcpy(kind, p + QUEUE_ID_AT, 8), memcpy(kind + 8, p + SYS_FLAG_AT, 4);
    memcpy(to, p + BORN_HOST_AT, born_bytes), to += born_bytes;
    memcpy(to, store_host, behind - store_host), to += behind - store_host;
    for (Py_ssize_t i = 0;; i++) {
        if (span_bytes(value) > kind + sizeof kind - to - 4)
            return NULL;
        put32(to, (uint32_t)span_bytes(value)), to += 4;
        if (value.at != NULL)
            memcpy(to, value.at, span_bytes(value)), to += span_bytes(value);
        if (i == PyTuple_GET_SIZE(names))
            break;
        if (!text_span(PyTuple_GET_ITEM(names, i), &name))
            return NULL;
        value = find_value(map, name);
    }
    if (newest != NULL && PyBytes_GET_SIZE(newest) == to - kind && memcmp(PyBytes_AS_STRING(newest), kind, to - kind) == 0)
        return Py_NewRef(newest);
    return PyBytes_FromStringAndSize((char *)kind, to - kind);
}

/* A `Copy` of the record at byte `at`; NULL without an exception if there is none, or Python has to read it. */
static PyObject *read_copy(PyObject *log, const Py_buffer *bytes, Py_ssize_t at, int64_t position, PyObject *names,
                           struct span number_name, PyObject *changes, uint32_t buckets, int has_final_separator, PyObject *newest)
{
    const uint8_t *p = (const uint8_t *)bytes->buf + at;
    struct record record;
    struct map map;
    long long number;
    if (!read_record(p, bytes->len - at, &record) || (int64_t)get64(p + POSITION_AT) != position ||
        !read_map(&map, (struct span){p + record.topic_end + 2, p + record.size}) ||
        !read_number(find_value(&map, number_name), &number))
        return NULL;
    PyObject *kind = kind_of_copy(p, &record, &map, names, newest);
    if (kind == NULL || !change_map(&map, changes, NULL)) {
        Py_XDECREF(kind);
        return NULL;
    }
    PyObject *items[] = {kind,
                         PyLong_FromLongLong((int64_t)get64(p + QUEUE_OFFSET_AT)),
                         PyLong_FromLongLong(number),
                         PyLong_FromLongLong((int64_t)get64(p + BORN_TIMESTAMP_AT)),
                         PySequence_GetSlice(log, at + record.body_at, at + record.body_end),
                         text_of(&map, buckets, has_final_separator)};
    return tuple_of(&PyTuple_Type, 6, items);
}

PyObject *read_copies(PyObject *self, PyObject *args)
{
    PyObject *log, *positions, *names, *number_name, *changes, *newest = NULL;
    Py_buffer bytes;
    struct span number_text;
    long long base;
    unsigned int buckets;
    int has_final_separator;
    if (!PyArg_ParseTuple(args, "OLO!O!OO!Ip", &log, &base, &PyList_Type, &positions, &PyTuple_Type, &names, &number_name,
                          &PyTuple_Type, &changes, &buckets, &has_final_separator) ||
        !are_possible(changes, buckets) || !text_span(number_name, &number_text) || PyObject_GetBuffer(log, &bytes, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *copies = PyList_New(0);
    for (Py_ssize_t i = 0; copies != NULL && i < PyList_GET_SIZE(positions); i++) {
        long long position = PyLong_AsLongLong(PyList_GET_ITEM(positions, i));
        PyObject *copy = NULL;
        if (!PyErr_Occurred() && position >= base && (uint64_t)position - (uint64_t)base < (uint64_t)bytes.len)
            copy = read_copy(log, &bytes, (Py_ssize_t)(position - base), position, names, number_text, changes, buckets,
                             has_final_separator, newest);
        if (copy != NULL)
            newest = PyTuple_GET_ITEM(copy, 0); /* the list keeps it */
        copy = or_none(copy);
        if (copy == NULL || PyList_Append(copies, copy) < 0)
            Py_CLEAR(copies);
        Py_XDECREF(copy);
    }
    PyBuffer_Release(&bytes);
    return copies;
}

PyObject *read_properties(PyObject *self, PyObject *text_in)
{
    Py_buffer text;
    struct pair pair;
    if (PyObject_GetBuffer(text_in, &text, PyBUF_SIMPLE) < 0)
        return NULL;
    const uint8_t *first = text.buf, *end = first + text.len;
    PyObject *properties = is_utf8(first, end) ? PyDict_New() : Py_NewRef(Py_None);
    for (const uint8_t *p = first; properties != NULL && properties != Py_None && next_pair(p, end, &pair); p = pair.next) {
        PyObject *name = PyUnicode_FromStringAndSize((const char *)pair.name.at, span_bytes(pair.name));
        PyObject *value = PyUnicode_FromStringAndSize((const char *)pair.value.at, span_bytes(pair.value));
        if (name == NULL || value == NULL || PyDict_SetItem(properties, name, value) < 0)
            Py_CLEAR(properties);
        Py_XDECREF(name);
        Py_XDECREF(value);
    }
    PyBuffer_Release(&text);
    return properties;
}
