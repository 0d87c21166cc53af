// The interface to hiredis. Only this file depends on its version (0.14 or 1.x).
//
// Swift sees one reader interface: `rdc_reader_create` makes a redisReader whose object functions forward every parsed
// item, depth first, to the callbacks of an `rdc_sink`. The differences between the versions (argument types, RESP3
// object functions, the task stack, missing reply types) are handled here.
#ifndef RDC_CHIREDIS_SHIM_H
#define RDC_CHIREDIS_SHIM_H

#include <hiredis/hiredis.h>
#include <hiredis/read.h>
#include <stddef.h>
#include <string.h>

#ifndef REDIS_REPLY_DOUBLE
#define REDIS_REPLY_DOUBLE 7
#define REDIS_REPLY_BOOL 8
#define REDIS_REPLY_MAP 9
#define REDIS_REPLY_SET 10
#define REDIS_REPLY_ATTR 11
#define REDIS_REPLY_PUSH 12
#define REDIS_REPLY_BIGNUM 13
#define REDIS_REPLY_VERB 14
#endif

#if HIREDIS_MAJOR >= 1
#define RDC_ARRAY_COUNT size_t
#else
#define RDC_ARRAY_COUNT int
#endif

// Receives the items of a reply in the order of the wire. A nonzero result of `array` rejects the reply.
typedef struct rdc_sink {
    void *context;
    void (*string)(void *context, int type, const char *bytes, size_t length);
    void (*integer)(void *context, long long value);
    void (*nil)(void *context);
    int (*array)(void *context, size_t count);
} rdc_sink;

// hiredis compares object pointers only with NULL, which means out of memory, and passes them to freeObject. The sink
// keeps the values themselves.
#define RDC_OBJECT ((void *)1)

static void *rdc_on_string(const redisReadTask *task, char *bytes, size_t length) {
    const rdc_sink *sink = (const rdc_sink *)task->privdata;
    sink->string(sink->context, task->type, bytes, length);
    return RDC_OBJECT;
}

static void *rdc_on_array(const redisReadTask *task, RDC_ARRAY_COUNT count) {
    const rdc_sink *sink = (const rdc_sink *)task->privdata;
    return sink->array(sink->context, (size_t)count) == 0 ? RDC_OBJECT : NULL;
}

static void *rdc_on_integer(const redisReadTask *task, long long value) {
    const rdc_sink *sink = (const rdc_sink *)task->privdata;
    sink->integer(sink->context, value);
    return RDC_OBJECT;
}

static void *rdc_on_nil(const redisReadTask *task) {
    const rdc_sink *sink = (const rdc_sink *)task->privdata;
    sink->nil(sink->context);
    return RDC_OBJECT;
}

static void rdc_on_free(void *object) { (void)object; }

#if HIREDIS_MAJOR >= 1
static void *rdc_on_double(const redisReadTask *task, double value, char *bytes, size_t length) {
    (void)value;
    return rdc_on_string(task, bytes, length);
}

static void *rdc_on_bool(const redisReadTask *task, int value) { return rdc_on_integer(task, value); }
#endif

static inline redisReader *rdc_reader_create(rdc_sink *sink) {
    static redisReplyObjectFunctions functions = {
        .createString = rdc_on_string,
        .createArray = rdc_on_array,
        .createInteger = rdc_on_integer,
        .createNil = rdc_on_nil,
        .freeObject = rdc_on_free,
#if HIREDIS_MAJOR >= 1
        .createDouble = rdc_on_double,
        .createBool = rdc_on_bool,
#endif
    };
    redisReader *reader = redisReaderCreateWithFunctions(&functions);
    if (reader != NULL) {
        reader->privdata = sink;
        // The buffer is kept between ordinary replies, and freed after a large one.
        reader->maxbuf = 1024 * 1024;
    }
    return reader;
}

// Returns the number of bytes that were fed and are not part of a complete item yet.
static inline size_t rdc_reader_unread(const redisReader *reader) { return reader->len - reader->pos; }

// Returns whether the incomplete item is a line (status, error, number or length) that is already longer than `limit`
// bytes. hiredis searches it from its start with every feed, so an endless line would cost quadratic time.
static inline int rdc_reader_line_exceeds(const redisReader *reader, size_t limit) {
    size_t unread = rdc_reader_unread(reader);
    if (unread <= limit || reader->ridx < 0) return 0;
#if HIREDIS_MAJOR >= 1
    int type = reader->task[reader->ridx]->type;
#else
    int type = reader->rstack[reader->ridx].type;
#endif
    if (type != REDIS_REPLY_STRING && type != REDIS_REPLY_VERB) return 1;
    // A bulk string with a complete length line may be as long as that line says.
    const char *line = reader->buf + reader->pos;
    for (int i = 0; i < 64; i++) {
        if (line[i] == '\r' && line[i + 1] == '\n') return 0;
    }
    return 1;
}

#endif
