// Texts of different sizes that several processes know without telling each other.

/// A text that begins with another one, and a space, and is as long as chance wants, but always the same for the same: half
/// of them short, the others up to 2,500 bytes.
public func paddedText(_ text: String) -> String {
    let seed = text.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    var generator = SplitMix(seed: seed)
    let count = Bool.random(using: &generator) ? 0 : Int.random(in: 0...2500, using: &generator)
    return text + " " + String(repeating: "x", count: count)
}
