// The lines of questions and answers in the envelope, which other programs may have written.
import Testing

@testable import QueueListen

@Suite("Envelopes of questions and answers")
struct EnvelopeTests {
    private func decoded(_ text: String) -> Envelope.Content { Envelope.decode(Array(text.utf8)[...]) }

    @Test("a question and an answer are decoded as they were encoded")
    func same() {
        var question = Message(text: "x", type: "sum", headers: ["ask": "no"])
        question.orderKey = "k"
        question.answerAddress = AnswerAddress(number: .max, patience: 5000, mailbox: "answers-0123456789abcdef")
        var content = Envelope.decode(Envelope.encode(question, id: "a/0")[...])
        #expect(content.answerAddress == question.answerAddress && content.answers == nil)
        #expect(content.orderKey == "k" && content.type == "sum" && content.headers == ["ask": "no"])
        #expect(content.body == Array("x".utf8))
        var answer = Message(text: "y")
        for failure in [nil, "no such thing: 7 = 8", " two  spaces ", "\u{301}accent"] {
            answer.answers = AnsweredQuestion(number: 3, failure: failure)
            content = Envelope.decode(Envelope.encode(answer, id: "b/0")[...])
            #expect(content.answers == answer.answers && content.answerAddress == nil)
        }
    }

    @Test(
        "a line that is not for answers is no question",
        arguments: [
            "1 2", "1 2 jobs", "x 2 answers-1", "1 -2 answers-1", "-1 2 answers-1", "1 x answers-1", "",
            "1 2 answers-" + String(repeating: "a", count: 57),
        ])
    func foreign(line: String) {
        let content = decoded("id=a/0\nask=\(line)\n\nx")
        #expect(content.answerAddress == nil && content.body == Array("x".utf8))
    }

    @Test("an answer without a number of a question answers none")
    func withoutNumber() {
        #expect(decoded("id=a/0\nanswers=x y\n\n").answers == nil)
        #expect(decoded("id=a/0\nanswers=\n\n").answers == nil)
        #expect(decoded("id=a/0\nanswers=7\n\n").answers == AnsweredQuestion(number: 7))
    }
}
