/* Reads the frames of a pass. A send of one message or a batch becomes a `Send`, the end of a transaction an `End`: see
   sends.py, which has the same rules in Python. Any other frame is only cut; its header is decoded elsewhere. */

#include "core.h"

enum { SEND = 10, END = 37, SEND_V2 = 310, SEND_BATCH = 320 };
enum { OPAQUE, QUEUE_ID, BORN, PROPERTIES, NEEDED, TRANSACTION_ID = NEEDED, VALUES };
enum { QUEUE_OFFSET = QUEUE_ID, POSITION = BORN, MESSAGE_ID = PROPERTIES }; /* of an end */
enum { MAX_KIND_BYTES = 4096, MAX_DIGITS = 18, RESPONSE_FLAG = 1, JSON_FORM = 0, BINARY_FORM = 1 };
enum { PREFIX_BYTES = 8, BINARY_HEAD_BYTES = 17, MAX_JSON_BYTES = 20000 };

/* Properties that say more about a send than what is stored; the bit of each is its place. `sends.SPECIAL` is the same. */
#define NAME(text) {text, sizeof text - 1}
static const struct {
    const char *text;
    Py_ssize_t bytes;
} special[] = {
    NAME("UNIQ_KEY"),         NAME("WAIT"),           NAME("TRAN_MSG"),          NAME("DELAY"),
    NAME("TIMER_DELAY_SEC"),  NAME("TIMER_DELAY_MS"), NAME("TIMER_DELIVER_MS"),  NAME("TIMER_OUT_MS"),
    NAME("TIMER_DEL_UNIQKEY"), NAME("_SYS_MSG_PRIORITY_"), NAME("INNER_NUM"),    NAME("INNER_MULTI_DISPATCH"),
    NAME("POP_CK"),
};
enum { SPECIALS = sizeof special / sizeof *special };

struct header {
    uint32_t form;
    const uint8_t *start, *end;
    long long code;
    /* The values that differ from request to request, in the order of the enumeration, and what is cut out for each. */
    int values;
    struct span value[VALUES], cut[VALUES];
    long long number[3];
};

int read_number(struct span s, long long *number)
{
    const uint8_t *p = s.at;
    int minus = p < s.end && *p == '-';
    p += minus;
    if (p >= s.end || s.end - p > MAX_DIGITS || (*p == '0' && (s.end - p > 1 || minus)))
        return 0;
    long long value = 0;
    for (; p < s.end; p++) {
        if (*p < '0' || *p > '9')
            return 0;
        value = value * 10 + (*p - '0');
    }
    *number = minus ? -value : value;
    return 1;
}

static int is_read(long long code)
{
    return code == SEND || code == SEND_V2 || code == SEND_BATCH || code == END;
}

/* Which value a field is for requests of a code; -1 for a field that repeats. */
static int value_of(long long code, struct span name)
{
    if (code == END)
        return IS(name, "tranStateTableOffset") ? QUEUE_OFFSET : IS(name, "commitLogOffset") ? POSITION
               : IS(name, "msgId") ? MESSAGE_ID : IS(name, "transactionId") ? TRANSACTION_ID : -1;
    if (code == SEND)
        return IS(name, "queueId") ? QUEUE_ID : IS(name, "bornTimestamp") ? BORN : IS(name, "properties") ? PROPERTIES : -1;
    if (span_bytes(name) != 1)
        return -1;
    return *name.at == 'e' ? QUEUE_ID : *name.at == 'g' ? BORN : *name.at == 'i' ? PROPERTIES : -1;
}

