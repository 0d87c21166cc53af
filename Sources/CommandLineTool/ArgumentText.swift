// Arguments that are not UTF-8 text.
package import ArgumentParser
import Foundation

/// An argument that may be any bytes, as the system passes them.
///
/// Use it for what is passed on unchanged: the body of a message, an argument of another program.
package struct ByteArgument: ExpressibleByArgument, Hashable, Sendable {
    package let bytes: [UInt8]

    package init(argument: String) { bytes = ArgumentText.bytes(of: argument) }

    /// The argument for people. Bytes that are not UTF-8 become replacement characters.
    package var text: String { String(decoding: bytes, as: UTF8.self) }
}

/// A reversible form of arguments as text, because the parser only knows text.
///
/// Each byte that is not part of UTF-8 text becomes a character of a private range. Characters of
/// that range in an argument are treated as such bytes too, so different arguments stay different.
package enum ArgumentText {
    private static let escapes: ClosedRange<UInt32> = 0x10FE00...0x10FEFF

    /// The arguments of this process, without the name of the program.
    package static var ofProcess: [String] {
        // The pointers are those that main() has received. They are valid and unchanged until the process ends.
        let pointers = UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: Int(CommandLine.argc))
        return pointers.dropFirst().compactMap { pointer in
            guard let pointer else { return nil }
            let count = strlen(pointer)
            return text(of: UnsafeRawBufferPointer(start: pointer, count: count).map { $0 })
        }
    }

    /// Returns bytes as text.
    package static func text(of bytes: [UInt8]) -> String {
        if let text = String(validating: bytes, as: UTF8.self), isPlain(text) { return text }
        var text = String.UnicodeScalarView()
        var rest = bytes[...]
        while let first = rest.first {
            let length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4
            if let character = String(validating: rest.prefix(length), as: UTF8.self), isPlain(character) {
                text.append(contentsOf: character.unicodeScalars)
                rest = rest.dropFirst(length)
            } else {
                text.append(Unicode.Scalar(escapes.lowerBound + UInt32(first))!)
                rest = rest.dropFirst()
            }
        }
        return String(text)
    }

    /// Returns the bytes of which ``text(of:)`` has made `text`.
    package static func bytes(of text: String) -> [UInt8] {
        if isPlain(text) { return Array(text.utf8) }
        return text.unicodeScalars.flatMap { scalar in
            escapes.contains(scalar.value) ? [UInt8(scalar.value - escapes.lowerBound)] : Array(String(scalar).utf8)
        }
    }

    /// Throws if an argument of a command is not UTF-8, and is not declared as a ``ByteArgument``.
    ///
    /// A name would otherwise be changed, and two different names could become one.
    ///
    /// - Throws: a ``Failure`` with `.badData`.
    package static func requireText(in command: any ParsableCommand) throws(Failure) {
        guard let argument = firstEscaped(in: command) else { return }
        throw Failure(.badData, "the argument \"\(argument)\" is not UTF-8 text")
    }

    private static func firstEscaped(in value: Any) -> String? {
        if value is ByteArgument { return nil }
        if let text = value as? String { return isPlain(text) ? nil : text }
        return Mirror(reflecting: value).children.lazy.compactMap { firstEscaped(in: $0.value) }.first
    }

    private static func isPlain(_ text: String) -> Bool {
        !text.unicodeScalars.contains { escapes.contains($0.value) }
    }
}
