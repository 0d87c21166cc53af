// The C baseline: what hiredis's synchronous API does with one connection and one outstanding command, which is what
// the Swift client is compared with. One file for each mode; redis.c, engine.c, measure.c and process.c are what the
// modes share.
#ifndef BASELINE_H
#define BASELINE_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <hiredis/hiredis.h>

// Exit codes, of sysexits(3).
enum { EXIT_USAGE = 64, EXIT_UNAVAILABLE = 69, EXIT_INTERNAL = 70 };

// One run of each mode; the result is the exit code of the program.
int run_handoff(const char *url, long rounds);
int run_peer(const char *url, const char *inbox, const char *outbox);
int run_pubsub(const char *url, long rounds);
int run_fanout(const char *url, long channels, long rounds);
int run_engine_handoff(const char *url, const char *scripts, long rounds);
int run_pairs(const char *url, const char *scripts, long width, long rounds);
int run_words(const char *url, const char *scripts, long claims);
int run_signals(const char *url, const char *scripts, const char *space, const char *prefix, long count);
int run_crowd(const char *url, const char *scripts, const char *kind, long count, long rounds);

// One side of a hand-off, on one connection: takes each token from `inbox` and puts it into `outbox`, until "stop".
void play_peer(const char *url, const char *inbox, const char *outbox);

// Prints "baseline: ..." to standard error and ends the process.
_Noreturn void fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

// redis.c ------------------------------------------------------------------------------------------------------------

// Connects and checks with PING; ends the process with EXIT_UNAVAILABLE where no Redis answers.
redisContext *redis_connect(const char *url);

// Limits how long a read may block. A limit of 0 means forever.
void redis_read_limit(redisContext *redis, long seconds);

// Sends one command and waits for its reply. An error reply or a broken connection ends the process, here and below.
void redis_run(redisContext *redis, const char *format, ...);

// The next reply or message of the connection, which the caller frees.
redisReply *redis_read(redisContext *redis);

// Blocks until a message of pub/sub arrives, and passes over the answers to SUBSCRIBE. The caller frees it.
redisReply *redis_message(redisContext *redis);

// BRPOP with a limit in seconds. NULL when nothing came; the caller frees the reply, whose element[1] is the value.
redisReply *redis_brpop(redisContext *redis, const char *list, int seconds);

// engine.c -----------------------------------------------------------------------------------------------------------

// The scripts of the coordination engine that the modes run.
typedef enum { JOIN, LEAVE, ACQUIRE, RELEASE, SIGNAL, CREATE, SCRIPTS } Script;

// A session of the engine, as the library keeps one: requests are numbered, and now and then the server hears up to
// which one the answers have arrived. It sends no heartbeats: it lasts for an hour instead.
typedef struct {
    redisContext *redis;
    char hashes[SCRIPTS][41];
    char keys[3][160];
    char id[33];
    long requests;
    long answered;
    long told;
} Engine;

// Loads the scripts from the library's folder and joins the namespace `space`.
Engine engine_join(const char *url, const char *folder, const char *space);
// Puts one request into the output buffer and returns its number. `acknowledged` is the number of a request whose
// consumed permits have arrived, or 0. What follows are the script's own arguments, as strings, up to a NULL.
long engine_append(Engine *engine, Script script, long acknowledged, ...);
// Prints the words of a request as JSON, with this text for its number.
void engine_print(const Engine *engine, Script script, const char *number, ...);
// Reads the next answer; ends the process if its first word is not `expected`.
void engine_expect(Engine *engine, const char *expected);
// The same with two words that may come; whether it was the first.
int engine_expect_either(Engine *engine, const char *one, const char *other);
// Begins another session that is there and does nothing. Its answer has to be read.
void engine_append_join(Engine *engine, const char *id);
// Ends the session and removes the namespace, or leaves it to others.
void engine_leave(Engine *engine, int remove);

// measure.c ----------------------------------------------------------------------------------------------------------

// CLOCK_MONOTONIC, which all processes of a machine share.
int64_t now_ns(void);

typedef struct {
    int64_t *values;
    long count;
    long capacity;
} Samples;

Samples samples_make(long capacity);
void samples_add(Samples *samples, int64_t value);
// Sorts the values: percentiles (nearest rank) can be asked for afterwards.
void samples_sort(Samples *samples);
int64_t samples_percentile(const Samples *samples, int percent);
double samples_mean(const Samples *samples);
void samples_free(Samples *samples);

// Rounds that run first and are not counted: caches, branch predictors and Redis's own buffers are cold at the start.
long warmup_rounds(long rounds);

// process.c ----------------------------------------------------------------------------------------------------------

// Set by SIGINT and SIGTERM, which otherwise would leave keys behind.
extern volatile sig_atomic_t stop_requested;
void catch_stop_signals(void);

// Makes the other process of a two-process mode. `play` runs in it, and its result is its exit code. It has the write
// end of a pipe, the caller gets the read end: for "ready", and for what it measured.
typedef struct {
    pid_t pid;
    int pipe;
} Partner;

Partner partner_start(int (*play)(int pipe, const void *argument), const void *argument);
// Reads one number that the partner wrote; ends this process when the partner ended instead.
int64_t partner_read(const Partner *partner);
void partner_write(int pipe, int64_t value);
// Waits for its end, and passes its failure on.
void partner_join(const Partner *partner);

// Ends this process within about a second of the end of `parent`: nobody would send it anything any more.
void end_with(pid_t parent);

#endif
