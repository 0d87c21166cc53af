import CommandLineTool
import Foundation

/// The search for a program as a shell does it. Names and paths are bytes.
enum ProgramPath {
    /// Returns the path of a program.
    ///
    /// - Parameter name: a path if it contains a slash, else a name on the PATH.
    /// - Throws: a ``Failure`` with `.noProgram`, or with `.cannotRun` if there is only a file that
    ///   is not executable.
    static func find(_ name: [UInt8]) throws(Failure) -> [UInt8] {
        var unusable: (path: [UInt8], isFolder: Bool)?
        for path in candidates(name) {
            var status = stat()
            guard stat(cString(path), &status) == 0 else { continue }
            let isFolder = status.st_mode & S_IFMT == S_IFDIR
            if !isFolder, access(cString(path), X_OK) == 0 { return path }
            if unusable == nil { unusable = (path, isFolder) }
        }
        let shown = String(decoding: name, as: UTF8.self)
        guard let unusable else { throw Failure(.noProgram, "cannot run \"\(shown)\": no such program") }
        let path = String(decoding: unusable.path, as: UTF8.self)
        throw Failure(
            .cannotRun,
            unusable.isFolder
                ? "cannot run \"\(shown)\": \(path) is a folder"
                : "cannot run \"\(shown)\": \(path) is not executable; use chmod +x, or name its interpreter before it")
    }

    private static func candidates(_ name: [UInt8]) -> [[UInt8]] {
        if name.isEmpty { return [] }
        if name.contains(UInt8(ascii: "/")) { return [name] }
        let searchPath = getenv("PATH").map { Array(UnsafeRawBufferPointer(start: $0, count: strlen($0))) } ?? []
        return searchPath.split(separator: UInt8(ascii: ":")).map { $0 + [UInt8(ascii: "/")] + name }
    }

    private static func cString(_ path: [UInt8]) -> [CChar] { (path + [0]).map { CChar(bitPattern: $0) } }
}
