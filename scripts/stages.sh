# shellcheck shell=bash
# Stages of a long run, each with a time limit. A stage that stands still is ended at its limit, after the stacks of its
# processes and the state of its servers have been printed. Sourced after lib.sh. The caller sets `folder` to the folder
# of the run, and calls `end_stages` in its EXIT trap. It must run in the bash 3.2 of macOS.

stage_name=""
stage_start=0
# The id of the process that ends the stage at its limit.
stage_watcher=""

# stage NAME COMMAND...
#
# The limit is that of `limit_of NAME`, in seconds; REDISDC_STAGE_LIMIT replaces it.
stage() {
    stage_name="$1"
    stage_start="$SECONDS"
    shift
    printf '\n==> %s\n' "$stage_name"
    watch_stage "${REDISDC_STAGE_LIMIT:-$(limit_of "$stage_name")}" &
    stage_watcher=$!
    "$@"
    # A command may ignore the end of a process that it waited for.
    if [ -e "$folder/stuck" ]; then exit 1; fi
    end_watcher
    printf '    %s: %s\n' "$stage_name" "$(duration $((SECONDS - stage_start)))"
}

end_watcher() {
    [ -n "$stage_watcher" ] || return 0
    kill "$stage_watcher" 2>/dev/null || true
    wait "$stage_watcher" 2>/dev/null || true
    stage_watcher=""
}

# end_stages STATUS: says which stage has failed, if the status is not 0.
end_stages() {
    local reason="FAILED"
    [ ! -e "$folder/stuck" ] || reason="STOOD STILL, and was ended at its limit; see above what its processes did. FAILED"
    end_watcher
    [ "$1" -eq 0 ] || printf '\n%s in "%s" after %s\n' "$reason" "$stage_name" "$(duration $((SECONDS - stage_start)))"
}

# Waits for the limit. Then shows what hangs, and ends the script and all of its processes.
watch_stage() {
    trap - EXIT INT TERM
    local self
    # The id of this subshell: bash 3.2 has no BASHPID.
    # shellcheck disable=SC2016
    self="$(exec sh -c 'echo $PPID')"
    wait_while_script_runs "$1" || return 0
    printf '\nThe stage "%s" has not ended within its limit of %s.\n' "$stage_name" "$(duration "$1")"
    : >"$folder/stuck"
    show_processes "$self"
    show_servers
    # The script ends as soon as the command that it waits for has ended.
    kill -TERM $$ 2>/dev/null || return 0
    end_processes TERM "$self"
    wait_while_script_runs 10 || return 0
    end_processes KILL "$self"
    wait_while_script_runs 10 || return 0
    kill -KILL $$ 2>/dev/null || true
}

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

end_processes() {
    local process
    for process in $(descendants "$2"); do kill -"$1" "$process" 2>/dev/null || true; done
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
            # A process may end at any moment, and a command line has NUL between its words.
            {
                directory="$(readlink "$process/cwd")" || directory=""
                line="$(<"$process/cmdline")" || line=""
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
