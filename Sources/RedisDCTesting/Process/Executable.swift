import Foundation

/// Finding a program as a shell would.
package enum Executable {
    /// The first of the names that is a program.
    ///
    /// - Parameters:
    ///   - names: program names; one with a slash is taken as a path.
    ///   - searchPath: folders separated by colons; `PATH` unless given.
    package static func find(_ names: [String], searchPath: String? = nil) -> String? {
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
