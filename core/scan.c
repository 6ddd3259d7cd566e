/* Records of a log file or of replies, and the pairs of property texts, as numbers. The twins in Python and the names of
   the numbers are in pipeline/tables/records/scans.py. The loops hold no object of Python and run without the GIL. */

#include "core.h"

/* The numbers of each record, and of each pair, one behind the other. */
enum { START, SIZE, QUEUE_ID, QUEUE_OFFSET, POSITION, SYS_FLAG, STORE_TIME, BODY_BEGIN, BODY_END, TOPIC_BEGIN, TOPIC_END, TOPIC, COLUMNS };
enum { ROW, NAME, VALUE_BEGIN, VALUE_END, PAIR_COLUMNS };
enum { STORE_TIME_AT = 56 };
enum { AHEAD = 8, TAIL_BYTES = 192, KNOWN_PAIRS = 16, NO_MEMORY = -2, NO_ROOM = -1 };

/* A text that was met in this call; its place among them is its number. `row` and `pair`: its last pair. */
struct name {
    struct span text;
    uint32_t hash;
    int64_t row, pair;
};

/* The distinct texts of one call, found by their hash: a slot has a number and 1, or 0. */
struct names {
    struct name *all;
    Py_ssize_t count, last;
    uint32_t *slots;
    size_t mask;
};

static uint32_t hash_of(struct span text)
{
    uint32_t hash = 2166136261u;
    for (const uint8_t *p = text.at; p < text.end; p++)
        hash = (hash ^ *p) * 16777619u;
    return hash ^ hash >> 15;
}

static int is_same(struct span a, struct span b)
{
    return span_bytes(a) == span_bytes(b) && memcmp(a.at, b.at, span_bytes(a)) == 0;
}

/* Twice the slots, and the room for half as many names. */
static int grow(struct names *names)
{
    size_t slots = names->mask ? 2 * (names->mask + 1) : 64;
    struct name *all = PyMem_RawRealloc(names->all, slots / 2 * sizeof *all);
    uint32_t *fresh = PyMem_RawCalloc(slots, sizeof *fresh);
    if (all != NULL)
        names->all = all;
    if (all == NULL || fresh == NULL) {
        PyMem_RawFree(fresh);
        return 0;
    }
    PyMem_RawFree(names->slots);
    names->slots = fresh;
    names->mask = slots - 1;
    for (Py_ssize_t n = 0; n < names->count; n++) {
        size_t slot = all[n].hash & names->mask;
        while (fresh[slot])
            slot = (slot + 1) & names->mask;
        fresh[slot] = (uint32_t)n + 1;
    }
    return 1;
}

/* The number of a text, which becomes the last one met; NO_MEMORY. */
static Py_ssize_t number_of(struct names *names, struct span text)
{
    if (names->count && is_same(names->all[names->last].text, text))
        return names->last;
    if ((size_t)names->count >= (names->mask + 1) / 2 && !grow(names))
        return NO_MEMORY;
    uint32_t hash = hash_of(text);
    size_t slot = hash & names->mask;
    for (; names->slots[slot]; slot = (slot + 1) & names->mask) {
        struct name *each = names->all + names->slots[slot] - 1;
        if (each->hash == hash && is_same(each->text, text))
            return names->last = each - names->all;
    }
    names->all[names->count] = (struct name){text, hash, -1, -1};
    names->slots[slot] = (uint32_t)names->count + 1;
    return names->last = names->count++;
}

/* The texts as a list of bytes; frees the table. */
static PyObject *make_list(struct names *names)
{
    PyObject *list = PyList_New(names->count);
    for (Py_ssize_t n = 0; list != NULL && n < names->count; n++) {
        struct span text = names->all[n].text;
        PyObject *each = PyBytes_FromStringAndSize((const char *)text.at, span_bytes(text));
        if (each == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, n, each);
    }
    PyMem_RawFree(names->all);
    PyMem_RawFree(names->slots);
    return list;
}

/* Write the numbers of a record at p, `at` bytes from the start of the buffer. 0 without memory. */
static inline int write_row(const uint8_t *p, Py_ssize_t at, const struct record *record, struct names *topics, int64_t *out)
{
    Py_ssize_t topic = number_of(topics, (struct span){p + record->topic_at, p + record->topic_end});
    if (topic < 0)
        return 0;
    const uint8_t *time = p + STORE_TIME_AT + (record->sys_flag & BORN_HOST_IPV6 ? LONGER_HOST_BYTES : 0);
    out[START] = at, out[SIZE] = record->size;
    out[QUEUE_ID] = (int32_t)get32(p + QUEUE_ID_AT), out[QUEUE_OFFSET] = (int64_t)get64(p + QUEUE_OFFSET_AT);
    out[POSITION] = (int64_t)get64(p + POSITION_AT), out[SYS_FLAG] = (int32_t)record->sys_flag;
    out[STORE_TIME] = (int64_t)get64(time);
    out[BODY_BEGIN] = at + record->body_at, out[BODY_END] = at + record->body_end;
    out[TOPIC_BEGIN] = at + record->topic_at, out[TOPIC_END] = at + record->topic_end, out[TOPIC] = topic;
    return 1;
}

