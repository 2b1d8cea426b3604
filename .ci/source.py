"""What `.ci/rooms` and `.ci/size` know of Rust: comments, literals, and what is compiled for tests and tools only."""

import re

TEST = r"#\[cfg\((?:all\()?(?:(?!not\(test)[^\]])*?(?<!\w)(?<!not\()test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*"
TOOLS = r"(?:loom|shuttle|yields|machine|tsan|near_wrap|fuzzing)"
TOOL = rf"#\[cfg\((?:(?:any|all)\()?{TOOLS}(?:, {TOOLS})*\)?\)\]\s*(?:#\[[^\]]*\]\s*)*"


def blank(text):
    """The lines of a comment or literal, without its text."""
    return " " + "\n" * text.count("\n")


def code(text, *without):
    """The code without comments and literals, and without the items that have an attribute like TEST, on its lines."""
    pattern = r'//[^\n]*|/\*.*?\*/|r#*"|b?"(?:\\.|[^"\\])*"|\'(?:\\.[^\']*|[^\\\'])\''
    out, at = [], 0
    while found := re.compile(pattern, re.S).search(text, at):
        end = found.end()
        if found[0].startswith("r"):
            end = text.index('"' + "#" * (len(found[0]) - 2), end) + len(found[0]) - 1
        is_comment = found[0].startswith("/")
        out.append(text[at : found.start()] + ("" if is_comment else '"') + blank(text[found.start() : end]))
        at = end
    text = "".join(out) + text[at:]
    for attribute in without or (TEST,):
        while found := re.search(attribute, text):
            end = item_end(text, found.end())
            text = text[: found.start()] + blank(text[found.start() : end]) + text[end:]
    return text


def item_end(text, start):
    """Where the item, or the field, that begins at `start` ends."""
    if re.match(r"(pub(\([^)]*\))? )?(\w+\s*:(?!:)|\w+,|\.\w+\()", text[start:]):
        depth = 0
        for end in range(start, len(text)):
            depth += (text[end] in "({[") - (text[end] in ")}]")
            if depth < 0 or depth == 0 and text[end] in ",;":
                return end + (depth == 0)
    end = re.compile(r"[;{]").search(text, start).start()
    if text[end] == "{" and not re.match(r"(pub\S* )?use\b", text[start:]):
        return block_end(text, end)
    return text.index(";", end) + 1


def block_end(text, brace):
    """Behind the brace that closes the one at `brace`."""
    depth = 0
    for end in range(brace, len(text)):
        depth += (text[end] == "{") - (text[end] == "}")
        if depth == 0:
            return end + 1
    return len(text)


def module(file, root):
    """The path of a file's module, from the root of the crate."""
    parts = list(file.relative_to(root).with_suffix("").parts)
    return parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts


def tests_only(root):
    """Files that are compiled for tests and tools only."""
    tests = set()
    for file in root.rglob("*.rs"):
        for found in re.finditer(rf"(?:{TEST}|{TOOL})(?:pub\S* )?mod (\w+);", file.read_text()):
            path = root.joinpath(*module(file, root), found[1])
            tests |= {path.with_suffix(".rs"), *path.rglob("*.rs")}
    return tests
