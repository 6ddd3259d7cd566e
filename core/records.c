/* Packs messages into a log file as records, and lists what queues and index need of them; scans and gathers records. See
   records.py, plain_records.py and gathered_records.py for the rules in Python; the drawings are in
   protocol/message/record.py and batch.py. */

#include "core.h"

enum { ENTRY_BYTES = 20, KEY_BYTES = 12, ELEMENT_BODY_AT = 20, MAX_TEXT_BYTES = 32767 };
enum { STORED_ALL, NO_ROOM, BODY_TOO_LONG, TEXT_TOO_LONG, UNREADABLE, NOT_UTF8, NO_QUEUE };
enum { HEAD_ITEMS = 9, MESSAGE_ITEMS = 7, CONSTANT_BYTES = 12, MAX_LEVEL_DIGITS = 10 };

/* A queue that records are added to: their numbers in it, and where they lie. */
struct queue {
    PyObject *object;
    long long first, next;
    int64_t start, end;
    Py_ssize_t entry_bytes;
};

/* A message on its way. A batch has one, whose body holds the elements and whose text is missing. */
struct item {
    struct span constants, born_host, store_host, topic;
    long long keys_start, tags_start, queue_offset, born_timestamp, prepared_offset, code;
    int32_t queue_id;
    int has_code, is_batch, is_queued;
    Py_buffer body;
    struct span text;
    Py_ssize_t around, bytes, records;
    PyObject *topic_name, *queue_number, *delays;
    struct queue *queue;
};

/* What is listed beside the records. */
struct listed {
    PyObject *positions, *sizes, *runs, *texts, *topics;
    uint8_t *entries, *keys;
    Py_ssize_t entry_bytes, entry_room, key_bytes, key_room, queue_count;
    struct queue *queues;
};

