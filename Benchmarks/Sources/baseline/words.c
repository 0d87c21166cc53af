#define _POSIX_C_SOURCE 200809L
#include "baseline.h"

#include <stdio.h>

// redis-benchmark can only insert random numbers of twelve digits into a command, each of them different. A random
// request number and a random name make every lock a new one. An unlock must name an existing claim, so only the
// claim's number may be random, not the resource's name. Therefore all claims belong to one semaphore, which costs the
// server the same.
int run_words(const char *url, const char *scripts, long claims) {
    Engine engine = engine_join(url, scripts, "bench-words");
    const long batch = 1000;
    engine.requests = 1000000000000 - 1;
    for (long done = 0; done < claims; done += batch) {
        long end = done + batch < claims ? done + batch : claims;
        for (long i = done; i < end; i++) {
            engine_append(&engine, ACQUIRE, 0, "many", "s", "1000000", "f", "1", "l", "0", NULL);
        }
        for (long i = done; i < end; i++) engine_expect(&engine, "granted");
        // No answer is ever settled: a claim can then be ended by a request that is repeated.
        engine.answered = 0;
    }
    printf("{\"lock\":");
    engine_print(&engine, ACQUIRE, "2__rand_int__", "mutex-__rand_int__", "m", "1", "f", "1", "l", "0", NULL);
    printf(",\"unlock\":");
    engine_print(&engine, RELEASE, "3__rand_int__", "many", "1__rand_int__", "", "0", NULL);
    printf("}\n");
    redisFree(engine.redis);
    return 0;
}
