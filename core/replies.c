/* Fills the replies of a pass into their form. See replies.py for the rule in Python. */

#include "core.h"

enum { MAX_REPLY_BYTES = 2048, PREFIX_BYTES = 8, POSITION_DIGITS = 16, MAX_DIGITS = 20 };

static uint8_t *write_decimal(uint8_t *to, long long number)
{
    uint8_t digits[MAX_DIGITS];
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    int count = 0;
    do
        digits[count++] = '0' + left % 10;
    while ((left /= 10) > 0);
    if (number < 0)
        *to++ = '-';
    while (count > 0)
        *to++ = digits[--count];
    return to;
}

static uint8_t *write_hexadecimal(uint8_t *to, uint64_t number)
{
    for (int shift = 4 * (POSITION_DIGITS - 1); shift >= 0; shift -= 4)
        *to++ = "0123456789ABCDEF"[number >> shift & 0xF];
    return to;
}

/* A frame; NULL without an exception if the one in Python has to make it. */
static PyObject *fill_form(const char *form, const char *end, PyObject **row, int values)
{
    uint8_t frame[MAX_REPLY_BYTES], *to = frame + PREFIX_BYTES;
    int next = 0;
    while (form < end) {
        if (frame + sizeof frame - to < MAX_DIGITS)
            return NULL;
        if (*form != '%') {
            *to++ = *form++;
            continue;
        }
        int is_position = end - form >= 5 && memcmp(form, "%016X", 5) == 0;
        char letter = is_position ? 'X' : end - form >= 2 ? form[1] : 0;
        form += is_position ? 5 : 2;
        if (letter == '%') {
            *to++ = '%';
            continue;
        }
        if (next == values)
            return NULL;
        PyObject *value = row[next++];
        if (letter == 'b') {
            if (!PyBytes_Check(value) || PyBytes_GET_SIZE(value) > frame + sizeof frame - to)
                return NULL;
            memcpy(to, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value)), to += PyBytes_GET_SIZE(value);
            continue;
        }
        int overflow = 1;
        long long number = PyLong_Check(value) ? PyLong_AsLongLongAndOverflow(value, &overflow) : 0;
        if (overflow || (letter != 'd' && (letter != 'X' || number < 0)))
            return NULL;
        to = letter == 'd' ? write_decimal(to, number) : write_hexadecimal(to, (uint64_t)number);
    }
    if (next < values)
        return NULL;
    put32(frame, (uint32_t)(to - frame - 4)), put32(frame + 4, (uint32_t)(to - frame - PREFIX_BYTES));
    return PyBytes_FromStringAndSize((const char *)frame, to - frame);
}

/* Letters and digits, at least one. */
static int is_word(PyObject *text)
{
    const char *p = PyBytes_Check(text) ? PyBytes_AS_STRING(text) : NULL, *end = p == NULL ? p : p + PyBytes_GET_SIZE(text);
    int is_plain = p < end;
    for (; is_plain && p < end; p++)
        is_plain = Py_ISALNUM(*p);
    return is_plain;
}

PyObject *fill_replies(PyObject *self, PyObject *args)
{
    PyObject *form, *sends, *positions, *runs, *handles;
    Py_ssize_t first_position, first_run;
    int has_id;
    if (!PyArg_ParseTuple(args, "O!O!O!nO!npO", &PyBytes_Type, &form, &PyList_Type, &sends, &PyList_Type, &positions,
                          &first_position, &PyList_Type, &runs, &first_run, &has_id, &handles))
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(sends);
    if ((handles != Py_None && (!PyList_Check(handles) || PyList_GET_SIZE(handles) != count)) || first_position < 0 ||
        first_run < 0 || first_position > PyList_GET_SIZE(positions) - count || first_run > PyList_GET_SIZE(runs) - count) {
        PyErr_SetString(PyExc_ValueError, "there are not as many positions, runs or handles as sends");
        return NULL;
    }
    const char *first = PyBytes_AS_STRING(form);
    PyObject *frames = PyList_New(0);
    for (Py_ssize_t i = 0; frames != NULL && i < count; i++) {
        PyObject *send = PyList_GET_ITEM(sends, i), *run = PyList_GET_ITEM(runs, first_run + i), *frame = NULL, *row[6];
        int values = 0, is_usual = is_send(send) && PyTuple_Check(run) && PyTuple_GET_SIZE(run) > 1;
        if (is_usual) {
            row[values++] = PyList_GET_ITEM(positions, first_position + i);
            row[values++] = PyTuple_GET_ITEM(send, QUEUE_ID_ITEM);
            row[values++] = PyTuple_GET_ITEM(run, 1);
            if (has_id)
                is_usual = is_word(row[values++] = PyTuple_GET_ITEM(send, UNIQUE_ID_ITEM));
            if (handles != Py_None)
                row[values++] = PyList_GET_ITEM(handles, i);
            row[values++] = PyTuple_GET_ITEM(send, OPAQUE_ITEM);
        }
        if (is_usual)
            frame = fill_form(first, first + PyBytes_GET_SIZE(form), row, values);
        if (frame == NULL || PyList_Append(frames, frame) < 0)
            Py_CLEAR(frames);
        Py_XDECREF(frame);
    }
    return or_none(frames);
}
