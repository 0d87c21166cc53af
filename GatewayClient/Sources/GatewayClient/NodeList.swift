import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The nodes of a gateway. All calls go to one of them, until it fails; then to the next one.
final class NodeList: Sendable {
    /// Origins, such as `https://chat.example`.
    let origins: [String]
    private let index: Mutex<Int>

    /// - Parameter urls: origins, without a path.
    /// - Throws: `.invalidArgument`.
    init(_ urls: [String], first: Int) throws(GatewayError) {
        guard !urls.isEmpty else { throw GatewayError(.invalidArgument, "a client needs the URL of a gateway") }
        var origins: [String] = []
        for text in urls {
            guard let url = URL(string: text), let scheme = url.scheme?.lowercased(),
                scheme == "http" || scheme == "https", let host = url.host(percentEncoded: true), !host.isEmpty,
                url.path.isEmpty || url.path == "/", url.query == nil, url.fragment == nil, url.user == nil
            else {
                throw GatewayError(
                    .invalidArgument, "\"\(text)\" is not the URL of a gateway: expected is https://HOST[:PORT]")
            }
            origins.append(text.hasSuffix("/") ? String(text.dropLast()) : text)
        }
        self.origins = origins
        index = Mutex(first % origins.count)
    }

    var count: Int { origins.count }

    /// The node in use.
    var current: String { origins[index.withLock { $0 }] }

    /// Goes on to the next node, unless another call has done so.
    func leave(_ origin: String) {
        index.withLock { index in
            if origins[index] == origin { index = (index + 1) % origins.count }
        }
    }
}
