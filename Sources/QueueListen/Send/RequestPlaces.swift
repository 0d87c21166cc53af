// The numbers of a sender's requests, and the places in which the server keeps the answers to them.

/// Numbers a sender's requests, and gives each a place on the server.
///
/// The server keeps the answer to a request in the request's place, so that a request that is sent twice takes effect
/// once. A request may use the place of an earlier one when that is not sent again. The server refuses a late copy of
/// the earlier request, because its number is lower.
struct RequestPlaces {
    /// A place has 2 bytes.
    static let capacity = 1 << 16

    private var lastNumber = 0
    private var placeCount = 0
    private var free: [Int] = []

    /// Returns the number of a new request, and its place; without a place if there are `capacity` requests already.
    mutating func take() -> (number: Int, place: Int?) {
        lastNumber += 1
        if let place = free.popLast() { return (lastNumber, place) }
        guard placeCount < Self.capacity else { return (lastNumber, nil) }
        placeCount += 1
        return (lastNumber, placeCount - 1)
    }

    /// Frees the place of a request that is not sent again.
    mutating func release(_ place: Int) { free.append(place) }
}
