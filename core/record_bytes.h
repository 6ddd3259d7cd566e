/* Numbers, sums and records as they lie in a log. */

#ifndef POCKETMQ_RECORD_BYTES_H
#define POCKETMQ_RECORD_BYTES_H

#include <Python.h>
#include <stdint.h>

enum { QUEUE_ID_AT = 12, QUEUE_OFFSET_AT = 20, POSITION_AT = 28, SYS_FLAG_AT = 36, BORN_TIMESTAMP_AT = 40, BORN_HOST_AT = 48 };
enum { BODY_AT = 88, BORN_HOST_IPV6 = 1 << 4, STORE_HOST_IPV6 = 1 << 5, LONGER_HOST_BYTES = 12 };
#define MAGIC_V1 0xDAA320A7u
#define MAGIC_V2 (MAGIC_V1 + 4)

extern uint32_t crc_tables[8][256]; /* in records.c, filled by prepare_sums */

static inline uint32_t crc32_of(const uint8_t *p, size_t n)
{
    uint32_t c = 0xFFFFFFFFu;
    for (; n >= 8; n -= 8, p += 8) {
        c ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        c = crc_tables[7][c & 0xFF] ^ crc_tables[6][c >> 8 & 0xFF] ^ crc_tables[5][c >> 16 & 0xFF] ^
            crc_tables[4][c >> 24] ^ crc_tables[3][p[4]] ^ crc_tables[2][p[5]] ^ crc_tables[1][p[6]] ^
            crc_tables[0][p[7]];
    }
    for (; n; n--, p++)
        c = crc_tables[0][(c ^ *p) & 0xFF] ^ (c >> 8);
    return ~c;
}

static inline uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t get64(const uint8_t *p)
{
    return (uint64_t)get32(p) << 32 | get32(p + 4);
}

struct record {
    Py_ssize_t size, body_at, body_end, topic_at, topic_end;
    uint32_t sys_flag;
};

/* Whether p, of which `left` bytes may be read, begins with a whole record whose lengths agree. */
static inline int read_record(const uint8_t *p, Py_ssize_t left, struct record *found)
{
    if (left < BODY_AT)
        return 0;
    uint32_t magic = get32(p + 4);
    found->size = (int32_t)get32(p);
    found->sys_flag = get32(p + 36);
    found->body_at = BODY_AT + (found->sys_flag & BORN_HOST_IPV6 ? LONGER_HOST_BYTES : 0) +
                     (found->sys_flag & STORE_HOST_IPV6 ? LONGER_HOST_BYTES : 0);
    if ((magic != MAGIC_V1 && magic != MAGIC_V2) || found->size > left || found->body_at > found->size)
        return 0;
    int32_t body_bytes = (int32_t)get32(p + found->body_at - 4);
    Py_ssize_t length_bytes = magic == MAGIC_V2 ? 2 : 1;
    found->body_end = found->body_at + (Py_ssize_t)body_bytes;
    found->topic_at = found->body_end + length_bytes;
    if (body_bytes < 0 || found->topic_at + 2 > found->size)
        return 0;
    const uint8_t *length = p + found->body_end;
    int topic_bytes = length_bytes == 2 ? (int16_t)(length[0] << 8 | length[1]) : (int8_t)length[0];
    found->topic_end = found->topic_at + topic_bytes;
    if (topic_bytes < 0 || found->topic_end + 2 > found->size)
        return 0;
    int16_t properties_bytes = (int16_t)(p[found->topic_end] << 8 | p[found->topic_end + 1]);
    return properties_bytes >= 0 && found->topic_end + 2 + properties_bytes == found->size;
}

/* Whether the body of a record has its CRC. An empty one has none. */
static inline int has_own_crc(const uint8_t *p, const struct record *found)
{
    Py_ssize_t bytes = found->body_end - found->body_at;
    return bytes == 0 || (crc32_of(p + found->body_at, bytes) & 0x7FFFFFFF) == get32(p + 8);
}

#endif
