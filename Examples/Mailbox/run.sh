#!/usr/bin/env bash
# Runs a sender and two recipients with two devices each as separate processes, and kills two of them with SIGKILL.
# usage: run.sh [COUNT], with REDIS_URL set and `mailbox` built (swift build --product mailbox).
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
program="${MAILBOX:-$root/.build/debug/mailbox}"
count="${1:-2000}"
folder="$(mktemp -d)"
cd "$folder"
children=()

finish() {
    local child
    for child in ${children[@]+"${children[@]}"}; do kill -KILL "$child" 2>/dev/null || true; done
    rm -rf "$folder"
}
trap finish EXIT

start() {
    "$program" "$@" &
    children+=("$!")
    pid="$!"
}

lines() { wc -l 2>/dev/null <"$1" || echo 0; }

# kill_after FILE LINES PID: kills the process when the file has at least LINES lines.
kill_after() {
    until [ "$(lines "$1")" -ge "$2" ]; do sleep 0.01; done
    kill -KILL "$3" 2>/dev/null || true
    wait "$3" 2>/dev/null || true
    echo "killed process $3 with SIGKILL after $(lines "$1") messages in $1"
}

# A device receives the messages that are sent after it has registered.
for name in alice bob; do
    for device in phone laptop; do "$program" receive "$name" "$device" 0; done
done

start receive alice phone "$count"; phone="$pid"
start receive alice laptop "$count"
start receive bob phone "$count"
start receive bob laptop "$count"
start send "$count"; sender="$pid"

kill_after alice-phone.txt $((count / 4)) "$phone"
start receive alice phone "$count"
kill_after bob-phone.txt $((count / 2)) "$sender"
start send "$count"

for child in "${children[@]}"; do wait "$child" 2>/dev/null || true; done

bad=0
for file in alice-phone.txt alice-laptop.txt bob-phone.txt bob-laptop.txt; do
    if cut -d ' ' -f 1,2 "$file" | cmp -s - <(for ((i = 1; i <= count; i++)); do echo "$i $i"; done); then
        echo "$file: all $count, in order, once"
    else
        echo "$file: WRONG"
        bad=1
    fi
done
exit "$bad"
