# shellcheck shell=bash
# Functions that the scripts of this folder share by sourcing this file. It must run in the bash 3.2 of macOS: no mapfile,
# no associative arrays, and no empty array expanded under `set -u`.

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"

# The link that link_redis_server makes comes last on the PATH, so that an installed redis-server is preferred.
tools="$root/.build/tools"
PATH="$PATH:$tools"

# The maximum number of tests that run at once; without it, all of them do. On a small machine each would take as long as
# the whole run, and a process that cannot run for its TTL loses its session.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH="${SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH:-8}"

# Prints a message and exits with 69, which sysexits(3) defines for a service or program that is not available.
unavailable() {
    printf '%s: %s\n' "${0##*/}" "$1" >&2
    exit 69
}

require_swift() {
    local version major minor
    command -v swift >/dev/null || unavailable "Swift 6.2 or newer is required, and there is no swift on the PATH."
    version="$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9]*\)\.\([0-9]*\).*/\1.\2/p' | head -n 1)"
    [ -n "$version" ] || unavailable "Swift 6.2 or newer is required, and \`swift --version\` prints no version."
    major="${version%.*}"
    minor="${version#*.}"
    if [ "$major" -lt 6 ] || { [ "$major" -eq 6 ] && [ "$minor" -lt 2 ]; }; then
        unavailable "Swift 6.2 or newer is required, and the swift on the PATH is $version."
    fi
}

# install_missing [--no-install] NAME...
#
# Installs the named requirements that are missing: hiredis (the C library with its headers), redis (redis-server and
# redis-cli), openssl, python3, valgrind and shellcheck (the commands), pip (python3 with pip), chromium (with chromedriver),
# lua (the library of Lua 5.1 with its headers).
# Does nothing when all are present. With --no-install, prints the command that installs them and exits.
install_missing() {
    local install=yes missing="" packages="" manager="" name
    if [ "${1:-}" = --no-install ]; then
        install=no
        shift
    fi
    for name in "$@"; do
        "has_$name" || missing="$missing $name"
    done
    [ -n "$missing" ] || return 0

    manager="$(package_manager)"
    case "$manager" in
    apt) for name in $missing; do packages="$packages $(apt_package "$name")"; done ;;
    brew) packages="$missing" ;;
    *) unavailable "missing:$missing. Install with this system's package manager, then run this script again." ;;
    esac

    # Split on purpose: package names contain no spaces.
    # shellcheck disable=SC2086
    "install_with_$manager" "$install" $packages

    for name in $missing; do
        "has_$name" || unavailable "$name is still missing although its package was installed."
    done
}

# install_optional NAME...: installs those that are missing, if that is possible.
install_optional() {
    local name
    for name in "$@"; do
        case "$(uname -s):$name" in
        # Valgrind does not run on macOS, the browser of Homebrew is an application, and it has no Lua 5.1.
        Darwin:valgrind | Darwin:chromium | Darwin:lua) ;;
        *) (install_missing "$name") || true ;;
        esac
    done
}

package_manager() {
    if [ "$(uname -s)" = Darwin ]; then
        command -v brew >/dev/null && echo brew
    else
        command -v apt-get >/dev/null && echo apt
    fi || true
}

apt_package() {
    case "$1" in
    hiredis) echo libhiredis-dev ;;
    # Not redis-server: that package starts a service on port 6379. See has_redis.
    redis) echo redis-tools ;;
    pip) echo python3-pip ;;
    chromium) echo chromium chromium-driver ;;
    lua) echo liblua5.1-0-dev ;;
    *) echo "$1" ;;
    esac
}

