#!/usr/bin/env python3
"""Prints the Swift examples of the documentation as one source file, for scripts/check-snippets.

usage: extract.py OWN_FOLDER FILE...

Each block ```swift of a Markdown file or a documentation comment becomes the body of a function. Its imports go to the top,
an ellipsis stands for nothing, the address of a local server is replaced by that of the test, and messages of the compiler
name the place in the documentation. An array of all functions follows. A block that is a program (@main) becomes a file in
OWN_FOLDER, and a package manifest the Package.swift of a folder in it. Left out are parts of manifests, and what uses the
package Gateway.
"""
import os
import re
import sys

# Parts of a Package.swift, and what uses modules of the package Gateway or Hummingbird.
LEFT_OUT = re.compile(r"^ *\.(package|product)\(|\bGateway\(|^import Hummingbird$", re.MULTILINE)

# Most examples do not show these.
MODULES = ["Hiredis", "GameServices", "QueueListen", "RedisDC", "RedisDCTesting", "ServiceLifecycle", "Testing"]

# The address in the documentation of a server at its usual place.
LOCAL_SERVER = '"redis://127.0.0.1:6379"'


def blocks(path):
    """Yields the first line's number and the lines of each block."""
    block = None
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if path.endswith(".swift"):
                comment = re.match(r" *///(?: |$)(.*)", line)
                if not comment:
                    block = None
                    continue
                line = comment.group(1)
            if block is None:
                if re.match(r" *```swift$", line):
                    block = (number + 1, [])
            elif re.match(r" *```$", line):
                yield block
                block = None
            else:
                block[1].append(line)


def main():
    own, paths = sys.argv[1], sys.argv[2:]
    sources = []
    for path in paths:
        if path.endswith(".swift"):
            with open(path, encoding="utf-8") as file:
                sources.append("".join(line for line in file if not line.lstrip().startswith("///")))
    imports = {"import " + name for name in MODULES}
    functions, examples, programs, manifests, left_out = [], [], 0, 0, []
    for path in paths:
        ordinal = 0
        # Examples have their own modules and tests.
        if path.startswith("Examples/") and path.endswith(".swift"):
            continue
        for number, lines in blocks(path):
            text = "\n".join(lines)
            location = f'#sourceLocation(file: "{path}", line: {number})\n'
            # A part of a source file is compiled there.
            if any(text in source for source in sources):
                continue
            if lines and lines[0].startswith("// swift-tools-version"):
                manifests += 1
                os.mkdir(f"{own}/package{manifests}")
                with open(f"{own}/package{manifests}/Package.swift", "w", encoding="utf-8") as file:
                    file.write(text + "\n")
            elif LEFT_OUT.search(text):
                left_out.append(f"{path}:{number}")
            elif "@main" in text:
                programs += 1
                with open(f"{own}/program{programs}.swift", "w", encoding="utf-8") as file:
                    file.write(location + text + "\n")
            else:
                found = [line for line in lines if re.match(r" *import ", line)]
                imports.update(line.strip() for line in found)
                body = "\n".join("" if line in found else line for line in lines)
                body = re.sub(r"\bstatic let\b", "let", body).replace("…", "").replace(LOCAL_SERVER, "url")
                ordinal += 1
                examples.append(f'    Example(place: "{path} {ordinal}", run: example{len(functions)}),\n')
                functions.append(f"func example{len(functions)}() async throws {{\n{location}{body}\n}}\n")
    print("\n".join(sorted(imports)))
    print("\n".join(functions))
    print(f"#sourceLocation()\nlet examples: [Example] = [\n{''.join(examples)}]")
    counts = f"{len(functions)} examples, {programs} programs, {manifests} packages"
    print(f"{counts}; not checked: {', '.join(left_out) or 'none'}", file=sys.stderr)


main()
