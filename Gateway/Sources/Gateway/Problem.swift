import HTTPTypes
import Hiredis
import Hummingbird
import QueueListen
import RedisDC

/// An error reply: problem details by RFC 9457. docs/http.md lists all of them.
struct Problem: Error, Sendable {
    /// The last word of the `type`, by which clients decide.
    enum Kind: String, Sendable {
        case malformed
        case unsigned, unknownSession = "unknown-session", loggedInElsewhere = "logged-in-elsewhere"
        case badSignature = "bad-signature", stale, nonceUsed = "nonce-used", cookie
        case badCredential = "bad-credential"
        case origin, forbidden
        case notFound = "not-found", methodNotAllowed = "method-not-allowed", notAcceptable = "not-acceptable"
        case cursor, idUsed = "id-used"
        case tooLarge = "too-large", contentType = "content-type", upgrade
        case tooManyRequests = "too-many-requests", tooManyStreams = "too-many-streams"
        case mailboxFull = "mailbox-full"
        case refused
        case `internal`, unavailable
    }

    var kind: Kind
    /// The explanation for people.
    var detail: String
    /// Members besides those of every problem.
    var extra: JSON = [:]
    var headers: HTTPFields = [:]

    init(_ kind: Kind, _ detail: String) {
        self.kind = kind
        self.detail = detail
    }

    /// A refused authentication, with the time by the clock of Redis in milliseconds.
    static func unauthorized(_ kind: Kind, _ detail: String, time: Int) -> Problem {
        var problem = Problem(kind, detail)
        problem.extra = ["time": JSON(time)]
        problem.headers[.wwwAuthenticate] =
            "RedisDC realm=\"gateway\", error=\"\(kind.rawValue)\", time=\"\(time)\""
        return problem
    }

    static func tooManyRequests(retryAfter: Duration) -> Problem {
        var problem = Problem(.tooManyRequests, "too many requests: try again in \(retryAfter)")
        problem.headers[.retryAfter] = "\(max(1, retryAfter.components.seconds + 1))"
        return problem
    }

    static func unavailable(_ detail: String, mayHaveRun: Bool) -> Problem {
        var problem = Problem(.unavailable, detail)
        problem.extra = ["mayHaveRun": .bool(mayHaveRun)]
        problem.headers[.retryAfter] = "1"
        return problem
    }

    var json: JSON {
        let json: JSON = [
            "type": .string("urn:redisdc:\(kind.rawValue)"), "title": .string(kind.title),
            "status": JSON(kind.status.code), "detail": .string(detail),
        ]
        return .object((json.members ?? []) + (extra.members ?? []))
    }

    var response: Response {
        var response = Response(kind.status, json, contentType: "application/problem+json")
        for field in headers { response.headers.append(field) }
        return response
    }
}

extension Problem: CustomStringConvertible {
    /// For an application that calls the gateway itself, and logs the error.
    var description: String { "\(kind.title): \(detail) [\(kind.rawValue)]" }
}

extension Problem.Kind {
    var status: HTTPResponse.Status {
        switch self {
        case .malformed: .badRequest
        case .unsigned, .unknownSession, .loggedInElsewhere, .badSignature, .stale, .nonceUsed, .cookie,
            .badCredential:
            .unauthorized
        case .origin, .forbidden: .forbidden
        case .notFound: .notFound
        case .methodNotAllowed: .methodNotAllowed
        case .notAcceptable: .notAcceptable
        case .cursor, .idUsed, .refused: .conflict
        case .tooLarge: .contentTooLarge
        case .contentType: .unsupportedMediaType
        case .upgrade: HTTPResponse.Status(code: 426, reasonPhrase: "Upgrade Required")
        case .tooManyRequests, .tooManyStreams, .mailboxFull: .tooManyRequests
        case .internal: .internalServerError
        case .unavailable: .serviceUnavailable
        }
    }

    var title: String {
        switch self {
        case .malformed: "The request is malformed"
        case .unsigned: "The request is not signed"
        case .unknownSession: "There is no such session"
        case .loggedInElsewhere: "A newer login of the device has replaced the session"
        case .badSignature: "The signature is not that of this request"
        case .stale: "The request's time is not current"
        case .nonceUsed: "The nonce was used before"
        case .cookie: "The cookie is missing or not valid"
        case .badCredential: "The credential is not valid"
        case .origin: "The request's origin is not allowed"
        case .forbidden: "The application does not allow this"
        case .notFound: "There is no such call"
        case .methodNotAllowed: "The call does not have this method"
        case .notAcceptable: "The client does not accept the reply's type"
        case .cursor: "The cursor is not of this mailbox"
        case .idUsed: "The id was used for something else"
        case .tooLarge: "The request is too large"
        case .contentType: "The body must be JSON"
        case .upgrade: "This call is a WebSocket"
        case .tooManyRequests: "Too many requests"
        case .tooManyStreams: "The session has too many open streams"
        case .mailboxFull: "A mailbox is full"
        case .refused: "The application refuses the call"
        case .internal: "An internal error"
        case .unavailable: "The service is not available at present"
        }
    }
}

extension Problem {
    /// The problem that an error of a mailbox operation is for the client.
    init(_ error: QueueListenError) {
        switch error.code {
        case .invalidArgument: self.init(.malformed, error.message)
        case .mailboxFull: self.init(.mailboxFull, error.message)
        case .conflict: self.init(.idUsed, error.message)
        // The messages of the errors name the server.
        case .connectionLost, .notConnected, .cancelled, .stopped, .unfinished, .notDurable:
            self = .unavailable("Redis cannot be reached", mayHaveRun: error.mayHaveRun)
        case .outOfMemory: self = .unavailable("Redis is out of memory", mayHaveRun: error.mayHaveRun)
        // The others concern the operator, and their messages name keys.
        default: self.init(.internal, "the mailbox operation failed: \(error.code)")
        }
    }

    init(_ error: RedisError) {
        if error.code == .outOfMemory {
            self = .unavailable("Redis is out of memory", mayHaveRun: error.mayHaveRun)
        } else if error.isTransient || error.code == .clientStopped || error.code == .cancelled {
            self = .unavailable("Redis cannot be reached", mayHaveRun: error.mayHaveRun)
        } else {
            self.init(.internal, "a command failed: \(error.code)")
        }
    }

    init(_ error: RedisDCError) {
        switch error.code {
        case .connectionLost, .notConnected, .cancelled, .stopped:
            self = .unavailable("Redis cannot be reached", mayHaveRun: error.mayHaveRun)
        case .outOfMemory: self = .unavailable("Redis is out of memory", mayHaveRun: error.mayHaveRun)
        default: self.init(.internal, "a rate limit could not be checked: \(error.code)")
        }
    }
}

extension Response {
    /// Creates a reply with a JSON body.
    init(_ status: HTTPResponse.Status, _ json: JSON, contentType: String = "application/json") {
        self.init(
            status: status, headers: [.contentType: contentType, .cacheControl: "no-store"],
            body: .init(byteBuffer: .init(bytes: json.bytes)))
    }

    /// A reply without a body.
    static var noContent: Response { Response(status: .noContent, headers: [.cacheControl: "no-store"]) }
}
