#!/usr/bin/env python3
"""tools/check_ashlar_library.py on a small header, and on libraries with planted faults.

    check_ashlar_library_test.py --cxx CXX
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import check_ashlar_library as checker  # noqa: E402

HEADER = """
#include <stdexcept>
namespace ashlar {
class Hidden;  // void not_this(int);
#pragma GCC visibility push(default)
struct Error : public std::runtime_error {
  explicit Error(const char* what, int = int(1)) : std::runtime_error(what) {}
};
template <class T> T twice(T value) { return helper(value); }
#define ASHLAR_INPUTS(...) \\
  enum In { __VA_ARGS__ };
class Plan {
 public:
  ASHLAR_INPUTS(x, w);
  Plan(int a = {}, int b = {});
  Plan(const Plan&) = delete;
  Plan& operator=(Plan&& other) noexcept;
  bool operator<(const Plan&) const;
  int inside() const { return outside(); }
  int outside() const;
 private:
  friend int friendly(const Plan&);
  static constexpr int kSize = sizeof(int);
  int values[2] = {1, 2};
};
[[noreturn]] void refuse(void (*callback)(int));
void refuse();
}
extern "C" {
int ashlar_call(void);
enum { ASHLAR_A = 1 };
}
#pragma GCC visibility pop
"""

DEFINITIONS = """
namespace ashlar {
class Hidden { public: int f(); };
int Hidden::f() { return 1; }
int internal() { return Hidden().f(); }
Plan::Plan(int, int) {}
Plan& Plan::operator=(Plan&&) noexcept { return *this; }
bool Plan::operator<(const Plan&) const { return false; }
int Plan::outside() const { return internal(); }
void refuse(void (*)(int)) { throw Error("refused"); }
void refuse() { throw Error("refused"); }
}
extern "C" int ashlar_call(void) { return 1; }
"""

# What is changed in the definitions, and the lines that must follow.
FAULTS = [
    ("", "", []),
    ("int internal()", "__attribute__((visibility(\"default\"))) int internal()",
     ["ashlar::internal: exported, declared by no header"]),
    ("int Plan::outside() const { return internal(); }", "",
     ["ashlar::Plan::outside: declared by a header, not exported"]),
    ("void refuse() { throw Error(\"refused\"); }", "", ["ashlar::refuse: 2 overloads declared, 1 exported"]),
    ("return internal(); }", "return internal(); }\n#pragma GCC visibility push(default)\nextern int count;\n"
     "int count = internal();\n#pragma GCC visibility pop\n", ["ashlar::count: exported, declared by no header"]),
    ("ashlar_call(void) { return 1; }", "ashlar_call(void) { return 1; }\n"
     "extern \"C\" __attribute__((visibility(\"default\"))) int ashlar_more(void) { return 1; }",
     ["ashlar_more: exported, declared by no header"]),
]


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def found_in(folder, cxx, definitions):
    (folder / "library.cpp").write_text('#include "ashlar.hpp"\n' + definitions)
    subprocess.run([cxx, "-std=c++20", "-fPIC", "-shared", "-fvisibility=hidden", "-fvisibility-inlines-hidden",
                    f"-Wl,--version-script={ROOT}/src/api/exports.map", f"-Wl,-soname,{checker.SONAME}",
                    "-o", folder / "library.so", folder / "library.cpp"], check=True)
    return list(checker.problems(str(folder / "library.so"), folder, False))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cxx", default="c++")
    cxx = parser.parse_args().cxx
    functions, exceptions = checker.declared_in(HEADER)
    check(exceptions == {"ashlar::Error"}, exceptions)
    check(functions == {"ashlar::Plan::Plan": 1, "ashlar::Plan::operator=": 1, "ashlar::Plan::operator<": 1,
                        "ashlar::Plan::outside": 1, "ashlar::refuse": 2, "ashlar_call": 1}, functions)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "ashlar.hpp").write_text(HEADER)
        for text, replacement, expected in FAULTS:
            check(text in DEFINITIONS, text)
            found = found_in(folder, cxx, DEFINITIONS.replace(text, replacement, 1) if text else DEFINITIONS)
            check(found == expected, f"{replacement or 'without ' + text}: got {found}, expected {expected}")
    unversioned = list(checker.symbol_problems("0001 T ashlar_call", functions, set()))
    check("ashlar_call: has version '', expected ASHLAR_0" in unversioned, unversioned)


if __name__ == "__main__":
    main()