static uint8_t *room_for(uint8_t **bytes, Py_ssize_t *used, Py_ssize_t *room, Py_ssize_t more)
{
    if (*used + more > *room) {
        Py_ssize_t wanted = *room * 2 + 64 * more;
        uint8_t *grown = PyMem_Realloc(*bytes, wanted);
        if (grown == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        *bytes = grown, *room = wanted;
    }
    *used += more;
    return *bytes + *used - more;
}

/* The index key of one text. STORED_ALL, NOT_UTF8, or -1 with an exception set. */
static int list_key(struct listed *listed, int64_t position, long long start, struct span text)
{
    uint32_t hash = (uint32_t)start;
    if (!extend_hash(&hash, text.at, text.end))
        return NOT_UTF8;
    uint8_t *p = room_for(&listed->keys, &listed->key_bytes, &listed->key_room, KEY_BYTES);
    if (p == NULL)
        return -1;
    put32(p, hash < 0x80000000u ? hash : (0u - hash) & 0x7FFFFFFF);
    put64(p + 4, (uint64_t)position);
    return STORED_ALL;
}

static int add_number(PyObject *list, long long value)
{
    PyObject *number = PyLong_FromLongLong(value);
    int result = number == NULL ? -1 : PyList_Append(list, number);
    Py_XDECREF(number);
    return result;
}

/* When a message of the schedule topic is due, if its text names a level. Results as of `list_key`; the code is only set
   if it does. */
static int find_delivery_time(PyObject *delays, struct span level_text, int64_t store_timestamp, uint64_t *code)
{
    long long level = 0;
    for (const uint8_t *p = level_text.at; p < level_text.end; p++) {
        if (*p >= 0x80)
            return NOT_UTF8;
        if (*p < '0' || *p > '9' || span_bytes(level_text) > MAX_LEVEL_DIGITS)
            return STORED_ALL;
        level = level * 10 + (*p - '0');
    }
    if (level > PyTuple_GET_SIZE(delays))
        level = PyTuple_GET_SIZE(delays);
    if (level == 0)
        return STORED_ALL;
    long long delay_ms = PyLong_AsLongLong(PyTuple_GET_ITEM(delays, level - 1));
    *code = (uint64_t)store_timestamp + (uint64_t)delay_ms;
    return PyErr_Occurred() ? -1 : STORED_ALL;
}

/* The queue entry and the index keys of a record. Results as of `list_key`. */
static int list_record(struct listed *listed, const struct item *item, struct span text, int64_t position, Py_ssize_t size,
                       int64_t store_timestamp)
{
    struct pair pair;
    struct span id = {NULL, NULL}, keys = id, tags = id, level = id;
    uint32_t hash = 0;
    int result = STORED_ALL;
    for (const uint8_t *p = text.at; next_pair(p, text.end, &pair); p = pair.next) {
        if (IS(pair.name, "UNIQ_KEY"))
            id = pair.value;
        else if (IS(pair.name, "KEYS"))
            keys = pair.value;
        else if (IS(pair.name, "TAGS"))
            tags = pair.value;
        else if (IS(pair.name, "DELAY"))
            level = pair.value;
    }
    if (!extend_hash(&hash, tags.at, tags.end))
        return NOT_UTF8;
    uint64_t code = item->has_code ? (uint64_t)item->code : (uint64_t)(int64_t)(int32_t)hash;
    if (!item->has_code && PyTuple_GET_SIZE(item->delays) > 0)
        result = find_delivery_time(item->delays, level, store_timestamp, &code);
    if (result != STORED_ALL)
        return result;
    uint8_t *entry = room_for(&listed->entries, &listed->entry_bytes, &listed->entry_room, ENTRY_BYTES);
    if (entry == NULL || add_number(listed->positions, position) < 0 || add_number(listed->sizes, size) < 0)
        return -1;
    put64(entry, (uint64_t)position), put32(entry + 8, (uint32_t)size), put64(entry + 12, code);
    if (item->keys_start < 0)
        return result;
    if (id.at != NULL)
        result = list_key(listed, position, item->keys_start, id);
    for (const uint8_t *key = keys.at; result == STORED_ALL && key < keys.end;) {
        const uint8_t *end = memchr(key, ' ', keys.end - key);
        struct span one = {key, end == NULL ? keys.end : end};
        if (one.end > one.at)
            result = list_key(listed, position, item->keys_start, one);
        key = one.end + 1;
    }
    if (result == STORED_ALL && tags.at != NULL && item->tags_start >= 0)
        result = list_key(listed, position, item->tags_start, tags);
    return result;
}

/* One message of a batch's body. */
struct element {
    const uint8_t *flag;
    struct span body, text;
    const uint8_t *next;
};

static int read_element(const uint8_t *p, const uint8_t *end, struct element *found)
{
    if (end - p < ELEMENT_BODY_AT)
        return 0;
    int32_t body_bytes = (int32_t)get32(p + 16);
    found->flag = p + 12;
    found->body.at = p + ELEMENT_BODY_AT;
    if (body_bytes < 0 || body_bytes > end - found->body.at - 2)
        return 0;
    found->body.end = found->body.at + body_bytes;
    found->text.at = found->body.end + 2;
    int text_bytes = (int16_t)(found->text.at[-2] << 8 | found->text.at[-1]);
    if (text_bytes < 0 || text_bytes > end - found->text.at)
        return 0;
    found->next = found->text.end = found->text.at + text_bytes;
    return 1;
}

/* Number the records of a message in their queue. STORED_ALL, NO_QUEUE, or -1 with an exception set. */
static int number_item(struct listed *listed, struct item *item, int64_t position)
{
    PyObject *queues = PyDict_GetItemWithError(listed->topics, item->topic_name), *object = NULL;
    if (queues != NULL && !PyDict_Check(queues))
        PyErr_SetString(PyExc_TypeError, "the queues of a topic have another form");
    else if (queues != NULL)
        object = PyDict_GetItemWithError(queues, item->queue_number);
    if (object == NULL)
        return PyErr_Occurred() ? -1 : NO_QUEUE;
    if (!item->is_queued)
        return STORED_ALL;
    Py_ssize_t i = listed->queue_count;
    while (i > 0 && listed->queues[i - 1].object != object)
        i--;
    if (i == 0) {
        Py_INCREF(object);
        PyObject *number = PyObject_GetAttrString(object, "next_offset");
        long long next = number == NULL ? -1 : PyLong_AsLongLong(number);
        Py_XDECREF(number);
        i = ++listed->queue_count;
        listed->queues[i - 1] = (struct queue){object, next, next, position, position, 0};
    }
    struct queue *queue = item->queue = &listed->queues[i - 1];
    if (!PyErr_Occurred() && (queue->next < 0 || queue->next > INT64_MAX - item->records))
        PyErr_SetString(PyExc_ValueError, "the number of a message in its queue has 63 bits");
    if (PyErr_Occurred())
        return -1;
    item->queue_offset = queue->next;
    queue->next += item->records, queue->end = position + item->bytes, queue->entry_bytes += item->records * ENTRY_BYTES;
    return STORED_ALL;
}

/* Everything about a message but its records. Why it cannot be stored, STORED_ALL, or -1 with an exception set. */
static int list_item(struct listed *listed, struct item *item, int64_t position, Py_ssize_t room, Py_ssize_t max_body_bytes,
                     int64_t store_timestamp)
{
    const uint8_t *p = item->body.buf, *end = p + item->body.len;
    Py_ssize_t total = 0, records = PyList_GET_SIZE(listed->sizes), entry_bytes = listed->entry_bytes;
    Py_ssize_t key_bytes = listed->key_bytes;
    /* Each message of a batch would need a delivery time of its own. */
    int result = item->is_batch && (p == end || PyTuple_GET_SIZE(item->delays) > 0) ? UNREADABLE : STORED_ALL;
    do {
        struct element element = {.body = {p, end}, .text = item->text, .next = end};
        if (result == STORED_ALL && item->is_batch && !read_element(p, end, &element))
            result = UNREADABLE;
        if (result != STORED_ALL)
            break;
        Py_ssize_t size = item->around + span_bytes(element.body) + span_bytes(element.text);
        if (span_bytes(element.body) > max_body_bytes)
            result = BODY_TOO_LONG;
        else if (span_bytes(element.text) > MAX_TEXT_BYTES)
            result = TEXT_TOO_LONG;
        else if (size > INT32_MAX || total + size > room)
            result = NO_ROOM;
        else
            result = list_record(listed, item, element.text, position + total, size, store_timestamp);
        total += size, p = element.next;
    } while (result == STORED_ALL && p < end && item->is_batch);
    item->bytes = total, item->records = PyList_GET_SIZE(listed->sizes) - records;
    if (result > STORED_ALL && item->is_batch)
        /* A batch that cannot be read is that before anything else. */
        for (struct element rest; result != UNREADABLE && p < end; p = rest.next)
            if (!read_element(p, end, &rest)) {
                result = UNREADABLE;
                break;
            }
    if (result == STORED_ALL)
        result = number_item(listed, item, position);
    if (result > STORED_ALL) {
        listed->entry_bytes = entry_bytes, listed->key_bytes = key_bytes;
        if (PyList_SetSlice(listed->sizes, records, PyList_GET_SIZE(listed->sizes), NULL) < 0 ||
            PyList_SetSlice(listed->positions, records, PyList_GET_SIZE(listed->positions), NULL) < 0)
            result = -1;
    }
    return result;
}

/* A record but its length; returns its end. */
static uint8_t *write_record(uint8_t *p, const struct item *item, const uint8_t *flag, struct span body, struct span text,
                             int64_t queue_offset, int64_t position, int64_t store_timestamp)
{
    uint8_t *q = p;
    Py_ssize_t body_bytes = span_bytes(body), text_bytes = span_bytes(text);
    memcpy(q + 4, item->constants.at, 4);
    put32(q + 8, crc32_of(body.at, body_bytes) & 0x7FFFFFFF);
    put32(q + 12, (uint32_t)item->queue_id);
    memcpy(q + 16, flag, 4);
    put64(q + 20, (uint64_t)queue_offset), put64(q + 28, (uint64_t)position);
    memcpy(q + 36, item->constants.at + 8, 4);
    put64(q + 40, (uint64_t)item->born_timestamp), q += 48;
    memcpy(q, item->born_host.at, span_bytes(item->born_host)), q += span_bytes(item->born_host);
    put64(q, (uint64_t)store_timestamp), q += 8;
    memcpy(q, item->store_host.at, span_bytes(item->store_host)), q += span_bytes(item->store_host);
    put64(q, (uint64_t)item->prepared_offset), put32(q + 8, (uint32_t)body_bytes), q += 12;
    memcpy(q, body.at, body_bytes), q += body_bytes;
    memcpy(q, item->topic.at, span_bytes(item->topic)), q += span_bytes(item->topic);
    put16(q, (uint32_t)text_bytes), q += 2;
    memcpy(q, text.at, text_bytes);
    return q + text_bytes;
}

/* The records of a message. The first length is written last: where the process dies before, the log ends here. */
static void write_item(uint8_t *first, const struct item *item, int64_t position, int64_t store_timestamp)
{
    const uint8_t *from = item->body.buf, *end = from + item->body.len;
    uint8_t *p = first;
    uint32_t first_size = 0;
    int64_t queue_offset = item->queue_offset;
    do {
        struct element element = {
            .flag = item->constants.at + 4, .body = {from, end}, .text = item->text, .next = end};
        if (item->is_batch && !read_element(from, end, &element))
            break;
        uint8_t *record_end = write_record(p, item, element.flag, element.body, element.text, queue_offset++,
                                           position + (p - first), store_timestamp);
        if (p == first)
            put32(p, 0), first_size = (uint32_t)(record_end - p);
        else
            put32(p, (uint32_t)(record_end - p));
        p = record_end, from = element.next;
    } while (item->is_batch && from < end);
    STORES_BEFORE;
    put32(first, first_size);
}

static int bytes_of(PyObject *item, Py_ssize_t min, Py_ssize_t max, struct span *s)
{
    if (!PyBytes_Check(item) || PyBytes_GET_SIZE(item) < min || PyBytes_GET_SIZE(item) > max)
        return 0;
    s->at = (const uint8_t *)PyBytes_AS_STRING(item), s->end = s->at + PyBytes_GET_SIZE(item);
    return 1;
}

/* Read a message; 0 with an exception set if it is none. */
static int read_item(PyObject *message, struct item *item)
{
    item->body.obj = NULL;
    PyObject *head = PyTuple_Check(message) && PyTuple_GET_SIZE(message) == MESSAGE_ITEMS ? PyTuple_GET_ITEM(message, 0) : NULL;
    if (head == NULL || !PyTuple_Check(head) || PyTuple_GET_SIZE(head) < HEAD_ITEMS ||
        !bytes_of(PyTuple_GET_ITEM(head, 0), CONSTANT_BYTES, CONSTANT_BYTES, &item->constants) ||
        !bytes_of(PyTuple_GET_ITEM(head, 1), 8, 20, &item->born_host) ||
        !bytes_of(PyTuple_GET_ITEM(head, 2), 12, 24, &item->store_host) ||
        !bytes_of(PyTuple_GET_ITEM(head, 3), 2, MAX_TEXT_BYTES, &item->topic) || !PyTuple_Check(PyTuple_GET_ITEM(head, 8))) {
        PyErr_SetString(PyExc_TypeError, "a message has another form");
        return 0;
    }
    PyObject *text = PyTuple_GET_ITEM(message, 3), *code = PyTuple_GET_ITEM(message, 6);
    item->keys_start = PyLong_AsLongLong(PyTuple_GET_ITEM(head, 4));
    item->tags_start = PyLong_AsLongLong(PyTuple_GET_ITEM(head, 5));
    long long queue_id = PyLong_AsLongLong(PyTuple_GET_ITEM(message, 1));
    item->queue_id = (int32_t)queue_id;
    item->born_timestamp = PyLong_AsLongLong(PyTuple_GET_ITEM(message, 4));
    item->prepared_offset = PyLong_AsLongLong(PyTuple_GET_ITEM(message, 5));
    item->topic_name = PyTuple_GET_ITEM(head, 6), item->queue_number = PyTuple_GET_ITEM(message, 1);
    item->is_queued = PyObject_IsTrue(PyTuple_GET_ITEM(head, 7));
    item->delays = PyTuple_GET_ITEM(head, 8);
    item->has_code = code != Py_None;
    item->code = item->has_code ? PyLong_AsLongLong(code) : 0;
    item->is_batch = text == Py_None;
    item->text.at = item->text.end = NULL;
    item->around = BODY_AT - 16 + span_bytes(item->born_host) + span_bytes(item->store_host) - 4 + span_bytes(item->topic) + 2;
    if (PyErr_Occurred())
        return 0;
    if (!item->is_batch && !bytes_of(text, 0, PY_SSIZE_T_MAX, &item->text)) {
        PyErr_SetString(PyExc_TypeError, "the properties of a message are bytes");
        return 0;
    }
    if (PyObject_GetBuffer(PyTuple_GET_ITEM(message, 2), &item->body, PyBUF_SIMPLE) < 0)
        return 0;
    if (queue_id != item->queue_id) {
        PyErr_SetString(PyExc_ValueError, "a queue id has 32 bits");
        return 0;
    }
    return 1;
}

PyObject *tuple_of(PyTypeObject *type, Py_ssize_t count, PyObject **objects)
{
    /* PyTuple_New has spare tuples. */
    PyObject *tuple = type == &PyTuple_Type ? PyTuple_New(count) : type->tp_alloc(type, count);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (objects[i] == NULL)
            Py_CLEAR(tuple);
        if (tuple != NULL)
            PyTuple_SET_ITEM(tuple, i, objects[i]);
        else
            Py_XDECREF(objects[i]);
    }
    return tuple;
}

