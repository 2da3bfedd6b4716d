#!/usr/bin/env python3
"""Checks that cudnn/include declares exactly the API of cuDNN 9.19.

    tools/compare_cudnn_headers.py compile [--cc CC] [--cxx CXX]
    tools/compare_cudnn_headers.py exports
    tools/compare_cudnn_headers.py match [--nvidia FOLDER] [--cxx CXX]

compile: every header of ours alone, as C99 and as C++, with and without the CUDA toolkit's headers.
exports: cudnn/exports.map lists the functions that our headers declare, and the four undeclared ones.
match:   every enumerator, function, type, field and macro of NVIDIA's headers is in ours, with the same
         value, signature or offset. Their folder is --nvidia, ASHLAR_NVIDIA_CUDNN_INCLUDE, the one of an
         installed wheel, or a usual system folder; without one it prints `skipped: ...`.

Both sides define the same names, so each is compiled into its own program, which prints the value,
type or layout of every name; the two outputs are compared.
"""

import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
OURS = ROOT / "cudnn" / "include"
EXPORTS = ROOT / "cudnn" / "exports.map"
UNDECLARED = {"cudnnGetBackdoor", "cudnnSetBackdoor", "cudnnSetBackdoorEx",
              "cudnnGetRNNDropoutLocationsInternal"}
