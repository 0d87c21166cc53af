# shellcheck shell=bash
# Which tests of the root package are of which kind. This is the only place that knows it.

# Tests that start many servers or processes. On a small machine everything else would be too slow beside them.
many_servers='ClusterFailureTests|ClusterTests|ShardedSubscriptionTests|ClusterMailboxTests|SentinelTests|TopologyTests'
many_servers="$many_servers|SplitTests|ToolTests/demoOnCluster|promotionsOf|killedTogether"

# Tests that only calculate, some for many seconds. Beside them, a test that waits for a server would not get a thread in time.
calculating='StateMachine|ReplyDecoder|SubscriptionQueueTests|OutboxTests|AbandonableTests|ConnectionHandlerTests'
calculating="$calculating|LinearizabilityTests|JudgeTests"

# Tests with thousands of clients in several processes, or with hundreds of megabytes. Beside others, everybody's sessions
# would expire.
heavy='GameServicesTests\.|ExchangerTests/many'

# They touch what differs between servers: the commands, scripts and errors that the client and the engine rely on, the
# rules of ACL users, sharded channels, the protocols of Sentinel and of a cluster (a failover each, slots that move one key
# at a time or atomically), and the files and commands by which LocalRedis, LocalSentinel and LocalCluster start and change
# servers. The rest of the suite, for example cancellation, depends on the server only through these.
differing='CommandTests/(transaction|serverErrors|scripts)|LoginTests/(wrongPassword|leastPrivileged|tls)'
differing="$differing|SubscriptionTests/sharded|ShardedSubscriptionTests/(spread|moves|atomicMoves|failover)"
differing="$differing|ServerTests.ClusterTests/(operations|hostNames)"
differing="$differing|ClusterFailureTests/(moves|atomicMoves|ask|blockedMoves|atomicBlockedMoves|kill)"
differing="$differing|ServerTests.SentinelTests/(operations|kill)|LeastRightsTests"
differing="$differing|EngineTests.TopologyTests|EngineTests.FailureTests/(scriptFlush|maxMemory|noReplicas)|ClusterMailboxTests"
differing="$differing|LocalRedisTests|LocalClusterTests/(move|moveAtomically|separate)|DoctorTests/minReplicas"

# Threads, C memory and continuations meet in the client, the engine and the mailboxes. The tests of state machines and
# codecs are left out, because these are values that threads do not share, and so are those that start many processes: under
# the sanitizer they would take much longer and find no further races.
racing="HiredisTests\.(Server|Abandonable|ServiceRun|ConnectionHandler|Outbox|SendRoom|SubscriptionQueue)Tests"
racing="$racing|EngineTests.(Semaphore|Mutex|Race|Policy)Tests"
racing="$racing|QueueListenTests.(Mailbox|Hint|HintRace|CrossPartitionSend|Receiver)Tests"
racing="$racing|KindTests.FaultTests.(calm|cancelStorm|noWakeUps|lostReplies)"

# tests_of KIND: prints the arguments with which swift test runs the tests of a kind, one a line.
tests_of() {
    case "$1" in
    unit) printf '%s\n' --filter "$calculating" ;;
    integration) printf '%s\n' --skip "$many_servers" --skip "$heavy" --skip "$calculating" ;;
    process) printf '%s\n' --filter "$heavy" ;;
    deployment) printf '%s\n' --filter "$many_servers" ;;
    # Those that run with each other server.
    servers) printf '%s\n' --filter "$differing" ;;
    # Those that run under ThreadSanitizer.
    concurrency) printf '%s\n' --filter "$racing" --skip "$many_servers" ;;
    # Those that run with the other version of hiredis.
    client) printf '%s\n' --filter 'HiredisTests|EngineTests.SemaphoreTests' --skip "$many_servers" ;;
    *)
        printf 'there is no kind of tests "%s"\n' "$1" >&2
        return 1
        ;;
    esac
}