install_with_apt() {
    local install="$1" sudo=""
    shift
    [ "$(id -u)" -eq 0 ] || sudo="sudo "
    local command="${sudo}apt-get update && ${sudo}apt-get install --yes --no-install-recommends $*"

    [ "$install" = yes ] || unavailable "missing packages. Run: $command"
    if [ -n "$sudo" ] && ! command -v sudo >/dev/null; then
        unavailable "missing packages, and installing them needs root or sudo. Run as root: apt-get install $*"
    fi

    echo "Installing missing packages: $command"
    # One broken source must not prevent an installation from the others. On a fresh machine another apt process often
    # holds the lock for a while.
    as_root apt-get -qq update || echo "apt-get update failed; continuing with the old package lists."
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 -qq \
        install --yes --no-install-recommends "$@" || unavailable "apt-get could not install: $*"
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# Homebrew does not start a service after an installation.
install_with_brew() {
    local install="$1"
    shift
    [ "$install" = yes ] || unavailable "missing packages. Run: brew install $*"
    echo "Installing missing packages: brew install $*"
    brew install --quiet "$@" || unavailable "brew could not install: $*"
}

has_hiredis() {
    local prefix
    for prefix in /usr /usr/local "${HOMEBREW_PREFIX:-/opt/homebrew}"; do
        [ ! -e "$prefix/include/hiredis/hiredis.h" ] || return 0
    done
    return 1
}

has_redis() {
    command -v redis-cli >/dev/null || return 1
    command -v redis-server >/dev/null || link_redis_server
}

# On Debian and Ubuntu the package redis-tools contains the server's binary under the name redis-check-rdb. The package
# redis-server only adds a link to it, and a service on port 6379. A link made here gives the server without the service.
link_redis_server() {
    local binary
    binary="$(command -v redis-check-rdb)" || return 1
    mkdir -p "$tools"
    ln -sf "$binary" "$tools/redis-server"
    case "$("$tools/redis-server" --version 2>/dev/null)" in
    "Redis server "*) return 0 ;;
    esac
    rm -f "$tools/redis-server"
    return 1
}

has_pip() {
    python3 -m pip --version >/dev/null 2>&1
}

has_chromium() {
    command -v chromium >/dev/null && command -v chromedriver >/dev/null
}

has_lua() {
    [ -e /usr/include/lua5.1/lua.h ]
}

has_openssl() {
    command -v openssl >/dev/null
}

has_python3() {
    command -v python3 >/dev/null
}

has_shellcheck() {
    command -v shellcheck >/dev/null
}

has_valgrind() {
    command -v valgrind >/dev/null
}

# use_package FOLDER [OWNER]: sets `package` to the arguments by which swift builds another package, and `programs` to the
# folder of its programs.
#
# In CI all packages are built in one folder, so that what they have in common is built once. On a developer's machine the
# package is built in the folder of OWNER, by default its own.
# shellcheck disable=SC2034
use_package() {
    scratch="$root/${2:-$1}/.build"
    [ -z "${CI:-}" ] || scratch="$root/.build"
    package=(--package-path "$root/$1" --scratch-path "$scratch")
    programs="$scratch/debug"
}

# begin_package FOLDER [OWNER]: the same, before the package is built. The package manager takes another package in a folder
# for the same one until its plan is removed, and removes what this one does not need.
begin_package() {
    use_package "$@"
    rm -f "$scratch/debug.yaml" "$scratch/release.yaml"
}

# The libraries whose interface and documentation are published.
# shellcheck disable=SC2034
libraries="Hiredis RedisDC QueueListen GameServices RedisDCTesting"

