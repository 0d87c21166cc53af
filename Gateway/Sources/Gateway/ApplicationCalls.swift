// Calls of the application, which are signed, limited and answered like those of the gateway.
public import Hummingbird
import Hiredis
import QueueListen
import RedisDC

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
        let call: Call = { request, _ in
            let (session, body) = try await self.verified(request)
            _ = try Self.object(body, of: request)
            let content: Content
            do { content = try JSONDecoder().decode(Content.self, from: Data(body)) } catch {
                throw Problem(.malformed, "the content is not that of this call: \(Self.place(of: error))")
            }
            let caller = Caller(session)
            let reply: Reply
            do { reply = try await answer(content, caller) } catch { throw Self.problem(error) }
            return Response(
                status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
                body: .init(byteBuffer: .init(bytes: try JSONEncoder().encode(reply))))
        }
        add([(.post, call)], path, to: router)
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

    private static func problem(_ error: any Error) -> any Error {
        switch error {
        case let error as CallRefusal:
            var problem = Problem(.refused, error.detail)
            problem.extra = ["reason": .string(error.reason)]
            return problem
        case let error as CallUnavailable: return Problem.unavailable(error.detail, mayHaveRun: error.mayHaveRun)
        case let error as QueueListenError: return Problem(error)
        case let error as RedisError: return Problem(error)
        case let error as RedisDCError where [.connectionLost, .notConnected, .cancelled].contains(error.code):
            return Problem(error)
        case is CancellationError: return Problem.unavailable("the node is stopping", mayHaveRun: true)
        default: return error
        }
    }
}
