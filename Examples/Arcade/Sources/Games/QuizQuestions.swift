/// A question with four answers.
public struct QuizQuestion: Sendable, Hashable {
    /// The question.
    public var text: String
    /// Four answers, of which the first is right.
    public var answers: [String]

    init(_ text: String, _ answers: String...) { (self.text, self.answers) = (text, answers) }
}

extension QuizQuestion {
    /// The questions by category.
    public static let all: [String: [QuizQuestion]] = [
        "geography": [
            QuizQuestion(
                "Which is the longest river of South America?", "Amazon", "Orinoco", "Paraná", "São Francisco"),
            QuizQuestion("Which is the capital of Australia?", "Canberra", "Sydney", "Melbourne", "Perth"),
            QuizQuestion("Which ocean is the largest?", "Pacific", "Atlantic", "Indian", "Arctic"),
            QuizQuestion("Which is the highest mountain above sea level?", "Everest", "K2", "Kangchenjunga", "Denali"),
            QuizQuestion("In which country is Marrakesh?", "Morocco", "Tunisia", "Egypt", "Algeria"),
            QuizQuestion("Which is the largest hot desert?", "Sahara", "Gobi", "Kalahari", "Mojave"),
            QuizQuestion("Which lake is the deepest?", "Baikal", "Tanganyika", "Superior", "Victoria"),
            QuizQuestion("Which country has the most islands?", "Sweden", "Indonesia", "Japan", "Greece"),
        ],
        "science": [
            QuizQuestion("Which planet is closest to the Sun?", "Mercury", "Venus", "Mars", "Earth"),
            QuizQuestion("What is the chemical symbol of gold?", "Au", "Ag", "Go", "Gd"),
            QuizQuestion("How many bones has an adult human, usually?", "206", "186", "226", "246"),
            QuizQuestion("Which gas is most common in the air?", "Nitrogen", "Oxygen", "Argon", "Carbon dioxide"),
            QuizQuestion("Which particle has no electric charge?", "Neutron", "Proton", "Electron", "Positron"),
            QuizQuestion("What is the unit of electrical resistance?", "Ohm", "Volt", "Ampere", "Farad"),
            QuizQuestion("Which metal is liquid at room temperature?", "Mercury", "Lead", "Tin", "Zinc"),
            QuizQuestion("What do bees collect to make honey?", "Nectar", "Sap", "Dew", "Resin"),
        ],
        "music": [
            QuizQuestion("How many strings has a violin?", "4", "5", "6", "3"),
            QuizQuestion("How many keys has a modern piano, usually?", "88", "76", "92", "61"),
            QuizQuestion("Who composed The Four Seasons?", "Vivaldi", "Bach", "Handel", "Mozart"),
            QuizQuestion("What does forte mean?", "loud", "soft", "fast", "slow"),
            QuizQuestion("Which instrument has a double reed?", "Oboe", "Flute", "Clarinet", "Trumpet"),
            QuizQuestion("How many lines has a staff?", "5", "4", "6", "7"),
            QuizQuestion("Which note is a semitone above E?", "F", "F sharp", "D sharp", "G"),
            QuizQuestion("Which voice is the lowest?", "Bass", "Baritone", "Tenor", "Alto"),
        ],
        "computers": [
            QuizQuestion("How many bits are in a byte?", "8", "4", "16", "10"),
            QuizQuestion("Which number is 1010 in binary?", "10", "8", "12", "5"),
            QuizQuestion("Which structure is last in, first out?", "Stack", "Queue", "Heap", "Ring"),
            QuizQuestion(
                "Which sort takes n log n comparisons at worst?", "Merge sort", "Quicksort", "Bubble sort",
                "Insertion sort"),
            QuizQuestion("Which HTTP status means “not found”?", "404", "403", "500", "301"),
            QuizQuestion("Who described semaphores first?", "Dijkstra", "Knuth", "Hoare", "Lamport"),
            QuizQuestion("Which TCP port has HTTPS?", "443", "80", "22", "8080"),
            QuizQuestion("What is 2 to the power of 10?", "1024", "1000", "512", "2048"),
        ],
    ]
}
