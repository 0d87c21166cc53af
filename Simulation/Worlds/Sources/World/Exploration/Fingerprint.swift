// A checksum of a world's state, to recognize one that was visited before.

/// A checksum of 64 bits of what was mixed in.
///
/// Two different states have the same one with a probability of about n² / 4·10¹⁹ for n states: for a million states,
/// 1 in 40,000,000.
struct Fingerprint {
    private var hasher = Hasher()

    var value: Int { hasher.finalize() }

    mutating func mix<each Value: Hashable>(_ values: repeat each Value) {
        repeat hasher.combine(each values)
    }

    /// Mixes in elements whose order does not count.
    mutating func mixUnordered<Element>(
        _ elements: some Collection<Element>, _ mix: (inout Fingerprint, Element) -> Void
    ) {
        var sum = 0
        for element in elements {
            var one = Fingerprint()
            mix(&one, element)
            sum &+= one.value
        }
        self.mix(elements.count, sum)
    }

    /// Mixes in all stored properties of a value, and theirs, except for the world, processes and functions.
    mutating func mixProperties(of value: Any) {
        switch value {
        case is World: return
        case let process as SimulatedProcess: return mix(process.number)
        case let hashable as AnyHashable: return mix(hashable)
        default: break
        }
        let mirror = Mirror(reflecting: value)
        switch mirror.displayStyle {
        case .dictionary, .set: mixUnordered(mirror.children) { $0.mixProperties(of: $1.value) }
        default:
            mix(mirror.children.count)
            for child in mirror.children {
                mix(child.label)
                mixProperties(of: child.value)
            }
        }
    }
}
