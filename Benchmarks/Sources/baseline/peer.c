#define _POSIX_C_SOURCE 200809L
#include "baseline.h"

#include <string.h>
#include <unistd.h>

void play_peer(const char *url, const char *inbox, const char *outbox) {
    redisContext *redis = redis_connect(url);
    for (int stop = 0; !stop;) {
        redisReply *token = redis_brpop(redis, inbox, 0);
        if (token == NULL) continue;
        const redisReply *value = token->element[1];
        stop = strcmp(value->str, "stop") == 0;
        if (!stop) redis_run(redis, "LPUSH %s %b", outbox, value->str, value->len);
        freeReplyObject(token);
    }
    redisFree(redis);
}

int run_peer(const char *url, const char *inbox, const char *outbox) {
    end_with(getppid());
    play_peer(url, inbox, outbox);
    return 0;
}
