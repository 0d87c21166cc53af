import Foundation

/// What the operating system says about a process that is not our child.
enum ProcessState {
    /// Whether the process is stopped by a signal (`SIGSTOP`): it has taken effect, not only been sent.
    static func isStopped(_ process: Int32) -> Bool {
        #if canImport(Darwin)
            var info = kinfo_proc()
            var size = MemoryLayout<kinfo_proc>.stride
            var name: [Int32] = [CTL_KERN, KERN_PROC, KERN_PROC_PID, process]
            let code = sysctl(&name, UInt32(name.count), &info, &size, nil, 0)
            return code == 0 && size > 0 && Int32(info.kp_proc.p_stat) == SSTOP
        #else
            // "pid (name) state ...", and the name may hold anything, a parenthesis too.
            guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
                let name = text.lastIndex(of: ")")
            else { return false }
            return text[name...].dropFirst(2).first == "T"
        #endif
    }
}
