/// TLS settings of a connection. The default verifies the server's certificate against the system's
/// certificate authorities, and its name against the host of the endpoint. TLS needs the trait
/// `TLSSupport` of the package, which is enabled by default.
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
