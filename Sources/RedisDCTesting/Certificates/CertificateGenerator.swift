import ChildProcesses

/// Creates keys and certificates in a folder with the `openssl` program.
///
/// It signs with `openssl ca`, the only command that can set both dates of a certificate in every
/// version of OpenSSL and LibreSSL.
struct CertificateGenerator {
    /// The sections of the configuration file that define the purpose of a certificate.
    enum Extensions: String {
        case server = "server"
        case wrongServer = "wrong_server"
        case client = "client"
    }

    private let openssl: String
    private let folder: TemporaryFolder

    init(folder: TemporaryFolder, searchPath: String? = nil) throws {
        guard let openssl = Executable.find(["openssl"], searchPath: searchPath) else {
            throw TestCertificatesError.opensslNotFound
        }
        self.openssl = openssl
        self.folder = folder
        try folder.write(Self.configuration(folder), to: "openssl.cnf")
    }

    /// Creates `NAME.key` and the self-signed `NAME.pem`.
    func makeAuthority(_ name: String) async throws {
        try await self.makeKey(name)
        try await self.run(
            [
                "req", "-new", "-x509", "-sha256", "-days", "3650", "-subj", "/CN=Test \(name)", "-extensions",
                "authority",
            ]
                + self.paths(["-config": "openssl.cnf", "-key": "\(name).key", "-out": "\(name).pem"]))
    }

    /// Creates `NAME.key` and `NAME.pem`, signed by an authority.
    func makeCertificate(
        _ name: String, commonName: String, signedBy authority: String, extensions: Extensions, isExpired: Bool
    ) async throws {
        try await self.makeKey(name)
        try await self.run(
            ["req", "-new", "-sha256", "-subj", "/CN=\(commonName)"]
                + self.paths(["-config": "openssl.cnf", "-key": "\(name).key", "-out": "\(name).csr"]))
        try self.folder.write("", to: "signed.txt")
        try self.folder.write(extensions == .client ? "02\n" : "01\n", to: "serial.txt")
        let dates = isExpired ? ["200101000000Z", "200102000000Z"] : ["200101000000Z", "491231235959Z"]
        try await self.run(
            [
                "ca", "-batch", "-notext", "-extensions", extensions.rawValue, "-startdate", dates[0], "-enddate",
                dates[1],
            ]
                + self.paths([
                    "-config": "openssl.cnf", "-in": "\(name).csr", "-out": "\(name).pem",
                    "-cert": "\(authority).pem", "-keyfile": "\(authority).key",
                ]))
    }

    private func makeKey(_ name: String) async throws {
        try await self.run(
            ["ecparam", "-name", "prime256v1", "-genkey", "-noout"] + self.paths(["-out": "\(name).key"]))
    }

    private func paths(_ options: [String: String]) -> [String] {
        options.flatMap { [$0.key, self.folder.file($0.value)] }
    }

    private func run(_ arguments: [String]) async throws {
        let (status, output) = try await ChildProcess.run([self.openssl] + arguments)
        if status != 0 { throw TestCertificatesError.opensslFailed(arguments, output: output) }
    }

    private static func configuration(_ folder: TemporaryFolder) -> String {
        """
        [req]
        distinguished_name = name
        [name]

        [ca]
        default_ca = signing
        [signing]
        database = \(folder.file("signed.txt"))
        serial = \(folder.file("serial.txt"))
        new_certs_dir = \(folder.path)
        default_md = sha256
        unique_subject = no
        policy = any_name
        [any_name]
        commonName = supplied

        [authority]
        basicConstraints = critical, CA:true
        keyUsage = critical, keyCertSign, cRLSign
        subjectKeyIdentifier = hash
        [server]
        basicConstraints = CA:false
        keyUsage = critical, digitalSignature
        extendedKeyUsage = serverAuth
        subjectAltName = DNS:localhost, IP:127.0.0.1, IP:::1
        [wrong_server]
        basicConstraints = CA:false
        keyUsage = critical, digitalSignature
        extendedKeyUsage = serverAuth
        subjectAltName = DNS:wrong.invalid
        [client]
        basicConstraints = CA:false
        keyUsage = critical, digitalSignature
        extendedKeyUsage = clientAuth

        """
    }
}
