import Foundation

/// The state of a process that is not a child of this process.
enum ProcessState {
    /// Returns whether a signal such as `SIGSTOP` has stopped the process, not only been sent.
    static func isStopped(_ process: Int32) -> Bool {
        #if canImport(Darwin)
            var info = kinfo_proc()
            var size = MemoryLayout<kinfo_proc>.stride
            var name: [Int32] = [CTL_KERN, KERN_PROC, KERN_PROC_PID, process]
            let code = sysctl(&name, UInt32(name.count), &info, &size, nil, 0)
            return code == 0 && size > 0 && Int32(info.kp_proc.p_stat) == SSTOP
        #else
            // "pid (name) state ..."; the name can contain any character, including a parenthesis.
            guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
                let name = text.lastIndex(of: ")")
            else { return false }
            return text[name...].dropFirst(2).first == "T"
        #endif
    }
}
