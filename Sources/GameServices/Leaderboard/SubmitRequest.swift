// A submit as its script gets it.
import Hiredis

/// The keys and arguments of a submit.
struct SubmitRequest {
    private(set) var keys: [String]
    private(set) var arguments: [RedisArgument]

    /// - Parameters:
    ///   - periods: in the order of their windows.
    ///   - isAnyTime: whether the periods need not be the current ones.
    init(
        id: String, name: String, score: Int, periods: [WindowPeriod], answerLifetime: Duration, keys: ServiceKeys,
        configuration: LeaderboardConfiguration, isAnyTime: Bool = false
    ) {
        let retention = configuration.retention.wholeMilliseconds
        self.keys = [keys.key("meta"), keys.key("id:\(id)")]
        arguments = [
            .string(name), .integer(score), .string(configuration.mode.rawValue), .integer(configuration.direction),
            .integer(answerLifetime.wholeMilliseconds),
        ]
        for period in periods {
            self.keys += keys.window(period)
            arguments += [
                .string(period.id), .integer(period.start), .integer(isAnyTime ? 0 : period.end ?? 0),
                .integer(period.end.map { $0 / 1000 + retention } ?? 0),
            ]
        }
    }

    init(
        _ submit: ConfirmedSubmit, keys: ServiceKeys, configuration: LeaderboardConfiguration, isAnyTime: Bool
    ) {
        self.init(
            id: submit.id, name: submit.name, score: submit.score, periods: submit.periods,
            answerLifetime: submit.answerLifetime, keys: keys, configuration: configuration, isAnyTime: isAnyTime)
    }
}
