import Games
import Testing

@Suite("The lobby of tic-tac-toe")
struct TicTacToeLobbyTests {
    private typealias Lobby = TicTacToeLobby

    private func lobby(_ players: [String], _ matches: [(String, String, String)] = []) -> Lobby {
        var lobby = Lobby()
        for player in players { lobby.set(player: player, to: .init()) }
        for (id, cross, circle) in matches { lobby.set(match: id, to: .init(cross: cross, circle: circle)) }
        return lobby
    }

    @Test("who is present and not playing is free, and can be the opponent of another")
    func free() {
        let lobby = lobby(["a", "b", "c", "d"], [("1", "a", "b")])
        #expect(["a", "b", "c", "d", "e"].filter { lobby.isFree($0) } == ["c", "d"])
        #expect(lobby.opponents(for: "c") == ["d"] && lobby.opponents(for: "a").isEmpty)
        #expect(lobby.view(of: "c") == Lobby.View())
    }

    @Test("a match lasts while both players are present")
    func leaves() {
        var lobby = lobby(["a", "b"], [("1", "a", "b")])
        #expect(lobby.set(player: "b", to: nil) == ["a", "b"])
        #expect(lobby.isFree("a") && lobby.endedMatches(of: "a") == ["1"] && lobby.endedMatches(of: "b").isEmpty)
        #expect(lobby.set(player: "b", to: .init()) == ["a", "b"])
        #expect(lobby.match(of: "a")?.id == "1" && lobby.match(of: "b")?.id == "1")
        #expect(lobby.set(match: "1", to: nil) == ["a", "b"])
        #expect(lobby.isFree("a") && lobby.isFree("b") && lobby.endedMatches(of: "a").isEmpty)
    }

    @Test("a newer match of either player ends the older one for both")
    func newer() {
        var lobby = lobby(["a", "b", "c"], [("1", "a", "b")])
        #expect(lobby.set(match: "2", to: .init(cross: "c", circle: "a")) == ["a", "b", "c"])
        #expect(lobby.match(of: "a")?.id == "2" && lobby.match(of: "c")?.id == "2")
        #expect(lobby.isFree("b") && lobby.endedMatches(of: "a") == ["1"])
        // In the other order too.
        var reversed = self.lobby(["a", "b", "c"], [("2", "c", "a")])
        reversed.set(match: "1", to: .init(cross: "a", circle: "b"))
        #expect(reversed == lobby)
    }

    @Test("the end of a match is seen until the player asks for another")
    func finished() throws {
        var lobby = lobby(["a", "b"])
        var match = Lobby.Match(cross: "a", circle: "b")
        for (turn, cell) in [0, 3, 1, 4, 2].enumerated() {
            #expect(try match.play(cell, as: turn % 2 == 0 ? .cross : .circle, id: "\(turn)"))
        }
        lobby.set(match: "1", to: match)
        #expect(lobby.view(of: "a").result == "won" && lobby.view(of: "b").result == "lost")
        #expect(lobby.view(of: "b").line == [0, 1, 2] && lobby.view(of: "b").cells == "xxxoo....")
        lobby.set(player: "a", to: .init(finished: "1"))
        #expect(lobby.isFree("a") && !lobby.isFree("b") && lobby.endedMatches(of: "a").isEmpty)
        lobby.set(player: "b", to: .init(finished: "1"))
        #expect(lobby.opponents(for: "a") == ["b"] && lobby.endedMatches(of: "a") == ["1"])
    }

    @Test("a move that comes again changes nothing, also after the opponent's move")
    func again() throws {
        var match = Lobby.Match(cross: "a", circle: "b")
        #expect(try match.play(0, as: .cross, id: "1"))
        #expect(try !match.play(0, as: .cross, id: "1"))
        #expect(try match.play(1, as: .circle, id: "2"))
        let before = match
        #expect(try !match.play(0, as: .cross, id: "1"))
        #expect(match == before)
        #expect(throws: TicTacToe.IllegalMove.cellTaken) { try match.play(0, as: .cross, id: "3") }
    }

    @Test("whatever comes and goes, nobody is in two matches, and both players of a match see it")
    func random() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<200 {
            var lobby = Lobby()
            for _ in 0..<60 {
                let names = ["a", "b", "c", "d", "e"].shuffled(using: &generator)
                switch Int.random(in: 0..<4) {
                case 0: lobby.set(player: names[0], to: nil)
                case 1: lobby.set(player: names[0], to: .init())
                case 2: lobby.set(match: "\(Int.random(in: 1...6))", to: nil)
                default: lobby.set(match: "\(Int.random(in: 1...6))", to: .init(cross: names[0], circle: names[1]))
                }
                for name in names {
                    guard let (id, match) = lobby.match(of: name) else { continue }
                    #expect(match.players.contains(name))
                    #expect(lobby.match(of: match.opponent(of: name))?.id == id)
                }
            }
        }
    }
}
