import Foundation
import Gateway
import HTTPTypes
import Hummingbird

extension Gateway {
    /// Reads the content of a call that needs no session: JSON, from a program or from a page of the arcade.
    ///
    /// A browser sends JSON to another origin only with the permission of that origin, and names the page's origin with
    /// every request that is no GET. So a foreign page can neither make such a call nor use up its limit.
    ///
    /// - Throws: an `HTTPError`: 403 for another origin, 415 for another content type, 400 for anything but the content.
    func openContent<Content: Decodable>(
        _ type: Content.Type, of request: Request, _ context: some RequestContext
    ) async throws -> Content {
        if let origin = request.headers[.origin], !configuration.allowedOrigins.contains(origin) {
            throw HTTPError(.forbidden, message: "the call is for pages of the arcade")
        }
        let mediaType = request.headers[.contentType]?.prefix { $0 != ";" }
        guard mediaType?.trimmingCharacters(in: .whitespaces).lowercased() == "application/json" else {
            throw HTTPError(.unsupportedMediaType, message: "the call needs the header Content-Type: application/json")
        }
        return try await request.decode(as: type, context: context)
    }
}
