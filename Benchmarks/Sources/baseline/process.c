#define _POSIX_C_SOURCE 200809L
#include "baseline.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

volatile sig_atomic_t stop_requested = 0;
static pid_t leash = 0;

static void request_stop(int signal) {
    (void)signal;
    stop_requested = 1;
}

void catch_stop_signals(void) {
    struct sigaction action = {.sa_handler = request_stop, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

Partner partner_start(int (*play)(int pipe, const void *argument), const void *argument) {
    int ends[2];
    if (pipe(ends) != 0) fail(EXIT_INTERNAL, "pipe: %s", strerror(errno));
    pid_t parent = getpid();
    pid_t child = fork();
    if (child < 0) fail(EXIT_INTERNAL, "fork: %s", strerror(errno));
    if (child == 0) {
        close(ends[0]);
        end_with(parent);
        // Ctrl-C in a terminal reaches both processes, and only the parent can delete the keys and end the child.
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
        _exit(play(ends[1], argument));
    }
    close(ends[1]);
    return (Partner){.pid = child, .pipe = ends[0]};
}

int64_t partner_read(const Partner *partner) {
    int64_t value;
    ssize_t got;
    do got = read(partner->pipe, &value, sizeof value);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof value) {
        partner_join(partner);
        fail(EXIT_INTERNAL, "the other process ended early");
    }
    return value;
}

void partner_write(int pipe, int64_t value) {
    // A pipe writes eight bytes atomically. SIGPIPE ends this process when the reader has closed its end.
    if (write(pipe, &value, sizeof value) != (ssize_t)sizeof value) _exit(EXIT_INTERNAL);
}

void partner_join(const Partner *partner) {
    int status = 0;
    while (waitpid(partner->pid, &status, 0) < 0) {
        if (errno != EINTR) fail(EXIT_INTERNAL, "waitpid: %s", strerror(errno));
    }
    // The partner has printed the reason to standard error.
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) exit(WEXITSTATUS(status));
    if (WIFSIGNALED(status)) fail(EXIT_INTERNAL, "signal %d ended the other process", WTERMSIG(status));
}

// Checks once a second with an alarm. A read timeout would not do: it makes a hiredis connection unusable.
static void check_leash(int signal) {
    (void)signal;
    if (getppid() != leash) _exit(0);
    alarm(1);
}

void end_with(pid_t parent) {
    leash = parent;
    struct sigaction action = {.sa_handler = check_leash, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    alarm(1);
}
