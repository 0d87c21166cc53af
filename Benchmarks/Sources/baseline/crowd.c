#define _POSIX_C_SOURCE 200809L
#include "baseline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The crowd's own semaphore, and the things that are measured when they are others.
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

// In pieces: neither side has to keep more than so many answers.
static void gather(Engine *engine, char kind, long count) {
    const long piece = 1000;
    for (long done = 0; done < count; done += piece) {
        long end = done + piece < count ? done + piece : count;
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

// A lock and its unlock; in the crowd's queue, a place at its end and the leaving of it.
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

// One more waits, and a signal wakes the first of the queue, so that the queue stays as long as it is. `woken` is who
// was woken the last time: that it knows is told with the wait, as the library does.
static void wait_and_signal(Engine *engine, const char *name, long woken) {
    append_wait(engine, name, woken);
    engine_expect(engine, "queued");
    engine_append(engine, SIGNAL, 0, name, "s", "0", "f", "1", NULL);
    engine_expect(engine, "ok");
}

// Microseconds that the server itself counts for scripts: the way there and back is not in it.
static double script_time(Engine *engine) {
    redisAppendCommand(engine->redis, "INFO commandstats");
    redisReply *reply = redis_read(engine->redis);
    const char *line = strstr(reply->str, "cmdstat_evalsha:");
    const char *figure = line == NULL ? NULL : strstr(line, "usec=");
    double time = figure == NULL ? 0 : strtod(figure + strlen("usec="), NULL);
    freeReplyObject(reply);
    return time;
}

// The median over short stretches, so that a moment in which the server was kept waiting does not count.
typedef struct {
    Samples stretches;
    double before;
} Meter;

enum { STRETCH = 100 };

static Meter meter_make(long rounds) { return (Meter){.stretches = samples_make(rounds / STRETCH + 1)}; }

// Called before each round from 0 on, and after the last one.
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
        fail(EXIT_USAGE, "a crowd is of waiters, sessions or names, not of \"%s\"", kind);
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
    // The crowd has the numbers from 1, and is woken before those who come to wait in the rounds, two requests each.
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
