/* Property texts: the bytes between a request and a record. See properties.py for the rules in Python. */

#include "core.h"

enum { MOST_PAIRS = 96 };

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
    struct entry entries[MOST_PAIRS];
    int count;
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
    if (map->count == MOST_PAIRS)
        return 0;
    map->entries[map->count++] = (struct entry){name, value, hash};
    return 1;
}

/* The properties in the order of Java's hash map, as one text. */
static PyObject *text_of(struct map *map, uint32_t buckets, int has_final_separator)
{
    uint8_t order[MOST_PAIRS];
    uint32_t bucket[MOST_PAIRS];
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

static int bytes_span(PyObject *item, struct span *s)
{
    if (!PyBytes_Check(item))
        return 0;
    s->at = (const uint8_t *)PyBytes_AS_STRING(item), s->end = s->at + PyBytes_GET_SIZE(item);
    return 1;
}

PyObject *restate(PyObject *self, PyObject *args)
{
    PyObject *text_in, *changes;
    unsigned int buckets;
    int has_final_separator;
    struct map map;
    struct pair pair;
    struct span text, name, value;
    if (!PyArg_ParseTuple(args, "O!O!Ip", &PyBytes_Type, &text_in, &PyTuple_Type, &changes, &buckets, &has_final_separator))
        return NULL;
    if (buckets < 1 || buckets > 1 << 16 || PyTuple_GET_SIZE(changes) % 2) {
        PyErr_SetString(PyExc_ValueError, "names and values in turns, and 1 to 65536 buckets, are expected");
        return NULL;
    }
    bytes_span(text_in, &text);
    map.count = 0;
    if (!is_utf8(text.at, text.end))
        Py_RETURN_NONE;
    for (const uint8_t *p = text.at; next_pair(p, text.end, &pair); p = pair.next)
        if (!put(&map, pair.name, pair.value))
            Py_RETURN_NONE;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(changes); i += 2) {
        PyObject *new_value = PyTuple_GET_ITEM(changes, i + 1);
        value.at = value.end = NULL;
        if (!bytes_span(PyTuple_GET_ITEM(changes, i), &name) || (new_value != Py_None && !bytes_span(new_value, &value))) {
            PyErr_SetString(PyExc_TypeError, "a name is bytes, a value bytes or None");
            return NULL;
        }
        if (!put(&map, name, value))
            Py_RETURN_NONE;
    }
    return text_of(&map, buckets, has_final_separator);
}

PyObject *map_of_text(PyObject *self, PyObject *text_in)
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

PyObject *text_of_map(PyObject *self, PyObject *args)
{
    PyObject *properties, *name, *value;
    unsigned int buckets;
    int has_final_separator;
    struct map map;
    Py_ssize_t place = 0;
    if (!PyArg_ParseTuple(args, "O!Ip", &PyDict_Type, &properties, &buckets, &has_final_separator))
        return NULL;
    if (buckets < 1 || buckets > 1 << 16) {
        PyErr_SetString(PyExc_ValueError, "1 to 65536 buckets are expected");
        return NULL;
    }
    map.count = 0;
    while (PyDict_Next(properties, &place, &name, &value)) {
        struct entry *entry = &map.entries[map.count];
        Py_ssize_t name_bytes, value_bytes;
        if (map.count == MOST_PAIRS || !PyUnicode_Check(name) || !PyUnicode_Check(value))
            Py_RETURN_NONE;
        entry->name.at = (const uint8_t *)PyUnicode_AsUTF8AndSize(name, &name_bytes);
        entry->value.at = (const uint8_t *)PyUnicode_AsUTF8AndSize(value, &value_bytes);
        if (entry->name.at == NULL || entry->value.at == NULL) {
            PyErr_Clear(); /* half a surrogate pair becomes a question mark, in Python */
            Py_RETURN_NONE;
        }
        entry->name.end = entry->name.at + name_bytes, entry->value.end = entry->value.at + value_bytes;
        entry->hash = 0;
        extend_hash(&entry->hash, entry->name.at, entry->name.end);
        map.count++;
    }
    return text_of(&map, buckets, has_final_separator);
}
