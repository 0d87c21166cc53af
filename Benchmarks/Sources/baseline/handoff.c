#define _POSIX_C_SOURCE 200809L
#include "baseline.h"

#include <stdio.h>
#include <unistd.h>

typedef struct {
    const char *url;
    char there[64];
    char back[64];
} Game;

static int play_other_side(int pipe, const void *argument) {
    const Game *game = argument;
    close(pipe);
    play_peer(game->url, game->there, game->back);
    return 0;
}

// Runs one round, which is two hand-offs: the token goes to the other process and comes back. Returns its duration.
static int64_t round_trip(redisContext *redis, const Game *game) {
    int64_t start = now_ns();
    redis_run(redis, "LPUSH %s token", game->there);
    redisReply *token = redis_brpop(redis, game->back, 10);
    if (token == NULL) {
        redis_run(redis, "DEL %s %s", game->there, game->back);
        fail(EXIT_UNAVAILABLE, "the other process did not hand the token back within 10 s");
    }
    int64_t elapsed = now_ns() - start;
    freeReplyObject(token);
    return elapsed;
}

int run_handoff(const char *url, long rounds) {
    Game game = {.url = url};
    snprintf(game.there, sizeof game.there, "rdc:bench:%ld:there", (long)getpid());
    snprintf(game.back, sizeof game.back, "rdc:bench:%ld:back", (long)getpid());

    // Connects before forking, so that an unreachable Redis is reported once.
    redisContext *redis = redis_connect(url);
    Partner other = partner_start(play_other_side, &game);
    catch_stop_signals();

    Samples samples = samples_make(rounds);
    for (long i = warmup_rounds(rounds); i > 0 && !stop_requested; i--) round_trip(redis, &game);
    int64_t start = now_ns();
    for (long i = 0; i < rounds && !stop_requested; i++) samples_add(&samples, round_trip(redis, &game));
    double seconds = (double)(now_ns() - start) / 1e9;

    redis_run(redis, "LPUSH %s stop", game.there);
    partner_join(&other);
    redis_run(redis, "DEL %s %s", game.there, game.back);
    redisFree(redis);
    if (stop_requested) return 130;

    samples_sort(&samples);
    printf("{\"mode\":\"handoff\",\"rounds\":%ld,\"handoffs\":%ld,\"seconds\":%.3f,\"us_per_handoff\":%.2f,"
           "\"p50_us\":%.2f,\"p99_us\":%.2f}\n",
           rounds, 2 * rounds, seconds, seconds * 1e6 / (2.0 * (double)rounds),
           (double)samples_percentile(&samples, 50) / 2e3, (double)samples_percentile(&samples, 99) / 2e3);
    samples_free(&samples);
    return 0;
}
