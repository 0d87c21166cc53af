/// Certificates for testing TLS: an authority, a server's certificate with or without a fault, a client's certificate.
///
/// ```swift
/// try await withTestCertificates(.expired) { certificates in
///     try await withLocalRedis(.init(tls: certificates)) { redis in
///         // A client that trusts certificates.authority must refuse redis.tlsURL.
///     }
/// }
/// ```
///
/// They are made by the `openssl` program with P-256 keys, which takes about a tenth of a second, in a private folder
/// that ``remove()`` removes. They are PEM files, the keys without a passphrase. Every call makes new keys.
public struct TestCertificates: Sendable {
    /// What is wrong with the server's certificate, for a client that trusts ``TestCertificates/authority`` and connects
    /// to `localhost`, 127.0.0.1 or ::1.
    public enum Kind: Sendable, Hashable, CaseIterable {
        /// Nothing.
        case good
        /// Its time was over years ago.
        case expired
        /// Another authority signed it.
        case unknownAuthority
        /// It is for `wrong.invalid` only.
        case wrongHostName
    }

    /// What is wrong with the server's certificate.
    public let kind: Kind
    /// The path of the certificate of the authority that a client should trust. It signed the client's certificate, and
    /// the server's unless that is of the kind ``Kind/unknownAuthority``.
    public var authority: String { self.folder.file("authority.pem") }
    /// The path of the server's certificate.
    public var serverCertificate: String { self.folder.file("server.pem") }
    /// The path of the server's private key.
    public var serverKey: String { self.folder.file("server.key") }
    /// The path of the client's certificate, always a good one. Its common name is `redis-client`.
    public var clientCertificate: String { self.folder.file("client.pem") }
    /// The path of the client's private key.
    public var clientKey: String { self.folder.file("client.key") }

    private let folder: TemporaryFolder

    /// Makes a set of certificates. ``remove()`` them; ``withTestCertificates(_:body:)`` does so by itself.
    ///
    /// - Parameter kind: what is to be wrong with the server's certificate.
    /// - Throws: ``TestCertificatesError``.
    public static func make(_ kind: Kind = .good) async throws -> TestCertificates {
        let folder = try TemporaryFolder(prefix: "test-certificates")
        do {
            let workshop = try CertificateWorkshop(folder: folder)
            try await workshop.makeAuthority("authority")
            if kind == .unknownAuthority { try await workshop.makeAuthority("stranger") }
            try await workshop.makeCertificate(
                "server", commonName: kind == .wrongHostName ? "wrong.invalid" : "localhost",
                signedBy: kind == .unknownAuthority ? "stranger" : "authority",
                extensions: kind == .wrongHostName ? .wrongServer : .server,
                isExpired: kind == .expired)
            try await workshop.makeCertificate(
                "client", commonName: "redis-client", signedBy: "authority", extensions: .client, isExpired: false)
            return TestCertificates(kind: kind, folder: folder)
        } catch {
            folder.remove()
            throw error
        }
    }

    /// Removes the files. Calling it again does nothing.
    public func remove() {
        self.folder.remove()
    }
}

/// Runs a body with a set of test certificates, then removes their files, also when the body throws.
///
/// - Parameter kind: what is to be wrong with the server's certificate.
/// - Throws: what the body throws, and ``TestCertificatesError``.
public func withTestCertificates<R>(
    _ kind: TestCertificates.Kind = .good, body: (TestCertificates) async throws -> R
) async throws -> R {
    let certificates = try await TestCertificates.make(kind)
    defer { certificates.remove() }
    return try await body(certificates)
}
