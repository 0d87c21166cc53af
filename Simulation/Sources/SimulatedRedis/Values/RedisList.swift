// A list of byte strings that grows and shrinks at both ends.

/// A list. Its elements are an array with room in front of the first one.
struct RedisList: Hashable, Sendable {
    private var storage: [Bytes] = []
    private var start = 0
    /// The number of bytes in all elements.
    private(set) var size = 0

    var count: Int { storage.count - start }
    var isEmpty: Bool { count == 0 }

    static func == (one: RedisList, other: RedisList) -> Bool { one.elements == other.elements }
    func hash(into hasher: inout Hasher) { hasher.combine(elements) }

    /// All elements in their order.
    var elements: ArraySlice<Bytes> { storage[start...] }

    subscript(index: Int) -> Bytes {
        get { storage[start + index] }
        set {
            size += newValue.count - storage[start + index].count
            storage[start + index] = newValue
        }
    }

    mutating func append(_ element: Bytes) {
        size += element.count
        storage.append(element)
    }

    mutating func prepend(_ element: Bytes) {
        if start == 0 {
            // As much room as there are elements, so that each one is moved a constant number of times.
            start = max(8, storage.count)
            storage.insert(contentsOf: repeatElement(Bytes([]), count: start), at: 0)
        }
        start -= 1
        storage[start] = element
        size += element.count
    }

    mutating func popFirst() -> Bytes? {
        guard !isEmpty else { return nil }
        let element = storage[start]
        storage[start] = Bytes([])
        start += 1
        size -= element.count
        reclaim()
        return element
    }

    mutating func popLast() -> Bytes? {
        guard !isEmpty, let element = storage.popLast() else { return nil }
        size -= element.count
        return element
    }

    /// Keeps the elements of a range only.
    mutating func keep(_ range: Range<Int>) {
        storage = Array(storage[(start + range.lowerBound)..<(start + range.upperBound)])
        start = 0
        size = storage.reduce(0) { $0 + $1.count }
    }

    /// Gives room in front back when it is most of the storage.
    private mutating func reclaim() {
        guard start > 32, start > 2 * count else { return }
        storage.removeFirst(start)
        start = 0
    }
}
