import Foundation
import HTTPTypes
import Hummingbird

/// The addresses of clients, by which calls without a session are limited.
extension Gateway {
    /// Returns the address of a client, if it is known.
    func address(of request: Request, _ context: CallContext<some RequestContext>) -> String? {
        let forwarded =
            configuration.trustsForwardedFor
            ? request.headers[.xForwardedFor]?.split(separator: ",").last.map { $0.trimmed } : nil
        return forwarded ?? context.remoteAddress
    }

    /// Returns the part of an address that its owner cannot choose, by which calls without a session are limited: all of
    /// an IPv4 address, the first 64 bits of an IPv6 address.
    ///
    /// - Parameter address: as text. What is no address is returned unchanged.
    public static func subscriber(of address: String) -> String {
        var parsed = in6_addr()
        // An address of a link has a zone.
        guard inet_pton(AF_INET6, String(address.prefix { $0 != "%" }), &parsed) == 1 else { return address }
        let bytes = withUnsafeBytes(of: parsed) { Array($0) }
        // An IPv4 address in the form ::ffff:192.0.2.1.
        if bytes.starts(with: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]) {
            return bytes.suffix(4).map(String.init).joined(separator: ".")
        }
        return bytes.prefix(8).hexadecimal + "/64"
    }
}

extension StringProtocol {
    /// The text without white space at its ends.
    var trimmed: String {
        String(drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
    }
}

extension HTTPField.Name {
    static let xForwardedFor = HTTPField.Name("X-Forwarded-For")!
}