/* How many records were found; NO_MEMORY. */
static Py_ssize_t scan(const Py_buffer *view, Py_ssize_t at, Py_ssize_t end, int64_t base, int check_crc,
                       struct names *topics, int64_t *out, Py_ssize_t limit)
{
    Py_ssize_t count = 0;
    for (; at < end && count < limit; count++) {
        const uint8_t *p = (const uint8_t *)view->buf + at;
        struct record record;
        if (!read_record(p, view->len - at, &record) ||
            (base >= 0 && get64(p + POSITION_AT) != (uint64_t)base + (uint64_t)at) ||
            (check_crc && !has_own_crc(p, &record)))
            break;
        if (!write_row(p, at, &record, topics, out + count * COLUMNS))
            return NO_MEMORY;
        at += record.size;
    }
    return count;
}

/* (count, names), or None and an exception; `count` is NO_MEMORY if there was none. */
static PyObject *result_of(Py_ssize_t count, struct names *names)
{
    PyObject *list = make_list(names);
    if (count == NO_MEMORY) {
        Py_XDECREF(list);
        return PyErr_NoMemory();
    }
    return list == NULL ? NULL : Py_BuildValue("nN", count, list);
}

static int is_aligned(const Py_buffer *numbers)
{
    return (uintptr_t)numbers->buf % sizeof(int64_t) == 0 && numbers->len % (Py_ssize_t)sizeof(int64_t) == 0;
}

PyObject *scan_records(PyObject *self, PyObject *args)
{
    Py_buffer view, room;
    Py_ssize_t at, end, count = 0;
    long long base;
    int check_crc;
    if (!PyArg_ParseTuple(args, "y*nnLpw*", &view, &at, &end, &base, &check_crc, &room))
        return NULL;
    struct names topics = {0};
    int fits = at >= 0 && is_aligned(&room);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        count = scan(&view, at, end < view.len ? end : view.len, base, check_crc, &topics, room.buf,
                     room.len / (Py_ssize_t)sizeof(int64_t) / COLUMNS);
        Py_END_ALLOW_THREADS;
    }
    PyObject *found = fits ? result_of(count, &topics) : NULL; /* the topics are texts in the buffer */
    PyBuffer_Release(&view);
    PyBuffer_Release(&room);
    if (!fits)
        PyErr_SetString(PyExc_ValueError, "the position is below 0, or the room for numbers is not aligned");
    return found;
}

/* Bring the bytes of a record that is looked at later into the processor's cache: of queues in turn, all are cold. */
static void fetch(const Py_buffer *view, int64_t at, int64_t size)
{
    if (at < 0 || at >= view->len || size <= 0 || size > view->len - at)
        return;
    const uint8_t *p = (const uint8_t *)view->buf + at;
    __builtin_prefetch(p);
    __builtin_prefetch(p + 64);
    for (int64_t part = size > TAIL_BYTES ? size - TAIL_BYTES : 128; part < size; part += 64)
        __builtin_prefetch(p + part);
}

PyObject *read_records_at(PyObject *self, PyObject *args)
{
    Py_buffer view, starts, sizes, room;
    if (!PyArg_ParseTuple(args, "y*y*y*w*", &view, &starts, &sizes, &room))
        return NULL;
    Py_ssize_t count = starts.len / (Py_ssize_t)sizeof(int64_t), row = 0;
    int fits = is_aligned(&starts) && is_aligned(&sizes) && is_aligned(&room) && sizes.len == starts.len &&
               room.len == COLUMNS * starts.len;
    struct names topics = {0};
    if (fits) {
        const int64_t *start = starts.buf, *size = sizes.buf;
        int64_t *out = room.buf;
        Py_BEGIN_ALLOW_THREADS;
        for (; row < count; row++) {
            if (row + AHEAD < count)
                fetch(&view, start[row + AHEAD], size[row + AHEAD]);
            Py_ssize_t at = start[row] < 0 || start[row] > view.len ? view.len : (Py_ssize_t)start[row];
            const uint8_t *p = (const uint8_t *)view.buf + at;
            struct record record;
            if (!read_record(p, view.len - at, &record))
                memset(out + row * COLUMNS, 0, COLUMNS * sizeof *out), out[row * COLUMNS + START] = start[row];
            else if (!write_row(p, at, &record, &topics, out + row * COLUMNS))
                break;
        }
        Py_END_ALLOW_THREADS;
    }
    PyObject *found = fits ? result_of(row < count ? NO_MEMORY : count, &topics) : NULL;
    PyBuffer_Release(&view);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&sizes);
    PyBuffer_Release(&room);
    if (!fits)
        PyErr_SetString(PyExc_ValueError, "starts, sizes and room must be as many, and aligned");
    return found;
}

