#define _POSIX_C_SOURCE 200809L
#include "baseline.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static const struct timeval connect_limit = {.tv_sec = 2};

static redisContext *connect_tcp(const char *address) {
    // The error does not repeat the address: an address with an @ may contain a password.
    static const char expected[] = "the URL must be redis://HOST:PORT, without user, password or database";
    char host[256];
    const char *colon = strrchr(address, ':');
    size_t length = colon == NULL ? strlen(address) : (size_t)(colon - address);
    long port = 6379;
    if (colon != NULL) {
        char *end;
        port = strtol(colon + 1, &end, 10);
        if (*end == '/' && end[1] == '\0') end++;
        if (end == colon + 1 || *end != '\0' || port < 1 || port > 65535) fail(EXIT_USAGE, "%s", expected);
    }
    if (length == 0 || length >= sizeof host || strpbrk(address, "@?#") != NULL) fail(EXIT_USAGE, "%s", expected);
    memcpy(host, address, length);
    host[length] = '\0';
    return redisConnectWithTimeout(host, (int)port, connect_limit);
}

redisContext *redis_connect(const char *url) {
    redisContext *redis;
    if (strncmp(url, "redis://", 8) == 0) {
        redis = connect_tcp(url + 8);
    } else if (strncmp(url, "unix://", 7) == 0) {
        redis = redisConnectUnixWithTimeout(url + 7, connect_limit);
    } else if (url[0] == '/') {
        redis = redisConnectUnixWithTimeout(url, connect_limit);
    } else {
        fail(EXIT_USAGE, "the URL must be redis://HOST:PORT, unix:///PATH or the path of a Unix socket");
    }
    if (redis == NULL) fail(EXIT_INTERNAL, "out of memory");
    if (redis->err) fail(EXIT_UNAVAILABLE, "cannot connect to Redis at %s: %s", url, redis->errstr);

    // The limit guards against a server that is not Redis and never answers.
    redis_read_limit(redis, connect_limit.tv_sec);
    redisReply *reply = redisCommand(redis, "PING");
    if (reply == NULL) fail(EXIT_UNAVAILABLE, "Redis at %s did not answer PING: %s", url, redis->errstr);
    if (reply->type == REDIS_REPLY_ERROR) fail(EXIT_UNAVAILABLE, "Redis at %s refused PING: %s", url, reply->str);
    freeReplyObject(reply);
    redis_read_limit(redis, 0);
    return redis;
}

void redis_read_limit(redisContext *redis, long seconds) {
    redisSetTimeout(redis, (struct timeval){.tv_sec = seconds});
}

static redisReply *checked(redisContext *redis, redisReply *reply) {
    if (reply == NULL && redis->err == REDIS_ERR_IO && errno == EAGAIN) {
        fail(EXIT_UNAVAILABLE, "Redis did not answer within the time limit");
    }
    if (reply == NULL) fail(EXIT_UNAVAILABLE, "the connection broke: %s", redis->errstr);
    if (reply->type == REDIS_REPLY_ERROR) fail(EXIT_INTERNAL, "Redis answered: %s", reply->str);
    return reply;
}

void redis_run(redisContext *redis, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = redisvCommand(redis, format, arguments);
    va_end(arguments);
    freeReplyObject(checked(redis, reply));
}

redisReply *redis_read(redisContext *redis) {
    void *reply = NULL;
    if (redisGetReply(redis, &reply) != REDIS_OK) reply = NULL;
    return checked(redis, reply);
}

redisReply *redis_message(redisContext *redis) {
    for (;;) {
        redisReply *reply = redis_read(redis);
        if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3) fail(EXIT_INTERNAL, "expected a pub/sub message");
        if (reply->element[0]->str[0] == 'm') return reply;
        freeReplyObject(reply);
    }
}

redisReply *redis_brpop(redisContext *redis, const char *list, int seconds) {
    redisReply *reply = checked(redis, redisCommand(redis, "BRPOP %s %d", list, seconds));
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2) return reply;
    freeReplyObject(reply);
    return NULL;
}
