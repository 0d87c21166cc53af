#define _POSIX_C_SOURCE 200809L
#include "baseline.h"

#include <stdlib.h>
#include <time.h>

int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

Samples samples_make(long capacity) {
    Samples made = {.values = calloc((size_t)capacity, sizeof(int64_t)), .count = 0, .capacity = capacity};
    if (made.values == NULL) fail(EXIT_INTERNAL, "out of memory for %ld samples", capacity);
    return made;
}

void samples_add(Samples *samples, int64_t value) {
    if (samples->count < samples->capacity) samples->values[samples->count++] = value;
}

static int ascending(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

void samples_sort(Samples *samples) {
    qsort(samples->values, (size_t)samples->count, sizeof(int64_t), ascending);
}

int64_t samples_percentile(const Samples *samples, int percent) {
    if (samples->count == 0) return 0;
    long rank = (samples->count * percent + 99) / 100;
    return samples->values[rank > 0 ? rank - 1 : 0];
}

double samples_mean(const Samples *samples) {
    double sum = 0;
    for (long i = 0; i < samples->count; i++) sum += (double)samples->values[i];
    return samples->count == 0 ? 0 : sum / (double)samples->count;
}

void samples_free(Samples *samples) {
    free(samples->values);
    samples->values = NULL;
}

long warmup_rounds(long rounds) {
    long tenth = rounds / 10;
    return tenth < 100 ? 100 : tenth > 2000 ? 2000 : tenth;
}
