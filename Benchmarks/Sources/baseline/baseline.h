// The C program that the Swift client is compared with. It uses hiredis's synchronous API with one connection and one
// outstanding command. Each mode has a file of its own; the modes share redis.c, engine.c, measure.c and process.c.
#ifndef BASELINE_H
#define BASELINE_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <hiredis/hiredis.h>

// Exit codes from sysexits(3).
enum { EXIT_USAGE = 64, EXIT_UNAVAILABLE = 69, EXIT_INTERNAL = 70 };

// Each of these runs one mode and returns the exit code of the program.
int run_handoff(const char *url, long rounds);
int run_peer(const char *url, const char *inbox, const char *outbox);
int run_pubsub(const char *url, long rounds);
int run_fanout(const char *url, long channels, long rounds);
int run_engine_handoff(const char *url, const char *scripts, long rounds);
int run_pairs(const char *url, const char *scripts, long width, long rounds);
int run_words(const char *url, const char *scripts, long claims);
int run_signals(const char *url, const char *scripts, const char *space, const char *prefix, long count);
int run_crowd(const char *url, const char *scripts, const char *kind, long count, long rounds);

// Plays one side of a hand-off on one connection: moves each token from `inbox` to `outbox`, until the token "stop".
void play_peer(const char *url, const char *inbox, const char *outbox);

// Prints "baseline: " and the message to standard error and ends the process.
_Noreturn void fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

// redis.c ------------------------------------------------------------------------------------------------------------

// Connects and sends PING. Ends the process with EXIT_UNAVAILABLE if no Redis answers.
redisContext *redis_connect(const char *url);

// Limits how long a read may block, in seconds. 0 means no limit.
void redis_read_limit(redisContext *redis, long seconds);

// Sends one command and waits for its reply. An error reply or a broken connection ends the process; the same holds for
// the functions below.
void redis_run(redisContext *redis, const char *format, ...);

// Returns the next reply or message of the connection. The caller frees it.
redisReply *redis_read(redisContext *redis);

// Blocks until a pub/sub message arrives and returns it. Skips the replies to SUBSCRIBE. The caller frees the message.
redisReply *redis_message(redisContext *redis);

// Runs BRPOP with a timeout in seconds. Returns NULL after the timeout. The caller frees the reply, whose element[1] is
// the value.
redisReply *redis_brpop(redisContext *redis, const char *list, int seconds);

// engine.c -----------------------------------------------------------------------------------------------------------

// The scripts of the coordination engine that the modes run. SCRIPTS is their number.
typedef enum { JOIN, LEAVE, ACQUIRE, RELEASE, RELEASE_MUTEX, SIGNAL, CREATE, SCRIPTS } Script;

// A session of the engine. As in the library, its requests are numbered, and each takes the slot that was freed last.
// The session sends no heartbeats; its TTL is one hour instead.
typedef struct {
    redisContext *redis;
    char hashes[SCRIPTS][41];
    char keys[4][160];
    char id[17];
    long requests;
    // The number of slots that the session has used, and those that are free.
    long slots;
    long *free_slots;
    long free_count;
    long free_capacity;
} Engine;

// A request, and the claim that it creates.
typedef struct {
    long slot;
    long number;
} Request;

// Loads the scripts from the library's folder and starts a session in the namespace `space`.
Engine engine_join(const char *url, const char *folder, const char *space);
// Appends one request to the output buffer and returns it. The script's own arguments follow the name of the resource
// as strings; a NULL ends them. The request occupies its slot until engine_free().
Request engine_append(Engine *engine, Script script, const char *name, ...);
// Appends a request with this slot and this number, which the caller chooses.
void engine_append_words(Engine *engine, Script script, const char *slot, const char *number, const char *name, ...);
// Appends a request that releases a claim. `script` is RELEASE or RELEASE_MUTEX.
void engine_append_release(Engine *engine, Script script, const char *name, Request claim);
// Makes a request's slot free for the next one: its answer has arrived, and its claim has ended. If the claim was of
// consumed permits, the next request in the slot confirms their arrival.
void engine_free(Engine *engine, Request request);
// Prints the words of a request as a JSON array, with `slot` and `number` as the slot and the number.
void engine_print(const Engine *engine, Script script, const char *slot, const char *number, const char *name, ...);
// Reads the next answer, which must be a number.
long long engine_answer(Engine *engine);
// Reads the next answer. Ends the process unless it is 1 or a fence.
void engine_expect_success(Engine *engine);
// Reads the next answer. Ends the process unless it is 0: the claim is queued.
void engine_expect_queued(Engine *engine);
// Appends a request that starts another session, which stays idle. engine_expect_joined() reads the answer.
void engine_append_join(Engine *engine, const char *id);
void engine_expect_joined(Engine *engine);
// Ends the connection. With `remove`, deletes the keys of the namespace; otherwise only the session leaves.
void engine_leave(Engine *engine, int remove);

// measure.c ----------------------------------------------------------------------------------------------------------

// Returns the time of CLOCK_MONOTONIC in nanoseconds. All processes of a machine share this clock.
int64_t now_ns(void);

typedef struct {
    int64_t *values;
    long count;
    long capacity;
} Samples;

Samples samples_make(long capacity);
void samples_add(Samples *samples, int64_t value);
// Sorts the values. Required before samples_percentile.
void samples_sort(Samples *samples);
// Returns a percentile by nearest rank.
int64_t samples_percentile(const Samples *samples, int percent);
double samples_mean(const Samples *samples);
void samples_free(Samples *samples);

// Returns the number of uncounted rounds to run first: caches, branch predictors and Redis's buffers are cold at the
// start.
long warmup_rounds(long rounds);

// process.c ----------------------------------------------------------------------------------------------------------

// Set by SIGINT and SIGTERM after catch_stop_signals(), so that the modes can delete their keys before they exit.
extern volatile sig_atomic_t stop_requested;
void catch_stop_signals(void);

// The second process of a two-process mode. partner_start forks it and runs `play` in it; the result of `play` is its
// exit code. It receives the write end of a pipe, and the caller the read end: for "ready" and for measured values.
typedef struct {
    pid_t pid;
    int pipe;
} Partner;

Partner partner_start(int (*play)(int pipe, const void *argument), const void *argument);
// Reads one number that the partner wrote. Ends this process if the partner ended instead.
int64_t partner_read(const Partner *partner);
void partner_write(int pipe, int64_t value);
// Waits for the partner to exit. If it failed, this process exits with the same code.
void partner_join(const Partner *partner);

// Ends this process within about one second after `parent` ends.
void end_with(pid_t parent);

#endif
