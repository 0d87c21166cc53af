#define _POSIX_C_SOURCE 200809L
#include "baseline.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    char name[32];
    Request claim;
} Mutex;

// Locks all mutexes in one pipeline, then unlocks all in another. With one mutex this equals blocking calls.
static void lock_and_unlock(Engine *engine, Mutex *mutexes, long width) {
    for (long i = 0; i < width; i++) {
        mutexes[i].claim = engine_append(engine, ACQUIRE, mutexes[i].name, "mf", NULL);
    }
    for (long i = 0; i < width; i++) engine_expect_success(engine);
    for (long i = 0; i < width; i++) engine_append_release(engine, RELEASE_MUTEX, mutexes[i].name, mutexes[i].claim);
    for (long i = 0; i < width; i++) {
        engine_expect_success(engine);
        engine_free(engine, mutexes[i].claim);
    }
}

int run_pairs(const char *url, const char *scripts, long width, long rounds) {
    char space[64];
    snprintf(space, sizeof space, "bench-%ld", (long)getpid());
    Engine engine = engine_join(url, scripts, space);
    catch_stop_signals();
    Mutex *mutexes = calloc((size_t)width, sizeof *mutexes);
    if (mutexes == NULL) fail(EXIT_INTERNAL, "out of memory for %ld mutexes", width);
    for (long i = 0; i < width; i++) snprintf(mutexes[i].name, sizeof mutexes[i].name, "mutex-%ld", i);

    for (long i = warmup_rounds(rounds); i > 0 && !stop_requested; i--) lock_and_unlock(&engine, mutexes, width);
    int64_t start = now_ns();
    for (long i = 0; i < rounds && !stop_requested; i++) lock_and_unlock(&engine, mutexes, width);
    double seconds = (double)(now_ns() - start) / 1e9;

    engine_leave(&engine, 1);
    free(mutexes);
    if (stop_requested) return 130;
    printf("{\"mode\":\"pairs\",\"width\":%ld,\"rounds\":%ld,\"seconds\":%.3f,\"pairs_per_s\":%.1f}\n", width, rounds,
           seconds, (double)(width * rounds) / seconds);
    return 0;
}
