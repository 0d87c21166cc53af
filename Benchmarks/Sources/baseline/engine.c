#define _POSIX_C_SOURCE 200809L
#include "baseline.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The file of each script.
static const char *const files[SCRIPTS] = {
    [JOIN] = "join",
    [LEAVE] = "leave",
    [ACQUIRE] = "acquire",
    [RELEASE] = "release",
    [RELEASE_MUTEX] = "release_mutex",
    [SIGNAL] = "signal",
    [CREATE] = "create",
};
// One hour in microseconds.
static const char session_ttl[] = "3600000000";

enum { MAX_WORDS = 24, MAX_SCRIPT = 256 * 1024 };

static size_t read_script(const char *folder, const char *name, char *buffer, size_t size) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.lua", folder, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) fail(EXIT_USAGE, "cannot open the script %s", path);
    size_t length = fread(buffer, 1, size, file);
    fclose(file);
    if (length == size) fail(EXIT_INTERNAL, "the script %s is too long", path);
    return length;
}

static void load(Engine *engine, const char *folder, Script script) {
    static char text[MAX_SCRIPT];
    size_t length = read_script(folder, files[script], text, sizeof text);
    redisAppendCommand(engine->redis, "SCRIPT LOAD %b", text, length);
    redisReply *hash = redis_read(engine->redis);
    snprintf(engine->hashes[script], sizeof engine->hashes[script], "%s", hash->str);
    freeReplyObject(hash);
}

Engine engine_join(const char *url, const char *folder, const char *space) {
    Engine engine = {.redis = redis_connect(url)};
    static const char *const kinds[4] = {"book", "index", "sessions", "values"};
    for (int i = 0; i < 4; i++) snprintf(engine.keys[i], sizeof engine.keys[i], "rdc:{%s:0}:%s", space, kinds[i]);
    // 16 characters, like the library's. The time and the process differ between sessions.
    snprintf(engine.id, sizeof engine.id, "%010llx%06lx", (unsigned long long)now_ns() & 0xffffffffff,
             (unsigned long)getpid() & 0xffffff);
    for (Script script = 0; script < SCRIPTS; script++) load(&engine, folder, script);
    engine_append_join(&engine, engine.id);
    engine_expect_joined(&engine);
    return engine;
}

// Writes the words that begin each call of a script. Only JOIN and LEAVE need all four keys.
static int begin(const Engine *engine, Script script, const char **words) {
    int keys = script == JOIN || script == LEAVE ? 4 : 2, count = 0;
    words[count++] = "EVALSHA";
    words[count++] = engine->hashes[script];
    words[count++] = keys == 4 ? "4" : "2";
    for (int i = 0; i < keys; i++) words[count++] = engine->keys[i];
    return count;
}

void engine_append_join(Engine *engine, const char *id) {
    const char *words[MAX_WORDS];
    int count = begin(engine, JOIN, words);
    words[count++] = id;
    words[count++] = "baseline";
    words[count++] = session_ttl;
    words[count++] = "1 layout 3";
    words[count++] = "baseline";
    redisAppendCommandArgv(engine->redis, count, words, NULL);
}

void engine_expect_joined(Engine *engine) {
    redisReply *reply = redis_read(engine->redis);
    const char *word = reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 ? reply->element[0]->str : "";
    if (strcmp(word, "ok") != 0) fail(EXIT_INTERNAL, "the engine answered \"%s\" to the join", word);
    freeReplyObject(reply);
}

// Writes the words of a request: the slot's field, the request's number, the resource's field, then the script's own
// arguments up to a NULL.
static int compose(const Engine *engine, Script script, const char *slot, const char *number, const char *resource,
                   va_list own, const char **words) {
    int count = begin(engine, script, words);
    words[count++] = slot;
    words[count++] = number;
    words[count++] = resource;
    for (const char *word = va_arg(own, const char *); word != NULL; word = va_arg(own, const char *)) {
        words[count++] = word;
    }
    return count;
}

