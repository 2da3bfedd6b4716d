#!/usr/bin/env python3
"""Checks the rules of the house that a machine can check, and prints how the house is built.

    tools/check_style.py [--house] [ROOT]

Every violation is one line, `file:line: sentence`; the exit code is 1 when there is any.
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys

CPP = {".cpp", ".hpp", ".h", ".cuh"}
TEXT = CPP | {".py", ".cmake", ".md", ".txt", ".in", ".sh", ".yml", ""}
MAX_COLUMNS = 100
MAX_LINES = 600
LONG_LINES = 450
BENCH_HEADER = "bench/bench.hpp"  # what the command sees of the benchmark
JSON_HEADER = "src/graph/json.hpp"  # what the graph and plan forms share; only .cpp files include it

# Which folders a folder may include. `public` is include/ashlar; a folder always sees itself.
ARROWS = {
    "public": set(),
    "src/base": {"public"},
    "src/graph": {"public", "src/base"},
    "src/reference": {"public", "src/base", "src/graph"},
    "src/plan": {"public", "src/base", "src/graph"},
    "src/cpu": {"public", "src/base", "src/graph", "src/plan", "src/reference"},
    "src/cuda": {"public", "src/base", "src/graph", "src/plan"},
    "src/api": {"public", "src/base", "src/graph", "src/plan", "src/reference", "src/cpu",
                "src/cuda"},
    "cli": {"public", "bench"},
    "examples": {"public"},
    "bench": {"public"},
    "cudnn": {"public"},
    "mlir": {"public"},
    "bindings": {"public"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CONDITIONAL = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif|else)\b")
X86_INSTRUCTIONS = "src/cpu/kernels/x86_instructions-inl.h"
PRINTED_PTX = "src/cuda/text/wgmma_text.cpp"
INTRINSIC = re.compile(
    r"\b_mm\d*_\w+\(|\b__m(128|256|512)[id]?\b|\bv(ld|st)\d+q?_\w+\(|"
    r"<(imm|x86|xmm|emm|avx\w*|arm_neon|arm_sve)(intrin)?\.h>")
PLAIN_LOAD = re.compile(r"\b(asm|__asm__)\s*\(\s*\"ld")
INLINE_ASM = re.compile(r"\b(asm|__asm__)\s*(volatile|__volatile__)?\s*\(")
# Spelled in halves so that this file passes its own rule.
LEFTOVER = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
PROCESS_CALL = re.compile(
    r"(?<![\w.>:])(?:std::|::)?(abort|exit|_Exit|quick_exit|printf|puts)\s*\(")
ENVIRONMENT = re.compile(r"\b(secure_)?getenv\s*\(")
RETIRED_WORDS = "tools/retired_words.txt"  # the data of check_retired_words
# These name retired words on purpose: the list, the comparison of old and new command lines, the
# history of changes, and machines by their vendor's name.
NAMES_RETIRED_WORDS = ("LICENSE", RETIRED_WORDS, "tools/compare_kernels.py", "tests/lint/", "CHANGELOG.md",
                       "docs/performance/cpu/", "tests/fuzz/corpus/")
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\s*\[[^\]]+\]:\s*(\S+)")


class Tree:
    """The files of the checkout, read once."""

    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.files = {}
        for path in self._names():
            full = self.root / path
            if full.is_symlink() or not full.is_file() or full.suffix not in TEXT:
                continue
            try:
                self.files[path] = full.read_text(encoding="utf-8").split("\n")
            except UnicodeDecodeError:
                continue
            if self.files[path][-1] == "":
                self.files[path].pop()

    def _names(self):
        try:
            listed = subprocess.run(
                ["git", "-C", str(self.root), "ls-files", "-coz", "--exclude-standard"],
                capture_output=True, check=True).stdout.decode()
            return sorted(set(filter(None, listed.split("\0"))))
        except (OSError, subprocess.CalledProcessError):
            return sorted(self._walk())

    def _walk(self):
        for folder, folders, files in os.walk(self.root):
            folders[:] = [f for f in folders if not f.startswith(("build", ".git", "__pycache__"))]
            for name in files:
                yield (pathlib.Path(folder) / name).relative_to(self.root).as_posix()

    def cpp(self):
        return {p: lines for p, lines in self.files.items() if suffix(p) in CPP}


def suffix(path):
    return pathlib.PurePosixPath(path).suffix


def layer_of(path):
    """The folder that the arrows speak of, or None for tests, tools and other free places."""
    parts = path.split("/")
    if path.startswith("include/ashlar/"):
        return "public"
    if parts[0] == "src" and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0] if parts[0] in ARROWS else None


def folder_of(path):
    """A name for every file in the table of folders."""
    return layer_of(path) or "/".join(path.split("/")[:-1][:2]) or "."


def resolve(tree, path, name):
    """The file of ours that an include names, or None when it is somebody else's."""
    here = path.rsplit("/", 1)[0]
    for base in (here, "src", "include", "cli", "tests", "."):
        candidate = os.path.normpath(f"{base}/{name}").replace(os.sep, "/")
        if candidate in tree.files:
            return candidate
    return None


