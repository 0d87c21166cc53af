import HTTPTypes
import Hummingbird

/// An error reply: problem details by RFC 9457. docs/http.md lists all of them.
struct Problem: Error, Sendable {
    /// The last word of the `type`, by which clients decide.
    enum Kind: String, Sendable {
        case malformed
        case unsigned
        case unknownSession = "unknown-session"
        case loggedInElsewhere = "logged-in-elsewhere"
        case badSignature = "bad-signature"
        case stale
        case nonceUsed = "nonce-used"
        case cookie
        case badCredential = "bad-credential"
        case origin, forbidden
        case notFound = "not-found"
        case methodNotAllowed = "method-not-allowed"
        case notAcceptable = "not-acceptable"
        case cursor
        case idUsed = "id-used"
        case tooLarge = "too-large"
        case contentType = "content-type"
        case upgrade
        case tooManyRequests = "too-many-requests"
        case tooManyStreams = "too-many-streams"
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

    /// A method that a path does not have.
    static func methodNotAllowed(allowed: String) -> Problem {
        var problem = Problem(.methodNotAllowed, "the call has the methods \(allowed)")
        problem.headers[.allow] = allowed
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
}

extension Problem: HTTPResponseError {
    var status: HTTPResponse.Status { kind.status }

    func response(from request: Request, context: some RequestContext) -> Response {
        var response = Response(status, json, contentType: "application/problem+json")
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
