# shellcheck shell=bash
# The processes of a test run: which they are, what they do, and their end. Sourced after lib.sh. The caller sets `folder` to
# the folder of the run, below which the servers of the run live. It must run in the bash 3.2 of macOS.

folder="${folder:-}"

# descendants [PROCESS]: prints the ids of the processes that the script has started, and those that they have started,
# without PROCESS and what it has started.
descendants() {
    ps -axo pid=,ppid= | awk -v root=$$ -v without="${1:-0}" '
        { parent[$1] = $2 }
        END {
            for (id in parent) {
                at = id
                for (steps = 0; at in parent && at != root && at != without && steps < 100; steps++) at = parent[at]
                if (at == root && id != root) print id
            }
        }' | sort -n
}

# end_descendants [PROCESS]: ends the processes that the script has started, without PROCESS and what it has started. They are
# listed once: what outlives the process that started it is no descendant any more.
end_descendants() {
    local second processes
    processes="$(descendants "${1:-0}")"
    signal_all TERM "$processes" || return 0
    for ((second = 0; second < 100; second++)); do
        signal_all 0 "$processes" || break
        sleep 0.1
    done
    signal_all KILL "$processes" || true
}

# signal_all SIGNAL PROCESSES: sends a signal, and fails if none of the processes exists.
signal_all() {
    local process status=1
    for process in $2; do ! kill -"$1" "$process" 2>/dev/null || status=0; done
    return "$status"
}

# Prints the processes of the run, and the stacks of their threads.
show_processes() {
    local process processes
    processes="$({
        descendants "$1"
        processes_of_run
    } | sort -n -u)"
    printf '\nProcesses:\n'
    for process in $processes; do
        ps -o pid=,ppid=,stat=,etime=,time=,command= -p "$process" 2>/dev/null | cut -c 1-240 || true
    done
    for process in $processes; do
        # A shell waits for another process, which is listed too, and servers are asked by commands.
        case "$(ps -o comm= -p "$process" 2>/dev/null)" in
        "" | *sh | tee | cat | sleep | *redis-server | *valkey-server) continue ;;
        esac
        printf '\nStacks of process %s, %s:\n' "$process" "$(ps -o command= -p "$process" 2>/dev/null | cut -c 1-120)"
        within 60 show_stacks "$process" 2>&1 | head -n 600 || true
    done
}

show_stacks() {
    local thread
    if command -v gdb >/dev/null; then
        gdb -p "$1" -batch -nx -ex 'set pagination off' -ex 'set debuginfod enabled off' -ex 'thread apply all bt 40' 2>/dev/null
    elif command -v eu-stack >/dev/null; then
        eu-stack -p "$1"
    elif command -v sample >/dev/null; then
        sample "$1" 1 -mayDie
    elif [ -d "/proc/$1/task" ]; then
        for thread in "/proc/$1"/task/*; do
            printf '%s %s, in the kernel at: %s\n' "${thread##*/}" "$(cat "$thread/comm")" "$(cat "$thread/wchan")"
            cat "$thread/stack" || true
        done
    fi
}

# Prints what the servers of the run do, and have done. Their sockets are below the folder of the run.
show_servers() {
    local socket command
    command -v redis-cli >/dev/null || return 0
    find "$folder" -type s -name '*.sock*' 2>/dev/null | while IFS= read -r socket; do
        for command in "CLIENT LIST" "INFO commandstats"; do
            printf '\n%s of the server at %s:\n' "$command" "$socket"
            # A server that is stopped does not answer.
            # shellcheck disable=SC2086
            within 5 redis-cli -s "$socket" $command 2>&1 | head -n 200 || true
        done
    done
}

# within SECONDS COMMAND...: runs a command, and ends it after that time. macOS has no timeout(1).
within() {
    local seconds="$1" command ender
    shift
    "$@" &
    command=$!
    (
        sleep "$seconds"
        pkill -P "$command" || true
        kill "$command"
        printf '(ended after %s s)\n' "$seconds"
    ) 2>/dev/null &
    ender=$!
    wait "$command" 2>/dev/null || true
    pkill -P "$ender" 2>/dev/null || true
    kill "$ender" 2>/dev/null || true
    wait "$ender" 2>/dev/null || true
}

# Prints the ids of the processes that belong to this run: those with the run's folder in their working directory or
# command line.
processes_of_run() {
    local process directory line
    if [ -d /proc/self/cwd/ ]; then
        for process in /proc/[0-9]*; do
            # A process may end at any moment, and a command line has NUL between its words. When the file of `$(<file)` is
            # missing, bash ends the script, also before `||`.
            {
                directory="$(readlink "$process/cwd")" || directory=""
                line="$(cat "$process/cmdline")" || line=""
            } 2>/dev/null
            case "$directory $line" in
            "$folder"/* | "$folder "* | *"$folder/"*) echo "${process#/proc/}" ;;
            esac
        done
    else
        # The folder is passed in the environment: awk's own command line must not match.
        {
            ps -axww -o pid=,command= | folder="$folder" awk 'index($0, ENVIRON["folder"] "/") { print $1 }'
            lsof -w -d cwd -F pn 2>/dev/null | folder="$folder" awk '
                /^p/ { pid = substr($0, 2) }
                /^n/ && index(substr($0, 2) "/", ENVIRON["folder"] "/") == 1 { print pid }'
        } | sort -u
    fi
}
