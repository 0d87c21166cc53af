import Foundation
import GameServices
import Games
import Gateway
import Hiredis
import Hummingbird
import Logging
import QueueListen
import RedisDC

/// The quiz: one player hosts a game, up to three others join, and all answer by turns.
///
/// A quiz is an object that its host's node puts while the host wants it, and that leaves with the host. Any node that
/// serves a player of a quiz ends a turn whose time is over: it is an update at a version, so it happens once.
struct QuizService: Sendable {
    let room: Room<QuizLobby>
    private let redis: any Redis
    private let coordinator: Coordinator

    init(
        presence: Presence, office: PostOffice, coordinator: Coordinator, redis: any Redis, grace: Duration,
        logger: Logger
    ) throws {
        (self.redis, self.coordinator) = (redis, coordinator)
        room = try Room("quiz", presence: presence, office: office, grace: grace, logger: logger) {
            room, player, owner in
            try await Self.hostQuiz(of: player, owner, in: room)
            try await Self.advanceQuiz(of: player, in: room, redis)
        }
    }

    // MARK: Calls

    private struct Host: Codable { var id: String, settings: Quiz.Settings }
    private struct Action: Codable { var quiz: String }
    private struct Answer: Codable { var quiz: String, question: Int, answer: Int, id: String }
    private struct Done: Codable { var done = true }

    func addCalls<Context: RequestContext>(_ gateway: Gateway, _ router: Router<Context>) {
        gateway.addCall("/quiz/host", to: router) { (host: Host, caller) in
            try await answering {
                _ = try Quiz(host: caller.user, host.settings)
                // The id becomes part of a key.
                guard (1...64).contains(host.id.utf8.count),
                    host.id.utf8.allSatisfy({ (0x21...0x7A).contains($0) })
                else { throw CallRefusal("id", "an id has 1 to 64 characters: letters, digits and punctuation") }
                return try await entering(host.id, caller) {
                    try await setHosted(.init(id: host.id, settings: host.settings), caller)
                }
            }
        }
        gateway.addCall("/quiz/leave", to: router) { (action: Action, caller) in
            try await answering {
                let done = try await setHosted(nil, caller)
                do { _ = try await change(action.quiz) { quiz, _ in quiz.leave(caller.user) } } catch is CallRefusal {
                    // The quiz has ended: no player is in it.
                }
                return done
            }
        }
        gateway.addCall("/quiz/join", to: router) { (action: Action, caller) in
            try await answering {
                try await entering(action.quiz, caller) {
                    try await change(action.quiz) { quiz, _ in try quiz.join(caller.user) }
                }
            }
        }
        gateway.addCall("/quiz/start", to: router) { (action: Action, caller) in
            try await answering {
                try await change(action.quiz) { quiz, now in
                    var generator = SystemRandomNumberGenerator()
                    return try quiz.start(by: caller.user, at: now, using: &generator)
                }
            }
        }
        gateway.addCall("/quiz/answer", to: router) { (answer: Answer, caller) in
            try await answering {
                guard (1...64).contains(answer.id.utf8.count) else {
                    throw CallRefusal("id", "an id has 1 to 64 bytes")
                }
                return try await change(answer.quiz) { quiz, now in
                    try quiz.answer(answer.answer, to: answer.question, by: caller.user, id: answer.id, at: now)
                }
            }
        }
    }

    /// Runs the body, by which the caller joins or hosts a quiz, unless the caller is in another one.
    ///
    /// The lock orders the calls of one player, so concurrent calls cannot take places in two quizzes.
    private func entering(_ quiz: String, _ caller: Caller, _ body: () async throws -> Done) async throws -> Done {
        try await coordinator.mutex("quiz \(caller.user)").withLock(timeout: .seconds(10)) { _ in
            guard QuizLobby(try await room.bucket.snapshot()).mayEnter(quiz, caller.user) else {
                throw CallRefusal("inAnotherGame", "you are in another game: leave it first")
            }
            return try await body()
        }
    }

    private func change(_ quiz: String, _ body: (inout Quiz, _ now: Int) throws -> Bool) async throws -> Done {
        let now = try await Self.now(redis)
        try await room.change("quiz:" + quiz, Quiz.self) { try body(&$0, now) }
        return Done()
    }

    private func setHosted(_ hosted: QuizLobby.Player.Hosted?, _ caller: Caller) async throws -> Done {
        try await room.change("player:" + caller.user, QuizLobby.Player.self) { player in
            guard player.hosts != hosted else { return false }
            player.hosts = hosted
            return true
        }
        return Done()
    }

    // MARK: Quizzes

    /// Puts the quiz that a player of this node hosts, and removes the one that the player hosts no
    /// longer. Removes players who have gone before the start.
    private static func hostQuiz(
        of player: String, _ owner: PresenceOwner, in room: Room<QuizLobby>
    ) async throws {
        let lobby = await room.lobby
        for id in lobby.endedQuizzes(of: player) { try await room.bucket.remove("quiz:" + id, owner: owner) }
        guard let hosted = lobby.players[player]?.hosts else { return }
        if let quiz = lobby.quizzes[hosted.id] {
            guard quiz.current == nil, quiz.players.contains(where: { lobby.players[$0] == nil }) else { return }
            do {
                try await room.change("quiz:" + hosted.id, Quiz.self) { quiz in
                    quiz.removeAbsent { lobby.players[$0] != nil }
                }
            } catch is CallRefusal {
                // The quiz has ended.
            }
            return
        }
        let quiz = try Quiz(host: player, hosted.settings)
        do { try await room.put("quiz:" + hosted.id, quiz, owner: owner) } catch let error as GameServiceError {
            // It exists already, or another player has used its id.
            guard error.code == .taken else { throw error }
        }
    }

    /// Shows the question in the quiz of a player of this node when its time has come, and ends the
    /// turn when its time is over. Sets an alarm for the next of these times.
    private static func advanceQuiz(of player: String, in room: Room<QuizLobby>, _ redis: any Redis) async throws {
        let lobby = await room.lobby
        guard let (id, quiz) = lobby.quiz(of: player), let turn = quiz.player else { return }
        let now = try await now(redis)
        await room.changeLobby { $0.show(id, at: now) }
        guard now > quiz.deadline || !lobby.isPresent(turn, in: quiz) else {
            let next = now < quiz.shown ? quiz.shown : quiz.deadline + 1
            return await room.attend(to: player, after: .milliseconds(next - now))
        }
        do {
            try await room.change("quiz:" + id, Quiz.self) { quiz in
                quiz.advance(at: now) { lobby.players[$0] != nil }
            }
        } catch is CallRefusal {
            // The quiz has ended.
        }
    }

    /// The time of Redis in milliseconds.
    private static func now(_ redis: any Redis) async throws -> Int {
        let parts = try await redis.send(RedisCommand("TIME")).array ?? []
        guard parts.count == 2, let seconds = parts[0].string.flatMap({ Int($0) }),
            let microseconds = parts[1].string.flatMap({ Int($0) })
        else { throw CallUnavailable("the time is not known", mayHaveRun: false) }
        return seconds * 1000 + microseconds / 1000
    }
}