CUDA_TYPES = "cudnn_cuda_types.h"  # not part of the API: it replaces the toolkit's headers
WITHOUT_CUDA = "-DCUDNN_WITHOUT_CUDA_HEADERS"
STRICT = ["-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
# Macros without a value: include guards and compiler attributes.
NO_VALUE = re.compile(r"^_?(ASHLAR_)?CUDNN_\w*H_?$|^CUDNN_DEPRECATED(_ENUM)?$")


def run(command, text=None):
    done = subprocess.run([str(word) for word in command], input=text, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def check_compile(cc, cxx):
    languages = [(cc, "c", "c99"), (cxx, "c++", "c++11"), (cxx, "c++", "c++20")]
    headers = sorted(OURS.glob("*.h"))
    for compiler, language, standard in languages:
        for flags in [], [WITHOUT_CUDA], [WITHOUT_CUDA, "-DCUDNN_WARN_DEPRECATED"]:
            # The toolkit's own headers may not pass -pedantic, so only ours are compiled strictly.
            strict = STRICT if WITHOUT_CUDA in flags else ["-Wall", "-Werror", "-fsyntax-only"]
            command = [compiler, f"-std={standard}", *strict, *flags, "-I", OURS, "-x", language, "-"]
            for header in headers if flags == [WITHOUT_CUDA] else [OURS / "cudnn.h"]:
                run(command, f"#include <{header.name}>\n#include <{header.name}>\nint unused;\n")
    print(f"{len(headers)} headers compile as " + ", ".join(name for _, _, name in languages))


def preprocessed(cxx, folder, flags, *, dump=False):
    command = [cxx, "-std=c++17", "-E", *(["-dM"] if dump else []), *flags, "-I", folder, "-x", "c++",
               "-"]
    return run(command, "#include <cudnn.h>\n#include <cudnn_backend.h>\n")


def own_text(cxx, folder, flags):
    """The preprocessed declarations of the folder's own headers."""
    kept, inside = [], False
    for line in preprocessed(cxx, folder, flags).split("\n"):
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            path = pathlib.Path(marker.group(1))
            inside = path.parent == pathlib.Path(folder) and path.name != CUDA_TYPES
        elif inside:
            kept.append(line)
    return re.sub(r"\s+", " ", " ".join(kept))


class Names:
    """The names that a folder of headers declares, by kind."""

    def __init__(self, cxx, folder, flags):
        text = own_text(cxx, folder, flags)
        self.enumerators = []
        for body in re.findall(r"\benum\b[^{;]*\{([^}]*)\}", text):
            self.enumerators += [item.split("=")[0].split()[0] for item in body.split(",")
                                 if item.strip()]
        self.fields = []
        for body, name in re.findall(r"\bstruct\b[^{;()]*\{([^}]*)\}\s*(\w+)", text):
            self.fields += [(name, re.sub(r"\[.*", "", item).split()[-1])
                            for item in body.split(";") if item.strip()]
        flat = re.sub(r"\{[^{}]*\}", " ", text.replace('extern "C" {', ""))
        statements = [part.strip(" }") for part in flat.split(";")]
        self.types, self.functions = [], []
        for statement in statements:
            pointer = re.match(r"typedef\b.*\(\s*\*\s*(\w+)\s*\)\s*\(", statement)
            function = re.match(r"(?!typedef\b).*?\b(cudnn\w+)\s*\(", statement)
            if pointer:
                self.types.append(pointer.group(1))
            elif statement.startswith("typedef"):
                self.types.append(statement.split()[-1].lstrip("*"))
            elif function:
                self.functions.append(function.group(1))
        self.macros = [name for name in
                       re.findall(r"^#define (\w*CUDNN\w*)(?=\s|$)",
                                  preprocessed(cxx, folder, flags, dump=True), re.M)
                       if not NO_VALUE.match(name)]
        # CUDNNWINAPI is empty; CUDNN_HAS... and CUDNN_WITHOUT... are our own switches.
        self.macros = [name for name in self.macros if name != "CUDNNWINAPI"
                       and not name.startswith(("CUDNN_HAS_", "CUDNN_WITHOUT_"))]

    def program(self):
        lines = ["#include <cudnn.h>", "#include <cudnn_backend.h>", "#include <cstddef>",
                 "#include <cstdio>", "#include <typeinfo>", "template <class T> struct As {};",
                 "int main() {"]
        show = 'std::printf("{} %s\\n", typeid(As<{}>).name());'
        for name in self.enumerators:
            lines.append(f'std::printf("enumerator {name} %lld %s\\n", (long long)({name}), '
                         f'typeid(decltype({name})).name());')
        for name in self.functions:
            lines.append(show.format(f"function {name}", f"decltype({name})"))
        for name in self.types:
            lines.append(show.format(f"type {name}", name))
        for struct, field in self.fields:
            lines.append(f'std::printf("field {struct}.{field} at %zu of %zu, %s\\n", '
                         f'offsetof({struct}, {field}), sizeof({struct}), '
                         f'typeid(As<decltype({struct}::{field})>).name());')
        for name in self.macros:
            lines.append(f'std::printf("macro {name} %.17g, %zu bytes\\n", (double)({name}), '
                         f'sizeof({name}));')
        lines += ['std::printf("macro CUDNN_STATUS_CATEGORY() %d\\n", CUDNN_STATUS_CATEGORY(3014));',
                  'std::printf("macro CUDNN_STATUS_SPECIFIC_ERROR() %d\\n", '
                  'CUDNN_STATUS_SPECIFIC_ERROR(3014));',
                  'std::printf("macro CUDNN_STATUS_FULL_ERROR_CODE() %d %s\\n", '
                  '(int)CUDNN_STATUS_FULL_ERROR_CODE(3000, 14), '
                  'typeid(CUDNN_STATUS_FULL_ERROR_CODE(3000, 14)).name());', "}"]
        return "\n".join(lines) + "\n"


def facts(cxx, folder, flags, scratch):
    """{(kind, name): its value, type or layout}."""
    program = pathlib.Path(scratch) / "facts"
    run([cxx, "-std=c++17", "-w", *flags, "-I", folder, "-x", "c++", "-", "-o", program],
        Names(cxx, folder, flags).program())
    found = {}
    for line in run([program]).splitlines():
        kind, name, value = line.split(" ", 2)
        found[kind, name] = value
    return found


def nvidia_folder(given):
    if given:
        return pathlib.Path(given).resolve()
    site = pathlib.Path(sysconfig.get_paths()["purelib"])
    candidates = [os.environ.get("ASHLAR_NVIDIA_CUDNN_INCLUDE"),
                  site / "nvidia" / "cudnn" / "include", "/usr/include",
                  "/usr/include/x86_64-linux-gnu", "/usr/include/aarch64-linux-gnu",
                  "/usr/local/cuda/include"]
    for candidate in filter(None, candidates):
        version = pathlib.Path(candidate) / "cudnn_version.h"
        if version.is_file() and "ASHLAR" not in version.read_text(encoding="utf-8"):
            return pathlib.Path(candidate).resolve()
    return None


def version_of(folder):
    text = (folder / "cudnn_version.h").read_text(encoding="utf-8")
    return [int(re.search(rf"define\s+CUDNN_{part}\s+(\d+)", text).group(1))
            for part in ("MAJOR", "MINOR", "PATCHLEVEL")]


def stand_ins(scratch):
    """Headers with the toolkit's names and our declarations, for NVIDIA's headers without a toolkit."""
    folder = pathlib.Path(scratch) / "cuda"
    folder.mkdir()
    for name in "cuda_runtime_api.h", "library_types.h":
        (folder / name).write_text(f'#include "{OURS / CUDA_TYPES}"\n', encoding="utf-8")
    return [WITHOUT_CUDA, "-I", folder]


def check_match(cxx, given):
    theirs = nvidia_folder(given)
    if theirs is None:
        print("skipped: NVIDIA's headers are not on this machine (ASHLAR_NVIDIA_CUDNN_INCLUDE)")
        return
    if version_of(theirs) != version_of(OURS):
        print("skipped: NVIDIA's headers are of version {}.{}.{}, ours of {}.{}.{}".format(
            *version_of(theirs), *version_of(OURS)))
        return
    wrong = []
    with tempfile.TemporaryDirectory() as scratch:
        own_types = stand_ins(scratch)
        want = facts(cxx, theirs, own_types, scratch)
        have = facts(cxx, OURS, [WITHOUT_CUDA], scratch)
        toolkit = facts(cxx, OURS, [], scratch)
    for (kind, name), value in sorted(want.items()):
        for side, found in ("", have), (" with the toolkit's headers", toolkit):
            got = found.get((kind, name), "missing")
            if got != value:
                wrong.append(f"{kind} {name}{side}: {got}, NVIDIA's is {value}")
    wrong += [f"{kind} {name} is not in NVIDIA's headers" for kind, name in sorted(set(have) - set(want))]
    counts = collections.Counter(kind for kind, _ in want)
    if wrong:
        sys.exit("\n".join(wrong) + f"\n{len(wrong)} differences")
    print(f"equal to {theirs}: " + ", ".join(f"{count} {kind}s" for kind, count in sorted(counts.items())))


def check_exports(cxx):
    text = EXPORTS.read_text(encoding="utf-8")
    listed = re.findall(r"\b(cudnn\w+);", text)
    declared = set(Names(cxx, OURS, [WITHOUT_CUDA]).functions) | UNDECLARED
    wrong = [f"{name} is declared and not exported" for name in sorted(declared - set(listed))]
    wrong += [f"{name} is exported and not declared" for name in sorted(set(listed) - declared)]
    if not text.startswith("libcudnn.so.9 {"):
        wrong.append("the version node is not libcudnn.so.9")
    if listed != sorted(set(listed)):
        wrong.append("the names are not sorted, or some are there twice")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{len(listed)} functions are exported, {len(listed) - len(UNDECLARED)} of them declared")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("check", choices=["compile", "exports", "match"])
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--nvidia", help="the folder of NVIDIA's cudnn.h")
    arguments = parser.parse_args()
    if not shutil.which(arguments.cxx) or not shutil.which(arguments.cc):
        print("skipped: no compiler")
    elif arguments.check == "compile":
        check_compile(arguments.cc, arguments.cxx)
    elif arguments.check == "exports":
        check_exports(arguments.cxx)
    else:
        check_match(arguments.cxx, arguments.nvidia)


if __name__ == "__main__":
    main()
