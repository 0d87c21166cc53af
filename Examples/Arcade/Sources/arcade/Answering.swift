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
        case let error as Duel.IllegalEquation: throw CallRefusal(error.reason, "the rules do not allow this equation")
        case let error as DuelPlayer.IllegalTrade: throw CallRefusal(error.reason, "this cannot be bought or made")
        case let error as WordGame.IllegalWords: throw CallRefusal("\(error)", "the rules do not allow these words")
        case let error as GameServiceError where error.code == .invalidArgument:
            throw CallRefusal("invalid", error.message)
        case let error as GameServiceError:
            throw CallUnavailable("the players cannot be reached", mayHaveRun: error.mayHaveRun)
        case let error as GameServiceError where error.code == .conflict:
            throw CallRefusal("conflict", "this id was used for something else")
        case let error as GameServiceError where error.code == .invalidArgument || error.code == .notFound:
            throw CallRefusal("invalid", error.message)
        case let error as GameServiceError:
            throw CallUnavailable("the scores and opponents cannot be reached", mayHaveRun: error.mayHaveRun)
        default: throw error
        }
    }
}

extension Duel.IllegalEquation {
    /// The word by which a page decides.
    fileprivate var reason: String {
        switch self {
        case .notYourTurn, .matchOver: "\(self)"
        case .notInSelection(let token): "notInSelection \(token)"
        case .invalid(let code, let place): "\(code) \(place)"
        }
    }
}

extension DuelPlayer.IllegalTrade {
    /// The word by which a page decides.
    fileprivate var reason: String {
        if case .tooExpensive(let missing) = self { return "tooExpensive \(missing)" }
        return "\(self)"
    }
}
