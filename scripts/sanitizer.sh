# shellcheck shell=bash
# The arguments of a build with ThreadSanitizer. The package leaves out what its tests do not use, and TLS, a library of
# several hundred files of C. Its handler works on the thread of its connection, like hiredis, and has no state that threads
# share. Sourced.
# shellcheck disable=SC2034,SC2054
sanitized=(--sanitize=thread --scratch-path .build-tsan
    --traits LoggingSupport,MetricsSupport,TracingSupport,ServiceLifecycleSupport)
