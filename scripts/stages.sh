# shellcheck shell=bash
# The stages of scripts/test: programs in scripts/stages, in the order of their names. A stage that stands still is ended at
# its limit, after the stacks of its processes and the state of its servers have been printed. Sourced after lib.sh. The
# caller sets `folder` to the folder of the run, and calls `end_stages` in its EXIT trap. It must run in the bash 3.2 of macOS.
#
# A stage NN-NAME says in comments at its beginning:
#
#   # shows: what holds when it passes, in one line
#   # modes: in which runs it is: quick, server, full, all
#   # limit: after how many seconds it is ended: several times what it takes on a machine with two processors
#   # needs: the stages before it whose results it uses
#   # installs: the packages without which the run cannot begin (see install_missing)
#   # uses: the packages without which the stage is skipped
#   # beside: the niceness with which it runs beside the following stages, until one needs it
#   # alone: yes, if nothing may run beside it
#   # within: how many seconds it takes on a slow machine, if a run that has a time (`--within`) may leave it out
#
# It is called with the folder of the run. What it prints about its result is indented by four spaces.

root="${root:-}"
# shellcheck source=scripts/processes.sh
. "$root/scripts/processes.sh"

stages="$root/scripts/stages"
stage_name=""
# The processes of the stages that run beside others: NAME:PROCESS:WATCHER:START.
besides=""
# The time of the run in seconds, if it has one, and the stages for which not enough of it was left.
within="${within:-}"
left_out=""
# The process that ends the current stage at its limit, while there is one.
watcher=""
stage_start=0
# The rows of the table.
table=""

# Prints the names of all stages.
all_stages() {
    local path
    for path in "$stages"/[0-9][0-9]-*; do echo "${path##*/[0-9][0-9]-}"; done
}

# path_of STAGE
path_of() { echo "$stages"/[0-9][0-9]-"$1"; }

# header STAGE FIELD: prints what a stage says about itself.
header() { sed -n "/^# $2: */{s///p;q;}" "$(path_of "$1")"; }

list_stages() {
    local path name
    for path in "$stages"/[0-9][0-9]-*; do
        name="${path##*/[0-9][0-9]-}"
        sed -n -e 's/^# shows: //p' -e 's/^# limit: //p' "$path" | paste -s -d '\t' - |
            awk -F '\t' -v name="$name" '{ printf "%-20s %6s s  %s\n", name, $2, $1 }'
    done
}

# select_needed STAGE...: prints the stages and those that they need, in order.
select_needed() {
    local name backwards="" selected=" $* "
    for name in $(all_stages); do backwards="$name $backwards"; done
    for name in $backwards; do
        case "$selected" in *" $name "*) selected="$selected$(header "$name" needs) " ;; esac
    done
    for name in $(all_stages); do
        case "$selected" in *" $name "*) echo "$name" ;; esac
    done
}

# has_time STAGE: whether enough is left of the time of the run for a stage that may be left out, and no stage was that it needs.
has_time() {
    local needed seconds
    for needed in $(header "$1" needs); do
        case " $left_out " in *" $needed "*) return 1 ;; esac
    done
    seconds="$(header "$1" within)"
    [ -z "$within" ] || [ -z "$seconds" ] || [ $((SECONDS + seconds)) -le "$within" ]
}

# run_stage STAGE: runs it, or begins it if it runs beside others, or leaves it out. Returns its status.
run_stage() {
    local name="$1" niceness needed status=0
    if ! has_time "$name"; then
        left_out="$left_out$name "
        printf '\n==> %s: left out, because too little of the time is left\n' "$name"
        table="$table$(printf '%-20s %14s %7s  %s' "$name" "" "" "left out")"$'\n'
        return
    fi
    niceness="$(header "$name" beside)"
    for needed in $(beside_names); do
        case " $(header "$name" needs) $(header "$name" alone) " in
        *" $needed "* | *" yes "*) join_stage "$needed" || return ;;
        *) ! has_ended "$needed" || join_stage "$needed" || return ;;
        esac
    done
    printf '\n==> %s: %s\n' "$name" "$(header "$name" shows)"
    if [ -n "$niceness" ]; then
        mkdir -p "$root/.build/logs"
        nice -n "$niceness" "$(path_of "$name")" "$folder" >"$root/.build/logs/$name.log" 2>&1 </dev/null &
        needed=$!
        watch_stage "$name" &
        besides="$besides $name:$needed:$!:$SECONDS"
        printf '    runs beside the next stages\n'
        return
    fi
    stage_name="$name"
    stage_start="$SECONDS"
    watch_stage "$name" &
    watcher=$!
    "$(path_of "$name")" "$folder" </dev/null || status=$?
    end_stage "$name" "$watcher" "$stage_start" "$status"
}

