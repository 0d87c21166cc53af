# shellcheck shell=bash
# The code that the stages of scripts/test share. A stage sources this file first; called by hand, it runs in
# scripts/test, after the stages that it needs. It must run in the bash 3.2 of macOS.

set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/kinds.sh
. "$root/scripts/kinds.sh"

stage="${0##*/}"
stage="${stage#[0-9][0-9]-}"
[ $# -gt 0 ] || exec "$root/scripts/test" --only "$stage"
# The folder of the run, see scripts/test.
folder="$1"
cd "$root"

# skip REASON: ends a stage that some systems cannot run.
skip() {
    printf '    SKIPPED: %s\n' "$1"
    exit 0
}

# missing REASON: ends a stage whose programs are not installed. In CI it fails: it would look like one that passed.
missing() {
    printf '    SKIPPED: %s\n' "$1"
    [ -z "${CI:-}" ] || exit 1
    exit 0
}

# count_tests NUMBER: for the table. A test program in which no test ran shows nothing, so it fails.
count_tests() {
    echo "$1" >>"$folder/$stage.count"
    [ "$1" -gt 0 ] || {
        printf '    No test ran.\n'
        return 1
    }
}

# run_tests ARGUMENT...: runs tests of the build that is up to date, with the arguments of swift test. Fails if one fails,
# or if none runs.
#
# Only the tests get the folder as TMPDIR: the Swift package manager keeps the locks of its caches there, and another build
# of the same user must see those.
run_tests() {
    local status=0 verdict=0 events="$folder/$stage.events"
    rm -f "$events"
    TMPDIR="$folder" swift test --skip-build --disable-xctest --event-stream-output-path "$events" \
        --event-stream-version 0 "$@" 2>&1 | tee "$folder/tests.out" || status=$?
    printf '\n'
    scripts/results --count "$folder/$stage.count" "$events" || verdict=$?
    [ "$verdict" -ne 0 ] || verdict="$status"
    [ "$verdict" -eq 0 ] || grep -a -E 'error:|Fatal error|WARNING: ThreadSanitizer|SUMMARY:' "$folder/tests.out" || true
    return "$verdict"
}

# run_kind KIND [ARGUMENT]...: runs the tests of a kind.
run_kind() {
    local list argument arguments=()
    list="$(tests_of "$1")" || return
    while IFS= read -r argument; do arguments+=("$argument"); done <<<"$list"
    shift
    run_tests "${arguments[@]}" "$@"
}

# run_with_others KIND...: runs the tests of kinds with each other server. A server of a package may be missing on some
# systems, so it is not required.
run_with_others() {
    local name program kind failed="" ran=""
    for name in $(scripts/servers); do
        if ! program="$(scripts/servers "$name" 2>"$folder/reason")"; then
            printf '    SKIPPED: %s\n' "$(cat "$folder/reason")"
            continue
        fi
        ran=yes
        printf '    %s: %s\n' "$name" "$("$program" --version)"
        for kind in "$@"; do
            REDISDC_TEST_SERVER="$program" run_kind "$kind" || failed="$failed $name:$kind"
        done
    done
    [ -n "$ran" ] || missing "no other server is available"
    [ -z "$failed" ] || printf '\n    FAILED with:%s\n' "$failed"
    [ -z "$failed" ]
}

# run_python PROGRAM ARGUMENT...: the program prints a line for each check that passed, or was skipped.
run_python() {
    local passed
    TMPDIR="$folder" python3 "$@" >"$folder/$stage.out" 2>&1 || {
        tail -n 40 "$folder/$stage.out"
        return 1
    }
    passed="$(grep -c '^ok: ' "$folder/$stage.out" || true)"
    printf '    %s: %s checks passed\n' "$1" "$passed"
    sed -n 's/^SKIPPED: /    &/p' "$folder/$stage.out"
    # A time that a check has measured is no condition, but it is shown.
    grep -E '^ok: .* [0-9.]+ s$' "$folder/$stage.out" | sed 's/^ok: /        /' || true
    count_tests "$passed"
}

# run_browser PROGRAM ARGUMENT...: the last argument is the folder for screenshots.
run_browser() {
    run_python "$@" || {
        printf '    Screenshots are in %s\n' "${!#}"
        return 1
    }
}

# run_node FOLDER [OPTION OF node]...: runs the JavaScript tests in a folder. Nothing else needs Node.js, so it is not
# installed.
run_node() {
    local tests="$1" passed
    shift
    node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)' 2>/dev/null ||
        missing "the tests in $tests need Node.js 20 or later"
    TMPDIR="$folder" node "$@" --test "$tests"/*.test.js >"$folder/$stage.out" 2>&1 || {
        grep -a -A 20 -E '^ *not ok' "$folder/$stage.out" || tail -n 40 "$folder/$stage.out"
        return 1
    }
    passed="$(sed -n 's/^# pass //p' "$folder/$stage.out")"
    printf '    %s: %s passed\n' "$tests" "$passed"
    count_tests "${passed:-0}"
}

# Skips the stage unless there are a browser and selenium, which is put into .build.
require_selenium() {
    local selenium="$root/.build/selenium-4.34.2"
    has_chromium || missing "the tests in browsers need chromium and chromedriver"
    if [ ! -d "$selenium" ]; then
        if ! python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore \
            --target "$selenium.new" selenium==4.34.2 >"$folder/pip.out" 2>&1; then
            rm -rf "$selenium.new"
            missing "selenium cannot be installed: $(tail -n 1 "$folder/pip.out")"
        fi
        mv "$selenium.new" "$selenium"
    fi
    mkdir -p "$root/.build/browsers"
    export PYTHONPATH="$selenium"
}

# Skips the stage unless it may use network namespaces.
require_namespaces() {
    unshare --user --map-root-user --net ip link set lo up 2>/dev/null ||
        skip "$1 needs Linux with ip, unshare and user namespaces"
}

# The server of the run, for programs that start one.
redis_server() { echo "${REDISDC_TEST_SERVER:-$(command -v redis-server)}"; }

# must_fail WHAT COMMAND...: for a check that is shown a fault, which it must find.
must_fail() {
    local what="$1"
    shift
    ! "$@" >"$folder/$stage.seeded" 2>&1 || {
        printf '    %s was not found\n' "$what"
        return 1
    }
}
