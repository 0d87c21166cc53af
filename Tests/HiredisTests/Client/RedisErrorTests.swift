import Testing

@testable import Hiredis

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

    @Test("isPermanent is true only for errors that waiting cannot resolve")
    func permanent() {
        for code in [RedisError.Code.authenticationFailed, .unsupportedServer, .invalidArgument, .notPermitted] {
            #expect(RedisError(code, "").isPermanent)
        }
        for code in [RedisError.Code.cannotConnect, .connectionLost, .serverNotReady, .timedOut, .serverError] {
            #expect(!RedisError(code, "").isPermanent)
        }
    }
}