# end_stage STAGE WATCHER START STATUS: adds its row to the table.
end_stage() {
    local result=passed tests=""
    watcher=""
    [ "$4" -eq 0 ] || result=FAILED
    # The process that watches a stage which stands still ends all of them, and then itself.
    if [ ! -e "$folder/stuck" ]; then
        kill "$2" 2>/dev/null || true
    elif [ "$(cat "$folder/stuck")" = "$1" ]; then
        result="STOOD STILL"
    else
        result="was ended"
    fi
    wait "$2" 2>/dev/null || true
    [ ! -e "$folder/$1.count" ] || tests="$(awk '{ sum += $1 } END { print sum }' "$folder/$1.count")"
    table="$table$(printf '%-20s %14s %7s  %s' "$1" "$(duration $((SECONDS - $3)))" "$tests" "$result")"$'\n'
    printf '    %s: %s\n' "$1" "$(duration $((SECONDS - $3)))"
    [ "$result" = passed ] || return 1
    stage_name=""
}

# Prints the names of the stages that run beside others.
beside_names() {
    local beside
    for beside in $besides; do echo "${beside%%:*}"; done
}

# Prints the process, the watcher and the start of a stage that runs beside others.
beside_parts() {
    local beside
    for beside in $besides; do
        [ "${beside%%:*}" != "$1" ] || echo "${beside#*:}" | tr : ' '
    done
}

has_ended() { ! kill -0 "$(beside_parts "$1" | cut -d ' ' -f 1)" 2>/dev/null; }

# join_stage STAGE: waits for a stage that runs beside others, and prints its result. Returns its status.
join_stage() {
    local name="$1" process watcher_of_it start beside left="" status=0 log="$root/.build/logs/$1.log"
    read -r process watcher_of_it start <<<"$(beside_parts "$name")"
    for beside in $besides; do [ "${beside%%:*}" = "$name" ] || left="$left $beside"; done
    stage_name="$name"
    stage_start="$start"
    printf '\n==> %s, which ran beside other stages\n' "$name"
    if has_ended "$name"; then
        wait "$process" || status=$?
        [ "$status" -eq 0 ] || tail -n 60 "$log"
    else
        show_progress "$name" wait "$process" || status=$?
    fi
    besides="$left"
    [ "$status" -ne 0 ] || grep -a '^    ' "$log" || true
    end_stage "$name" "$watcher_of_it" "$start" "$status"
}

# join_all: waits for all stages that run beside others.
join_all() {
    local name
    for name in $(beside_names); do join_stage "$name" || return; done
}

# end_stages STATUS: prints the table, and which stage has failed if the status is not 0.
end_stages() {
    local name result reason="FAILED"
    # The stage was ended with the run.
    if [ "$1" -ne 0 ] && [ -n "$watcher" ]; then end_stage "$stage_name" "$watcher" "$stage_start" 1 || true; fi
    if [ -e "$folder/stuck" ]; then
        wait 2>/dev/null || true
        reason="STOOD STILL, and was ended at its limit; see above what its processes did. FAILED"
        stage_name="$(cat "$folder/stuck")"
    fi
    for name in $(beside_names); do
        result="was not waited for"
        [ ! -e "$folder/stuck" ] || [ "$stage_name" != "$name" ] || result="STOOD STILL"
        table="$table$(printf '%-20s %14s %7s  %s' "$name" "" "" "$result")"$'\n'
    done
    [ -z "$table" ] || printf '\n%-20s %14s %7s  %s\n%s' stage time tests result "$table"
    if [ "$1" -eq 0 ]; then
        printf '\nAll passed in %s\n' "$(duration "$SECONDS")"
        [ -z "$left_out" ] || printf 'Left out for lack of time: scripts/test --only %s\n' "${left_out% }"
    elif [ -n "$stage_name" ]; then
        printf '\n%s in "%s"\n' "$reason" "$stage_name"
    fi
}

# watch_stage STAGE: waits for its limit. Then shows what hangs, and ends the script and all of its processes.
watch_stage() {
    trap - EXIT INT TERM
    local self limit
    limit="${REDISDC_STAGE_LIMIT:-$(header "$1" limit)}"
    # The id of this subshell: bash 3.2 has no BASHPID.
    # shellcheck disable=SC2016
    self="$(exec sh -c 'echo $PPID')"
    wait_while_script_runs "$limit" || return 0
    # Of two stages that reach their limits at once, the first ends the run.
    (set -o noclobber && echo "$1" >"$folder/stuck") 2>/dev/null || return 0
    printf '\nThe stage "%s" has not ended within its limit of %s.\n' "$1" "$(duration "$limit")"
    [ ! -e "$folder/$1.events" ] || "$root/scripts/results" "$folder/$1.events" || true
    show_processes "$self"
    show_servers
    end_descendants "$self"
}
