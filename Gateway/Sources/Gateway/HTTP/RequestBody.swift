// The bodies of requests, and the JSON in them.
import HTTPTypes
import Hummingbird

extension BodiesInFlight {
    /// Reads the body of a request.
    ///
    /// - Throws: `too-large`, before the body has arrived if its length is announced; `malformed`.
    func body(of request: Request, maxBytes: Int) async throws -> [UInt8] {
        let length = request.headers[.contentLength].flatMap { Int($0) } ?? 0
        guard length <= maxBytes else { throw Problem.tooLarge(maxBytes) }
        guard let channel = ClientConnection.current?.channel else {
            return try await Self.read(request, maxBytes) { _ in }
        }
        return try await receive(from: channel) { count in try await Self.read(request, maxBytes, count) }
    }

    private static func read(_ request: Request, _ maxBytes: Int, _ count: (Int) -> Void) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        do {
            for try await buffer in request.body {
                guard bytes.count + buffer.readableBytes <= maxBytes else { throw Problem.tooLarge(maxBytes) }
                count(buffer.readableBytes)
                bytes += buffer.readableBytesView
            }
        } catch let problem as Problem { throw problem } catch {
            // Whatever ends a body before its end is the client's fault: chunks or trailers that are none, or its leaving.
            throw Problem(.malformed, "the body broke off, or is not well-formed")
        }
        return bytes
    }
}

extension Problem {
    fileprivate static func tooLarge(_ maxBytes: Int) -> Problem {
        Problem(.tooLarge, "the body has more than \(maxBytes) bytes")
    }
}

extension JSON {
    /// Reads the body of a request, which must be a JSON object.
    ///
    /// - Throws: `content-type`, `malformed`.
    init(body: [UInt8], of request: Request) throws(Problem) {
        let type = request.headers[.contentType]?.split(separator: ";").first.map { $0.trimmed.lowercased() }
        guard type == "application/json" else {
            throw Problem(.contentType, "the request needs the header Content-Type: application/json")
        }
        try self.init(object: body)
    }

    /// Reads a JSON object.
    ///
    /// - Throws: `malformed`.
    init(object text: [UInt8]) throws(Problem) {
        do { self = try JSONParser.parse(text) } catch { throw Problem(.malformed, "not JSON: \(error)") }
        guard members != nil else { throw Problem(.malformed, "not a JSON object") }
    }
}