def includes(tree):
    for path, lines in tree.cpp().items():
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            if match:
                yield path, number, match.group(2), resolve(tree, path, match.group(2))


def without_comments(lines):
    """Lines with comments and the insides of string literals blanked, numbers kept."""
    in_block = False
    for line in lines:
        code, i = [], 0
        while i < len(line):
            if in_block:
                end = line.find("*/", i)
                if end < 0:
                    break
                i, in_block = end + 2, False
            elif line.startswith("//", i):
                break
            elif line.startswith("/*", i):
                i, in_block = i + 2, True
            elif line[i] == '"':
                end = i + 1
                while end < len(line) and line[end] != '"':
                    end += 2 if line[end] == "\\" else 1
                code.append('""')
                i = end + 1
            else:
                code.append(line[i])
                i += 1
        yield "".join(code)


def check_arrows(tree):
    for path, number, name, target in includes(tree):
        layer = layer_of(path)
        if layer is None and path.startswith("src/"):
            yield path, number, "this folder of src/ has no place in the layers"
        if layer is None:
            continue
        if layer not in ARROWS:
            yield path, number, f"{layer} has no place in the layers (tools/check_style.py, ARROWS)"
            continue
        if target is None:
            continue
        seen = layer_of(target)
        if seen != layer and seen not in ARROWS[layer]:
            allowed = ", ".join(sorted(ARROWS[layer])) or "nothing else"
            yield path, number, (f"{layer} may not include {name} of {seen or 'tests or tools'}; "
                                 f"it may include {allowed}")


def check_headers(tree):
    for path, number, name, target in includes(tree):
        if name.startswith("nlohmann/") and suffix(path) != ".cpp" and path != JSON_HEADER:
            yield path, number, f"nlohmann-json is included only by .cpp files and {JSON_HEADER}"
        if layer_of(path) == "public" and name.startswith(("fmt/", "hwy/")):
            yield path, number, f"a public header may not include {name}"
        if name == "hwy/foreach_target.h" and not path.startswith(("src/cpu/kernels/", "bench/")):
            yield path, number, "foreach_target.h belongs in src/cpu/kernels and bench"
        if (layer_of(path) == "cli" and target and layer_of(target) == "bench"
                and target != BENCH_HEADER):
            yield path, number, f"the command sees {BENCH_HEADER} alone of the benchmark"


def check_sizes(tree):
    for path, lines in tree.files.items():
        if suffix(path) in CPP | {".py", ".cmake", ".sh"} or path == "dev":
            if len(lines) > MAX_LINES:
                yield path, len(lines), f"{len(lines)} lines, the cap is {MAX_LINES}: split it"


def check_columns(tree):
    for path, lines in tree.cpp().items():
        for number, line in enumerate(lines, 1):
            if len(line) > MAX_COLUMNS:
                yield path, number, f"{len(line)} columns, the limit is {MAX_COLUMNS}"
            if "\t" in line:
                yield path, number, "a tab; indent with spaces"
            if line != line.rstrip():
                yield path, number, "space at the end of the line"


def check_code(tree):
    for path, lines in tree.cpp().items():
        in_library = path.startswith(("src/", "include/"))
        for number, line in enumerate(without_comments(lines), 1):
            if INTRINSIC.search(line) and path != X86_INSTRUCTIONS:
                yield path, number, f"an intrinsic outside {X86_INSTRUCTIONS}"
            if (path.startswith("src/cuda/kernels/") and CONDITIONAL.match(line)
                    and not path.startswith("src/cuda/kernels/lib/ptx_")):
                yield path, number, "a preprocessor branch in a kernel; use if constexpr on Spec"
            if (INLINE_ASM.search(line) and path not in (X86_INSTRUCTIONS, PRINTED_PTX)
                    and not path.startswith("src/cuda/kernels/lib/ptx_")):
                yield path, number, f"inline assembly outside src/cuda/kernels/lib/ptx_*.cuh and {PRINTED_PTX}"
            if (INLINE_ASM.search(line) and PLAIN_LOAD.search(lines[number - 1])
                    and not any("load_anywhere" in before for before in lines[max(number - 3, 0):number])):
                yield path, number, "a load in inline assembly that is not volatile: NVRTC hoists it above bounds checks"
            if in_library and not path.startswith("src/cuda/kernels/"):
                call = PROCESS_CALL.search(line)
                if call:
                    yield path, number, f"the library may not call {call.group(1)}; throw an Error"
                if ENVIRONMENT.search(line) and not path.startswith(("src/base/", "cudnn/core/settings.")):
                    yield path, number, "the environment is read once, in src/base"


