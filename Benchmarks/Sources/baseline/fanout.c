#define _POSIX_C_SOURCE 200809L
#include "baseline.h"

#include <stdio.h>
#include <unistd.h>

typedef struct {
    const char *url;
    char prefix[64];
    long count;
} Channels;

// Subscribes to all channels on one connection, as a Swift process does. Writes 1 to the pipe when all subscriptions
// are active, then for each round the time at which its last message arrived.
static int play_subscriber(int pipe, const void *argument) {
    const Channels *channels = argument;
    redisContext *redis = redis_connect(channels->url);
    for (long i = 0; i < channels->count; i++) {
        redisAppendCommand(redis, "SUBSCRIBE %s%ld", channels->prefix, i);
    }
    for (long i = 0; i < channels->count; i++) freeReplyObject(redis_read(redis));
    partner_write(pipe, 1);
    for (int stop = 0; !stop;) {
        for (long i = 0; i < channels->count && !stop; i++) {
            redisReply *message = redis_message(redis);
            stop = message->element[2]->str[0] == 's';
            freeReplyObject(message);
        }
        if (!stop) partner_write(pipe, now_ns());
    }
    redisFree(redis);
    return 0;
}

// Publishes once to each channel. Returns the time from the first command written to the last message received, in
// nanoseconds.
static int64_t publish_to_all(redisContext *redis, const Channels *channels, const Partner *subscriber) {
    int64_t start = now_ns();
    for (long i = 0; i < channels->count; i++) {
        redisAppendCommand(redis, "PUBLISH %s%ld wake", channels->prefix, i);
    }
    for (long i = 0; i < channels->count; i++) freeReplyObject(redis_read(redis));
    return partner_read(subscriber) - start;
}

int run_fanout(const char *url, long count, long rounds) {
    Channels channels = {.url = url, .count = count};
    snprintf(channels.prefix, sizeof channels.prefix, "rdc:bench:%ld:", (long)getpid());

    redisContext *redis = redis_connect(url);
    Partner subscriber = partner_start(play_subscriber, &channels);
    catch_stop_signals();
    partner_read(&subscriber);

    Samples samples = samples_make(rounds);
    long warmup = warmup_rounds(rounds * count) / count + 1;
    for (long i = 0; i < warmup && !stop_requested; i++) publish_to_all(redis, &channels, &subscriber);
    for (long i = 0; i < rounds && !stop_requested; i++) {
        samples_add(&samples, publish_to_all(redis, &channels, &subscriber));
    }

    redis_run(redis, "PUBLISH %s0 stop", channels.prefix);
    partner_join(&subscriber);
    redisFree(redis);
    if (stop_requested) return 130;

    samples_sort(&samples);
    double each = 1e3 * (double)count;
    printf("{\"mode\":\"fanout\",\"channels\":%ld,\"rounds\":%ld,\"messages\":%ld,\"seconds\":%.3f,"
           "\"us_per_message\":%.3f,\"p50_us\":%.3f,\"p99_us\":%.3f}\n",
           count, rounds, count * rounds, samples_mean(&samples) * (double)rounds / 1e9, samples_mean(&samples) / each,
           (double)samples_percentile(&samples, 50) / each, (double)samples_percentile(&samples, 99) / each);
    samples_free(&samples);
    return 0;
}
