#define _POSIX_C_SOURCE 200809L
#include "baseline.h"

#include <inttypes.h>
#include <stdio.h>

// Sends all signals in one pipeline. Prints the start time as well: the caller measures from there until the last
// waiter is awake.
int run_signals(const char *url, const char *scripts, const char *space, const char *prefix, long count) {
    Engine engine = engine_join(url, scripts, space);
    int64_t start = now_ns();
    for (long i = 0; i < count; i++) {
        char name[256];
        snprintf(name, sizeof name, "%s%ld", prefix, i);
        engine_append(&engine, SIGNAL, 0, name, "s", "0", "f", "1", NULL);
    }
    for (long i = 0; i < count; i++) engine_expect(&engine, "ok");
    int64_t end = now_ns();
    engine_leave(&engine, 0);
    printf("{\"mode\":\"signals\",\"count\":%ld,\"start_ns\":%" PRId64 ",\"end_ns\":%" PRId64 ",\"ms\":%.3f}\n", count,
           start, end, (double)(end - start) / 1e6);
    return 0;
}
