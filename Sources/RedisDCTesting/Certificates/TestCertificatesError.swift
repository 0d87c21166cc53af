/// An error thrown when ``TestCertificates`` cannot be created.
public struct TestCertificatesError: Error, Sendable, CustomStringConvertible {
    /// The kind of a failure. Later versions may add codes.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the code, for example `opensslNotFound`.
        public let description: String

        /// No `openssl` program is on the `PATH`.
        public static let opensslNotFound = Code(description: "opensslNotFound")
        /// `openssl` failed. The error's description contains its output.
        public static let opensslFailed = Code(description: "opensslFailed")
    }

    /// The kind of failure.
    public let code: Code
    /// A message that says what happened and what to do, followed by the output of `openssl`, if
    /// any.
    public let description: String

    static var opensslNotFound: TestCertificatesError {
        TestCertificatesError(
            code: .opensslNotFound,
            description: "cannot create test certificates: no openssl program is on the PATH; "
                + "install it with \"apt install openssl\" or \"brew install openssl\"")
    }

    static func opensslFailed(_ arguments: [String], output: String) -> TestCertificatesError {
        TestCertificatesError(
            code: .opensslFailed,
            description:
                "cannot create test certificates: \"openssl \(arguments.joined(separator: " "))\" failed; "
                + "use OpenSSL 1.1 or later, or LibreSSL; its output:\n\(output)")
    }
}
