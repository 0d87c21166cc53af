#define _POSIX_C_SOURCE 200809L
#include "baseline.h"

#include <stdio.h>

// redis-benchmark can only put random numbers of twelve digits into a command, each another one. A number of its own and
// a name of its own make every lock a new one. An unlock needs one random number that is a claim, and no second one that
// is its name: so all claims are of one semaphore here, which costs the server the same.
int run_words(const char *url, const char *scripts, long claims) {
    Engine engine = engine_join(url, scripts, "bench-words");
    const long piece = 1000;
    engine.requests = 1000000000000 - 1;
    for (long done = 0; done < claims; done += piece) {
        long end = done + piece < claims ? done + piece : claims;
        for (long i = done; i < end; i++) {
            engine_append(&engine, ACQUIRE, 0, "many", "s", "1000000", "f", "1", "l", "0", NULL);
        }
        for (long i = done; i < end; i++) engine_expect(&engine, "granted");
        // None of these is ever settled: a claim may be ended by a request that comes a second time.
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
