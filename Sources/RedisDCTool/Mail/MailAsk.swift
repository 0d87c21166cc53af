import ArgumentParser
import CommandLineTool
import QueueListen

/// The `redisdc mail ask` command.
struct MailAsk: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ask",
        abstract: "Send a message and print the answer of whoever handles it.",
        discussion: """
            A worker or a receiver of the mailbox answers, or redisdc work run, whose command writes the answer to its \
            standard output. A question that nobody handles within --timeout is not handled later.

            Exit status: 75 no answer in time, 65 the question has failed for good.
            """
    )
    .examples("redisdc mail ask --to prices --timeout 5 lamp-7")
    @OptionGroup var mail: MailOptions
    @Option(name: .customLong("to"), help: "The name of the mailbox.") var recipient: String
    @Option(help: "The type of the message, for receivers to dispatch on.") var type: String?
    @Option(help: "A key whose messages workers run one at a time, in order.") var order: String?
    @Option(help: "The maximum wait in seconds, with decimals; more than 0, at most 86,400.") var timeout = 30.0
    @Argument(help: "The message. It may be any bytes.") var message: ByteArgument

    func validate() throws {
        guard timeout > 0, timeout <= 86_400 else {
            throw ValidationError("--timeout must be a number of seconds, more than 0 and at most 86,400")
        }
    }

    func run() async throws {
        var question = Message(bytes: message.bytes, type: type)
        question.orderKey = order
        try await mail.withOffice { [question] office in
            let answer = try await office.ask(question, to: recipient, timeout: .seconds(timeout))
            try mail.global.report(bytes: answer.body, MessageReport(answer))
        }
    }
}
