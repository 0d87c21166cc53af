/// The players who are present, and the quizzes that they host.
///
/// Players and quizzes are objects of a presence bucket. A quiz exists while its host is present and wants it.
public struct QuizLobby: Lobby, Hashable {
    /// A player who is present.
    public struct Player: Sendable, Hashable, Codable {
        /// The quiz that the player hosts.
        public var hosts: Hosted?

        /// A quiz, by its id.
        public struct Hosted: Sendable, Hashable, Codable {
            public var id: String
            public var settings: Quiz.Settings

            /// Creates a hosted quiz.
            public init(id: String, settings: Quiz.Settings) { (self.id, self.settings) = (id, settings) }
        }
    }

    /// The view of one player.
    public struct View: Sendable, Hashable, Codable {
        /// The quizzes that can be joined, while the player is in none.
        public var open: [OpenQuiz]?
        /// The categories with the number of their questions, while the player is in no quiz.
        public var categories: [String: Int]?
        /// The quiz that the player is in.
        public var quiz: QuizView?

        /// A view without anything.
        public init() {}
    }

    /// A quiz in a list.
    public struct OpenQuiz: Sendable, Hashable, Codable {
        public var id: String
        public var name: String
        public var host: String
        public var players: Int
    }

    /// A quiz as its players see it: without the right answer of the question.
    public struct QuizView: Sendable, Hashable, Codable {
        public var id: String
        public var name: String
        public var host: String
        public var players: [PlayerView]
        /// `open`, `running` or `over`.
        public var phase: String
        public var questions: Int
        /// The number of the question, from 0. Its text and answers are `nil` until it is shown.
        public var current: Int?
        public var question: String?
        public var answers: [String]?
        /// The player whose turn it is.
        public var turn: String?
        /// The times at which the question is shown to that player and the turn is over, in milliseconds by the server's clock.
        public var shown: Int?
        public var deadline: Int?
        public var last: Quiz.Event?
    }

    /// A player of a quiz.
    public struct PlayerView: Sendable, Hashable, Codable {
        public var name: String
        public var points: Int
        public var isPresent: Bool
    }

    /// The players by name.
    public private(set) var players: [String: Player] = [:]
    /// The quizzes by id.
    public private(set) var quizzes: [String: Quiz] = [:]
    /// The number of the question that is shown in each quiz, as far as this copy of the lobby knows.
    private var shown: [String: Int] = [:]

    public init() {}

    public static var newPlayer: [UInt8] { Array("{}".utf8) }

    @discardableResult
    public mutating func set(_ key: String, to value: [UInt8]?) -> Set<String> {
        let (kind, name) = Self.parts(of: key)
        switch kind {
        case "player":
            players[name] = Self.decode(Player.self, value)
            return (quiz(of: name)?.quiz.players).map { Set($0).union([name]) } ?? [name]
        case "quiz":
            let (before, after) = (quizzes[name], Self.decode(Quiz.self, value))
            quizzes[name] = after
            if after == nil { shown[name] = nil }
            // A change of the list concerns every player in the lobby.
            let isListed = (before?.isOpen ?? false) || (after?.isOpen ?? false)
            let concerned = Set((before?.players ?? []) + (after?.players ?? []))
            return isListed ? concerned.union(players.keys) : concerned
        default: return []
        }
    }

    /// The quiz that a player is in: the one that the player hosts, or the one with the smallest id.
    public func quiz(of player: String) -> (id: String, quiz: Quiz)? {
        if let id = players[player]?.hosts?.id { return quizzes[id].map { (id, $0) } }
        return quizzes.filter { _, quiz in
            quiz.host != player && quiz.players.contains(player) && !quiz.left.contains(player)
        }.min { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// Whether a player may join a quiz, or host it: a player is in one quiz at a time.
    public func mayEnter(_ id: String, _ player: String) -> Bool {
        let current = players[player]?.hosts?.id ?? quiz(of: player)?.id
        return current == nil || current == id
    }

    /// Adds the question of a quiz to the views of its players if the time to show it has come.
    ///
    /// - Returns: the players whose views have changed.
    public mutating func show(_ id: String, at now: Int) -> Set<String> {
        guard let quiz = quizzes[id], let current = quiz.current, quiz.question != nil, now >= quiz.shown,
            !isShown(id, quiz)
        else { return [] }
        shown[id] = current
        return Set(quiz.players)
    }

    /// Whether the question of a quiz is shown. A question that has passed to the next player has been shown before.
    private func isShown(_ id: String, _ quiz: Quiz) -> Bool { quiz.asked > 0 || shown[id] == quiz.current }

    /// Whether a player of a quiz is there and has not left it.
    public func isPresent(_ player: String, in quiz: Quiz) -> Bool {
        players[player] != nil && !quiz.left.contains(player)
    }

    /// The quizzes of a host that are wanted no longer.
    public func endedQuizzes(of host: String) -> [String] {
        quizzes.filter { $0.value.host == host && players[host]?.hosts?.id != $0.key }.map(\.key)
    }

    public func view(of player: String) -> View {
        var view = View()
        guard let (id, quiz) = quiz(of: player) else {
            view.open = quizzes.filter { $0.value.isOpen }.sorted { $0.key < $1.key }.prefix(100).map { id, quiz in
                OpenQuiz(id: id, name: quiz.settings.name, host: quiz.host, players: quiz.players.count)
            }
            view.categories = QuizQuestion.all.mapValues(\.count)
            return view
        }
        let people = zip(quiz.players, quiz.points).map {
            PlayerView(name: $0, points: $1, isPresent: isPresent($0, in: quiz))
        }
        var seen = QuizView(
            id: id, name: quiz.settings.name, host: quiz.host, players: people,
            phase: quiz.isOver ? "over" : quiz.current == nil ? "open" : "running", questions: quiz.settings.questions,
            last: quiz.last)
        if let question = quiz.question, let content = question.content {
            (seen.current, seen.turn, seen.shown, seen.deadline) = (
                quiz.current, quiz.player, quiz.shown, quiz.deadline
            )
            if isShown(id, quiz) {
                (seen.question, seen.answers) = (content.text, question.order.map { content.answers[$0] })
            }
        }
        view.quiz = seen
        return view
    }
}
