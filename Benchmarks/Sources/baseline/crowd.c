#define _POSIX_C_SOURCE 200809L
#include "baseline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The semaphore on which the crowd waits, and the resource that is measured when the crowd consists of something else.
static const char crowded[] = "crowd", alone[] = "alone";

// The waits in the order of the queue, from the first one that no signal has granted.
typedef struct {
    Request *waits;
    long first;
    long end;
} Queue;

static Queue queue_make(long capacity) {
    Queue queue = {.waits = calloc((size_t)capacity, sizeof(Request))};
    if (queue.waits == NULL) fail(EXIT_INTERNAL, "out of memory for %ld waits", capacity);
    return queue;
}

static Request append_wait(Engine *engine, const char *name) {
    return engine_append(engine, ACQUIRE, name, "sf", "0", "c", NULL);
}

static void append_session(Engine *engine, long number) {
    char id[17];
    snprintf(id, sizeof id, "%016lx", (unsigned long)number);
    engine_append_join(engine, id);
}

static Request append_name(Engine *engine, long number) {
    char name[32];
    snprintf(name, sizeof name, "crowd-%ld", number);
    return engine_append(engine, CREATE, name, "sf", "0", NULL);
}

// Creates the crowd in batches, which bounds the number of answers in flight.
static void gather(Engine *engine, Queue *queue, char kind, long count) {
    enum { BATCH = 512 };
    Request names[BATCH];
    for (long done = 0; done < count; done += BATCH) {
        long size = count - done < BATCH ? count - done : BATCH;
        for (long i = 0; i < size; i++) {
            if (kind == 'w') queue->waits[queue->end++] = append_wait(engine, crowded);
            if (kind == 's') append_session(engine, done + i);
            if (kind == 'n') names[i] = append_name(engine, done + i);
        }
        for (long i = 0; i < size; i++) {
            if (kind == 'w') engine_expect_queued(engine);
            if (kind == 's') engine_expect_joined(engine);
            if (kind == 'n') {
                engine_expect_success(engine);
                engine_free(engine, names[i]);
            }
        }
    }
}

// Locks and unlocks. With `queues`, joins the end of the crowd's queue and leaves it.
static void lock_and_unlock(Engine *engine, int queues) {
    const char *name = queues ? crowded : alone;
    Request claim;
    if (queues) {
        claim = append_wait(engine, name);
        engine_expect_queued(engine);
    } else {
        claim = engine_append(engine, ACQUIRE, name, "mf", NULL);
        engine_expect_success(engine);
    }
    engine_append_release(engine, queues ? RELEASE : RELEASE_MUTEX, name, claim);
    engine_expect_success(engine);
    engine_free(engine, claim);
}

// Adds a waiter to the queue and wakes the first one with a signal, so that the length of the queue stays the same. The
// next wait takes the slot of the one that was woken, which confirms its permit, as in the library.
static void wait_and_signal(Engine *engine, Queue *queue, const char *name) {
    queue->waits[queue->end++] = append_wait(engine, name);
    engine_expect_queued(engine);
    Request signal = engine_append(engine, SIGNAL, name, "sf", "0", NULL);
    engine_expect_success(engine);
    engine_free(engine, signal);
    engine_free(engine, queue->waits[queue->first++]);
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
    rounds = (rounds + STRETCH - 1) / STRETCH * STRETCH;
    long warmup = warmup_rounds(rounds);
    Queue queue = queue_make((waiters ? count : 0) + warmup + rounds);
    gather(&engine, &queue, kind[0], count);

    Meter lock = meter_make(rounds), signal = meter_make(rounds);
    for (long i = -warmup; i < rounds && !stop_requested; i++) {
        meter_tick(&lock, &engine, i);
        lock_and_unlock(&engine, waiters);
    }
    meter_tick(&lock, &engine, rounds);
    for (long i = -warmup; i < rounds && !stop_requested; i++) {
        meter_tick(&signal, &engine, i);
        wait_and_signal(&engine, &queue, waiters ? crowded : alone);
    }
    meter_tick(&signal, &engine, rounds);

    engine_leave(&engine, 1);
    free(queue.waits);
    if (stop_requested) return 130;
    printf("{\"mode\":\"crowd\",\"kind\":\"%s\",\"count\":%ld,\"rounds\":%ld,\"lock_us\":%.3f,\"signal_us\":%.3f}\n",
           kind, count, rounds, meter_median(&lock), meter_median(&signal));
    return 0;
}
