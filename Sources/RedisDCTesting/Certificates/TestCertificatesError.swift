/// Why ``TestCertificates`` could not be made.
public struct TestCertificatesError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure. More may be added.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        public let description: String

        /// There is no `openssl` program.
        public static let opensslNotFound = Code(description: "opensslNotFound")
        /// `openssl` failed; the description holds what it printed.
        public static let opensslFailed = Code(description: "opensslFailed")
    }

    public let code: Code
    /// One sentence for the reader of a failed test, followed by what `openssl` printed.
    public let description: String

    static var opensslNotFound: TestCertificatesError {
        TestCertificatesError(
            code: .opensslNotFound,
            description: "There is no openssl program on the PATH: "
                + "install it with \"apt install openssl\" or \"brew install openssl\".")
    }

    static func opensslFailed(_ arguments: [String], output: String) -> TestCertificatesError {
        TestCertificatesError(
            code: .opensslFailed,
            description:
                "\"openssl \(arguments.joined(separator: " "))\" failed: check that it is OpenSSL 1.1 or later, "
                + "or LibreSSL; it printed:\n\(output)")
    }
}
