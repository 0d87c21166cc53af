#define _POSIX_C_SOURCE 200809L
#include "baseline.h"

#include <inttypes.h>
#include <stdio.h>

// The number of requests in flight, as in the library. Each of them needs a slot of its own.
enum { IN_FLIGHT = 512 };

// Sends all signals in one pipeline. Prints the start time as well: the caller measures from there until the last
// waiter is awake.
int run_signals(const char *url, const char *scripts, const char *space, const char *prefix, long count) {
    Engine engine = engine_join(url, scripts, space);
    Request requests[IN_FLIGHT];
    int64_t start = now_ns();
    for (long i = 0; i < count + IN_FLIGHT; i++) {
        Request *request = &requests[i % IN_FLIGHT];
        if (i >= IN_FLIGHT && i - IN_FLIGHT < count) {
            engine_expect_success(&engine);
            engine_free(&engine, *request);
        }
        if (i >= count) continue;
        char name[256];
        snprintf(name, sizeof name, "%s%ld", prefix, i);
        *request = engine_append(&engine, SIGNAL, name, "sf", "0", NULL);
    }
    int64_t end = now_ns();
    engine_leave(&engine, 0);
    printf("{\"mode\":\"signals\",\"count\":%ld,\"start_ns\":%" PRId64 ",\"end_ns\":%" PRId64 ",\"ms\":%.3f}\n", count,
           start, end, (double)(end - start) / 1e6);
    return 0;
}
