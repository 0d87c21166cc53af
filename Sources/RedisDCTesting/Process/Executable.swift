import Foundation

/// The search for a program as a shell does it.
enum Executable {
    /// Returns the path of the first name that is a program, or nil.
    ///
    /// - Parameters:
    ///   - names: program names. A name with a slash is a path.
    ///   - searchPath: folders separated by colons; by default the environment variable `PATH`.
    static func find(_ names: [String], searchPath: String? = nil) -> String? {
        let folders = (searchPath ?? ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        return names.lazy
            .flatMap { name in name.contains("/") ? [name] : folders.map { "\($0)/\(name)" } }
            .first(where: Self.isProgram)
            .map { URL(fileURLWithPath: $0).path }
    }

    private static func isProgram(_ path: String) -> Bool {
        var isFolder: ObjCBool = false
        return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) && !isFolder.boolValue
            && FileManager.default.isExecutableFile(atPath: path)
    }
}
