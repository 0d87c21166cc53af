// The process that ends a command when the lease ends and redisdc does not.
import ChildProcesses
import CommandLineTool
import Foundation
import RedisDC

/// A second process of `redisdc lock` and its like, which does nothing but watch the end of the
/// lease.
///
/// While redisdc runs, it tells the guard after each heartbeat how long Redis keeps the lease. If
/// redisdc is stopped (SIGSTOP, Ctrl-Z, a debugger) or killed, it tells nothing more, and the guard
/// ends the command when that time is over: before Redis gives the lease to the next holder. A guard
/// of its own is needed because a stopped process can do nothing, and the command cannot be asked to.
///
/// A guard can watch several commands, which end together: those that a worker runs for its jobs.
final class LeaseGuard: Sendable {
    /// The first argument of a guard.
    static let firstArgument = "lease-guard"

    private let orders: CInt
    private let processID: pid_t

    /// Starts a guard. It ends with this object, or when this process and the commands have ended.
    ///
    /// - Parameter grace: the time between SIGTERM and SIGKILL.
    /// - Throws: a ``Failure`` if it cannot be started.
    init(grace: Duration) throws(Failure) {
        let itself = Bundle.main.executableURL ?? URL(fileURLWithPath: CommandLine.arguments[0])
        do {
            let pipe = try ChildPipe()
            processID = try ChildProcess.spawn(
                [itself.path, Self.firstArgument, "\(Int(grace / .milliseconds(1)))"], descriptors: [0: pipe.readEnd])
            orders = pipe.takeWriteEnd()
        } catch { throw Failure(.software, "cannot guard the lease: \(error)") }
        // A guard that is stopped must not stop this process too.
        _ = fcntl(orders, F_SETFL, fcntl(orders, F_GETFL) | O_NONBLOCK)
    }

    deinit {
        close(orders)
        // It ends at once, unless it was stopped.
        Thread.detachNewThread { [processID] in
            var status: Int32 = 0
            while waitpid(processID, &status, 0) < 0, errno == EINTR {}
        }
    }

    /// Starts a command, and tells the guard which processes to end: it, or the group that it leads.
    ///
    /// This process may be stopped or killed when the command runs and the guard does not know its process id. So the guard
    /// is told before, and finds the command by a variable.
    ///
    /// - Parameter spawn: starts the command with this variable, `NAME=VALUE`, and returns its process id.
    func start(ownsGroup: Bool, _ spawn: (_ variable: [UInt8]) throws -> pid_t) rethrows -> pid_t {
        let name = UInt64.random(in: .min ... .max)
        send("starting \(name) \(ownsGroup ? 1 : 0)")
        do {
            let processID = try spawn(Array("\(Self.variable)=\(name)".utf8))
            send("program \(ownsGroup ? -processID : processID) \(name)")
            return processID
        } catch {
            send("failed \(name)")
            throw error
        }
    }

    /// The variable by which the guard finds a command.
    fileprivate static let variable = "REDISDC_GUARD"

    /// Tells the guard how long Redis keeps the lease, each time that this may have changed, until the
    /// task is cancelled.
    func keepExtending(ttl: Duration, by remaining: () -> Duration) async {
        while !Task.isCancelled {
            extend(by: remaining())
            try? await Task.sleep(for: min(.seconds(1), ttl / 10))
        }
    }

    /// Tells the guard how long Redis keeps the lease. A lease that is lost does not move the end:
    /// this process ends the command then.
    func extend(by remaining: Duration) {
        if remaining > .zero { send("until \(GuardedPrograms.now + Int64(remaining / .nanoseconds(1)))") }
    }

    /// Tells the guard that a command has ended. Call this before it is reaped, because its process id is free then.
    func end(_ processID: pid_t, ownsGroup: Bool) { send("over \(ownsGroup ? -processID : processID)") }

    /// Waits for a guard that is busy, for at most a second.
    private func send(_ line: String) {
        var rest = Array((line + "\n").utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(orders, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                var stream = pollfd(fd: orders, events: Int16(POLLOUT), revents: 0)
                if poll(&stream, 1, 1000) <= 0 { return }
            } else if errno != EINTR {
                // If the guard is gone, nothing can be done about it.
                return
            }
        }
    }

    // MARK: The guard's process

    /// Runs a guard in this process, with its orders on standard input.
    static func run(_ arguments: [String]) -> Never {
        // Signals that a terminal or a service manager sends to all processes of a job.
        for number in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP] { signal(number, SIG_IGN) }
        var programs = GuardedPrograms(grace: arguments.first.flatMap { Int64($0) } ?? 0)
        while let wait = programs.step() {
            var stream = pollfd(fd: programs.isOrphaned ? -1 : STDIN_FILENO, events: Int16(POLLIN), revents: 0)
            guard poll(&stream, 1, CInt(wait)) > 0 else { continue }
            // All of it, so that nothing is done because of an end that was postponed meanwhile.
            repeat {
                var bytes = [UInt8](repeating: 0, count: 4096)
                let count = read(STDIN_FILENO, &bytes, bytes.count)
                if count > 0 { programs.receive(bytes[..<count]) } else if count == 0 { programs.isOrphaned = true }
            } while !programs.isOrphaned && poll(&stream, 1, 0) > 0
        }
        exit(0)
    }
}

