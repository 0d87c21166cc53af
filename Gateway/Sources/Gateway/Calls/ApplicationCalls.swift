// Calls of the application, which are signed, limited and answered like those of the gateway.
public import Hummingbird

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The user and the device that make a call of the application, as the gateway has verified them.
///
/// Callers with the same user and device are equal. Names are compared by their bytes, as Redis does: two spellings of
/// the same characters are two users.
public struct Caller: Sendable, Hashable {
    /// The user who has logged in.
    public var user: String
    /// The user's device.
    public var device: String
    /// The session that the gateway has verified; `nil` for a caller that an application has created.
    private(set) var session: SessionID?

    /// Creates a caller, for a logout or for tests of an application.
    public init(user: String, device: String) {
        self.user = user
        self.device = device
    }

    init(_ session: Session) {
        self.init(user: session.user, device: session.device)
        self.session = session.id
    }

    /// Returns whether two callers have the same user and device, in whichever session.
    public static func == (one: Caller, other: Caller) -> Bool {
        one.user.utf8.elementsEqual(other.user.utf8) && one.device.utf8.elementsEqual(other.device.utf8)
    }

    /// Hashes the user and the device.
    public func hash(into hasher: inout Hasher) {
        for name in [user, device] {
            hasher.combine(name.utf8.count)
            for byte in name.utf8 { hasher.combine(byte) }
        }
    }
}

/// A refusal of a call by the application. The client receives the problem `refused`, with the
/// status 409.
public struct CallRefusal: Error, Sendable, Hashable {
    /// The word by which clients decide, such as `not-your-turn`.
    public var reason: String
    /// The explanation for people. It is sent to the client.
    public var detail: String

    /// Creates a refusal.
    public init(_ reason: String, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }
}

/// A call that failed because something that the application needs is unavailable. The client
/// receives the problem `unavailable`, with the status 503, and tries again.
public struct CallUnavailable: Error, Sendable, Hashable {
    /// The explanation for people. It is sent to the client.
    public var detail: String
    /// Whether the call may have taken effect nevertheless.
    public var mayHaveRun: Bool

    /// Creates the failure.
    public init(_ detail: String, mayHaveRun: Bool) {
        self.detail = detail
        self.mayHaveRun = mayHaveRun
    }
}

extension Gateway {
    /// Adds a call of the application: `POST` with JSON, signed by the session of a user.
    ///
    /// ```swift
    /// struct Move: Codable { var match: String; var cell: Int; var id: String }
    /// gateway.addCall("/games/move", to: router) { (move: Move, caller) in
    ///     try await games.play(move, as: caller.user)
    /// }
    /// ```
    ///
    /// Clients repeat a call whose reply was lost, at another node if need be. So make its effect the
    /// same however often it comes, for example by an id in its content: compare and set the
    /// application's state, then send to the mailboxes of its users with that id.
    ///
    /// A `CallRefusal` is answered with 409, a `CallUnavailable` with 503. An error of RedisDC or
    /// QueueListen is answered as one of the gateway itself, with `mayHaveRun`. Any other error is
    /// logged, and answered with 500 without its text.
    ///
    /// - Parameters:
    ///   - path: not below `/v1`. The signature covers it as the client sends it.
    ///   - router: the router of ``addRoutes(to:)``.
    ///   - answer: returns the reply. It is called at most once for each request that arrives.
    public func addCall<Content: Decodable & Sendable, Reply: Encodable & Sendable, Context: RequestContext>(
        _ path: RouterPath, to router: Router<Context>,
        _ answer: @escaping @Sendable (Content, Caller) async throws -> Reply
    ) {
        verified(self.path(path, [.post], on: router)).post { request, context in
            let content: Content = try Self.content(of: request, context)
            let reply = try await answer(content, Caller(context.session))
            return Response(
                status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
                body: .init(byteBuffer: .init(bytes: try JSONEncoder().encode(reply))))
        }
    }

    /// Reads the content of a call, which must be a JSON object.
    private static func content<Content: Decodable>(
        of request: Request, _ context: SessionContext<some RequestContext>
    ) throws(Problem) -> Content {
        _ = try JSON(body: context.body, of: request)
        do { return try JSONDecoder().decode(Content.self, from: Data(context.body)) } catch {
            throw Problem(.malformed, "the content is not that of this call: \(place(of: error))")
        }
    }

    /// Names the field that has the wrong form, without its value.
    private static func place(of error: any Error) -> String {
        let (path, problem): ([any CodingKey], String) =
            switch error {
            case DecodingError.keyNotFound(let key, let context): (context.codingPath + [key], "is missing")
            case DecodingError.typeMismatch(let type, let context): (context.codingPath, "is no \(type)")
            case DecodingError.valueNotFound(_, let context): (context.codingPath, "is null")
            case DecodingError.dataCorrupted(let context): (context.codingPath, "is not valid")
            default: ([], "is not valid")
            }
        return "\(path.isEmpty ? "it" : path.map(\.stringValue).joined(separator: ".")) \(problem)"
    }
}

extension Gateway {
    /// Checks that the session of a caller has not ended since the call was verified: after the wait
    /// for a lock, for example, when the user's name may be another user's.
    ///
    /// - Throws: the problem with which the gateway answers the call, `unknown-session` or
    ///   `logged-in-elsewhere`; `RedisError` if Redis cannot be reached. A caller that the
    ///   application has created is not checked.
    public func check(_ caller: Caller) async throws {
        if let session = caller.session { try await sessions.check(session) }
    }
}
