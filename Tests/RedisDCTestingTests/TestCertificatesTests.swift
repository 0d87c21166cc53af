import Foundation
import Testing

@testable import RedisDCTesting

@Suite("Test certificates")
struct TestCertificatesTests {
    @Test(
        "have the fault of their kind and no other, for a client that trusts the authority",
        arguments: TestCertificates.Kind.allCases)
    func kinds(_ kind: TestCertificates.Kind) async throws {
        try await withTestCertificates(kind) { certificates in
            let complaints: [TestCertificates.Kind: String] = [
                .expired: "certificate has expired", .unknownAuthority: "unable to get local issuer certificate",
                .wrongHostName: "ostname mismatch",
            ]
            let (status, output) = try await openssl([
                "verify", "-CAfile", certificates.authority, "-verify_hostname", "localhost",
                certificates.serverCertificate,
            ])
            #expect((status == 0) == (kind == .good), "\(output)")
            if let complaint = complaints[kind] { #expect(output.contains(complaint)) }
            #expect(output.split(separator: "\n").count { $0.hasPrefix("error") && $0.contains("lookup") } <= 1)

            let client = try await openssl([
                "verify", "-CAfile", certificates.authority, "-purpose", "sslclient", certificates.clientCertificate,
            ])
            #expect(client.status == 0, "\(client.output)")
        }
    }

    @Test("are good for 127.0.0.1 as well")
    func address() async throws {
        try await withTestCertificates { certificates in
            let (status, output) = try await openssl([
                "verify", "-CAfile", certificates.authority, "-verify_ip", "127.0.0.1", certificates.serverCertificate,
            ])
            #expect(status == 0, "\(output)")
        }
    }

    @Test("go away with remove")
    func remove() async throws {
        let certificates = try await TestCertificates.make()
        #expect(FileManager.default.fileExists(atPath: certificates.serverKey))
        certificates.remove()
        #expect(!FileManager.default.fileExists(atPath: certificates.authority))
        certificates.remove()
    }

    @Test("need openssl, and say so")
    func noOpenssl() throws {
        let folder = try TemporaryFolder(prefix: "no-openssl")
        defer { folder.remove() }
        let error = #expect(throws: TestCertificatesError.self) {
            try CertificateGenerator(folder: folder, searchPath: "/nonexistent")
        }
        #expect(error?.code == .opensslNotFound)
        #expect(error?.description.contains("apt install openssl") == true)
    }

    @Test("show what openssl printed when it fails")
    func opensslFails() async throws {
        let folder = try TemporaryFolder(prefix: "no-authority")
        defer { folder.remove() }
        let error = await #expect(throws: TestCertificatesError.self) {
            try await CertificateGenerator(folder: folder).makeCertificate(
                "server", commonName: "localhost", signedBy: "nobody", extensions: .server, isExpired: false)
        }
        #expect(error?.code == .opensslFailed)
        #expect(error?.description.contains("nobody") == true)
    }

    @Test("make a local server speak TLS, which a client with the authority's certificate can trust")
    func tls() async throws {
        try await withTestCertificates { certificates in
            try await withLocalRedis(.init(tls: certificates)) { redis in
                let port = try #require(redis.tlsPort)
                #expect(redis.tlsURL == "rediss://localhost:\(port)")
                #expect(try await Wire.ask(port: redis.port, "PING") == "+PONG")
                let (_, output) = try await openssl([
                    "s_client", "-connect", "127.0.0.1:\(port)", "-CAfile", certificates.authority,
                    "-verify_return_error",
                ])
                #expect(output.contains("Verify return code: 0 (ok)"), "\(output)")
                try await redis.restart()
                #expect(redis.tlsPort == port)
            }
        }
    }

    private func openssl(_ arguments: [String]) async throws -> (status: CInt?, output: String) {
        try await ChildProcess.run([try #require(Executable.find(["openssl"]))] + arguments)
    }
}