# module_flags: sets `flags` to the compiler's options that find the libraries and what they import in the debug build.
module_flags() {
    local map
    flags=(-I "$root/.build/debug/Modules")
    # The C modules that the libraries import.
    while IFS= read -r map; do flags+=(-I "${map%/module.modulemap}"); done < <(
        find "$root/Sources" "$root/.build/checkouts" -name module.modulemap \
            \( -path '*/include/*' -o -path "$root/Sources/*" \)
    )
    for map in "$root"/.build/debug/*.build/module.modulemap; do flags+=(-Xcc "-fmodule-map-file=$map"); done
}

# extract_symbols LIBRARY FOLDER: writes the symbol graph of a library's public declarations to a folder. The debug build
# must be up to date.
extract_symbols() {
    local target flags
    module_flags
    target="$(swiftc -print-target-info | sed -n 's/^ *"triple": "\(.*\)",$/\1/p' | head -n 1)"
    swift symbolgraph-extract -module-name "$1" "${flags[@]}" -target "$target" \
        -minimum-access-level public -skip-synthesized-members -output-dir "$2"
}

# progress NAME COMMAND...
#
# Runs a long command with its output in .build/logs/NAME.log and shows its progress: on a terminal the elapsed time and
# the latest line of output, updated in place; elsewhere one line every 15 seconds. Returns the command's status. If the
# command failed, prints the end of the log first.
#
# With `build_profile`, also estimates the time that is left. It consists of pairs STEP:PERCENT: the percentage of the time
# of an earlier, complete build at which `swift build` was at that step.
progress() {
    local name="$1" log="$root/.build/logs/$1.log"
    shift
    mkdir -p "${log%/*}"
    : >"$log"
    show_progress "$name" with_log "$log" "$@"
}

with_log() {
    local log="$1"
    shift
    "$@" >"$log" 2>&1 </dev/null
}

# show_progress NAME COMMAND...: the same, but COMMAND waits for one that writes the log.
show_progress() {
    local name="$1" log="$root/.build/logs/$1.log" status=0 ticker
    shift
    watch_log "$name" "$log" &
    ticker=$!
    # The command runs in the foreground, so that Ctrl-C reaches it.
    "$@" || status=$?
    kill "$ticker" 2>/dev/null || true
    wait "$ticker" 2>/dev/null || true
    [ ! -t 1 ] || printf '\r\033[K'
    if [ "$status" -ne 0 ]; then
        printf '%s failed with status %d. The end of %s:\n\n' "$name" "$status" "$log"
        tail -n 60 "$log"
    fi
    return "$status"
}

watch_log() {
    local name="$1" log="$2" start="$SECONDS" pause=15 line width
    [ ! -t 1 ] || pause=1
    # Ends with the script, also when the script was killed.
    while wait_while_script_runs "$pause"; do
        line="$name, $(duration $((SECONDS - start)))$(time_left "$log" $((SECONDS - start))): $(last_line "$log")"
        if [ "$pause" -eq 1 ]; then
            width="$(tput cols 2>/dev/null || echo 80)"
            printf '\r\033[K%s' "${line:0:$((width - 1))}"
        else
            printf '%s\n' "${line:0:160}"
        fi
    done
}

# time_left LOG SECONDS: the estimate, from the step that the log has reached after that time.
time_left() {
    local step pair percent=0
    [ -n "${build_profile:-}" ] || return 0
    step="$(tr '\r' '\n' <"$1" | sed -n 's/^\[\([0-9]*\)\/[0-9]*\].*/\1/p' | tail -n 1)"
    for pair in $build_profile; do
        [ "${step:-0}" -lt "${pair%:*}" ] || percent="${pair#*:}"
    done
    [ "$percent" -eq 0 ] || printf ', about %s left' "$(duration $(($2 * (100 - percent) / percent)))"
}

# Waits for that many seconds. Fails as soon as the script has ended.
wait_while_script_runs() {
    local second
    for ((second = 0; second < $1; second++)); do
        # Without its output redirected, a process that reads the script's output would wait for sleep to end.
        sleep 1 >/dev/null 2>&1
        kill -0 $$ 2>/dev/null || return 1
    done
}

last_line() {
    # Colours and other escape sequences are removed: they would count as width.
    tail -n 5 "$1" | tr '\r' '\n' | sed $'s/\033\\[[0-9;]*[A-Za-z]//g' | tr -cd '[:print:]\n' | sed '/^$/d' | tail -n 1
}

duration() {
    if [ "$1" -lt 60 ]; then
        echo "$1 s"
    else
        echo "$(($1 / 60)) min $(($1 % 60)) s"
    fi
}
