# shellcheck shell=bash
# Selects tests by what they need. The kind of a test is the folder of its target, Tests/KIND/MODULE, and the end of its
# target's name: CONTRIBUTING.md has a table.

# tests_of KIND: prints the arguments with which swift test runs the tests of a kind, one a line.
tests_of() {
    case "$1" in
    unit) printf '%s\n' --filter '^[A-Za-z]+UnitTests\.' ;;
    # Tests in which threads can race are tests with one server too. Those of the services have thousands of clients:
    # beside them, everybody's sessions would expire.
    integration) printf '%s\n' --filter '^[A-Za-z]+(Integration|Concurrency)Tests\.' --skip '^GameServices' ;;
    services) printf '%s\n' --filter '^GameServicesIntegrationTests\.' ;;
    process) printf '%s\n' --filter '^[A-Za-z]+ProcessTests\.' ;;
    deployment) printf '%s\n' --filter '^[A-Za-z]+DeploymentTests\.' ;;
    concurrency) printf '%s\n' --filter '^[A-Za-z]+ConcurrencyTests\.' ;;
    # Those that run with the other version of hiredis.
    client) printf '%s\n' --filter '^Hiredis(Unit|Concurrency)Tests\.|EngineTests.SemaphoreTests' ;;
    *)
        printf 'there is no kind of tests "%s"\n' "$1" >&2
        return 1
        ;;
    esac
}
