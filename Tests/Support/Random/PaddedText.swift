// Texts of different sizes that several processes can compute independently.

/// Returns a text followed by a space and a pseudorandom amount of padding.
///
/// The result depends only on the text. Half of the results have no padding, the others have up to
/// 2,500 bytes.
public func paddedText(_ text: String) -> String {
    let seed = text.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    var generator = SplitMix(seed: seed)
    let count = Bool.random(using: &generator) ? 0 : Int.random(in: 0...2500, using: &generator)
    return text + " " + String(repeating: "x", count: count)
}
