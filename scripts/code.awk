# Functions that find the code in a line of source text. check-names and check-comments load them in front of their own
# programs. POSIX awk without extensions, which the awk of macOS, mawk and gawk all run.

# Call this at the first line of each file, before code().
function begin_file(name) {
    is_lua = name ~ /\.lua$/
    is_c = name ~ /\.[ch]$/
    level = 0
    mode[0] = "code"
}

# Returns the code of one line of Swift, Lua or C: without comments and without the text of strings, but with the
# expressions that a Swift string interpolates. Sets `quoted` to the parts of the line's comment that stand between
# backticks. Call it for each line of a file, in order: a multi-line string goes on in the next line.
function code(line,    out, pattern, token) {
    out = quoted = ""
    if (is_c) gsub(/'(\\.|[^'\\])'/, " ", line)
    while (line != "") {
        if (mode[level] == "code") pattern = is_lua ? "--|[\"']" : "//|[\"()]"
        else if (mode[level] == "text") pattern = "\\\\[(]|\\\\.|\"\"\""
        else pattern = "\\\\[(]|\\\\.|" end_mark[level]
        if (!match(line, pattern)) {
            if (mode[level] == "code") out = out line
            break
        }
        token = substr(line, RSTART, RLENGTH)
        if (mode[level] == "code") {
            out = out substr(line, 1, RSTART - 1)
            if (token == "\"" && !is_c && substr(line, RSTART, 3) == "\"\"\"") token = "\"\"\""
            line = substr(line, RSTART + length(token))
            if (token == "//" || token == "--") {
                note_quoted(line)
                break
            } else if (token == "(") {
                out = out token
                parentheses[level]++
            } else if (token == ")") {
                # The end of an interpolation is not part of its code.
                if (level > 0 && --parentheses[level] == 0) level--
                else out = out token
            } else {
                out = out " "
                mode[++level] = token == "\"\"\"" ? "text" : "string"
                end_mark[level] = token
            }
        } else {
            line = substr(line, RSTART + RLENGTH)
            if (token == end_mark[level]) {
                level--
            } else if (token == "\\(" && !is_lua && !is_c) {
                out = out " "
                mode[++level] = "code"
                parentheses[level] = 1
            }
        }
    }
    # Only a multi-line string goes on in the next line.
    while (level > 0 && mode[level] != "text") level--
    return out
}

function note_quoted(comment) {
    while (match(comment, /`+[^`]+`/)) {
        quoted = quoted substr(comment, RSTART, RLENGTH) " "
        comment = substr(comment, RSTART + RLENGTH)
    }
}
