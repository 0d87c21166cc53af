#define _POSIX_C_SOURCE 200809L
#include "baseline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const char *url;
    const char *scripts;
    char space[64];
    long rounds;
} Game;

// One side of the hand-off: a session, and a second connection that receives its wake-ups.
typedef struct {
    Engine engine;
    redisContext *wakeups;
} Side;

static Side side_make(const Game *game) {
    Side side = {.engine = engine_join(game->url, game->scripts, game->space)};
    side.wakeups = redis_connect(game->url);
    redis_read_limit(side.wakeups, 10);
    redis_run(side.wakeups, "SUBSCRIBE rdc:{%s:0}:wake:%s", game->space, side.engine.id);
    return side;
}

static void signal_one(Side *side, const char *name) {
    Request request = engine_append(&side->engine, SIGNAL, name, "sf", "0", NULL);
    engine_expect_success(&side->engine);
    engine_free(&side->engine, request);
}

// Waits for a permit. The next request takes the wait's slot, which confirms that the permit has arrived.
static void wait_one(Side *side, const char *name) {
    Request wait = engine_append(&side->engine, ACQUIRE, name, "sf", "0", "c", NULL);
    if (engine_answer(&side->engine) == 0) {
        redisReply *message = redis_message(side->wakeups);
        // The session's notices, then the number of the request and its fence.
        char *end;
        strtol(message->element[2]->str, &end, 10);
        long woken = strtol(end, NULL, 10);
        freeReplyObject(message);
        if (woken != wait.number) fail(EXIT_INTERNAL, "wait %ld was woken instead of %ld", woken, wait.number);
    }
    engine_free(&side->engine, wait);
}

static int play_other_side(int pipe, const void *argument) {
    const Game *game = argument;
    Side side = side_make(game);
    partner_write(pipe, 1);
    for (long i = warmup_rounds(game->rounds) + game->rounds; i > 0; i--) {
        wait_one(&side, "there");
        signal_one(&side, "back");
    }
    return 0;
}

static int64_t round_trip(Side *side) {
    int64_t start = now_ns();
    signal_one(side, "there");
    wait_one(side, "back");
    return now_ns() - start;
}

int run_engine_handoff(const char *url, const char *scripts, long rounds) {
    Game game = {.url = url, .scripts = scripts, .rounds = rounds};
    snprintf(game.space, sizeof game.space, "bench-%ld", (long)getpid());
    Side side = side_make(&game);
    Partner other = partner_start(play_other_side, &game);
    partner_read(&other);

    Samples samples = samples_make(rounds);
    for (long i = warmup_rounds(rounds); i > 0; i--) round_trip(&side);
    for (long i = 0; i < rounds; i++) samples_add(&samples, round_trip(&side));
    partner_join(&other);
    redisFree(side.wakeups);
    engine_leave(&side.engine, 1);

    samples_sort(&samples);
    printf("{\"mode\":\"engine-handoff\",\"rounds\":%ld,\"handoffs\":%ld,\"p50_us\":%.2f,\"p99_us\":%.2f}\n", rounds,
           2 * rounds, (double)samples_percentile(&samples, 50) / 2e3, (double)samples_percentile(&samples, 99) / 2e3);
    samples_free(&samples);
    return 0;
}
