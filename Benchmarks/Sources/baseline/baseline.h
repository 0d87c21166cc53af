// The C baseline: what hiredis's synchronous API does with one connection and one outstanding command, which is what
// the Swift client is compared with. One file for each mode; redis.c, measure.c and
// process.c are what the modes share.
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
