/* What the files of the native core share: numbers, sums, Java's hash, and the names of properties that a broker acts
   on. Nothing here keeps a reference or a state between two calls, but the table of CRC-32. Whatever is written has been
   found to lie inside its buffer before. */

#ifndef POCKETMQ_CORE_H
#define POCKETMQ_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "record_bytes.h"

/* Stores before this line stay before it: a process may die between any two, and what is in the map then is the file. */
#define STORES_BEFORE __asm__ __volatile__("" ::: "memory")

static inline void put16(uint8_t *p, uint32_t v)
{
    p[0] = v >> 8, p[1] = v;
}

static inline void put32(uint8_t *p, uint32_t v)
{
    p[0] = v >> 24, p[1] = v >> 16, p[2] = v >> 8, p[3] = v;
}

static inline void put64(uint8_t *p, uint64_t v)
{
    put32(p, v >> 32), put32(p + 4, (uint32_t)v);
}

struct span {
    const uint8_t *at, *end;
};

static inline Py_ssize_t span_bytes(struct span s)
{
    return s.end - s.at;
}

static inline int span_is(struct span s, const char *text, Py_ssize_t bytes)
{
    return s.end - s.at == bytes && memcmp(s.at, text, bytes) == 0;
}

#define IS(span, literal) span_is(span, literal, sizeof literal - 1)

/* One pair of a property text; `next` is where the following one begins. */
struct pair {
    struct span name, value;
    const uint8_t *next;
};

/* The next pair that has a name and a value; 0 at the end of the text. */
static inline int next_pair(const uint8_t *p, const uint8_t *end, struct pair *found)
{
    while (p < end) {
        const uint8_t *pair_end = memchr(p, 2, end - p);
        if (pair_end == NULL)
            pair_end = end;
        const uint8_t *equals = memchr(p, 1, pair_end - p);
        found->next = pair_end + (pair_end < end);
        if (equals != NULL && equals > p && equals + 1 < pair_end) {
            found->name.at = p, found->name.end = equals;
            found->value.at = equals + 1, found->value.end = pair_end;
            return 1;
        }
        p = found->next;
    }
    return 0;
}

/* A `Send` of sends.py. */
enum { KIND_ITEM, OPAQUE_ITEM, QUEUE_ID_ITEM, BORN_ITEM, TEXT_ITEM, UNIQUE_ID_ITEM, RECEIVED_ITEM, BODY_ITEM = 8, END_ITEM };
enum { SEND_ITEMS = 10 };

static inline int is_send(PyObject *item)
{
    return PyTuple_Check(item) && PyTuple_GET_SIZE(item) == SEND_ITEMS;
}

/* What a function returns: None if it made nothing and raised nothing, so that the one in Python has to do it. */
static inline PyObject *or_none(PyObject *made)
{
    return made != NULL || PyErr_Occurred() ? made : Py_NewRef(Py_None);
}

/* A tuple of so many objects, whose references it takes; NULL if one is NULL. */
PyObject *tuple_of(PyTypeObject *type, Py_ssize_t count, PyObject **objects);

/* The decimal number of a text in the form in which a program writes it; 0 for any other text. */
int read_number(struct span s, long long *number);

/* Continue Java's hash of a text over the UTF-16 units of another; 0 if that is not UTF-8. */
int extend_hash(uint32_t *hash, const uint8_t *p, const uint8_t *end);

/* Whether bytes are UTF-8. */
int is_utf8(const uint8_t *p, const uint8_t *end);

PyObject *read_sends(PyObject *self, PyObject *args);
PyObject *stored_text(PyObject *self, PyObject *args);
PyObject *read_values(PyObject *self, PyObject *args);
PyObject *messages_of_sends(PyObject *self, PyObject *args);
PyObject *read_copies(PyObject *self, PyObject *args);
PyObject *read_properties(PyObject *self, PyObject *text);
PyObject *pack_records(PyObject *self, PyObject *args);
PyObject *add_entries(PyObject *self, PyObject *args);
PyObject *fill_replies(PyObject *self, PyObject *args);
PyObject *gather_records(PyObject *self, PyObject *args);
PyObject *scan_plain(PyObject *self, PyObject *args);
PyObject *scan_records(PyObject *self, PyObject *args);
PyObject *read_records_at(PyObject *self, PyObject *args);
PyObject *list_pairs(PyObject *self, PyObject *args);

/* Make the table of CRC-32, once. */
void prepare_sums(void);

#endif
