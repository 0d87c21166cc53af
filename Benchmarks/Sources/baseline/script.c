#define _POSIX_C_SOURCE 200809L
#include "baseline.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

// A line `local NAME = VALUE` of layout.lua.
typedef struct {
    char name[40];
    char value[80];
    int is_used;
} Declaration;

enum { MAX_DECLARATIONS = 128, MAX_TEXT = 128 * 1024 };

static size_t read_file(const char *folder, const char *name, char *buffer, size_t size) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.lua", folder, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) fail(EXIT_USAGE, "cannot open the script %s", path);
    size_t length = fread(buffer, 1, size, file);
    fclose(file);
    if (length == size) fail(EXIT_INTERNAL, "the script %s is too long", path);
    buffer[length] = '\0';
    return length;
}

static int read_declarations(const char *folder, Declaration *declarations) {
    static char layout[MAX_TEXT];
    read_file(folder, "layout", layout, sizeof layout);
    int count = 0;
    for (char *line = strtok(layout, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char *equals = strstr(line, " = ");
        if (strncmp(line, "local ", 6) != 0 || equals == NULL) continue;
        if (count == MAX_DECLARATIONS) fail(EXIT_INTERNAL, "layout.lua has too many declarations");
        Declaration *declaration = &declarations[count++];
        snprintf(declaration->name, sizeof declaration->name, "%.*s", (int)(equals - line) - 6, line + 6);
        snprintf(declaration->value, sizeof declaration->value, "%s", equals + 3);
        declaration->is_used = 0;
    }
    return count;
}

// Returns whether the value replaces the name, as in ScriptLayout.swift. The other names are declared in front.
static int is_inlined(const char *name) {
    static const char *const others[] = {"index", "sessions", "values", "protected", "format"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strcmp(name, others[i]) == 0) return 1;
    }
    return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == strlen(name);
}

// Copies the lines that are neither empty nor comments, without their indentation.
static size_t copy_code(char *part, char *body) {
    size_t length = 0;
    for (char *line = strtok(part, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        line += strspn(line, " ");
        if (*line == '\0' || strncmp(line, "--", 2) == 0) continue;
        length += (size_t)sprintf(body + length, "%s\n", line);
    }
    return length;
}

static size_t name_length(const char *text) {
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_') length++;
    return length;
}

static size_t string_length(const char *text) {
    size_t length = 1;
    while (text[length] != '\'' && text[length] != '\0') length += text[length] == '\\' ? 2 : 1;
    return length + 1;
}

size_t script_text(const char *folder, const char *const *parts, char *text, size_t size) {
    static Declaration declarations[MAX_DECLARATIONS];
    static char part[MAX_TEXT], body[MAX_TEXT], folded[2 * MAX_TEXT];
    // A file that is a whole script.
    if (parts[1] == NULL) return read_file(folder, parts[0], text, size);
    int count = read_declarations(folder, declarations);
    size_t body_length = 0, length = 0;
    for (; *parts != NULL; parts++) {
        size_t part_length = read_file(folder, *parts, part, sizeof part);
        if (body_length + part_length + 2 > sizeof body) fail(EXIT_INTERNAL, "the script is too long");
        body_length += copy_code(part, body + body_length);
    }
    for (const char *rest = body; *rest != '\0';) {
        size_t name = name_length(rest), skipped = name > 0 ? name : *rest == '\'' ? string_length(rest) : 1;
        const char *word = rest;
        size_t word_length = skipped;
        for (int i = 0; i < count && name > 0; i++) {
            Declaration *declaration = &declarations[i];
            if (strlen(declaration->name) != name || strncmp(declaration->name, rest, name) != 0) continue;
            declaration->is_used = 1;
            if (is_inlined(declaration->name)) {
                word = declaration->value;
                word_length = strlen(word);
            }
        }
        if (length + word_length > sizeof folded) fail(EXIT_INTERNAL, "the script is too long");
        memcpy(folded + length, word, word_length);
        length += word_length;
        rest += skipped;
    }
    size_t head = 0;
    for (int i = 0; i < count; i++) {
        if (!declarations[i].is_used || is_inlined(declarations[i].name)) continue;
        head += (size_t)snprintf(text + head, size - head, "local %s = %s\n", declarations[i].name,
                                 declarations[i].value);
        if (head >= size) fail(EXIT_INTERNAL, "the script is too long");
    }
    if (head + length > size) fail(EXIT_INTERNAL, "the script is too long");
    memcpy(text + head, folded, length);
    // The last line ends without a newline, like that of the library.
    return head + length - 1;
}