/* What is added to each queue; NULL with an exception set. */
static PyObject *list_queues(const struct listed *listed, const struct item *items, Py_ssize_t done, PyObject *entries)
{
    PyObject *queues = PyList_New(0);
    for (Py_ssize_t i = 0; queues != NULL && i < listed->queue_count; i++) {
        const struct queue *queue = &listed->queues[i];
        int has_all = queue->entry_bytes == listed->entry_bytes;
        PyObject *own = has_all ? Py_NewRef(entries) : PyBytes_FromStringAndSize(NULL, queue->entry_bytes);
        if (own != NULL && !has_all) {
            const uint8_t *from = listed->entries;
            char *to = PyBytes_AS_STRING(own);
            for (Py_ssize_t k = 0; k < done; from += items[k++].records * ENTRY_BYTES)
                if (items[k].queue == queue)
                    memcpy(to, from, items[k].records * ENTRY_BYTES), to += items[k].records * ENTRY_BYTES;
        }
        PyObject *parts[] = {Py_NewRef(queue->object), PyLong_FromLongLong(queue->first), own,
                             PyLong_FromLongLong(queue->start), PyLong_FromLongLong(queue->end)};
        PyObject *part = tuple_of(&PyTuple_Type, 5, parts);
        if (part == NULL || PyList_Append(queues, part) < 0)
            Py_CLEAR(queues);
        Py_XDECREF(part);
    }
    return queues;
}

