/* Writes the entries of keys into a file of the key index. See index_entries.py for the rules in Python; the drawing is in
   store/lookup/index_file.py. */

#include "core.h"

enum { END_TIMESTAMP_AT = 8, END_POSITION_AT = 24, SLOTS_USED_AT = 32, COUNT_AT = 36, SLOTS_AT = 40, ENTRY_BYTES = 20, KEY_BYTES = 12, KEYS_AHEAD = 16 };

/* How many slots got their first entry. */
static Py_ssize_t write_entries(uint8_t *base, Py_ssize_t slots, Py_ssize_t entries_at, Py_ssize_t first, const uint8_t *keys,
                                Py_ssize_t count, int seconds)
{
    Py_ssize_t used = 0;
    for (Py_ssize_t i = 0; i < count; i++, keys += KEY_BYTES) {
        /* The slots of a batch lie all over the file, so each would have to be waited for. */
        if (i + KEYS_AHEAD < count)
            __builtin_prefetch(base + SLOTS_AT + 4 * (get32(keys + KEY_BYTES * KEYS_AHEAD) % slots));
        uint32_t hash = get32(keys);
        uint8_t *slot = base + SLOTS_AT + 4 * (hash % slots), *entry = base + entries_at + ENTRY_BYTES * (first + i);
        int64_t previous = (int32_t)get32(slot);
        int is_of_batch = previous >= first && previous < first + i &&
                          get32(base + entries_at + ENTRY_BYTES * previous) % slots == hash % slots;
        if (previous <= 0 || (previous >= first && !is_of_batch))
            previous = 0, used++;
        memcpy(entry, keys, KEY_BYTES);
        put32(entry + 12, (uint32_t)seconds);
        put32(entry + 16, (uint32_t)previous);
        STORES_BEFORE;
        put32(slot, (uint32_t)(first + i));
    }
    return used;
}

PyObject *add_entries(PyObject *self, PyObject *args)
{
    Py_buffer memory, keys;
    Py_ssize_t slots, entries_at, first, used = -1;
    int seconds;
    long long store_timestamp;
    if (!PyArg_ParseTuple(args, "w*nnny*iL", &memory, &slots, &entries_at, &first, &keys, &seconds, &store_timestamp))
        return NULL;
    Py_ssize_t count = keys.len / KEY_BYTES;
    int is_sound = keys.len % KEY_BYTES == 0;
    for (Py_ssize_t i = 0; is_sound && i < count; i++)
        is_sound = !(*((uint8_t *)keys.buf + KEY_BYTES * i) & 0x80);
    if (!is_sound || slots <= 0 || slots > memory.len / 4 || entries_at < SLOTS_AT + 4 * slots || entries_at > memory.len ||
        first < 1 || first > INT32_MAX - count || first + count > (memory.len - entries_at) / ENTRY_BYTES)
        PyErr_SetString(PyExc_ValueError, "a key is cut off or has a negative hash, or the file has no room for these entries");
    else
        used = write_entries(memory.buf, slots, entries_at, first, keys.buf, count, seconds);
    if (used >= 0 && count > 0) {
        uint8_t *base = memory.buf;
        STORES_BEFORE;
        put64(base + END_TIMESTAMP_AT, (uint64_t)store_timestamp);
        memcpy(base + END_POSITION_AT, (uint8_t *)keys.buf + keys.len - 8, 8);
        put32(base + SLOTS_USED_AT, get32(base + SLOTS_USED_AT) + (uint32_t)used);
        put32(base + COUNT_AT, (uint32_t)(first + count));
    }
    PyBuffer_Release(&memory);
    PyBuffer_Release(&keys);
    return used < 0 ? NULL : PyLong_FromSsize_t(used);
}
