#!/usr/bin/env python3
"""Plants one fault at a time in a small clean tree and expects tools/check_style.py to name it."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_style.py"

CLEAN = {
    "include/ashlar/graph.hpp": "#pragma once\n#include <vector>\n",
    "src/base/dtype.hpp": "#pragma once\n",
    "src/graph/graph.cpp": '#include <ashlar/graph.hpp>\n#include "base/dtype.hpp"\n',
    "src/plan/engine.hpp": "#pragma once\n",
    "src/cpu/kernels/add.cpp": "#include <hwy/foreach_target.h>\n",
    "src/cpu/table.hpp": "#pragma once\n",
    "bench/bench.hpp": "#pragma once\n",
    "bench/suite.hpp": "#pragma once\n",
    "cli/good.cpp": '#include "bench/bench.hpp"\n',
    "docs/a.md": "See [b](b.md#part) and `[not](a-link.md)`.\n",
    "docs/b.md": "Text.\n",
    "tools/retired_words.txt": "# Rules.\ncopy engines?   TMA\n\\bslabs?\\b|\\bkSlab    staging buffer\n",
}


def run(files):
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = pathlib.Path(root) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return subprocess.run([sys.executable, str(SCRIPT), "--house", root],
                              capture_output=True, text=True)


class CheckStyle(unittest.TestCase):
    def test_clean_tree_passes(self):
        result = run(CLEAN)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("src/graph            -> public 1, src/base 1", result.stdout)

    def expect(self, path, text, line, words):
        result = run(CLEAN | {path: text})
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        found = [row for row in result.stdout.splitlines() if row.startswith(f"{path}:{line}: ")]
        self.assertTrue(any(words in row for row in found), result.stdout)

    def test_each_fault_is_named(self):
        word = "TO" + "DO"
        faults = [
            ("src/base/a.cpp", '#include "plan/engine.hpp"\n', 1, "src/base may not include"),
            ("src/plan/a.cpp", '\n#include "cpu/table.hpp"\n', 2, "src/plan may not include"),
            ("cli/main.cpp", '#include "../src/base/dtype.hpp"\n', 1, "cli may not include"),
            ("cli/bench.cpp", '#include "bench/suite.hpp"\n', 1, "sees bench/bench.hpp alone of"),
            ("include/ashlar/a.hpp", '#include "base/dtype.hpp"\n', 1, "public may not include"),
            ("src/misc/a.cpp", '#include "base/dtype.hpp"\n', 1, "no place in the layers"),
            ("src/graph/a.hpp", "#include <nlohmann/json.hpp>\n", 1, "only by .cpp"),
            ("src/cpu/a.cpp", "#include <hwy/foreach_target.h>\n", 1, "foreach_target.h belongs"),
            ("src/cuda/kernels/a.cuh", "int x;\n// The Copy engine loads A.\n", 2, "write: TMA"),
            ("src/cuda/a.cpp", "constexpr int kSlabBytes = 16;\n", 1, "write: staging buffer"),
            ("docs/slab.md", "Text.\n", 0, "write: staging buffer"),
            ("src/cpu/b.cpp", "auto v = _mm_add_ps(a, b);\n", 1, "intrinsic"),
            ("src/cpu/c.cpp", "#include <immintrin.h>\n", 1, "intrinsic"),
            ("src/cuda/kernels/k.cuh", "void f() {\n#if A\n#endif\n}\n", 2, "if constexpr"),
            ("src/cuda/a.cpp", 'asm volatile("nop");\n', 1, "inline assembly"),
            ("src/cuda/kernels/lib/ptx_a.cuh", 'asm("ld.global.nc.u32 %0, [%1];" : "=r"(v) : "l"(p));\n', 1, "volatile"),
            ("src/base/b.cpp", "void f() { std::abort(); }\n", 1, "may not call abort"),
            ("src/plan/b.cpp", 'auto v = std::getenv("A");\n', 1, "environment"),
            ("src/base/c.cpp", f"// {word}: later\n", 1, word),
            ("src/base/d.cpp", "// " + "x" * 98 + "\n", 1, "101 columns"),
            ("src/base/e.cpp", "int a;\n" * 601, 601, "the cap is 600"),
            ("docs/c.md", "[gone](missing.md)\n", 1, "leads nowhere"),
        ]
        for path, text, line, words in faults:
            with self.subTest(path=path, words=words):
                self.expect(path, text, line, words)

    def test_comments_and_strings_are_not_code(self):
        text = '// never std::abort() here\nconst char* s = "exit(1)";  /* printf( */\n'
        self.assertEqual(run(CLEAN | {"src/base/a.cpp": text}).returncode, 0)


if __name__ == "__main__":
    unittest.main()
