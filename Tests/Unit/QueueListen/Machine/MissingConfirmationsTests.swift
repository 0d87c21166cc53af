import CoordinationBase
import Testing

private struct Confirmed: ConfirmedRequest {
    var recordCount = 1
    var isInOrder = true
}

@Suite("Missing confirmations")
struct MissingConfirmationsTests {
    /// Looks on a server that lacks what is at these positions.
    ///
    /// - Returns: the result, and the number of confirmations of each question.
    private func look(
        _ confirmed: [Confirmed], needed: Int = 10, lacks missing: Set<Int>, answers: Bool = true
    ) async -> (MissingConfirmations?, [Int]) {
        var questions: [Int] = []
        var end = confirmed.count
        let result = await MissingConfirmations(among: confirmed, needed: needed) { part in
            questions.append(part.count)
            guard answers else { return nil }
            // The positions of a part follow one another, but for those without records.
            var (at, lacks) = (end, [Bool]())
            while lacks.count < part.count {
                at -= 1
                if confirmed[at].recordCount > 0 { lacks.append(missing.contains(at)) }
            }
            end = at
            return lacks.reversed()
        }
        return (result, questions)
    }

    @Test("a server that has enough of the last ones in a row is not asked for the others")
    func enough() async {
        let many = Array(repeating: Confirmed(), count: 2000)
        let (tail, questions) = await look(many, needed: 300, lacks: Set(1400..<2000))
        #expect(tail?.positions == Array(1400..<2000))
        #expect(tail?.start == 976)
        #expect(questions == [256, 256, 256, 256])
        let (all, _) = await look(many, needed: .max, lacks: [3, 1999])
        #expect(all?.positions == [3, 1999])
        #expect(all?.start == 0)
        let (none, _) = await look(many, lacks: [3])
        #expect(none?.positions == [])
    }

    @Test("what was carried out before its confirmation does not count")
    func order() async {
        let late = Array(repeating: Confirmed(isInOrder: false), count: 1000)
        let (result, _) = await look([Confirmed()] + late, needed: 1, lacks: [0])
        #expect(result?.positions == [0])
    }

    @Test("a question is about a limited number of records; what has no record is in no question")
    func records() async {
        let mixed = (0..<300).map { Confirmed(recordCount: $0 % 3 * 64) }
        let (result, questions) = await look(mixed, needed: .max, lacks: [1, 150, 299])
        #expect(result?.positions == [1, 299])
        #expect(questions.allSatisfy { (1...3).contains($0) })
        #expect(questions.reduce(0, +) == 200)
        let (large, one) = await look([Confirmed(recordCount: 5000)], lacks: [0])
        #expect(large?.contains(0) == true)
        #expect(one == [1])
        let (nothing, no) = await look([Confirmed(recordCount: 0)], lacks: [])
        #expect(nothing?.positions == [])
        #expect(no == [])
    }

    @Test("a server that does not answer has no result")
    func silence() async {
        let (result, _) = await look([Confirmed()], lacks: [], answers: false)
        #expect(result == nil)
    }
}
