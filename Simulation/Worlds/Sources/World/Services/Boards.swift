// Tasks that submit to a leaderboard, and read it.
@testable import CoordinationBase
@testable import GameServices

/// A task that submits scores and reads.
///
/// `@unchecked`: a world is used by one thread.
final class BoardTask: @unchecked Sendable {
    private let services: ServiceProcess
    private var owner: MailProcess { services.owner }
    private unowned let world: World
    private let judge: BoardJudge

    init(_ services: ServiceProcess) {
        (self.services, world) = (services, services.world)
        judge = services.world.family(BoardJudge.self)
    }

    func run() async {
        while world.isOpen, !owner.client.isOver {
            await owner.pause(100...400_000)
            switch Int.random(in: 0..<6, using: &world.random) {
            case 0: await readPage()
            case 1: await readEntry()
            case 2: if let number = judge.repeatable(&world.random) { await submit(number) }
            default: await submit(judge.begins(hasID: world.random.isOne(in: 2)))
            }
        }
        while !owner.client.isOver, await !readPage() { await owner.pause(1000...100_000) }
    }

    private func submit(_ number: Int) async {
        let (submit, losses) = (judge.calls(number), world.judge.losses)
        do throws(GameServiceError) {
            let answer = try await services.board.submit(submit.score, for: submit.name, id: submit.id)
            judge.returns(number, answer, to: owner.client, losses: losses)
            if let id = submit.id, world.random.isOne(in: 6) { await misuse(id, number, submit) }
        } catch {
            world.note("\(owner.process.name) cannot submit \(submit.score) for \(submit.name): \(error)")
            judge.fails(number, mayHaveRun: error.mayHaveRun)
        }
    }

    /// Submits nothing under an id that has a score.
    private func misuse(_ id: String, _ number: Int, _ submit: BoardJudge.Submit) async {
        let losses = world.judge.losses
        // If Redis has lost the submit, this one takes effect: a score of 0 adds nothing.
        do throws(GameServiceError) {
            _ = try await services.board.submit(0, for: submit.name, id: id)
            judge.misuses(number, isRefused: false, losses: losses)
        } catch {
            if error.code == .conflict { judge.misuses(number, isRefused: true, losses: losses) }
        }
    }

    @discardableResult
    private func readPage() async -> Bool {
        let window = world.random.isOne(in: 2) ? LeaderboardWindow.allTime : ServiceProcess.window
        let ago = window == .allTime ? 0 : Int.random(in: 0...2, using: &world.random)
        let begun = world.now
        do throws(GameServiceError) {
            judge.reads(try await services.board.top(1000, in: window, ago: ago), since: begun)
            return true
        } catch {
            world.note("\(owner.process.name) cannot read the leaderboard: \(error)")
            return false
        }
    }

    private func readEntry() async {
        guard let name = judge.anyName(&world.random) else { return }
        let begun = world.now
        guard let page = try? await services.board.entries(of: [name]) else { return }
        judge.checkSum(page.entries.first?.score ?? 0, of: name, since: begun)
    }
}