def check_words(tree):
    for path, lines in tree.files.items():
        if path == "LICENSE":
            continue
        for number, line in enumerate(lines, 1):
            match = LEFTOVER.search(line)
            if match:
                yield path, number, f"{match.group(1)} left in the tree: do it or open an issue"


def retired_words(tree):
    """Pairs of a compiled expression and the field's word for it."""
    for line in tree.files.get(RETIRED_WORDS, ()):
        if line and not line.startswith("#"):
            expression, replacement = re.split(r"\s{2,}", line.strip(), maxsplit=1)
            yield re.compile(expression, re.IGNORECASE), replacement


def check_retired_words(tree):
    rules = list(retired_words(tree))
    any_of_them = re.compile("|".join(f"(?:{rule.pattern})" for rule, _ in rules) or r"(?!)",
                             re.IGNORECASE)
    for path, lines in tree.files.items():
        if path.startswith(NAMES_RETIRED_WORDS):
            continue
        for number, line in enumerate([path] + lines):  # 0: the path itself
            if not any_of_them.search(line):
                continue
            for rule, replacement in rules:
                match = rule.search(line)
                if match:
                    yield path, number, f"'{match.group(0)}' is retired; write: {replacement}"


def check_links(tree):
    for path, lines in tree.files.items():
        if suffix(path) != ".md":
            continue
        in_code = False
        for number, line in enumerate(lines, 1):
            if line.lstrip().startswith("```"):
                in_code = not in_code
            if in_code:
                continue
            for match in LINK.finditer(re.sub(r"`[^`]*`", "``", line)):
                target = (match.group(1) or match.group(2)).split("#")[0]
                if not target or re.match(r"[a-z][a-z0-9+.-]*:", target):
                    continue
                base = tree.root if target.startswith("/") else (tree.root / path).parent
                if not (base / target.lstrip("/")).exists():
                    yield path, number, f"the link to {target} leads nowhere"


CHECKS = (check_arrows, check_headers, check_sizes, check_columns, check_code, check_words,
          check_retired_words, check_links)


def print_house(tree):
    code = {p: lines for p, lines in tree.files.items()
            if suffix(p) in CPP | {".py", ".cmake", ".sh"} or p in ("dev", "CMakeLists.txt")}
    folders = collections.defaultdict(lambda: [0, 0])
    for path, lines in code.items():
        folders[folder_of(path)][0] += 1
        folders[folder_of(path)][1] += len(lines)
    print("Folders                         files   lines")
    for folder, (files, lines) in sorted(folders.items()):
        print(f"  {folder:<28} {files:6} {lines:7}")
    sizes = sorted(len(lines) for lines in code.values()) or [0]
    print(f"  {'all':<28} {len(code):6} {sum(sizes):7}   median {sizes[len(sizes) // 2]}, "
          f"nine tenths up to {sizes[(9 * len(sizes)) // 10 if len(sizes) > 1 else 0]} lines")

    print("\nLongest files")
    for path, lines in sorted(code.items(), key=lambda item: (-len(item[1]), item[0]))[:10]:
        note = f"   longer than {LONG_LINES}" if len(lines) > LONG_LINES else ""
        print(f"  {len(lines):6}  {path}{note}")

    print("\nIncludes between folders")
    edges = collections.Counter()
    for path, _, _, target in includes(tree):
        if target and folder_of(path) != folder_of(target):
            edges[folder_of(path), folder_of(target)] += 1
    by_source = collections.defaultdict(list)
    for (source, target), count in sorted(edges.items()):
        by_source[source].append(f"{target} {count}")
    for source, targets in by_source.items():
        print(f"  {source:<20} -> {', '.join(targets)}")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--house", action="store_true", help="print folders, sizes and includes")
    options = parser.parse_args()
    tree = Tree(options.root)
    if options.house:
        print_house(tree)
    violations = sorted(set(v for check in CHECKS for v in check(tree)))
    for path, number, sentence in violations:
        print(f"{path}:{number}: {sentence}")
    print(f"check_style: {len(tree.files)} files, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
