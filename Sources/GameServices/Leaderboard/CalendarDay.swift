/// A day of the Gregorian calendar, in UTC.
///
/// The calculation with a year that begins in March, so that the leap day is its last day.
struct CalendarDay: Equatable {
    var year: Int
    var month: Int
    var day: Int

    private static let daysOf400Years = 146_097
    /// Days from 0000-03-01 to 1970-01-01.
    private static let daysTo1970 = 719_468

    init(year: Int, month: Int, day: Int) { (self.year, self.month, self.day) = (year, month, day) }

    /// - Parameter days: 0 or more.
    init(daysSince1970 days: Int) {
        let days = days + Self.daysTo1970
        let cycle = days / Self.daysOf400Years
        let dayOfCycle = days % Self.daysOf400Years
        let yearOfCycle = (dayOfCycle - dayOfCycle / 1460 + dayOfCycle / 36524 - dayOfCycle / 146_096) / 365
        let dayOfYear = dayOfCycle - (365 * yearOfCycle + yearOfCycle / 4 - yearOfCycle / 100)
        // The months from March have 153 days in every 5.
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        year = yearOfCycle + cycle * 400 + (month <= 2 ? 1 : 0)
    }

    var daysSince1970: Int {
        let year = month <= 2 ? year - 1 : year
        let monthFromMarch = month > 2 ? month - 3 : month + 9
        let yearOfCycle = year % 400
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + day - 1
        let dayOfCycle = yearOfCycle * 365 + yearOfCycle / 4 - yearOfCycle / 100 + dayOfYear
        return year / 400 * Self.daysOf400Years + dayOfCycle - Self.daysTo1970
    }

    /// The date in the form `2026-11-22`.
    var text: String { "\(Self.digits(year, 4))-\(Self.digits(month, 2))-\(Self.digits(day, 2))" }

    /// Returns the year and the number of the ISO week that begins on a Monday. A week belongs to the
    /// year of its Thursday.
    static func week(ofMonday monday: Int) -> (year: Int, number: Int) {
        let thursday = monday + 3
        let year = CalendarDay(daysSince1970: thursday).year
        return (year, (thursday - CalendarDay(year: year, month: 1, day: 1).daysSince1970) / 7 + 1)
    }

    static func digits(_ number: Int, _ count: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, count - text.count)) + text
    }
}
