#!/usr/bin/env python3
"""Checks the file libashlar.so: it exports what the public headers declare and nothing else.

    check_ashlar_library.py LIBRARY [--headers FOLDER] [--no-size]

- every function that include/ashlar declares without a body is defined, as often as it is overloaded, and the type
  information of every exception; nothing else is;
- SONAME, the only libraries it needs, and its size stripped (--no-size: neither size nor dependencies are checked, for
  sanitizer builds).
Exits with 1 and prints one line per violation.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

from check_cudnn_library import ROOT, dynamic_problems, output_of, size_problems
from check_style import without_comments

SONAME = "libashlar.so.0"
LARGEST = 15_000_000
SYMBOL_VERSION = "ASHLAR_0"
NAME = re.compile(r"(operator\s*[^\s\w(]+|~?\w+)\s*\(")
NOT_FUNCTIONS = re.compile(r"^(using|typedef|friend|static_assert|template)\b|^ASHLAR_\w+\(|=\s*(default|delete|0)$")
TYPE = re.compile(r"^(?:template )?(?:typedef )?(?:class|struct)\s+(\w+)")


def statements(text):
    """Yields (opening or closing brace or semicolon, the text in front of it). Braces inside parentheses are text."""
    depth, start = 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter in "{};" and depth == 0:
            yield letter, " ".join(text[start:place].split())
            start = place + 1


def without_arguments(text):
    """`text` without template arguments."""
    while (shorter := re.sub(r"(?<!operator)<[^<>]*>", "", text)) != text:
        text = shorter
    return text


def declared_in(text):
    """Qualified names that one header declares: functions without a body by count, and exceptions."""
    lines = [line for line in without_comments(re.sub(r"\\\n", " ", text).split("\n")) if not line.lstrip().startswith("#")]
    functions, exceptions = collections.Counter(), set()
    scopes = []  # names of namespaces and classes, "" where names are not qualified, None inside bodies
    for end, head in statements("\n".join(lines)):
        head = re.sub(r"^((public|private|protected)\s*:\s*)+", "", without_arguments(head))
        if end == "}":
            scopes.pop()
        elif end == "{":
            kind = TYPE.match(head)
            if None in scopes:
                scopes.append(None)
            elif head.startswith(("namespace", "extern")):
                scopes.append(head.split()[1] if head.startswith("namespace") else "")
            elif kind and "(" not in head:
                scopes.append(kind.group(1))
                if re.search(r": public std::\w*(error|exception)$", head):
                    exceptions.add("::".join(filter(None, scopes)))
            else:
                scopes.append(None)
        elif None not in scopes and "(" in head and not NOT_FUNCTIONS.search(head):
            name = NAME.search(head)
            if name and "=" not in head[:name.start()]:
                functions["::".join(filter(None, [*scopes, name.group(1).replace(" ", "")]))] += 1
    return functions, exceptions


def declared(folder):
    """The same of all headers of a folder."""
    functions, exceptions = collections.Counter(), set()
    for path in sorted(pathlib.Path(folder).rglob("*.h*")):
        more_functions, more_exceptions = declared_in(path.read_text())
        functions += more_functions
        exceptions |= more_exceptions
    return functions, exceptions


def symbol_problems(listing, functions, exceptions):
    """`listing`: nm's, demangled and with versions. Compares it with what headers declare."""
    defined = collections.defaultdict(set)  # signatures by qualified name
    for line in listing.splitlines():
        _, kind, symbol = line.split(maxsplit=2)
        symbol, _, version = symbol.partition("@@")
        if kind == "A":  # the version itself
            continue
        if version != SYMBOL_VERSION:
            yield f"{symbol}: has version '{version}', expected {SYMBOL_VERSION}"
        signature = re.sub(r"\[abi:\w+\]", "", symbol)
        place = signature.find("(", signature.find("operator()") + 10 if "operator()" in signature else 0)
        defined[signature if place < 0 else signature[:place]].add(signature)
    expected = functions + collections.Counter(
        f"{part} for {name}" for name in exceptions for part in ("typeinfo", "typeinfo name", "vtable"))
    for name in sorted(expected.keys() - defined.keys()):
        yield f"{name}: declared by a header, not exported"
    for name in sorted(defined.keys() - expected.keys()):
        yield f"{name}: exported, declared by no header"
    for name in sorted(expected.keys() & defined.keys()):
        if expected[name] != len(defined[name]):
            yield f"{name}: {expected[name]} overloads declared, {len(defined[name])} exported"


def demangled(listing):
    """Without c++filt's default limit, which std::variant of all operations exceeds."""
    return subprocess.run(["c++filt", "--no-recurse-limit"], input=listing, check=True, capture_output=True, text=True).stdout


def problems(library, headers, with_size):
    listing = demangled(output_of("nm", "-D", "--defined-only", "--with-symbol-versions", library))
    functions, exceptions = declared(headers)
    yield from symbol_problems(listing, functions, exceptions)
    yield from dynamic_problems(library, SONAME, with_size)
    if with_size:
        yield from size_problems(library, LARGEST)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--headers", default=ROOT / "include" / "ashlar", type=pathlib.Path)
    parser.add_argument("--no-size", action="store_true", help="sanitizer build: check neither size nor dependencies")
    arguments = parser.parse_args()
    found = list(problems(arguments.library, arguments.headers, not arguments.no_size))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
