// The judge of presence: an object is there while its client is connected and its process lives.
import SimulatedRedis

@testable import CoordinationBase
@testable import GameServices

/// Checks that an object is there while its client is connected and its process lives, and gone afterwards.
final class GuestJudge: FamilyJudge {
    private struct Object {
        /// The value and the version, if they are known.
        var value: String?
        var version = 0
        /// Whether it is certain that the value above is there, or that there is none.
        var isCertain = true
        /// Since when, and how often the server had lost data when the operation began.
        var since: Time = 0
        var losses = 0
        /// How long it stays when its client has left, and when the client left.
        var grace: Time = 0
        var left: Time?
        /// All values that it may have.
        var tried: Set<String> = []
    }

    private unowned let world: World
    private var objects: [String: Object] = [:]
    /// The number of tasks of each process that serve clients.
    var guests: [Int: Int] = [:]

    init(_ world: World) { self.world = world }

    // MARK: Operations

    func tries(_ key: String, _ value: String) { objects[key, default: Object()].tried.insert(value) }

    func wasTried(_ object: PresenceObject) -> Bool { objects[object.key]?.tried.contains(object.text) ?? false }

    /// - Parameter grace: `nil` if it is as before.
    func has(_ key: String, _ value: String, version: Int, grace: Time? = nil, losses: Int) {
        world.note("\(key) is put as \(value), version \(version)")
        let object = objects[key]!
        if object.losses == losses, losses == world.judge.losses, object.isCertain, object.value != nil {
            world.check(version > object.version, "\(key) has version \(version) after \(object.version)")
        }
        (objects[key]!.value, objects[key]!.version, objects[key]!.isCertain) = (value, version, true)
        (objects[key]!.since, objects[key]!.losses) = (world.now, losses)
        if let grace { objects[key]!.grace = grace }
    }

    /// The client disconnects: its object leaves after its grace period.
    func leaves(_ key: String) { objects[key]?.left = world.now }

    /// The client has connected again, and takes the object over if it is still there.
    func returns(_ key: String) {
        if !isStaying(key) { isUnknown(key) }
        objects[key]?.left = nil
    }

    /// Whether the grace period of an object has not begun, or is not over.
    private func isStaying(_ key: String) -> Bool {
        guard let object = objects[key], let left = object.left else { return true }
        // The server's clock has whole milliseconds.
        return world.now + 1000 < left + object.grace && world.plan.faults.clockSteps == 0
    }

    func isGone(_ key: String, losses: Int) {
        world.note("\(key) is gone")
        guard objects[key] != nil else { return }
        (objects[key]!.value, objects[key]!.isCertain) = (nil, true)
        (objects[key]!.since, objects[key]!.losses) = (world.now, losses)
    }

    func isUnknown(_ key: String) { objects[key]?.isCertain = false }

    func version(of key: String) -> Int? {
        guard let object = objects[key], object.value != nil, world.random.isOne(in: 2) else { return nil }
        return object.version
    }

    /// The session of a client has ended.
    func isLost(_ key: String, _ owner: MailProcess) {
        let time: Time = 20_000_000
        world.check(
            world.judge.losses > 0 || !owner.isCalm(for: time) || !world.isCalm(for: time),
            "\(key) was lost, and its process was well")
        isUnknown(key)
    }

    // MARK: Reads

    /// - Parameter isOwned: whether the process still has the client's connection, so nothing of it is reported as lost.
    func sees(
        _ found: PresenceObject?, _ key: String, _ owner: MailProcess, isOwned: Bool, since begun: Time, losses: Int
    ) {
        world.judge { $0.hasChecked() }
        if let found { world.check(wasTried(found), "\(key) is \(found.text), which nobody has put") }
        guard isStaying(key), let object = objects[key], object.isCertain, object.since < begun,
            losses == world.judge.losses
        else { return }
        let isRepaired = object.losses != losses
        guard !isRepaired || isOwned && owner.client.hasRepaired(object.since, before: begun) else { return }
        guard let value = object.value else {
            return world.check(found == nil, "\(key) has left, and is \(found?.text ?? "")")
        }
        let time = world.now - object.since + 5_000_000
        if owner.isCalm(for: time), world.isCalm(for: time) {
            world.check(
                found?.text == value && (isRepaired || found?.version == object.version),
                "\(key) is \(found?.text ?? "gone"), and was put as \(value)")
        } else if let found {
            world.check(found.text == value, "\(key) is \(found.text), and was put as \(value)")
        }
    }

    /// Whether all clients have left.
    var isEmpty: Bool {
        world.processes.allSatisfy { $0.isDead || guests[$0.number] ?? 0 == 0 }
    }

    func checkEnd(_ ledger: Ledger) {}
}
