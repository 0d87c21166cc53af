#define _POSIX_C_SOURCE 200809L
#include "baseline.h"

#include <stdio.h>
#include <unistd.h>

// redis-benchmark can only insert random numbers of twelve digits into a command, each of them different.
//
// A lock needs a slot that exists, because the library's locks use theirs again. So there is a slot for each random
// number. Its locks are of random mutexes and have random numbers; one in a slot that an earlier lock has used is stale
// half of the time, so there must be many more slots than locks.
//
// An unlock must name a mutex and the claim that holds it, but the two would get different random numbers. Therefore
// all mutexes are held by claims of the same name: after each lock, the record of its slot is deleted.
int run_words(const char *url, const char *scripts, long claims) {
    char space[64];
    snprintf(space, sizeof space, "bench-%ld", (long)getpid());
    Engine engine = engine_join(url, scripts, space);
    const long batch = 1000;
    char slot[64], name[64];
    for (long done = 0; done < claims; done += batch) {
        long end = done + batch < claims ? done + batch : claims;
        for (long i = done; i < end; i++) {
            snprintf(slot, sizeof slot, "%012ld", i);
            engine_append_words(&engine, CREATE, slot, "1", "slots", "sf", "0", NULL);
            snprintf(name, sizeof name, "held-%012ld", i);
            engine_append_words(&engine, ACQUIRE, "0", "1", name, "mf", NULL);
            redisAppendCommand(engine.redis, "HDEL %s c:%s:0", engine.keys[0], engine.id);
        }
        for (long i = done; i < end; i++) {
            engine_answer(&engine);
            engine_expect_success(&engine);
            engine_expect_success(&engine);
        }
    }
    printf("{\"lock\":");
    engine_print(&engine, ACQUIRE, "__rand_int__", "1__rand_int__", "mutex-__rand_int__", "mf", NULL);
    printf(",\"unlock\":");
    engine_print(&engine, RELEASE_MUTEX, "0", "2", "held-__rand_int__", "1", NULL);
    printf("}\n");
    redisFree(engine.redis);
    return 0;
}
