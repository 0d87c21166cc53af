// Random operations of the gateway's sessions and of the Arcade.

import SimulatedRedis

/// Makes random operations of the gateway and of the Arcade.
struct ApplicationGenerator {
    private var random: SeededGenerator
    private var time: Int64
    private var login = 0

    init(seed: UInt64, time: Int64) {
        random = SeededGenerator(seed: seed)
        self.time = time
    }

    mutating func operations(_ count: Int) -> [Operation] {
        (0..<count).map { _ in
            time += Int64.random(in: 1...2_000_000, using: &random)
            return random.chance(50) ? gateway() : random.chance(60) ? account() : document()
        }
    }

    private func run(_ name: String, _ keys: [Bytes], _ arguments: [Bytes]) -> Operation {
        Operation(kind: .script(name), keys: keys, arguments: arguments, time: time)
    }

    private mutating func gateway() -> Operation {
        let recent = max(1, login - Int.random(in: 0...2, using: &random))
        let id = "id\(recent)".bytes
        let session = "gw:session:\(id)".bytes
        let device: Bytes = random.pick(["gw:device:1", "gw:device:2"])
        switch Int.random(in: 0..<8, using: &random) {
        case ..<3:
            let current: Bytes = random.chance(40) ? "" : id
            login += 1
            let new = "id\(login)".bytes
            let newSession = "gw:session:\(new)".bytes
            return run(
                "gateway/session_login", [device, newSession, current.isEmpty ? newSession : session],
                [current, new, "user", "phone", "token", "cookie", "900000", "gw:ended"])
        case ..<5: return run("gateway/session_load", [session], [])
        case ..<7:
            let nonce = "gw:nonce:\(Int.random(in: 0...3, using: &random))".bytes
            let sent = time / 1000 + (random.chance(85) ? 200_000 : -900_000)
            return run(
                "gateway/session_admit", [session, nonce], ["\(sent)".bytes, "300000", random.pick(["", "1"])])
        default: return run("gateway/session_logout", [session, device], [id, "gw:ended", "600000"])
        }
    }

    private mutating func account() -> Operation {
        let account: Bytes = random.pick(["arcade:account:ann", "arcade:account:bob"])
        let code: Bytes = "arcade:code:1"
        switch Int.random(in: 0..<8, using: &random) {
        case ..<2:
            return run(
                "arcade/account_claim", [account], [random.pick(["s1", "s2"]), "9000", random.pick(["0", "1"])])
        case 2: return run("arcade/account_register", [account], ["password", "a@b.c"])
        case 3: return run("arcade/account_correct_email", [account, code], ["d@e.f"])
        case 4, 5:
            return random.chance(40)
                ? Operation(kind: .command, arguments: ["SET", code, "hash", "EX", "9000"], time: time)
                : run(
                    "arcade/account_redeem", [code, account],
                    [random.pick(["hash", "no"]), "verified", "1", "password"])
        case 6: return run("arcade/account_leave", [account], [])
        default: return Operation(kind: .command, arguments: ["HGETALL", account], time: time)
        }
    }

    private mutating func document() -> Operation {
        let keys: [Bytes] = ["arcade:document:1", "arcade:due"]
        let version = "\(Int.random(in: 0...3, using: &random))".bytes
        switch Int.random(in: 0..<7, using: &random) {
        case ..<3: return run("arcade/document_replace", keys, [version, "{}", "1"])
        case 3: return run("arcade/document_finish", keys, [version, "1"])
        case 4: return run("arcade/document_overdue", [keys[1]], [random.pick(["0", "10"])])
        case 5: return random.chance(30) ? run("arcade/document_delete", keys, ["1"]) : words()
        default: return words()
        }
    }

    private mutating func words() -> Operation {
        let id: Bytes = random.pick(["g1", "g2"])
        return random.chance(40)
            ? run("arcade/words_start", ["arcade:words:ann"], [id, "{\"id\":\"\(id)\"}".bytes, "900000"])
            : run("arcade/words_read", ["arcade:words:ann"], [id])
    }
}
