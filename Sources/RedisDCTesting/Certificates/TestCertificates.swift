/// A set of certificates for tests of TLS: an authority, a server certificate and a client
/// certificate.
///
/// The server certificate is valid or has one chosen defect.
///
/// ```swift
/// try await withTestCertificates(.expired) { certificates in
///     try await withLocalRedis(.init(tls: certificates)) { redis in
///         var configuration = try RedisConfiguration(url: #require(redis.tlsURL))
///         configuration.tls?.authority = .file(certificates.authority)
///         configuration.commandTimeout = .milliseconds(500)
///         try await withRedisClient(configuration) { client in
///             // The client rejects the expired certificate.
///             await #expect(throws: RedisError.self) { try await client.send("PING") }
///         }
///     }
/// }
/// ```
///
/// The `openssl` program creates new P-256 keys for each set, which takes about a tenth of a
/// second. All files are PEM files in a private folder, which ``remove()`` deletes. The keys have
/// no passphrase.
public struct TestCertificates: Sendable {
    /// The defect of the server certificate.
    ///
    /// The defect is the one that a client sees that trusts ``TestCertificates/authority`` and
    /// connects to `localhost`, 127.0.0.1 or ::1.
    public enum Kind: Sendable, Hashable, CaseIterable {
        /// No defect.
        case good
        /// The certificate expired years ago.
        case expired
        /// The certificate is signed by another authority.
        case unknownAuthority
        /// The certificate is valid only for `wrong.invalid`.
        case wrongHostName
    }

    /// The defect of the server certificate.
    public let kind: Kind
    /// The path of the certificate of the authority that clients should trust.
    ///
    /// The authority signed the client certificate, and the server certificate unless its kind is
    /// ``Kind/unknownAuthority``.
    public var authority: String { self.folder.file("authority.pem") }
    /// The path of the server certificate.
    public var serverCertificate: String { self.folder.file("server.pem") }
    /// The path of the server's private key.
    public var serverKey: String { self.folder.file("server.key") }
    /// The path of the client certificate, which is always valid. Its common name is
    /// `redis-client`.
    public var clientCertificate: String { self.folder.file("client.pem") }
    /// The path of the client's private key.
    public var clientKey: String { self.folder.file("client.key") }

    private let folder: TemporaryFolder

    /// Creates a set of certificates.
    ///
    /// Call ``remove()`` when the files are no longer needed, or use
    /// ``withTestCertificates(_:body:)``, which does. Cancelling the task does not stop `openssl`.
    ///
    /// - Parameter kind: the defect of the server certificate; none by default.
    /// - Returns: the certificates.
    /// - Throws: ``TestCertificatesError`` with the code
    ///   ``TestCertificatesError/Code/opensslNotFound`` or
    ///   ``TestCertificatesError/Code/opensslFailed``; the error of the system if the folder cannot
    ///   be written.
    public static func make(_ kind: Kind = .good) async throws -> TestCertificates {
        let folder = try TemporaryFolder(prefix: "test-certificates")
        do {
            let generator = try CertificateGenerator(folder: folder)
            try await generator.makeAuthority("authority")
            if kind == .unknownAuthority { try await generator.makeAuthority("stranger") }
            try await generator.makeCertificate(
                "server", commonName: kind == .wrongHostName ? "wrong.invalid" : "localhost",
                signedBy: kind == .unknownAuthority ? "stranger" : "authority",
                extensions: kind == .wrongHostName ? .wrongServer : .server,
                isExpired: kind == .expired)
            try await generator.makeCertificate(
                "client", commonName: "redis-client", signedBy: "authority", extensions: .client, isExpired: false)
            return TestCertificates(kind: kind, folder: folder)
        } catch {
            folder.remove()
            throw error
        }
    }

    /// Deletes the files. A second call has no effect.
    public func remove() {
        self.folder.remove()
    }
}

/// Runs a body with a set of certificates, and deletes their files when the body returns or throws.
///
/// - Parameters:
///   - kind: the defect of the server certificate; none by default.
///   - body: the code that uses the certificates. The files are deleted when it ends.
/// - Returns: the result of the body.
/// - Throws: the errors of the body and of ``TestCertificates/make(_:)``.
@discardableResult
public func withTestCertificates<R>(
    _ kind: TestCertificates.Kind = .good, body: (TestCertificates) async throws -> R
) async throws -> R {
    let certificates = try await TestCertificates.make(kind)
    defer { certificates.remove() }
    return try await body(certificates)
}
