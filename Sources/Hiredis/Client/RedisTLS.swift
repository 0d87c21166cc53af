import NIOCore
import NIOSSL

/// TLS settings of a connection. The default verifies the server's certificate against the system's
/// certificate authorities, and its name against the host of the endpoint.
public struct RedisTLS: Sendable, Hashable {
    /// The certificate authorities to trust.
    public enum Authority: Sendable, Hashable {
        /// The authorities that the system trusts.
        case system
        /// Only the authorities in this PEM file.
        case file(String)
    }

    /// A certificate that authenticates this client to the server.
    public struct ClientCertificate: Sendable, Hashable {
        /// The path of a PEM file with the certificate, followed by its chain.
        public var certificateFile: String
        /// The path of a PEM file with the private key.
        public var keyFile: String

        /// Makes a certificate from the paths of two PEM files.
        public init(certificateFile: String, keyFile: String) {
            self.certificateFile = certificateFile
            self.keyFile = keyFile
        }
    }

    /// The checks that the client makes on the server's certificate.
    public enum Verification: Sendable, Hashable {
        /// The certificate and its name. The default.
        case full
        /// The certificate only: anyone who holds a certificate of the authority can impersonate
        /// the server.
        case certificateOnly
        /// Nothing: anyone on the network path can read and change everything. For experiments.
        case none
    }

    /// The certificate authorities to trust. Default: those of the system.
    public var authority: Authority = .system
    /// The certificate that authenticates this client; `nil` sends none.
    public var clientCertificate: ClientCertificate?
    /// The name that the server's certificate must have; `nil` is the host of the endpoint.
    public var serverName: String?
    /// The checks that the client makes on the server's certificate. Default: all.
    public var verification: Verification = .full

    /// Makes TLS settings. The defaults are safe for production.
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
    /// Reads the files and makes NIOSSL's form of the settings, once for each client.
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
                .invalidArgument, "the TLS settings cannot be used; check the certificate files: \(error)",
                underlying: error)
        }
    }

    func makeHandler(_ context: NIOSSLContext, endpoint: RedisConfiguration.Endpoint) throws -> NIOSSLClientHandler {
        var name = serverName
        if name == nil, case .tcp(let host, _) = endpoint { name = host }
        // An IP address cannot be sent as a server name. NIOSSL checks it against the addresses in the certificate.
        if let host = name, (try? SocketAddress(ipAddress: host, port: 0)) != nil { name = nil }
        return try NIOSSLClientHandler(context: context, serverHostname: name)
    }
}
