import Foundation
import Games
import Testing

@Suite("The quiz")
struct QuizTests {
    private let settings = Quiz.Settings(name: "evening", categories: ["music", "science"], questions: 5, seconds: 10)

    /// A running game of these players, with the first question shown at 3,000.
    private func quiz(_ players: String..., questions: Int = 5) throws -> Quiz {
        var settings = settings
        settings.questions = questions
        var quiz = try Quiz(host: players[0], settings)
        for player in players.dropFirst() { #expect(try quiz.join(player)) }
        var generator = SystemRandomNumberGenerator()
        #expect(try quiz.start(by: players[0], at: 0, using: &generator))
        return quiz
    }

    private func code(_ body: () throws(Quiz.IllegalAction) -> Void) -> Quiz.IllegalAction? {
        do throws(Quiz.IllegalAction) {
            try body()
            return nil
        } catch { return error }
    }

    private func right(_ quiz: Quiz) throws -> Int { try #require(quiz.question).right }

    @Test("every question has four different answers, and none is twice in a game")
    func questions() throws {
        for (category, questions) in QuizQuestion.all {
            #expect(questions.count == 8, "\(category)")
            for question in questions { #expect(Set(question.answers).count == 4, "\(question.text)") }
        }
        for _ in 0..<50 {
            let quiz = try quiz("a", questions: 16)
            #expect(Set(quiz.questions.map { "\($0.category) \($0.index)" }).count == 16)
            #expect(quiz.questions.allSatisfy { settings.categories.contains($0.category) && $0.content != nil })
            #expect(quiz.questions.allSatisfy { $0.order.sorted() == [0, 1, 2, 3] && $0.order[$0.right] == 0 })
        }
    }

    @Test("settings that the questions do not permit are refused")
    func settingsAreChecked() {
        for change: (inout Quiz.Settings) -> Void in [
            { $0.name = "" }, { $0.name = String(repeating: "x", count: 33) }, { $0.categories = [] },
            { $0.categories = ["none"] }, { $0.questions = 0 }, { $0.questions = 17 }, { $0.seconds = 2 },
            { $0.seconds = 61 },
            // The same category twice has no more questions.
            {
                $0.categories = ["music", "music"]
                $0.questions = 9
            },
        ] {
            var settings = settings
            change(&settings)
            #expect(code { () throws(Quiz.IllegalAction) in _ = try Quiz(host: "a", settings) } == .invalidSettings)
        }
    }

    @Test("four players at most join, once each, until the start")
    func join() throws {
        var quiz = try Quiz(host: "a", settings)
        #expect(try quiz.join("b") && quiz.join("c") && !quiz.join("b") && !quiz.join("a"))
        #expect(quiz.leave("b") && !quiz.leave("b") && !quiz.leave("a"))
        #expect(try quiz.join("d") && quiz.join("e"))
        #expect(!quiz.isOpen && quiz.players == ["a", "c", "d", "e"])
        #expect(code { () throws(Quiz.IllegalAction) in _ = try quiz.join("f") } == .isFull)
        var generator = SystemRandomNumberGenerator()
        #expect(
            code { () throws(Quiz.IllegalAction) in _ = try quiz.start(by: "c", at: 0, using: &generator) }
                == .notTheHost)
        #expect(try quiz.start(by: "a", at: 0, using: &generator))
        let started = quiz
        #expect(try !quiz.start(by: "a", at: 9, using: &generator) && quiz == started)
        #expect(code { () throws(Quiz.IllegalAction) in _ = try quiz.join("f") } == .hasStarted)
    }

    @Test("points fall from 100 to 0 within ten seconds of the time at which the question is shown")
    func points() throws {
        for (time, expected) in [(3000, 100), (3001, 99), (5500, 75), (12_999, 0), (13_000, 0)] {
            var quiz = try quiz("a")
            #expect(try quiz.answer(try right(quiz), to: 0, by: "a", id: "1", at: time))
            #expect(quiz.points == [expected] && quiz.last?.points == expected && quiz.current == 1)
            #expect(quiz.shown == time + Quiz.pauseMilliseconds)
        }
    }

    @Test("a wrong answer and one that is missing pass to the next player, and after the last one the question is over")
    func passes() throws {
        var quiz = try quiz("a", "b", "c")
        let right = try right(quiz)
        let text = quiz.question?.content?.answers[0]
        #expect(try quiz.answer((right + 1) % 4, to: 0, by: "a", id: "1", at: 4000))
        #expect(quiz.player == "b" && quiz.shown == 4000 && quiz.last?.right == nil)
        #expect(!quiz.advance(at: 14_000) { _ in true })
        #expect(quiz.advance(at: 14_001) { _ in true })
        #expect(quiz.player == "c" && quiz.last == Quiz.Event(player: "b", question: 0, answer: nil, points: 0))
        #expect(try quiz.answer((right + 2) % 4, to: 0, by: "c", id: "2", at: 15_000))
        #expect(quiz.current == 1 && quiz.player == "b" && quiz.last?.right == text)
        #expect(quiz.points == [0, 0, 0])
        // The next player begins with the next question, and has the full points.
        #expect(try quiz.answer(try self.right(quiz), to: 1, by: "b", id: "3", at: 18_000))
        #expect(quiz.points == [0, 100, 0] && quiz.player == "c")
    }

    @Test("an answer is refused out of turn, before the question is shown, and to another question")
    func refused() throws {
        var quiz = try quiz("a", "b")
        func answer(_ answer: Int, to question: Int, by player: String, at now: Int) -> Quiz.IllegalAction? {
            code { () throws(Quiz.IllegalAction) in
                _ = try quiz.answer(answer, to: question, by: player, id: "\(now)", at: now)
            }
        }
        #expect(answer(0, to: 0, by: "a", at: 2999) == .otherQuestion)
        #expect(answer(0, to: 1, by: "a", at: 3000) == .otherQuestion)
        #expect(
            answer(0, to: 0, by: "b", at: 3000) == .notYourTurn && answer(0, to: 0, by: "x", at: 3000) == .notYourTurn)
        #expect(answer(0, to: 0, by: "a", at: 13_001) == .notYourTurn)
        for place in [-1, 4, .max, .min] { #expect(answer(place, to: 0, by: "a", at: 3000) == .noSuchAnswer) }
    }

    @Test("an answer that comes again changes nothing, also when the next question is shown")
    func again() throws {
        var quiz = try quiz("a")
        #expect(try quiz.answer(try right(quiz), to: 0, by: "a", id: "1", at: 3000))
        let before = quiz
        #expect(try !quiz.answer(0, to: 0, by: "a", id: "1", at: 3500) && quiz == before)
        #expect(try !quiz.answer(0, to: 0, by: "a", id: "1", at: 7000) && quiz == before)
    }

    @Test("those who have gone are passed over, and a game ends after its last question")
    func gone() throws {
        var quiz = try quiz("a", "b", "c", questions: 2)
        #expect(!quiz.advance(at: 3000) { $0 != "b" })
        #expect(quiz.advance(at: 3000) { $0 != "a" } && quiz.player == "b")
        #expect(quiz.leave("b") && !quiz.leave("b") && quiz.players.count == 3)
        #expect(quiz.advance(at: 3000) { _ in true } && quiz.player == "c")
        #expect(try quiz.answer(try right(quiz), to: 0, by: "c", id: "1", at: 3000))
        for _ in 0..<3 { #expect(quiz.advance(at: 99_000) { _ in false }) }
        #expect(quiz.isOver && quiz.player == nil && quiz.question == nil)
        #expect(!quiz.advance(at: 999_000) { _ in false })
    }

    @Test("players who have gone before the start lose their places, other than the host, and nobody does after it")
    func absent() throws {
        var quiz = try Quiz(host: "a", settings)
        #expect(try quiz.join("b") && quiz.join("c") && quiz.join("d") && !quiz.isOpen)
        #expect(!quiz.removeAbsent { _ in true })
        #expect(quiz.removeAbsent { $0 == "c" })
        #expect(quiz.isOpen && quiz.players == ["a", "c"] && quiz.points == [0, 0])
        #expect(!quiz.removeAbsent { $0 == "c" })
        var generator = SystemRandomNumberGenerator()
        #expect(try quiz.start(by: "a", at: 0, using: &generator))
        #expect(!quiz.removeAbsent { _ in false } && quiz.players == ["a", "c"] && quiz.left.isEmpty)
    }

    @Test("no view contains a question before its time")
    func countdown() throws {
        var lobby = QuizLobby()
        func set(_ quiz: Quiz) throws { lobby.set("quiz:1", to: Array(try JSONEncoder().encode(quiz))) }
        func seen(_ player: String) -> QuizLobby.QuizView? { lobby.view(of: player).quiz }
        for name in ["a", "b"] { lobby.set("player:" + name, to: QuizLobby.newPlayer) }
        let hosted = QuizLobby.Player.Hosted(id: "1", settings: settings)
        lobby.set("player:a", to: Array(try JSONEncoder().encode(["hosts": hosted])))
        var quiz = try quiz("a", "b")
        let text = try #require(quiz.question?.content?.text)
        try set(quiz)
        for time in [0, 2999] {
            #expect(lobby.show("1", at: time).isEmpty && lobby.show("none", at: time).isEmpty)
            for player in ["a", "b"] {
                #expect(seen(player)?.current == 0 && seen(player)?.shown == 3000 && seen(player)?.turn == "a")
                #expect(seen(player)?.question == nil && seen(player)?.answers == nil)
                let json = String(decoding: try JSONEncoder().encode(lobby.view(of: player)), as: UTF8.self)
                #expect(!json.contains(text))
            }
        }
        #expect(lobby.show("1", at: 3000) == ["a", "b"])
        #expect(lobby.show("1", at: 3000).isEmpty)
        #expect(seen("b")?.question == text && seen("b")?.answers?.count == 4)
        // The next player sees the same question at once, also at a node that has not shown it itself.
        #expect(try quiz.answer((try right(quiz) + 1) % 4, to: 0, by: "a", id: "1", at: 4000))
        try set(quiz)
        #expect(seen("a")?.question == text)
        var other = QuizLobby()
        other.set("quiz:1", to: Array(try JSONEncoder().encode(quiz)))
        #expect(other.view(of: "b").quiz?.question == text)
        // The next question waits for its own time.
        #expect(try quiz.answer(try right(quiz), to: 0, by: "b", id: "2", at: 5000))
        try set(quiz)
        #expect(seen("b")?.current == 1 && seen("b")?.question == nil)
        #expect(lobby.show("1", at: 7999).isEmpty && lobby.show("1", at: 8000) == ["a", "b"])
        #expect(seen("b")?.question == quiz.question?.content?.text)
    }

    @Test("a player enters one game at a time, as its host or as another player")
    func oneGame() throws {
        var lobby = QuizLobby()
        func json(_ value: some Encodable) throws -> [UInt8] { Array(try JSONEncoder().encode(value)) }
        for name in ["a", "b", "c"] { lobby.set("player:" + name, to: QuizLobby.newPlayer) }
        for (id, host) in [("1", "a"), ("2", "c")] {
            #expect(lobby.mayEnter(id, host))
            lobby.set("player:" + host, to: try json(["hosts": QuizLobby.Player.Hosted(id: id, settings: settings)]))
            // Also while the game does not exist yet.
            #expect(lobby.mayEnter(id, host) && !lobby.mayEnter("3", host))
            lobby.set("quiz:" + id, to: try json(try Quiz(host: host, settings)))
            #expect(lobby.mayEnter(id, host) && !lobby.mayEnter("3", host))
        }
        var quiz = try Quiz(host: "a", settings)
        #expect(lobby.mayEnter("1", "b") && lobby.mayEnter("2", "b"))
        #expect(try quiz.join("b"))
        lobby.set("quiz:1", to: try json(quiz))
        #expect(lobby.mayEnter("1", "b") && !lobby.mayEnter("2", "b"))
        var generator = SystemRandomNumberGenerator()
        #expect(try quiz.start(by: "a", at: 0, using: &generator))
        lobby.set("quiz:1", to: try json(quiz))
        #expect(!lobby.mayEnter("2", "b"))
        #expect(quiz.leave("b") && quiz.left == ["b"])
        lobby.set("quiz:1", to: try json(quiz))
        #expect(lobby.mayEnter("2", "b"))
    }

    @Test("a lobby shows open games to those who are in none, and the right answer to nobody")
    func lobby() throws {
        var lobby = QuizLobby()
        func json(_ value: some Encodable) throws -> [UInt8] { Array(try JSONEncoder().encode(value)) }
        let hosted = QuizLobby.Player.Hosted(id: "1", settings: settings)
        for name in ["a", "b", "c"] { lobby.set("player:" + name, to: QuizLobby.newPlayer) }
        #expect(lobby.set("player:a", to: try json(["hosts": hosted])) == ["a"])
        #expect(lobby.quiz(of: "a") == nil)
        var quiz = try Quiz(host: "a", settings)
        #expect(lobby.set("quiz:1", to: try json(quiz)) == ["a", "b", "c"])
        #expect(lobby.view(of: "b").open?.map(\.id) == ["1"] && lobby.view(of: "a").quiz?.phase == "open")
        #expect(try quiz.join("b"))
        lobby.set("quiz:1", to: try json(quiz))
        #expect(lobby.view(of: "b").quiz?.players.map(\.name) == ["a", "b"] && lobby.view(of: "b").open == nil)
        var generator = SystemRandomNumberGenerator()
        #expect(try quiz.start(by: "a", at: 0, using: &generator))
        #expect(lobby.set("quiz:1", to: try json(quiz)) == ["a", "b", "c"])
        #expect(lobby.view(of: "c").open == [])
        let seen = String(decoding: try json(lobby.view(of: "b")), as: UTF8.self)
        #expect(seen.contains("\"phase\":\"running\"") && !seen.contains("right") && !seen.contains("order"))
        #expect(lobby.set("player:b", to: nil) == ["a", "b"])
        #expect(lobby.view(of: "a").quiz?.players.map(\.isPresent) == [true, false])
        lobby.set("player:a", to: QuizLobby.newPlayer)
        #expect(lobby.endedQuizzes(of: "a") == ["1"] && lobby.endedQuizzes(of: "b").isEmpty)
        #expect(lobby.set("quiz:1", to: nil) == ["a", "b"])
    }
}
