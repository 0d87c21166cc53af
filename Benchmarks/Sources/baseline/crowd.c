#define _POSIX_C_SOURCE 200809L
#include "baseline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The semaphore on which the crowd waits, and the resource that is measured when the crowd consists of something else.
static const char crowded[] = "crowd", alone[] = "alone";

static long append_wait(Engine *engine, const char *name, long acknowledged) {
    return engine_append(engine, ACQUIRE, acknowledged, name, "s", "0", "f", "1", "c", "0", NULL);
}

static void append_session(Engine *engine, long number) {
    char id[33];
    snprintf(id, sizeof id, "%032lx", number);
    engine_append_join(engine, id);
}

static void append_name(Engine *engine, long number) {
    char name[32];
    snprintf(name, sizeof name, "crowd-%ld", number);
    engine_append(engine, CREATE, 0, name, "s", "0", "f", NULL);
}

// Creates the crowd in batches, which bounds the number of answers in flight.
static void gather(Engine *engine, char kind, long count) {
    const long batch = 1000;
    for (long done = 0; done < count; done += batch) {
        long end = done + batch < count ? done + batch : count;
        for (long i = done; i < end; i++) {
            if (kind == 'w') append_wait(engine, crowded, 0);
            if (kind == 's') append_session(engine, i);
            if (kind == 'n') append_name(engine, i);
        }
        for (long i = done; i < end; i++) {
            if (kind == 's') {
                freeReplyObject(redis_read(engine->redis));
            } else {
                engine_expect(engine, kind == 'w' ? "queued" : "ok");
            }
        }
    }
}

// Locks and unlocks. With `queues`, joins the end of the crowd's queue and leaves it.
static void lock_and_unlock(Engine *engine, int queues) {
    const char *name = queues ? crowded : alone;
    long claim = queues ? append_wait(engine, name, 0)
                        : engine_append(engine, ACQUIRE, 0, name, "m", "1", "f", "1", "l", "0", NULL);
    engine_expect(engine, queues ? "queued" : "granted");
    char number[24];
    snprintf(number, sizeof number, "%ld", claim);
    engine_append(engine, RELEASE, 0, name, number, "", "0", NULL);
    engine_expect(engine, "ended");
}

// Adds a waiter to the queue and wakes the first one with a signal, so that the length of the queue stays the same.
// `woken` is the wait that the previous signal granted: this wait acknowledges it, as the library does.
static void wait_and_signal(Engine *engine, const char *name, long woken) {
    append_wait(engine, name, woken);
    engine_expect(engine, "queued");
    engine_append(engine, SIGNAL, 0, name, "s", "0", "f", "1", NULL);
    engine_expect(engine, "ok");
}

// Returns the time that the server reports for scripts, in microseconds. It does not include the network.
static double script_time(Engine *engine) {
    redisAppendCommand(engine->redis, "INFO commandstats");
    redisReply *reply = redis_read(engine->redis);
    const char *line = strstr(reply->str, "cmdstat_evalsha:");
    const char *figure = line == NULL ? NULL : strstr(line, "usec=");
    double time = figure == NULL ? 0 : strtod(figure + strlen("usec="), NULL);
    freeReplyObject(reply);
    return time;
}

// Takes the median over short stretches of rounds, so that single interruptions of the server do not count.
typedef struct {
    Samples stretches;
    double before;
} Meter;

enum { STRETCH = 100 };

static Meter meter_make(long rounds) { return (Meter){.stretches = samples_make(rounds / STRETCH + 1)}; }

// Call this before each round, and after the last one. Negative rounds are not counted.
static void meter_tick(Meter *meter, Engine *engine, long round) {
    if (round < 0 || round % STRETCH != 0) return;
    double time = script_time(engine);
    if (round > 0) samples_add(&meter->stretches, (int64_t)((time - meter->before) * 1e3 / STRETCH));
    meter->before = time;
}

static double meter_median(Meter *meter) {
    samples_sort(&meter->stretches);
    double median = (double)samples_percentile(&meter->stretches, 50) / 1e3;
    samples_free(&meter->stretches);
    return median;
}

int run_crowd(const char *url, const char *scripts, const char *kind, long count, long rounds) {
    int waiters = strcmp(kind, "waiters") == 0;
    if (!waiters && strcmp(kind, "sessions") != 0 && strcmp(kind, "names") != 0) {
        fail(EXIT_USAGE, "a crowd consists of waiters, sessions or names, not of \"%s\"", kind);
    }
    char space[64];
    snprintf(space, sizeof space, "bench-%ld", (long)getpid());
    Engine engine = engine_join(url, scripts, space);
    catch_stop_signals();
    gather(&engine, kind[0], count);

    rounds = (rounds + STRETCH - 1) / STRETCH * STRETCH;
    Meter lock = meter_make(rounds), signal = meter_make(rounds);
    long warmup = warmup_rounds(rounds);
    for (long i = -warmup; i < rounds && !stop_requested; i++) {
        meter_tick(&lock, &engine, i);
        lock_and_unlock(&engine, waiters);
    }
    meter_tick(&lock, &engine, rounds);
    // The waits of the crowd have the request numbers from 1 and are woken first. The waits of the rounds follow; each
    // round has two requests.
    long crowd = waiters ? count : 0, base = engine.requests + 1, woken = 0;
    for (long i = -warmup; i < rounds && !stop_requested; i++) {
        meter_tick(&signal, &engine, i);
        wait_and_signal(&engine, waiters ? crowded : alone, woken);
        long turn = i + warmup;
        woken = turn < crowd ? turn + 1 : base + 2 * (turn - crowd);
    }
    meter_tick(&signal, &engine, rounds);

    engine_leave(&engine, 1);
    if (stop_requested) return 130;
    printf("{\"mode\":\"crowd\",\"kind\":\"%s\",\"count\":%ld,\"rounds\":%ld,\"lock_us\":%.3f,\"signal_us\":%.3f}\n",
           kind, count, rounds, meter_median(&lock), meter_median(&signal));
    return 0;
}
