import Foundation
import HTTPTypes
import Hummingbird
import Logging
import NIOPosix

/// The files of a folder, and none outside of it: a symbolic link that leaves the folder is no file.
struct StaticFolder: FileProvider {
    typealias FileAttributes = LocalFileSystem.FileAttributes
    typealias FileIdentifier = String

    private let files: LocalFileSystem
    /// The folder without symbolic links, with a slash at its end.
    private let root: String

    /// - Throws: `Settings.Fault` if the folder does not exist.
    init(_ folder: String, logger: Logger) throws {
        guard let resolved = Self.resolved(folder) else {
            throw Settings.Fault(description: "--static-folder is \(folder), which cannot be read")
        }
        root = resolved == "/" ? resolved : resolved + "/"
        files = LocalFileSystem(rootFolder: root, threadPool: .singleton, logger: logger)
    }

    /// Returns the file of a path, without symbolic links.
    ///
    /// The type of a file is that of its path. The system ends a name at a NUL, so that `a.txt%00.html` would be the file
    /// `a.txt` with the type of HTML.
    func getFileIdentifier(_ path: String) -> String? {
        guard path.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }), !path.contains("//"),
            let file = files.getFileIdentifier(path).flatMap(Self.resolved), (file + "/").hasPrefix(root)
        else { return nil }
        return file
    }

    func getAttributes(id: String) async throws -> FileAttributes? { try await files.getAttributes(id: id) }

    func loadFile(id: String, context: some RequestContext) async throws -> ResponseBody {
        try await files.loadFile(id: id, context: context)
    }

    func loadFile(id: String, range: ClosedRange<Int>, context: some RequestContext) async throws -> ResponseBody {
        try await files.loadFile(id: id, range: range, context: context)
    }

    private static func resolved(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }
}

/// Tells browsers to take the type of a reply as it is declared.
struct NoSniffMiddleware<Context: RequestContext>: RouterMiddleware {
    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        var response = try await next(request, context)
        response.headers[.xContentTypeOptions] = "nosniff"
        return response
    }
}

/// Refuses requests by another name than that of this machine: a page of another site whose name leads to a loopback address
/// could read the operators' pages otherwise.
struct LoopbackMiddleware<Context: RequestContext>: RouterMiddleware {
    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        guard let authority = request.head.authority, !Self.isLoopback(authority) else {
            return try await next(request, context)
        }
        return Response(
            status: .misdirectedRequest, headers: [.cacheControl: "no-store"],
            body: .init(byteBuffer: .init(string: "this address is for localhost, 127.0.0.1 and [::1]\n")))
    }

    /// Whether the value of the header Host, with or without a port, is a name or an address of this machine.
    static func isLoopback(_ authority: String) -> Bool {
        let host =
            authority.hasPrefix("[")
            ? authority.dropFirst().prefix { $0 != "]" } : authority.prefix { $0 != ":" }
        return Settings.isLoopback(host.lowercased())
    }
}
