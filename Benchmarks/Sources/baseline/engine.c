#define _POSIX_C_SOURCE 200809L
#include "baseline.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The files of each script, in the order of Scripts.swift in the library. Redis scripts cannot include one another, so
// each operation is joined with the shared parts.
static const char *const files[SCRIPTS][5] = {
    [JOIN] = {"join"},
    [LEAVE] = {"leave"},
    [ACQUIRE] = {"head", "resource", "acquire", "tail"},
    [RELEASE] = {"head", "release", "tail"},
    [SIGNAL] = {"head", "resource", "signal", "tail"},
    [CREATE] = {"head", "resource", "create", "tail"},
};
// One hour in microseconds.
static const char session_ttl[] = "3600000000";

// STRIDE: a request after every 32 answers tells the server which answers have arrived, as in the library.
enum { STRIDE = 32, MAX_WORDS = 24 };

static size_t read_file(const char *folder, const char *name, char *buffer, size_t size) {
    char path[1024];
    snprintf(path, sizeof path, "%s/engine_%s.lua", folder, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) fail(EXIT_USAGE, "cannot open the script %s", path);
    size_t length = fread(buffer, 1, size, file);
    fclose(file);
    if (length == size) fail(EXIT_INTERNAL, "the script %s is too long", path);
    return length;
}

static void load(Engine *engine, const char *folder, Script script) {
    static char source[256 * 1024];
    size_t length = 0;
    for (const char *const *file = files[script]; *file != NULL; file++) {
        length += read_file(folder, *file, source + length, sizeof source - length);
    }
    redisAppendCommand(engine->redis, "SCRIPT LOAD %b", source, length);
    redisReply *hash = redis_read(engine->redis);
    snprintf(engine->hashes[script], sizeof engine->hashes[script], "%s", hash->str);
    freeReplyObject(hash);
}

Engine engine_join(const char *url, const char *folder, const char *space) {
    Engine engine = {.redis = redis_connect(url)};
    static const char *const kinds[3] = {"book", "index", "sessions"};
    for (int i = 0; i < 3; i++) snprintf(engine.keys[i], sizeof engine.keys[i], "rdc:{%s:0}:%s", space, kinds[i]);
    snprintf(engine.id, sizeof engine.id, "%016llx%016llx", (unsigned long long)now_ns(), (unsigned long long)getpid());
    for (Script script = 0; script < SCRIPTS; script++) load(&engine, folder, script);
    engine_append_join(&engine, engine.id);
    freeReplyObject(redis_read(engine.redis));
    return engine;
}

// Writes the words that begin each call of a script. Only JOIN and LEAVE need all three keys.
static int begin(const Engine *engine, Script script, const char **words) {
    int keys = script == JOIN || script == LEAVE ? 3 : 2, count = 0;
    words[count++] = "EVALSHA";
    words[count++] = engine->hashes[script];
    words[count++] = keys == 3 ? "3" : "2";
    for (int i = 0; i < keys; i++) words[count++] = engine->keys[i];
    return count;
}

void engine_append_join(Engine *engine, const char *id) {
    const char *words[MAX_WORDS];
    int count = begin(engine, JOIN, words);
    words[count++] = id;
    words[count++] = "baseline";
    words[count++] = session_ttl;
    words[count++] = "1";
    words[count++] = "baseline";
    redisAppendCommandArgv(engine->redis, count, words, NULL);
}

// Writes the words of a request: its number, SETTLED (all requests up to this number are answered), the requests whose
// consumed permits have arrived, then the script's own arguments up to a NULL.
static int compose(const Engine *engine, Script script, const char *number, const char *settled, const char *arrived,
                   va_list own, const char **words) {
    int count = begin(engine, script, words);
    words[count++] = engine->id;
    words[count++] = number;
    words[count++] = settled;
    words[count++] = arrived;
    for (const char *word = va_arg(own, const char *); word != NULL; word = va_arg(own, const char *)) {
        words[count++] = word;
    }
    return count;
}

long engine_append(Engine *engine, Script script, long acknowledged, ...) {
    char number[24], settled[24] = "", arrived[24] = "";
    snprintf(number, sizeof number, "%ld", ++engine->requests);
    if (engine->answered - engine->settled >= STRIDE) {
        engine->settled = engine->answered;
        snprintf(settled, sizeof settled, "%ld", engine->settled);
    }
    if (acknowledged > 0) snprintf(arrived, sizeof arrived, "%ld", acknowledged);
    const char *words[MAX_WORDS];
    va_list own;
    va_start(own, acknowledged);
    int count = compose(engine, script, number, settled, arrived, own, words);
    va_end(own);
    redisAppendCommandArgv(engine->redis, count, words, NULL);
    return engine->requests;
}

void engine_print(const Engine *engine, Script script, const char *number, ...) {
    const char *words[MAX_WORDS];
    va_list own;
    va_start(own, number);
    int count = compose(engine, script, number, "", "", own, words);
    va_end(own);
    for (int i = 0; i < count; i++) printf("%s\"%s\"", i == 0 ? "[" : ",", words[i]);
    printf("]");
}

int engine_expect_either(Engine *engine, const char *one, const char *other) {
    redisReply *reply = redis_read(engine->redis);
    const char *word = reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 ? reply->element[0]->str : "";
    int is_one = strcmp(word, one) == 0;
    if (!is_one && strcmp(word, other) != 0) {
        fail(EXIT_INTERNAL, "the engine answered \"%s\" instead of \"%s\"", word, one);
    }
    freeReplyObject(reply);
    engine->answered++;
    return is_one;
}

void engine_expect(Engine *engine, const char *expected) { engine_expect_either(engine, expected, expected); }

void engine_leave(Engine *engine, int remove) {
    if (remove) {
        redis_run(engine->redis, "DEL %s %s %s", engine->keys[0], engine->keys[1], engine->keys[2]);
    } else {
        const char *words[MAX_WORDS];
        int count = begin(engine, LEAVE, words);
        words[count++] = engine->id;
        redisAppendCommandArgv(engine->redis, count, words, NULL);
        freeReplyObject(redis_read(engine->redis));
    }
    redisFree(engine->redis);
}
