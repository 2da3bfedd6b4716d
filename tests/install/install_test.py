#!/usr/bin/env python3
"""Installs a finished build and uses it from other projects: C, C++ and Python.

    install_test.py --build BUILD --cc CC --cxx CXX [--generator NAME]

The library is found by find_package, by pkg-config and by ctypes, and added by add_subdirectory. In the last case it is
not compiled a second time: one of its files is checked with the flags of the other project, and the program is linked
with the installed library in place of the one that would be built.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "install"
LARGEST_TREE = 60_000_000
LARGEST_LIBRARY = 15_000_000
LARGEST_PROGRAM = 20_000_000  # linked with the archive


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def run(*command, **variables):
    """The output of a command that must succeed."""
    done = subprocess.run([str(word) for word in command], env={**os.environ, **variables}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check(done.returncode == 0, f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def bytes_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def version():
    text = (ROOT / "include" / "ashlar" / "version.h").read_text()
    return ".".join(re.search(rf"VERSION_{part} (\d+)", text).group(1) for part in ("MAJOR", "MINOR", "PATCH"))


class Installed:
    """The installed tree, and the programs built with it in `folder`."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.prefix = folder / "prefix"
        elsewhere = folder / "elsewhere"
        for component in ([], ["--component", "static"]):
            run("cmake", "--install", options.build, "--prefix", elsewhere, *component)
            if not component:
                self.bytes = bytes_of(elsewhere)
        elsewhere.rename(self.prefix)  # the tree can be moved
        self.library = next(self.prefix.glob("lib*/**/libashlar.so"))
        self.archive = next(self.prefix.glob("lib*/**/libashlar.a"))
        self.loader = {"LD_LIBRARY_PATH": str(self.library.parent)}

    def sizes(self):
        library = self.library.stat().st_size
        check(self.bytes <= LARGEST_TREE, f"the installed tree has {self.bytes} bytes, expected {LARGEST_TREE} at most")
        check(library <= LARGEST_LIBRARY, f"libashlar.so has {library} bytes, expected {LARGEST_LIBRARY} at most")
        check(self.library.resolve().name == f"libashlar.so.{version()}", self.library.resolve().name)
        print(f"installed: {self.bytes / 1e6:.1f} MB, libashlar.so {library / 1e6:.1f} MB, "
              f"libashlar.a {self.archive.stat().st_size / 1e6:.1f} MB")

    def configure(self, project, build, *definitions):
        source = self.folder / f"{build}-source"
        shutil.copytree(HERE / project, source)
        for program in (ROOT / "examples" / "c_api.c", HERE / "program.cpp"):
            shutil.copy(program, source)
        generator = ["-G", self.options.generator] if self.options.generator else []
        run("cmake", "-S", source, "-B", self.folder / build, *generator, "-DCMAKE_BUILD_TYPE=Release",
            f"-DCMAKE_C_COMPILER={self.options.cc}", f"-DCMAKE_CXX_COMPILER={self.options.cxx}", *definitions)
        return self.folder / build

    def found(self, languages, program, library, *components):
        build = self.configure(
            "found", f"found-{languages}-{library[8:]}", f"-DLANGUAGES={languages}", f"-DPROGRAM={program}",
            f"-DLIBRARY={library}", f"-DCOMPONENTS={';'.join(components)}", f"-DVERSION={version()}",
            f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build)
        check("ok" in run(build / "program"), "no ok")
        return build / "program"

    def packaged(self, compiler, program, *options):
        """Compiled with what pkg-config says; with --static as one more option, linked with the archive."""
        flags = run("pkg-config", "--cflags", "--libs", *options, "ashlar",
                    PKG_CONFIG_PATH=str(self.library.parent / "pkgconfig")).split()
        if options:
            flags = [str(self.archive) if flag == "-lashlar" else flag for flag in flags]
        run(*compiler, program, *flags, "-o", self.folder / "packaged")
        check("ok" in run(self.folder / "packaged", **({} if options else self.loader)), "no ok")
        return self.folder / "packaged"

    def added(self, expected, *definitions):
        build = self.configure(
            "added", f"added-{expected}", f"-DASHLAR={ROOT}", "-DPROGRAM=program.cpp", f"-DEXPECTED={expected}",
            "-DCMAKE_BUILD_TYPE_EXPECTED=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DFLAG_OF_THE_PARENT",
            "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *definitions)
        for entry in json.loads((build / "compile_commands.json").read_text()):
            command = f"cd '{build}' && {entry['command']}"
            check("-DFLAG_OF_THE_PARENT" in command and "-Werror" not in command, command)
            if entry["file"].endswith("fmt_once.cpp"):
                run("sh", "-c", f"{command} -fsyntax-only")
            elif entry["file"].endswith("program.cpp"):
                (build / "CMakeFiles" / "program.dir").mkdir(exist_ok=True)
                run("sh", "-c", command)
        if self.options.generator != "Ninja":  # others do not print the command that links
            return
        for library in self.library.parent.glob("libashlar.*"):
            shutil.copy(library, build / "ashlar", follow_symlinks=False)
        link = run("ninja", "-C", build, "-t", "commands", "program").splitlines()[-1]
        run("sh", "-c", f"cd '{build}' && {link}")
        check("ok" in run(build / "program"), "no ok")


def uses(installed, options):
    """The cases by name, each a function."""
    yield "sizes", installed.sizes
    yield "find_package, C", lambda: installed.found("C", "c_api.c", "ashlar::ashlar")
    yield "find_package, C++", lambda: installed.found("CXX", "program.cpp", "ashlar::shared", "shared")

    def static():
        size = installed.found("CXX", "program.cpp", "ashlar::static", "static").stat().st_size
        check(size <= LARGEST_PROGRAM, f"a static program has {size} bytes, expected {LARGEST_PROGRAM} at most")
        print(f"a static program: {size / 1e6:.1f} MB")

    yield "find_package, C++, the archive", static
    if shutil.which("pkg-config"):
        c, cxx = [options.cc, "-std=c99"], [options.cxx, "-std=c++20"]
        yield "pkg-config, C", lambda: installed.packaged(c, ROOT / "examples" / "c_api.c")
        yield "pkg-config, C++", lambda: installed.packaged(cxx, HERE / "program.cpp")
        yield "pkg-config, C, the archive", lambda: installed.packaged(c, ROOT / "examples" / "c_api.c", "--static")
    yield "ctypes", lambda: check("ok" in run(sys.executable, HERE / "program.py", installed.library), "no ok")
    yield "add_subdirectory, static", lambda: installed.added("STATIC_LIBRARY")
    yield "add_subdirectory, shared", lambda: installed.added("SHARED_LIBRARY", "-DBUILD_SHARED_LIBS=ON")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--generator")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        installed = Installed(options, pathlib.Path(folder))
        for name, use in uses(installed, options):
            start = time.monotonic()
            use()
            print(f"{name}: ok in {time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    main()
