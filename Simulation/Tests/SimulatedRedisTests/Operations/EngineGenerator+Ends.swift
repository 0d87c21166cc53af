// Random ends of claims: releases, and ends by other processes.

import SimulatedRedis

extension EngineGenerator {
    /// Ends a claim that was asked for, whether it was granted or not.
    mutating func end() -> Operation {
        guard let claim = claims.isEmpty ? nil : random.pick(claims) else { return request() }
        let next = (numbers[claim.slot] ?? 0) + 1
        numbers[claim.slot] = next
        let number = "\(claim.number)".bytes
        let own: [Bytes] = [Bytes(claim.slot), "\(next)".bytes, "t:\(claim.name)".bytes, number]
        let others: [Bytes] = [Bytes(claim.slot), random.pick(["", "lost"]), "t:\(claim.name)".bytes, number]
        let isByOther = random.chance(25)
        switch claim.kind.family {
        case "groups":
            return isByOther ? run("end_in_group", others, keys: 2) : run("release_in_group", own, keys: 2)
        case "latch":
            return isByOther ? run("end_participant", others, keys: 2) : run("release_participant", own, keys: 2)
        case "meeting":
            let end = random.chance(30) ? own + ["w"] : own
            return isByOther ? run("end_party", others) : run("release_party", end)
        case "buffer": return endOfBuffer(claim, own, others, isByOther)
        default:
            if random.chance(10) { return run("reduce", own + ["1"], keys: 2) }
            if random.chance(10) { return run("extend_fences", own + ["\(time)".bytes], keys: 2) }
            if isByOther { return run("end_permits", others, keys: 2) }
            let used: [Bytes] = random.chance(30) ? ["\(time)".bytes] : []
            return run(
                claim.kind.letters == "mf" && random.chance(60) ? "release_mutex" : "release", own + used, keys: 2)
        }
    }

    private mutating func endOfBuffer(
        _ claim: Claim, _ own: [Bytes], _ others: [Bytes], _ isByOther: Bool
    ) -> Operation {
        let items = "t:\(claim.name)#items".bytes
        let places = "t:\(claim.name)".bytes
        switch Int.random(in: 0..<6, using: &random) {
        case ..<2:
            return run("pass", [own[0], own[1], items, "if", "0", own[3], places, random.pick(["one", "two"])])
        case 2:
            return run(
                "pass_once",
                [own[0], own[1], items, "if", "0", own[3], places, "value", "put\(claim.number % 3)".bytes],
                keys: 5)
        case 3: return run("pass", [own[0], own[1], places, "kf", "2", own[3], items])
        case 4: return run("read", [own[0], "", items, own[3]])
        default: return isByOther ? run("end_item", others) : run("release_item", [own[0], own[1], items, own[3]])
        }
    }
}
