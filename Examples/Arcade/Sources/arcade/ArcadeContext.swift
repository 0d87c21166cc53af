import Hummingbird
import NIOCore

/// The context of a request, with the address that it came from.
struct ArcadeContext: RemoteAddressRequestContext {
    var coreContext: CoreRequestContextStorage
    let remoteAddress: SocketAddress?

    init(source: ApplicationRequestContextSource) {
        coreContext = .init(source: source)
        remoteAddress = source.channel.remoteAddress
    }
}

extension RequestContext {
    /// The address that the request came from, which is that of a proxy if there is one.
    var address: String? { (self as? any RemoteAddressRequestContext)?.remoteAddress?.ipAddress }
}
