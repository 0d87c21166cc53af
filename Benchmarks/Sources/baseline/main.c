#define _POSIX_C_SOURCE 200809L
#include "baseline.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: baseline handoff URL ROUNDS             hand a token back and forth between two processes\n"
    "       baseline peer    URL INBOX OUTBOX       play the other side of a hand-off: BRPOP INBOX, LPUSH OUTBOX\n"
    "       baseline pubsub  URL ROUNDS             publish to another process, one message at a time\n"
    "       baseline fanout  URL CHANNELS ROUNDS    publish to many channels of one subscriber\n"
    "       baseline engine-handoff URL SCRIPTS ROUNDS\n"
    "                        hand a token back and forth with the engine's scripts and wake-ups\n"
    "       baseline pairs   URL SCRIPTS WIDTH ROUNDS\n"
    "                        lock and unlock WIDTH mutexes of the engine, each step in one pipeline\n"
    "       baseline words   URL SCRIPTS CLAIMS\n"
    "                        print a lock and an unlock for redis-benchmark, with __rand_int__ for one of CLAIMS\n"
    "       baseline signals URL SCRIPTS SPACE PREFIX COUNT\n"
    "                        signal COUNT semaphores of the engine in one pipeline\n"
    "       baseline crowd   URL SCRIPTS waiters|sessions|names COUNT ROUNDS\n"
    "                        measure the server time of operations beside COUNT waiters, sessions or names\n"
    "\n"
    "URL is redis://HOST:PORT, unix:///PATH or the path of a Unix socket. SCRIPTS is the folder with the engine's Lua\n"
    "files. Each mode prints its figures as one line of JSON.\n"
    "A peer ends at the token \"stop\", or with the process that started it.\n";

_Noreturn void fail(int code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("baseline: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(code);
}

static long number(const char *name, const char *text, long max) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < 1 || value > max) {
        fail(EXIT_USAGE, "%s must be a number from 1 to %ld, not \"%s\"", name, max, text);
    }
    return value;
}

int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "";
    const long max_rounds = 10 * 1000 * 1000;
    const long max_channels = 100 * 1000;
    const long max_count = 1000 * 1000;

    if (strcmp(mode, "handoff") == 0 && count == 4) {
        return run_handoff(arguments[2], number("ROUNDS", arguments[3], max_rounds));
    }
    if (strcmp(mode, "peer") == 0 && count == 5) {
        return run_peer(arguments[2], arguments[3], arguments[4]);
    }
    if (strcmp(mode, "pubsub") == 0 && count == 4) {
        return run_pubsub(arguments[2], number("ROUNDS", arguments[3], max_rounds));
    }
    if (strcmp(mode, "fanout") == 0 && count == 5) {
        return run_fanout(arguments[2], number("CHANNELS", arguments[3], max_channels),
                          number("ROUNDS", arguments[4], max_rounds));
    }
    if (strcmp(mode, "engine-handoff") == 0 && count == 5) {
        return run_engine_handoff(arguments[2], arguments[3], number("ROUNDS", arguments[4], max_rounds));
    }
    if (strcmp(mode, "pairs") == 0 && count == 6) {
        return run_pairs(arguments[2], arguments[3], number("WIDTH", arguments[4], 1000),
                         number("ROUNDS", arguments[5], max_rounds));
    }
    if (strcmp(mode, "words") == 0 && count == 5) {
        return run_words(arguments[2], arguments[3], number("CLAIMS", arguments[4], max_count));
    }
    if (strcmp(mode, "signals") == 0 && count == 7) {
        return run_signals(arguments[2], arguments[3], arguments[4], arguments[5],
                           number("COUNT", arguments[6], max_count));
    }
    if (strcmp(mode, "crowd") == 0 && count == 7) {
        return run_crowd(arguments[2], arguments[3], arguments[4], number("COUNT", arguments[5], max_count),
                         number("ROUNDS", arguments[6], max_rounds));
    }
    if (strcmp(mode, "--help") == 0 || strcmp(mode, "-h") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    fputs(usage, stderr);
    return EXIT_USAGE;
}