/* The run and the text of each message; 0 with an exception set. */
static int list_runs(struct listed *listed, const struct item *items, Py_ssize_t done, PyObject *messages)
{
    for (Py_ssize_t i = 0; i < done; i++) {
        PyObject *parts[] = {Py_NewRef(items[i].queue == NULL ? Py_None : items[i].queue->object),
                             PyLong_FromLongLong(items[i].queue_offset), PyLong_FromSsize_t(items[i].records)};
        PyObject *run = tuple_of(&PyTuple_Type, 3, parts);
        int failed = run == NULL || PyList_Append(listed->runs, run) < 0 ||
                     PyList_Append(listed->texts, PyTuple_GET_ITEM(PyList_GET_ITEM(messages, i), 3)) < 0;
        Py_XDECREF(run);
        if (failed)
            return 0;
    }
    return 1;
}

/* The next message of each queue gets the number behind those that are packed; 0 with an exception set. */
static int count_on(const struct listed *listed)
{
    for (Py_ssize_t i = 0; i < listed->queue_count; i++) {
        PyObject *next = PyLong_FromLongLong(listed->queues[i].next);
        int failed = next == NULL || PyObject_SetAttrString(listed->queues[i].object, "next_offset", next) < 0;
        Py_XDECREF(next);
        if (failed)
            return 0;
    }
    return 1;
}

