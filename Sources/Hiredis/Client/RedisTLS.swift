// TLS settings, and their NIOSSL form.
import NIOCore
import NIOSSL

/// How to secure the connection. The default verifies the server's certificate against the system's authorities and its
/// name against the host that was asked for.
public struct RedisTLS: Sendable, Hashable {
    /// Whom to believe.
    public enum Authority: Sendable, Hashable {
        case system
        /// Only the authorities in this PEM file.
        case file(String)
    }

    /// A certificate by which the server knows this client.
    public struct ClientCertificate: Sendable, Hashable {
        /// PEM file with the certificate, and the chain after it.
        public var certificateFile: String
        /// PEM file with the private key.
        public var keyFile: String

        public init(certificateFile: String, keyFile: String) {
            self.certificateFile = certificateFile
            self.keyFile = keyFile
        }
    }

    public enum Verification: Sendable, Hashable {
        /// Certificate and name. The default.
        case full
        /// The certificate only: whoever holds any certificate of the authority can pose as the server.
        case certificateOnly
        /// Nothing: whoever is in between can read and change everything. For experiments.
        case none
    }

    public var authority: Authority = .system
    public var clientCertificate: ClientCertificate?
    /// The name that the certificate must have; `nil` is the host of the endpoint.
    public var serverName: String?
    public var verification: Verification = .full

    public init(
        authority: Authority = .system, clientCertificate: ClientCertificate? = nil, serverName: String? = nil,
        verification: Verification = .full
    ) {
        self.authority = authority
        self.clientCertificate = clientCertificate
        self.serverName = serverName
        self.verification = verification
    }
}

extension RedisTLS {
    /// Reads the files. Done once for a client.
    func makeContext() throws(RedisError) -> NIOSSLContext {
        do {
            var configuration = TLSConfiguration.makeClientConfiguration()
            if case .file(let path) = authority { configuration.trustRoots = .file(path) }
            if let clientCertificate {
                let chain = try NIOSSLCertificate.fromPEMFile(clientCertificate.certificateFile)
                configuration.certificateChain = chain.map { .certificate($0) }
                configuration.privateKey = .privateKey(
                    try NIOSSLPrivateKey(file: clientCertificate.keyFile, format: .pem))
            }
            configuration.certificateVerification =
                switch verification {
                case .full: .fullVerification
                case .certificateOnly: .noHostnameVerification
                case .none: .none
                }
            return try NIOSSLContext(configuration: configuration)
        } catch {
            throw RedisError(
                .invalidArgument, "the TLS settings cannot be used, check the certificate files: \(error)",
                underlying: error)
        }
    }

    func makeHandler(_ context: NIOSSLContext, endpoint: RedisConfiguration.Endpoint) throws -> NIOSSLClientHandler {
        var name = serverName
        if name == nil, case .tcp(let host, _) = endpoint { name = host }
        // An address cannot be sent as a server name; NIOSSL then checks it against the certificate's addresses.
        if let host = name, (try? SocketAddress(ipAddress: host, port: 0)) != nil { name = nil }
        return try NIOSSLClientHandler(context: context, serverHostname: name)
    }
}
