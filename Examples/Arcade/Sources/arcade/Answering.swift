import GameServices
import Games
import Gateway

/// Runs the body of a call, and turns failures into those that a page understands: a rule of a game into a refusal whose
/// reason is the rule, and a failure of Redis into one after which the page tries again.
func answering<Reply: Sendable>(_ body: () async throws -> Reply) async throws -> Reply {
    do { return try await body() } catch {
        switch error {
        case let error as TicTacToe.IllegalMove: throw CallRefusal("\(error)", "the rules do not allow this move")
        case let error as Quiz.IllegalAction: throw CallRefusal("\(error)", "the rules do not allow this")
        case let error as WordGame.IllegalWords: throw CallRefusal("\(error)", "the rules do not allow these words")
        case let error as PresenceError:
            throw CallUnavailable("the players cannot be reached", mayHaveRun: error.mayHaveRun)
        case let error as GameServiceError where error.code == .conflict:
            throw CallRefusal("conflict", "this was done before, in another way")
        case let error as GameServiceError:
            throw CallUnavailable("the scores cannot be reached", mayHaveRun: error.mayHaveRun)
        default: throw error
        }
    }
}
