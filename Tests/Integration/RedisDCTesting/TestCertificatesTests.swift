import ChildProcesses
import Foundation
import TestSupport
import Testing

@testable import RedisDCTesting
@testable import RedisDCTestingTestSupport

@Suite("TestCertificates")
struct TestCertificatesTests {
    @Test(
        "a client that trusts the authority sees the defect of the kind and no other",
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

    @Test("the server certificate is valid for 127.0.0.1")
    func address() async throws {
        try await withTestCertificates { certificates in
            let (status, output) = try await openssl([
                "verify", "-CAfile", certificates.authority, "-verify_ip", "127.0.0.1", certificates.serverCertificate,
            ])
            #expect(status == 0, "\(output)")
        }
    }

    @Test("remove deletes the files, and a second call has no effect")
    func remove() async throws {
        let certificates = try await TestCertificates.make()
        #expect(FileManager.default.fileExists(atPath: certificates.serverKey))
        certificates.remove()
        #expect(!FileManager.default.fileExists(atPath: certificates.authority))
        certificates.remove()
    }

    @Test("the error names the package to install if openssl is missing")
    func noOpenssl() throws {
        let folder = try TemporaryFolder(prefix: "no-openssl")
        defer { folder.remove() }
        let error = #expect(throws: TestCertificatesError.self) {
            try CertificateGenerator(folder: folder, searchPath: "/nonexistent")
        }
        #expect(error?.code == .opensslNotFound)
        #expect(error?.description.contains("apt install openssl") == true)
    }

    @Test("the error contains the output of openssl")
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

    @Test("a client that trusts the authority connects to a local server over TLS", .needsTLS)
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