PyObject *pack_records(PyObject *self, PyObject *args)
{
    Py_buffer memory;
    Py_ssize_t at, end, max_body_bytes, read = 0, done = 0, used;
    long long base, store_timestamp;
    PyObject *messages, *result = NULL;
    struct listed listed = {0};
    struct item *items = NULL;
    int reason = STORED_ALL;
    if (!PyArg_ParseTuple(args, "w*nnLLnO!O!", &memory, &at, &end, &base, &store_timestamp, &max_body_bytes, &PyList_Type,
                          &messages, &PyDict_Type, &listed.topics))
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(messages);
    if (at < 0 || at > end || end > memory.len || base < 0 || base > INT64_MAX - memory.len) {
        PyErr_SetString(PyExc_ValueError, "the file has no such bytes");
        reason = -1;
    } else {
        items = PyMem_Calloc(count + 1, sizeof *items), listed.queues = PyMem_Calloc(count + 1, sizeof *listed.queues);
        listed.positions = PyList_New(0), listed.sizes = PyList_New(0);
        listed.runs = PyList_New(0), listed.texts = PyList_New(0);
        if (items == NULL || listed.queues == NULL || listed.positions == NULL || listed.sizes == NULL ||
            listed.runs == NULL || listed.texts == NULL)
            PyErr_NoMemory(), reason = -1;
    }
    for (used = at; reason == STORED_ALL && read < count; read++) {
        if (!read_item(PyList_GET_ITEM(messages, read), &items[read]))
            reason = -1;
        else
            reason = list_item(&listed, &items[read], base + used, end - used, max_body_bytes, store_timestamp);
        if (reason == STORED_ALL)
            used += items[read].bytes, done++;
    }
    if (reason >= 0 && list_runs(&listed, items, done, messages)) {
        PyObject *entries = PyBytes_FromStringAndSize((char *)listed.entries, listed.entry_bytes);
        PyObject *parts[] = {PyLong_FromLong(reason), Py_NewRef(listed.runs), Py_NewRef(listed.positions),
                             Py_NewRef(listed.sizes), entries,
                             PyBytes_FromStringAndSize((char *)listed.keys, listed.key_bytes), Py_NewRef(listed.texts),
                             entries == NULL ? NULL : list_queues(&listed, items, done, entries)};
        result = tuple_of(&PyTuple_Type, 8, parts);
    }
    if (result != NULL && !count_on(&listed))
        Py_CLEAR(result);
    for (Py_ssize_t i = 0, to = at; result != NULL && i < done; to += items[i].bytes, i++)
        write_item((uint8_t *)memory.buf + to, &items[i], base + to, store_timestamp);
    for (Py_ssize_t i = 0; i < read; i++)
        PyBuffer_Release(&items[i].body);
    for (Py_ssize_t i = 0; i < listed.queue_count; i++)
        Py_DECREF(listed.queues[i].object);
    PyMem_Free(items), PyMem_Free(listed.queues), PyMem_Free(listed.entries), PyMem_Free(listed.keys);
    Py_XDECREF(listed.positions), Py_XDECREF(listed.sizes), Py_XDECREF(listed.runs), Py_XDECREF(listed.texts);
    PyBuffer_Release(&memory);
    return result;
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

PyObject *scan_plain(PyObject *self, PyObject *args)
{
    Py_buffer view;
    Py_ssize_t at, end, limit;
    int check_crc;
    if (!PyArg_ParseTuple(args, "y*nnpn", &view, &at, &end, &check_crc, &limit))
        return NULL;
    PyObject *topic = NULL, *records = PyList_New(0);
    if (end > view.len)
        end = view.len;
    while (records != NULL && at >= 0 && at < end && limit-- > 0) {
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

PyObject *gather_records(PyObject *self, PyObject *args)
{
    Py_buffer entries, log;
    long long base;
    PyObject *records = NULL;
    if (!PyArg_ParseTuple(args, "y*y*L", &entries, &log, &base))
        return NULL;
    const uint8_t *first = entries.buf, *end = first + entries.len;
    Py_ssize_t total = 0;
    if (entries.len % ENTRY_BYTES != 0)
        PyErr_SetString(PyExc_ValueError, "an entry is cut off");
    for (const uint8_t *p = first; p < end && !PyErr_Occurred(); p += ENTRY_BYTES) {
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
        for (const uint8_t *p = first; p < end; p += ENTRY_BYTES) {
            uint32_t size = get32(p + 8);
            memcpy(to, (const char *)log.buf + ((int64_t)get64(p) - base), size);
            to += size;
        }
    }
    PyBuffer_Release(&entries);
    PyBuffer_Release(&log);
    return records;
}

uint32_t crc_tables[8][256];

void prepare_sums(void)
{
    for (uint32_t n = 0; n < 256; n++) {
        uint32_t c = n;
        for (int bit = 0; bit < 8; bit++)
            c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
        crc_tables[0][n] = c;
    }
    for (int t = 1; t < 8; t++)
        for (int n = 0; n < 256; n++)
            crc_tables[t][n] = crc_tables[0][crc_tables[t - 1][n] & 0xFF] ^ (crc_tables[t - 1][n] >> 8);
}