/* The name of the pair at p: that of the pair in the same place of the text before, as most texts have the same names in
   the same order; else as next_pair finds it. -1 at the end of the text, NO_MEMORY. */
static Py_ssize_t next_name(const uint8_t *p, const uint8_t *end, Py_ssize_t guess, struct names *names,
                            struct span *value, const uint8_t **next)
{
    if (guess >= 0) {
        struct span text = names->all[guess].text;
        Py_ssize_t bytes = span_bytes(text);
        if (end - p > bytes && p[bytes] == 1 && memcmp(p, text.at, bytes) == 0) {
            const uint8_t *value_end = memchr(p + bytes + 1, 2, end - p - bytes - 1);
            value_end = value_end == NULL ? end : value_end;
            if (value_end > p + bytes + 1) {
                *value = (struct span){p + bytes + 1, value_end};
                *next = value_end + (value_end < end);
                return guess;
            }
        }
    }
    struct pair pair;
    if (!next_pair(p, end, &pair))
        return -1;
    *value = pair.value;
    *next = pair.next;
    return number_of(names, pair.name);
}

/* List the pairs of a text from row `count` of `limit` on, without those whose name has a later one. The new count,
   NO_ROOM or NO_MEMORY. `known` has the name of each pair of the text before, or -1. */
static Py_ssize_t list_pairs_of(const uint8_t *base, const uint8_t *p, const uint8_t *end, int64_t row, Py_ssize_t *known,
                             struct names *names, int64_t *out, Py_ssize_t limit, Py_ssize_t count)
{
    Py_ssize_t first = count, number;
    int has_repeated = 0;
    struct span value;
    for (Py_ssize_t pair = 0; (number = next_name(p, end, pair < KNOWN_PAIRS ? known[pair] : -1, names, &value, &p)) >= 0;
         pair++) {
        if (count == limit)
            return NO_ROOM;
        if (pair < KNOWN_PAIRS)
            known[pair] = number;
        struct name *name = names->all + number;
        if (name->row == row) {
            out[name->pair * PAIR_COLUMNS + ROW] = -1;
            has_repeated = 1;
        }
        name->row = row, name->pair = count;
        int64_t *numbers = out + count++ * PAIR_COLUMNS;
        numbers[ROW] = row, numbers[NAME] = number;
        numbers[VALUE_BEGIN] = value.at - base, numbers[VALUE_END] = value.end - base;
    }
    if (number == NO_MEMORY || !has_repeated)
        return number == NO_MEMORY ? NO_MEMORY : count;
    Py_ssize_t kept = first;
    for (Py_ssize_t each = first; each < count; each++)
        if (out[each * PAIR_COLUMNS + ROW] >= 0)
            memmove(out + kept++ * PAIR_COLUMNS, out + each * PAIR_COLUMNS, PAIR_COLUMNS * sizeof *out);
    return kept;
}

PyObject *list_pairs(PyObject *self, PyObject *args)
{
    Py_buffer view, begins, ends, room;
    if (!PyArg_ParseTuple(args, "y*y*y*w*", &view, &begins, &ends, &room))
        return NULL;
    Py_ssize_t rows = begins.len / (Py_ssize_t)sizeof(int64_t), limit = room.len / (Py_ssize_t)sizeof(int64_t) / PAIR_COLUMNS;
    int fits = is_aligned(&begins) && is_aligned(&ends) && is_aligned(&room) && ends.len == begins.len;
    const int64_t *begin = begins.buf, *end = ends.buf;
    for (Py_ssize_t row = 0; fits && row < rows; row++)
        fits = begin[row] >= 0 && begin[row] <= end[row] && end[row] <= view.len;
    struct names names = {0};
    Py_ssize_t count = 0;
    if (fits) {
        const uint8_t *base = view.buf;
        Py_ssize_t known[KNOWN_PAIRS];
        for (int pair = 0; pair < KNOWN_PAIRS; pair++)
            known[pair] = -1;
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t row = 0; row < rows && count >= 0; row++)
            count = list_pairs_of(base, base + begin[row], base + end[row], row, known, &names, room.buf, limit, count);
        Py_END_ALLOW_THREADS;
    }
    PyObject *found = fits ? result_of(count, &names) : NULL;
    PyBuffer_Release(&view);
    PyBuffer_Release(&begins);
    PyBuffer_Release(&ends);
    PyBuffer_Release(&room);
    if (!fits)
        PyErr_SetString(PyExc_ValueError, "texts must lie in the buffer, and all numbers be aligned");
    return found;
}
