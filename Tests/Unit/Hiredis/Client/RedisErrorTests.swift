import Testing

@testable import Hiredis
@testable import HiredisTestSupport

@Suite("RedisError")
struct RedisErrorTests {
    @Test(
        "the first word of a server error determines its code",
        arguments: [
            ("WRONGTYPE Operation against a key holding the wrong kind of value", RedisError.Code.wrongType),
            ("NOPERM this user has no permissions", .notPermitted),
            ("NOAUTH Authentication required.", .authenticationFailed),
            ("WRONGPASS invalid username-password pair", .authenticationFailed),
            ("NOSCRIPT No matching script.", .noScript),
            ("LOADING Redis is loading the dataset in memory", .serverNotReady),
            ("BUSY Redis is busy running a script.", .serverNotReady),
            ("MASTERDOWN Link with MASTER is down", .serverNotReady),
            ("TRYAGAIN Multiple keys request during rehashing of slot", .serverNotReady),
            ("CLUSTERDOWN Hash slot not served", .serverNotReady),
            ("OOM command not allowed when used memory > 'maxmemory'.", .outOfMemory),
            ("READONLY You can't write against a read only replica.", .readOnly),
            ("MISCONF Redis is configured to save RDB snapshots", .readOnly),
            ("NOREPLICAS Not enough good replicas to write.", .readOnly),
            (
                "ERR Error running script (call to f_0): @user_script:1: @user_script: 1: -NOREPLICAS Not enough",
                .readOnly
            ),
            ("ERR Error running script (call to f_0): @user_script:1: nil value", .serverError),
            ("ERR unknown command", .serverError),
            ("MOVED 3999 127.0.0.1:6381", .serverError),
            ("NOPERMISSION", .serverError),
            ("ERR NOPERM in the text", .serverError),
            ("", .serverError),
        ])
    func codes(message: String, code: RedisError.Code) {
        let error = RedisError(serverMessage: message, command: "GET")
        #expect(error.code == code)
        #expect(error.message == message)
        #expect(error.command == "GET")
        #expect(!error.mayHaveRun)
    }

    @Test("the description says whether the command may have run if that is uncertain")
    func description() {
        let lost = RedisError(.connectionLost, "gone", mayHaveRun: true, command: "INCR")
        #expect("\(lost)" == "connectionLost: gone [INCR] (the command may have run)")
        #expect("\(RedisError(.cancelled, "c"))" == "cancelled: c (the command has not run)")
        #expect("\(RedisError(.wrongType, "WRONGTYPE x"))" == "wrongType: WRONGTYPE x")
    }

    @Test("an error keeps the first command name that it is given")
    func naming() {
        #expect(RedisError(.timedOut, "t").naming("GET").naming("SET").command == "GET")
    }

    @Test("is transient if the same request may succeed in a moment", arguments: RedisError.Code.all)
    func transient(code: RedisError.Code) {
        let expected: Set<RedisError.Code> = [.connectionLost, .timedOut, .cannotConnect, .serverNotReady, .readOnly]
        #expect(RedisError(code, "").isTransient == expected.contains(code))
        #expect(RedisError(code, "", mayHaveRun: true).isTransient == expected.contains(code))
    }

    @Test("is permanent if no further attempt to connect can succeed", arguments: RedisError.Code.all)
    func permanent(code: RedisError.Code) {
        let expected: Set<RedisError.Code> = [
            .authenticationFailed, .unsupportedServer, .invalidArgument, .notPermitted,
        ]
        #expect(RedisError(code, "").isPermanent == expected.contains(code))
    }

    @Test("is never both transient and permanent", arguments: RedisError.Code.all)
    func exclusive(code: RedisError.Code) {
        #expect(!(RedisError(code, "").isTransient && RedisError(code, "").isPermanent))
    }
}
