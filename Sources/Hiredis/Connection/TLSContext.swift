// The only file that needs the TLS library.
import NIOCore

#if TLSSupport
    import NIOSSL
#endif

/// TLS settings whose files were read, once for each client.
struct TLSContext: Sendable {
    #if TLSSupport
        private let serverName: String?
        private let context: NIOSSLContext

        init(_ tls: RedisTLS) throws(RedisError) {
            serverName = tls.serverName
            do {
                var configuration = TLSConfiguration.makeClientConfiguration()
                if case .file(let path) = tls.authority { configuration.trustRoots = .file(path) }
                if let clientCertificate = tls.clientCertificate {
                    let chain = try NIOSSLCertificate.fromPEMFile(clientCertificate.certificateFile)
                    configuration.certificateChain = chain.map { .certificate($0) }
                    configuration.privateKey = .privateKey(
                        try NIOSSLPrivateKey(file: clientCertificate.keyFile, format: .pem))
                }
                configuration.certificateVerification =
                    switch tls.verification {
                    case .full: .fullVerification
                    case .certificateOnly: .noHostnameVerification
                    case .none: .none
                    }
                context = try NIOSSLContext(configuration: configuration)
            } catch {
                throw RedisError(
                    .invalidArgument, "the TLS settings cannot be used; check the certificate files: \(error)",
                    underlying: error)
            }
        }

        /// Adds the handler that encrypts, as the next one of the channel.
        func addHandler(to channel: any Channel, endpoint: RedisConfiguration.Endpoint) throws {
            var name = serverName
            if name == nil, case .tcp(let host, _) = endpoint { name = host }
            // An IP address cannot be sent as a server name. NIOSSL checks it against the addresses in the certificate.
            if let host = name, (try? SocketAddress(ipAddress: host, port: 0)) != nil { name = nil }
            try channel.pipeline.syncOperations.addHandler(NIOSSLClientHandler(context: context, serverHostname: name))
        }
    #else
        init(_: RedisTLS) throws(RedisError) {
            throw RedisError(
                .invalidArgument,
                "this program was built without TLS; enable the trait TLSSupport of the package redisdc")
        }

        func addHandler(to _: any Channel, endpoint _: RedisConfiguration.Endpoint) throws {}
    #endif
}
