#define _POSIX_C_SOURCE 200809L
#include "baseline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    const char *url;
    char there[64];
    char back[64];
} Channels;

// Answers each message, which carries the time at which it was sent, with its latency. Ends at the time 0.
static int play_receiver(int pipe, const void *argument) {
    const Channels *channels = argument;
    redisContext *subscriber = redis_connect(channels->url);
    redisContext *publisher = redis_connect(channels->url);
    redis_run(subscriber, "SUBSCRIBE %s", channels->there);
    partner_write(pipe, 1);
    for (;;) {
        redisReply *message = redis_message(subscriber);
        int64_t received = now_ns();
        int64_t sent = strtoll(message->element[2]->str, NULL, 10);
        freeReplyObject(message);
        if (sent == 0) break;
        redis_run(publisher, "PUBLISH %s %" PRId64, channels->back, received - sent);
    }
    redisFree(subscriber);
    redisFree(publisher);
    return 0;
}

typedef struct {
    int64_t one_way;
    int64_t round_trip;
} Timing;

static Timing ping(redisContext *publisher, redisContext *subscriber, const Channels *channels) {
    int64_t start = now_ns();
    redis_run(publisher, "PUBLISH %s %" PRId64, channels->there, start);
    redisReply *answer = redis_message(subscriber);
    Timing timing = {.one_way = strtoll(answer->element[2]->str, NULL, 10), .round_trip = now_ns() - start};
    freeReplyObject(answer);
    return timing;
}

int run_pubsub(const char *url, long rounds) {
    Channels channels = {.url = url};
    snprintf(channels.there, sizeof channels.there, "rdc:bench:%ld:there", (long)getpid());
    snprintf(channels.back, sizeof channels.back, "rdc:bench:%ld:back", (long)getpid());

    redisContext *publisher = redis_connect(url);
    Partner receiver = partner_start(play_receiver, &channels);
    catch_stop_signals();
    redisContext *subscriber = redis_connect(url);
    redis_read_limit(subscriber, 10);
    redis_run(subscriber, "SUBSCRIBE %s", channels.back);
    partner_read(&receiver);

    Samples one_way = samples_make(rounds), round_trip = samples_make(rounds);
    for (long i = warmup_rounds(rounds); i > 0 && !stop_requested; i--) ping(publisher, subscriber, &channels);
    int64_t start = now_ns();
    for (long i = 0; i < rounds && !stop_requested; i++) {
        Timing timing = ping(publisher, subscriber, &channels);
        samples_add(&one_way, timing.one_way);
        samples_add(&round_trip, timing.round_trip);
    }
    double seconds = (double)(now_ns() - start) / 1e9;

    redis_run(publisher, "PUBLISH %s 0", channels.there);
    partner_join(&receiver);
    redisFree(publisher);
    redisFree(subscriber);
    if (stop_requested) return 130;

    samples_sort(&one_way);
    samples_sort(&round_trip);
    printf("{\"mode\":\"pubsub\",\"rounds\":%ld,\"seconds\":%.3f,\"mean_us\":%.2f,\"p50_us\":%.2f,\"p99_us\":%.2f,"
           "\"round_trip_mean_us\":%.2f,\"round_trip_p50_us\":%.2f,\"round_trip_p99_us\":%.2f}\n",
           rounds, seconds, samples_mean(&one_way) / 1e3, (double)samples_percentile(&one_way, 50) / 1e3,
           (double)samples_percentile(&one_way, 99) / 1e3, samples_mean(&round_trip) / 1e3,
           (double)samples_percentile(&round_trip, 50) / 1e3, (double)samples_percentile(&round_trip, 99) / 1e3);
    samples_free(&one_way);
    samples_free(&round_trip);
    return 0;
}