static void append(Engine *engine, Script script, const char *slot, const char *number, const char *name, va_list own) {
    char slot_field[64], resource[272];
    snprintf(slot_field, sizeof slot_field, "c:%s:%s", engine->id, slot);
    snprintf(resource, sizeof resource, "t:%s", name);
    const char *words[MAX_WORDS];
    int count = compose(engine, script, slot_field, number, resource, own, words);
    redisAppendCommandArgv(engine->redis, count, words, NULL);
}

void engine_append_words(Engine *engine, Script script, const char *slot, const char *number, const char *name, ...) {
    va_list own;
    va_start(own, name);
    append(engine, script, slot, number, name, own);
    va_end(own);
}

Request engine_append(Engine *engine, Script script, const char *name, ...) {
    Request request = {.slot = engine->free_count > 0 ? engine->free_slots[--engine->free_count] : engine->slots++,
                       .number = ++engine->requests};
    char slot[24], number[24];
    snprintf(slot, sizeof slot, "%ld", request.slot);
    snprintf(number, sizeof number, "%ld", request.number);
    va_list own;
    va_start(own, name);
    append(engine, script, slot, number, name, own);
    va_end(own);
    return request;
}

void engine_append_release(Engine *engine, Script script, const char *name, Request claim) {
    char slot[24], number[24], claim_number[24];
    snprintf(slot, sizeof slot, "%ld", claim.slot);
    snprintf(number, sizeof number, "%ld", ++engine->requests);
    snprintf(claim_number, sizeof claim_number, "%ld", claim.number);
    engine_append_words(engine, script, slot, number, name, claim_number, NULL);
}

void engine_free(Engine *engine, Request request) {
    if (engine->free_count == engine->free_capacity) {
        engine->free_capacity = engine->free_capacity == 0 ? 64 : 2 * engine->free_capacity;
        engine->free_slots = realloc(engine->free_slots, (size_t)engine->free_capacity * sizeof *engine->free_slots);
        if (engine->free_slots == NULL) fail(EXIT_INTERNAL, "out of memory for %ld slots", engine->free_capacity);
    }
    engine->free_slots[engine->free_count++] = request.slot;
}

void engine_print(const Engine *engine, Script script, const char *slot, const char *number, const char *name, ...) {
    char slot_field[64], resource[272];
    snprintf(slot_field, sizeof slot_field, "c:%s:%s", engine->id, slot);
    snprintf(resource, sizeof resource, "t:%s", name);
    const char *words[MAX_WORDS];
    va_list own;
    va_start(own, name);
    int count = compose(engine, script, slot_field, number, resource, own, words);
    va_end(own);
    for (int i = 0; i < count; i++) printf("%s\"%s\"", i == 0 ? "[" : ",", words[i]);
    printf("]");
}

long long engine_answer(Engine *engine) {
    redisReply *reply = redis_read(engine->redis);
    if (reply->type != REDIS_REPLY_INTEGER) {
        const char *word = reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 ? reply->element[0]->str : NULL;
        fail(EXIT_INTERNAL, "the engine answered \"%s\" instead of a number", word == NULL ? "" : word);
    }
    long long answer = reply->integer;
    freeReplyObject(reply);
    return answer;
}

void engine_expect_success(Engine *engine) {
    long long answer = engine_answer(engine);
    if (answer < 1) fail(EXIT_INTERNAL, "the engine answered %lld instead of 1 or a fence", answer);
}

void engine_expect_queued(Engine *engine) {
    long long answer = engine_answer(engine);
    if (answer != 0) fail(EXIT_INTERNAL, "the engine answered %lld instead of 0, which means queued", answer);
}

void engine_leave(Engine *engine, int remove) {
    if (remove) {
        redis_run(engine->redis, "DEL %s %s %s %s", engine->keys[0], engine->keys[1], engine->keys[2],
                  engine->keys[3]);
    } else {
        const char *words[MAX_WORDS];
        int count = begin(engine, LEAVE, words);
        words[count++] = engine->id;
        redisAppendCommandArgv(engine->redis, count, words, NULL);
        freeReplyObject(redis_read(engine->redis));
    }
    free(engine->free_slots);
    redisFree(engine->redis);
}
