import Foundation
import GameServices
import Gateway
import HTTPTypes
import Hiredis
import Hummingbird
import NIOCore

/// The leaderboard for programs: `POST /leaderboard/TOKEN` with a name, the id of a device and a score.
///
/// The token is the signature of the call `POST /scores/submit` with the same body, by the key of the
/// session that the body names (docs/http.md, "Signed requests"). The reply has the status 200, or
/// 422 for any fault of the request.
///
/// Clients compute these scores, so the leaderboard is separate from those of the arcade's own games.
/// A player has one entry, with the best score and the name of the last submit.
struct ScoresInterface: Sendable {
    private static let maxBodyBytes = 4096

    private let redis: any Redis
    private let board: Leaderboard
    private let limit: AddressLimit
    /// The key of the displayed names by player.
    private let names: RedisArgument

    init(redis: any Redis, namespace: String, limit: AddressLimit) throws {
        (self.redis, self.limit) = (redis, limit)
        var configuration = LeaderboardConfiguration()
        configuration.windows = [.allTime]
        board = try Leaderboard("programs", redis: redis, namespace: namespace, configuration: configuration)
        names = .string("{\(namespace):programs}:names")
    }

    /// Removes the score of a player.
    func remove(_ player: String) async throws {
        _ = try await board.remove(player)
        _ = try await redis.send(RedisCommand("HDEL", names, .string(player)))
    }

    // MARK: The signed call

    private struct Submit: Codable { var name: String, device: String, score: Int }
    private struct Submitted: Codable { var score: Int, rank: Int }

    func addCalls<Context: RequestContext>(_ gateway: Gateway, _ router: Router<Context>) {
        gateway.addCall("/scores/submit", to: router) { (submit: Submit, caller) in
            try await answering {
                guard (1...32).contains(submit.name.count), submit.name.utf8.count <= 256,
                    !submit.name.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
                else { throw CallRefusal("name", "a name has 1 to 32 characters") }
                guard submit.device.utf8.count <= 64, submit.device == caller.device else {
                    throw CallRefusal("device", "a device has an id of at most 64 bytes, and is that of the session")
                }
                let placement = try await board.submit(submit.score, for: caller.user).placements[.allTime]
                _ = try await redis.send(RedisCommand("HSET", names, .string(caller.user), .string(submit.name)))
                return Submitted(score: placement?.score ?? submit.score, rank: placement?.rank ?? 0)
            }
        }
    }

    // MARK: The routes

    private struct Signed: Decodable { var session: String, time: Int, nonce: String }
    private struct Top: ResponseEncodable { var top: [Entry] }
    private struct Entry: Codable {
        var name: String, score: Int, rank: Int
        /// Milliseconds since 1970.
        var time: Int
    }

    /// - Parameter router: with the calls.
    func addRoutes<Context: RequestContext>(to router: Router<Context>) {
        let calls = router.buildResponder()
        router.post("/leaderboard/:token") { request, context in try await submit(request, context, calls) }
        router.get("/leaderboard") { request, context in
            try await limit.check("scores", perMinute: 60, request, context)
            return try await top()
        }
    }

    private func submit<Context: RequestContext>(
        _ request: Request, _ context: Context, _ calls: RouterResponder<Context>
    ) async throws -> Response {
        guard let body = try? await request.body.collect(upTo: Self.maxBodyBytes),
            let signed = try? JSONDecoder().decode(Signed.self, from: Data(body.readableBytesView))
        else { throw HTTPError(.unprocessableContent, message: "the session, the time or the nonce is missing") }
        var head = request.head
        head.path = "/scores/submit"
        for (name, value) in [
            ("X-Session", signed.session), ("X-Time", "\(signed.time)"), ("X-Nonce", signed.nonce),
            ("X-Signature", "v1=\(context.parameters.get("token") ?? "")"),
        ] {
            guard HTTPField.isValidValue(value) else {
                throw HTTPError(.unprocessableContent, message: "the session or the nonce is invalid")
            }
            head.headerFields[HTTPField.Name(name)!] = value
        }
        var response = try await calls.respond(
            to: Request(head: head, body: RequestBody(buffer: body)), context: context)
        // A request beyond the limit has no fault of its own, and can be repeated.
        if response.status.kind == .clientError, response.status != .tooManyRequests {
            response.status = .unprocessableContent
        }
        return response
    }

    private func top() async throws -> Top {
        let entries = try await board.top(10).entries
        guard !entries.isEmpty else { return Top(top: []) }
        let stored = try await redis.send(RedisCommand([.string("HMGET"), names] + entries.map { .string($0.name) }))
        return Top(
            top: zip(entries, stored.array ?? []).map { entry, name in
                Entry(
                    name: name.string ?? entry.name, score: entry.score, rank: entry.rank,
                    time: Int(entry.date.timeIntervalSince1970 * 1000))
            })
    }
}