/// The state of a guard. Times are in nanoseconds of a clock that all processes of the machine share.
private struct GuardedPrograms {
    /// redisdc has ended: there are no more orders.
    var isOrphaned = false
    private let grace: Int64
    private var line: [UInt8] = []
    /// The arguments of `kill`, and when SIGKILL follows; `nil` before SIGTERM.
    private var targets: [pid_t: Int64?] = [:]
    /// The commands that are being started, by name, and whether each owns a group.
    private var starting: [UInt64: Bool] = [:]
    /// Until when these are looked for.
    private var searchEnd: Int64?
    private var leaseEnd = Int64.max

    init(grace milliseconds: Int64) { grace = milliseconds * 1_000_000 }

    /// The time since the start of the machine. On Linux this includes the time in which it sleeps.
    static var now: Int64 {
        var time = timespec()
        #if os(Linux)
            clock_gettime(CLOCK_BOOTTIME, &time)
        #else
            clock_gettime(CLOCK_MONOTONIC, &time)
        #endif
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    mutating func receive(_ bytes: ArraySlice<UInt8>) {
        for byte in bytes {
            guard byte == UInt8(ascii: "\n") else {
                line.append(byte)
                continue
            }
            let words = String(decoding: line, as: UTF8.self).split(separator: " ")
            line = []
            switch (words.first, words.dropFirst().first, words.count) {
            case ("starting", let name?, 3): if let name = UInt64(name) { starting[name] = words[2] == "1" }
            case ("failed", let name?, 2): if let name = UInt64(name) { starting[name] = nil }
            case ("program", let target?, 3):
                if let name = UInt64(words[2]) { starting[name] = nil }
                if let target = pid_t(target), targets[target] == nil { targets[target] = .some(nil) }
            case ("until", let end?, 2): leaseEnd = Int64(end) ?? leaseEnd
            case ("over", let target?, 2): if let target = pid_t(target) { targets[target] = nil }
            // A line whose end was not taken in time.
            default: break
            }
        }
    }

    /// Does what is due.
    ///
    /// - Returns: the number of milliseconds until the next step; `nil` at the end.
    mutating func step() -> Int64? {
        let now = Self.now
        if !starting.isEmpty, isOrphaned || now >= leaseEnd { findStarted(now) } else { searchEnd = nil }
        for (target, killTime) in targets {
            // As long as redisdc has not reaped the command, its id belongs to no other process. Afterwards the
            // system's ids have to go all the way round between two of these steps.
            if isOrphaned, kill(target, 0) != 0 {
                targets[target] = nil
            } else if let killTime {
                guard now >= killTime else { continue }
                kill(target, SIGKILL)
                targets[target] = nil
            } else if now >= leaseEnd {
                kill(target, SIGTERM)
                // A stopped process handles SIGTERM only after SIGCONT.
                kill(target, SIGCONT)
                targets[target] = .some(now + grace)
            }
        }
        if isOrphaned, targets.isEmpty, starting.isEmpty { return nil }
        let killTime = targets.values.compactMap { $0 }.min()
        let isSearching = searchEnd != nil
        let isWaiting = targets.values.contains { $0 == nil } || !starting.isEmpty && !isSearching
        let next = (min(killTime ?? .max, isWaiting ? leaseEnd : .max) - now) / 1_000_000 + 1
        return min(max(next, 1), killTime != nil ? 20 : isSearching ? 100 : isOrphaned ? 20 : 1000)
    }

    /// Looks for commands whose process ids are not known: redisdc was stopped or killed when it started them. The system
    /// starts a command within ten seconds, or never.
    private mutating func findStarted(_ now: Int64) {
        let end = searchEnd ?? now + 10_000_000_000
        searchEnd = end
        var found: Set<UInt64> = []
        defer {
            for name in found { starting[name] = nil }
            if now >= end { starting = [:] }
            if starting.isEmpty { searchEnd = nil }
        }
        #if os(Linux)
            guard let names = try? FileManager.default.contentsOfDirectory(atPath: "/proc") else {
                return
            }
            for processID in names.compactMap({ pid_t($0) }) {
                // Of processes of other users it cannot be read.
                guard let variables = FileManager.default.contents(atPath: "/proc/\(processID)/environ") else {
                    continue
                }
                for variable in variables.split(separator: 0) {
                    let words = String(decoding: variable, as: UTF8.self).split(separator: "=")
                    guard words.count == 2, words[0] == LeaseGuard.variable, let name = UInt64(words[1]),
                        let ownsGroup = starting[name]
                    else { continue }
                    let group = getpgid(processID)
                    // It has ended meanwhile: nothing else may be taken for it.
                    guard group > 1 else { continue }
                    found.insert(name)
                    let target = ownsGroup ? -group : processID
                    if targets[target] == nil { targets[target] = .some(nil) }
                }
            }
        #endif
    }
}