static const uint8_t *skip_blanks(const uint8_t *p, const uint8_t *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

/* The character of an escape, behind whose backslash *p is, and *p behind it; -1 if it is none, or not ASCII. */
static int read_escape(const uint8_t **p, const uint8_t *end)
{
    static const char pairs[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    int c = *p < end ? *(*p)++ : -1, value = 0;
    if (c != 'u') {
        for (int i = 0; i < 16; i += 2)
            if (pairs[i] == c)
                return pairs[i + 1];
        return -1;
    }
    if (end - *p < 4)
        return -1;
    for (int i = 0; i < 4; i++, (*p)++) {
        int letter = **p | 0x20;
        int digit = **p >= '0' && **p <= '9' ? **p - '0' : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value <= 0x7F ? value : -1;
}

/* The inside of a string that begins at p; NULL if it does not end, or has an unescaped control character or an escape
   that is none or beyond ASCII. */
static const uint8_t *read_string(const uint8_t *p, const uint8_t *end, struct span *inside)
{
    if (p >= end || *p != '"')
        return NULL;
    inside->at = ++p;
    while (p < end && *p != '"') {
        int c = *p++;
        if (c < 0x20 || (c == '\\' && read_escape(&p, end) < 0))
            return NULL;
    }
    inside->end = p;
    return p < end ? p + 1 : NULL;
}

static const uint8_t *read_scalar(const uint8_t *p, const uint8_t *end, struct span *token)
{
    token->at = p;
    while (p < end && *p != ',' && *p != '}' && *p > ' ')
        p++;
    token->end = p;
    return p > token->at ? p : NULL;
}

/* The members of an object of strings. */
static const uint8_t *read_fields(const uint8_t *p, const uint8_t *end, long long code, struct header *h, uint32_t *seen)
{
    p = skip_blanks(p + 1, end);
    if (p < end && *p == '}')
        return p + 1;
    for (;;) {
        struct span name, value;
        if ((p = read_string(skip_blanks(p, end), end, &name)) == NULL || memchr(name.at, '\\', span_bytes(name)) != NULL)
            return NULL;
        p = skip_blanks(p, end);
        if (p >= end || *p != ':' || (p = read_string(skip_blanks(p + 1, end), end, &value)) == NULL)
            return NULL;
        int number = value_of(code, name);
        if (number >= 0) {
            if (*seen & 1u << number)
                return NULL;
            *seen |= 1u << number;
            h->value[number] = h->cut[number] = value;
        }
        p = skip_blanks(p, end);
        if (p < end && *p == ',')
            p++;
        else
            return p < end && *p == '}' ? p + 1 : NULL;
    }
}

/* Looks for the code first, because it may stand behind the fields whose names it decides. */
static long long json_code(const uint8_t *p, const uint8_t *end)
{
    static const char text[] = "\"code\":";
    const uint8_t *at = p;
    long long code = -1;
    while ((at = memchr(at, 'c', end - at)) != NULL) {
        if (at > p && end - at > (Py_ssize_t)sizeof text - 2 && memcmp(at - 1, text, sizeof text - 1) == 0) {
            struct span digits = {at + sizeof text - 2, at + sizeof text - 2};
            while (digits.end < end && *digits.end >= '0' && *digits.end <= '9')
                digits.end++;
            if (read_number(digits, &code))
                return code;
        }
        at++;
    }
    return -1;
}

/* A number as it is in a header. */
static int read_int32(struct span s, long long *number)
{
    return read_number(s, number) && *number == (int32_t)*number;
}

/* Whether all values were seen that such requests need, and which these are. */
static int has_needed(struct header *h, long long code, uint32_t seen)
{
    h->code = code, h->values = seen & 1u << TRANSACTION_ID ? VALUES : NEEDED;
    return (seen & ((1u << NEEDED) - 1)) == (1u << NEEDED) - 1;
}

/* 0 for whatever the ordinary decoder may read in another way, or not at all. */
static int read_json(struct header *h)
{
    const uint8_t *p = skip_blanks(h->start, h->end), *end = h->end;
    long long code = json_code(p, end), found_code = -1, flag = 0;
    long long version;
    uint32_t seen = 0, has_fields = 0, has_flag = 0;
    if (!is_read(code) || p >= end || *p != '{' ||
        h->end - h->start > MAX_JSON_BYTES || !is_utf8(h->start, h->end))
        return 0;
    p++;
    for (;;) {
        struct span name, token;
        if ((p = read_string(skip_blanks(p, end), end, &name)) == NULL || memchr(name.at, '\\', span_bytes(name)) != NULL)
            return 0;
        p = skip_blanks(p, end);
        if (p >= end || *p != ':')
            return 0;
        p = skip_blanks(p + 1, end);
        if (p < end && *p == '{') {
            if (!IS(name, "extFields") || has_fields++ || (p = read_fields(p, end, code, h, &seen)) == NULL)
                return 0;
        } else {
            int is_string = p < end && *p == '"';
            if ((p = is_string ? read_string(p, end, &token) : read_scalar(p, end, &token)) == NULL)
                return 0;
            if (IS(name, "opaque")) {
                if (is_string || seen & 1u << OPAQUE)
                    return 0;
                seen |= 1u << OPAQUE;
                h->value[OPAQUE] = h->cut[OPAQUE] = token;
            } else if (IS(name, "code")) {
                if (is_string || found_code >= 0 || !read_int32(token, &found_code))
                    return 0;
            } else if (IS(name, "flag")) {
                if (is_string || has_flag++ || !read_int32(token, &flag))
                    return 0;
            } else if (IS(name, "version")) {
                if (is_string || !read_int32(token, &version))
                    return 0;
            } else if (!is_string || IS(name, "extFields")) {
                return 0;
            }
        }
        p = skip_blanks(p, end);
        if (p < end && *p == ',')
            p++;
        else if (p < end && *p == '}')
            break;
        else
            return 0;
    }
    return skip_blanks(p + 1, end) == end && found_code == code && !(flag & RESPONSE_FLAG) && has_needed(h, code, seen);
}

static int read_binary(struct header *h)
{
    const uint8_t *p = h->start, *end = h->end;
    if (end - p < BINARY_HEAD_BYTES + 4)
        return 0;
    int code = p[0] << 8 | p[1];
    if (!is_read(code) || p[12] & RESPONSE_FLAG || (code == END && end - p > MAX_JSON_BYTES))
        return 0;
    uint32_t remark_bytes = get32(p + 13), seen = 1u << OPAQUE;
    h->cut[OPAQUE].at = p + 5, h->cut[OPAQUE].end = p + 9;
    h->number[OPAQUE] = (int32_t)get32(p + 5);
    if (remark_bytes != 0)
        return 0;
    p += BINARY_HEAD_BYTES;
    if (get32(p) != (uint32_t)(end - p - 4))
        return 0;
    p += 4;
    while (p < end) {
        if (end - p < 2)
            return 0;
        struct span name = {p + 2, p + 2 + (p[0] << 8 | p[1])}, value;
        if (name.end - p > end - p || end - name.end < 4)
            return 0;
        uint32_t bytes = get32(name.end);
        value.at = name.end + 4;
        if (bytes > (size_t)(end - value.at))
            return 0;
        value.end = value.at + bytes;
        int number = value_of(code, name);
        if (number >= 0) {
            if (seen & 1u << number)
                return 0;
            seen |= 1u << number;
            h->value[number] = value;
            h->cut[number].at = name.end, h->cut[number].end = value.end;
        }
        p = value.end;
    }
    struct span text = h->value[PROPERTIES], id = h->value[TRANSACTION_ID];
    return has_needed(h, code, seen) && text.at < text.end && is_utf8(text.at, text.end) &&
           (h->values == NEEDED || (id.at < id.end && is_utf8(id.at, id.end)));
}

/* The text of a JSON string, whose escapes have been read before. */
static PyObject *unescape(struct span s)
{
    PyObject *text = PyBytes_FromStringAndSize(NULL, span_bytes(s));
    if (text == NULL)
        return NULL;
    uint8_t *first = (uint8_t *)PyBytes_AS_STRING(text), *to = first;
    for (const uint8_t *p = s.at; p < s.end;) {
        int c = *p++;
        *to++ = c == '\\' ? read_escape(&p, s.end) : c;
    }
    if (to - first < span_bytes(s))
        _PyBytes_Resize(&text, to - first);
    return text;
}

/* Which special properties a text has, and its last unique id. */
static void scan_special(const uint8_t *p, const uint8_t *end, uint32_t *mask, struct span *unique_id)
{
    struct pair pair;
    *mask = 0;
    unique_id->at = unique_id->end = NULL;
    for (; next_pair(p, end, &pair); p = pair.next) {
        Py_ssize_t bytes = span_bytes(pair.name);
        if (bytes < 4 || *pair.name.at > '_')
            continue; /* no special name is shorter, or begins with a small letter */
        for (int i = 0; i < SPECIALS; i++)
            if (special[i].bytes == bytes && memcmp(special[i].text, pair.name.at, bytes) == 0) {
                *mask |= 1u << i;
                if (i == 0)
                    *unique_id = pair.value;
                break;
            }
    }
}

/* The header without its values, its form, and the special properties; the newest of the connection if it is the same. */
static PyObject *kind_of(const struct header *h, uint32_t mask, PyObject *newest)
{
    uint8_t kind[MAX_KIND_BYTES];
    Py_ssize_t bytes = 0;
    const uint8_t *p = h->start;
    int order[VALUES] = {0, 1, 2, 3, 4};
    for (int i = 1; i < h->values; i++)
        for (int k = i; k > 0 && h->cut[order[k]].at < h->cut[order[k - 1]].at; k--) {
            int swapped = order[k];
            order[k] = order[k - 1], order[k - 1] = swapped;
        }
    kind[bytes++] = (uint8_t)h->form;
    put32(kind + bytes, mask), bytes += 4;
    if (h->form == BINARY_FORM) {
        /* The length of all fields depends on those of the values. */
        if (h->cut[order[0]].at != p + 5)
            return NULL;
        memcpy(kind + bytes, p, 5), bytes += 5;
        memcpy(kind + bytes, p + 9, BINARY_HEAD_BYTES - 9), bytes += BINARY_HEAD_BYTES - 9;
        p += BINARY_HEAD_BYTES + 4;
    }
    for (int i = h->form == BINARY_FORM; i <= h->values; i++) {
        const uint8_t *end = i < h->values ? h->cut[order[i]].at : h->end;
        if (end - p > MAX_KIND_BYTES - bytes)
            return NULL;
        memcpy(kind + bytes, p, end - p), bytes += end - p;
        if (i < h->values)
            p = h->cut[order[i]].end;
    }
    if (PyBytes_CheckExact(newest) && PyBytes_GET_SIZE(newest) == bytes && memcmp(PyBytes_AS_STRING(newest), kind, bytes) == 0)
        return Py_NewRef(newest);
    return PyBytes_FromStringAndSize((char *)kind, bytes);
}

/* A `Send` or an `End`; NULL without an exception if the frame is to be decoded instead. */
static PyObject *make_frame(PyTypeObject *type, struct header *h, PyObject *view, PyObject *newest, Py_ssize_t header_at,
                            Py_ssize_t body_at, Py_ssize_t end)
{
    uint32_t mask = 0;
    struct span unique_id;
    int is_json = h->form == JSON_FORM, is_end = h->code == END;
    for (int i = is_json ? OPAQUE : QUEUE_ID; i <= BORN; i++)
        if (!read_number(h->value[i], &h->number[i]))
            return NULL;
    if (h->number[OPAQUE] != (int32_t)h->number[OPAQUE] || (!is_end && h->number[QUEUE_ID] != (int32_t)h->number[QUEUE_ID]))
        return NULL;
    PyObject *text = is_end    ? NULL
                     : is_json ? unescape(h->value[PROPERTIES])
                               : PyBytes_FromStringAndSize((const char *)h->value[PROPERTIES].at, span_bytes(h->value[PROPERTIES]));
    if (text != NULL) {
        const uint8_t *first = (const uint8_t *)PyBytes_AS_STRING(text);
        scan_special(first, first + PyBytes_GET_SIZE(text), &mask, &unique_id);
    } else if (!is_end) {
        return NULL;
    }
    PyObject *items[SEND_ITEMS] = {kind_of(h, mask, newest)};
    int count = OPAQUE_ITEM;
    for (int i = OPAQUE; i <= BORN; i++)
        items[count++] = PyLong_FromLongLong(h->number[i]);
    if (!is_end) {
        items[count++] = text;
        items[count++] = unique_id.at == NULL
                             ? Py_NewRef(Py_None)
                             : PyBytes_FromStringAndSize((const char *)unique_id.at, span_bytes(unique_id));
    }
    items[count++] = Py_NewRef(view);
    items[count++] = PyLong_FromSsize_t(header_at);
    items[count++] = PyLong_FromSsize_t(body_at);
    if (!is_end)
        items[count++] = PyLong_FromSsize_t(end);
    return tuple_of(type, count, items);
}

PyObject *read_sends(PyObject *self, PyObject *args)
{
    PyObject *view_in, *type, *end_type, *decode, *frames, *newest;
    Py_ssize_t at, max_frame_bytes;
    if (!PyArg_ParseTuple(args, "OnnO!O!OO!O", &view_in, &at, &max_frame_bytes, &PyType_Type, &type, &PyType_Type, &end_type,
                          &decode, &PyList_Type, &frames, &newest))
        return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)type, &PyTuple_Type) || !PyType_IsSubtype((PyTypeObject *)end_type, &PyTuple_Type) ||
        at < 0) {
        PyErr_SetString(PyExc_TypeError, "classes of tuples and a place in the bytes are expected");
        return NULL;
    }
    Py_buffer data;
    if (PyObject_GetBuffer(view_in, &data, PyBUF_SIMPLE) < 0)
        return NULL;
    const uint8_t *first = data.buf;
    int failed = 0;
    PyObject *kinds[] = {Py_NewRef(newest), Py_NewRef(Py_None)}; /* the newest of sends and of ends */
    while (!failed && data.len - at >= PREFIX_BYTES) {
        int64_t length = (int32_t)get32(first + at);
        uint32_t word = get32(first + at + 4);
        Py_ssize_t end = at + 4 + length, header_at = at + PREFIX_BYTES, body_at = header_at + (word & 0xFFFFFF);
        if (length < 4 || length > max_frame_bytes - 4 || end > data.len)
            break;
        PyObject *frame = NULL;
        struct header h = {.form = word >> 24, .start = first + header_at, .end = first + body_at};
        if (body_at <= end && (h.form == JSON_FORM ? read_json(&h) : h.form == BINARY_FORM && read_binary(&h)) &&
            (body_at < end || h.code == END))
            frame = make_frame((PyTypeObject *)(h.code == END ? end_type : type), &h, view_in, kinds[h.code == END], header_at,
                               body_at, end);
        if (frame != NULL)
            Py_SETREF(kinds[h.code == END], Py_NewRef(PyTuple_GET_ITEM(frame, 0)));
        else if (!PyErr_Occurred())
            frame = PyObject_CallFunction(decode, "OInnn", view_in, word, header_at, body_at, end);
        failed = frame == NULL || PyList_Append(frames, frame) < 0;
        Py_XDECREF(frame);
        at = end;
    }
    Py_DECREF(kinds[0]), Py_DECREF(kinds[1]);
    PyBuffer_Release(&data);
    return failed ? NULL : PyLong_FromSsize_t(at);
}
