#!/usr/bin/env python3
"""tools/compare_kernels.py finds planted differences and no others, in bundles of small cubins written here."""

import hashlib
import json
import pathlib
import stat
import struct
import subprocess
import sys
import tempfile

TOOL = pathlib.Path(__file__).resolve().parent.parent.parent / "tools" / "compare_kernels.py"
SUITE = {"format": "ashlar-suite", "graphs": {"forward": ["$m"], "data": ["$m", "$k", "$n"]},
         "defaults": {"n": 4}, "each": {"graph": ["forward", "data"]},
         "cases": [{"name": "small", "m": 1, "k": 3, "check": {"k": 1}}, {"name": "large", "m": 2, "graph": "forward"}]}


def cubin(*functions, padding=0, table=b""):
    """An ELF file with the sections that NVRTC writes. A function: name, code, registers, shared, parameters."""
    sections = [("", 0, 0, 0, b"", 0)]  # name, type, link, info, contents, size
    strings, symbols, info = b"\0", [(0, 0, 0, 0, 0)], b""

    def add(name, kind, contents, size=None, link=0, about=0):
        sections.append((name, kind, link, about, contents, len(contents) if size is None else size))
        return len(sections) - 1

    def symbol(name, kind, section, value=0, size=0):
        nonlocal strings
        symbols.append((len(strings), kind, section, value, size))
        strings += name.encode() + b"\0"
        return len(symbols) - 1
    for i in range(padding):  # constants that the compiler leaves behind
        symbol(f"kUnused{i}", 1, 1, 0, 4)
    data = add(".nv.global.init", 1, table)
    symbol("table", 1, data, 0, len(table))
    for name, code, registers, shared, parameters in functions:
        text = add(f".text.{name}", 1, code)
        index = symbol(name, 2, text, 0, len(code))
        callee = symbol("callee", 2, text)
        add(f".rela.text.{name}", 4, struct.pack("<QQq", 16, callee << 32 | 57, 0), about=text)
        add(f".nv.shared.{name}", 8, b"", shared)
        add(f".nv.constant0.{name}", 1, bytes(parameters))
        add(f".nv.info.{name}", 0x70000000, struct.pack("<BBHIHH", 4, 0x0a, 8, index, 0x210, parameters))
        info += struct.pack("<BBHII", 4, 0x2f, 8, index, registers)
    add(".nv.info", 0x70000000, info)
    names = add(".strtab", 3, strings)
    add(".symtab", 2, b"".join(struct.pack("<IBBHQQ", n, k, 0, s, v, z) for n, k, s, v, z in symbols), link=names)
    headings = b"\0"
    add(".shstrtab", 3, b"")
    places = []
    for name, *_ in sections:
        places.append(len(headings))
        headings += name.encode() + b"\0"
    sections[-1] = (".shstrtab", 3, 0, 0, headings, len(headings))
    body, table_rows, at = b"", b"", 64
    for (_, kind, link, about, contents, size), place in zip(sections, places):
        table_rows += struct.pack("<IIQQQQIIQQ", place, kind, 0, 0, at, size, link, about, 1, 0)
        body += contents
        at += len(contents)
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, at, 0, 64, 0, 0, 64, len(sections), len(sections) - 1)
    return head + body + table_rows


def bundle(images):
    """Name and cubin of every image; its key is made of both."""
    rows, entries = b"", b""
    keyed = sorted((hashlib.md5(name.encode() + code).hexdigest(), name, code) for name, code in images)
    for key, name, code in keyed:
        log = b"Function properties for f\n  0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        entry = b"%d\n%s" % (len(log), log) + code
        offset = 104 + 128 * len(keyed) + len(entries)
        rows += key.encode().ljust(32, b"\0") + name.encode().ljust(64, b"\0")
        rows += struct.pack("<QQQQ", offset, len(entry), 0, 0)
        entries += entry
    size = 104 + len(rows) + len(entries)
    return b"ashlar bundle 1\n" + struct.pack("<QQQ", size, len(keyed), 0) + bytes(64) + rows + entries


def write_side(folder, cases):
    """Case -> images of one suite."""
    place = folder / "gpu"
    place.mkdir(parents=True)
    images = [image for its in cases.values() for image in its]
    (place / "s.bundle").write_bytes(bundle(dict.fromkeys(images)))
    keys = {case: [hashlib.md5(name.encode() + code).hexdigest() for name, code in its] for case, its in cases.items()}
    (place / "cases.json").write_text(json.dumps({"s": keys}))
    return folder


def run(*arguments):
    return subprocess.run([sys.executable, str(TOOL), *map(str, arguments)], capture_output=True, text=True, check=False)


def check(condition, what, done=None):
    if not condition:
        sys.exit(f"FAILED: {what}" + (f"\n{done.stdout}{done.stderr}" if done else ""))


def counts(done):
    """Both rows of the table: old, new, identical, different, only in old, only in new."""
    return [[int(word) for word in line.split()[-6:]] for line in done.stdout.splitlines() if line.startswith("gpu ")]


CODE = bytes(range(64)) * 2
OTHER = CODE[:32] + b"\xff" + CODE[33:]


def compares(scratch):
    f, g = ("f", CODE, 40, 1024, 528), ("g", CODE * 2, 80, 0, 528)
    old = write_side(scratch / "old", {"a": [("gemm", cubin(f, g))], "b": [("norm", cubin(("n", OTHER, 32, 0, 64)))]})

    def against(name, expected, **cases):
        base = {"a": [("gemm", cubin(f, g))], "b": [("norm", cubin(("n", OTHER, 32, 0, 64)))]}
        new = write_side(scratch / name, {**base, **cases})
        done = run("compare", old, new)
        check(counts(done)[0] == expected, f"{name}: {counts(done)} instead of {expected}", done)
        check(done.returncode == (0 if expected[2] == expected[0] == expected[1] else 1), f"{name}: exit code", done)
        return done
    against("same", [3, 3, 3, 0, 0, 0])
    against("renamed", [3, 3, 3, 0, 0, 0],
            a=[("matmul", cubin(("matmul_kernel", *f[1:]), ("other", *g[1:]), padding=5))])
    against("split", [3, 3, 3, 0, 0, 0], a=[("one", cubin(f)), ("two", cubin(g, padding=1))])
    done = against("code", [3, 3, 2, 1, 0, 0], a=[("gemm", cubin(("f", OTHER, 40, 1024, 528), g))])
    check("1 instructions differ in place" in done.stdout and "cases: s/a" in done.stdout, "code: detail", done)
    done = against("longer", [3, 3, 2, 1, 0, 0], a=[("gemm", cubin(("h", CODE + CODE[:32], 48, 2048, 528), g))])
    check("instructions 8 -> 10 (+2), registers 40 -> 48, shared 1024 -> 2048" in done.stdout, "longer: detail", done)
    against("parameters", [3, 3, 2, 1, 0, 0], a=[("gemm", cubin(f, (*g[:4], 536)))])
    against("table", [3, 3, 1, 2, 0, 0], a=[("gemm", cubin(f, g, table=bytes(16)))])
    against("less", [3, 2, 2, 0, 1, 0], a=[("gemm", cubin(f))])
    against("more", [3, 4, 3, 0, 0, 1], b=[("norm", cubin(("n", OTHER, 32, 0, 64), ("m", CODE, 8, 0, 8)))])
    # The functions of two cases change places: every function is still there, none where it was.
    done = against("swapped", [3, 3, 0, 2, 1, 1], a=[("norm", cubin(("n", OTHER, 32, 0, 64)))],
                   b=[("gemm", cubin(f, g))])
    check(counts(done)[1] == [3, 3, 0, 2, 1, 1], "swapped: uses", done)


def accepts(scratch):
    done = run("compare", scratch / "old", scratch / "longer")
    pair = next(line.split()[:2] for line in done.stdout.splitlines() if line.endswith("gemm:f -> gemm:h"))
    accepted = scratch / "accepted.txt"
    accepted.write_text(f"# differences\n\ngpu {' '.join(pair)} a longer epilogue\n")
    done = run("compare", scratch / "old", scratch / "longer", "--accept", accepted)
    check(done.returncode == 0 and "accepted: a longer epilogue" in done.stdout, "accepted", done)
    check(run("compare", scratch / "old", scratch / "code", "--accept", accepted).returncode == 1, "not accepted")
    accepted.write_text(f"gpu {' '.join(pair)}\n")
    check(run("compare", scratch / "old", scratch / "longer", "--accept", accepted).returncode == 2, "no reason given")
    check(run("compare", scratch / "old", scratch).returncode == 2, "a folder without bundles")


# Stands for a binary: one image per case, whose code depends on the case. HELP and its way to name the file vary.
BINARY = """#!/usr/bin/env python3
import json, sys
sys.path.insert(0, {folder!r})
import compare_kernels_test as t
arguments = sys.argv[1:]
if "--help" in arguments:
    print({bench!r} if arguments[0] == "bench" else {commands!r})
    sys.exit(0)
suite = json.load(open(next(a for a in arguments if a.endswith(".json"))))
is_graph = "m" in suite
assert arguments[0] == {graph_command!r} if is_graph else {command!r}, arguments
out = arguments[arguments.index("--out" if is_graph else {option!r}) + 1]
tuned = int(arguments[arguments.index("--most") + 1]) if "--tune" in arguments else 0
images = [("candidate", t.cubin(("c", bytes([i]) * 64, 1, 2, 3))) for i in range(tuned)]
if is_graph:
    suite = {{"cases": [{{"graph": "forward", **suite}}, {{"graph": "forward", **suite}}], "defaults": {{}}}}
# A parameter that no graph uses is an error.
if len(suite["cases"]) == 1 and suite["cases"][0]["graph"] == "forward":
    assert not suite["defaults"] and "k" not in str(suite["cases"][0].get("check", "") or "") + \
        " ".join(key for key in suite["cases"][0] if len(key) == 1), suite
for case in suite["cases"]:
    for graph in [case["graph"]] if "graph" in case else suite["each"]["graph"]:
        code = bytes([case["m"], len(graph)]) * 32
        images.append(("k", t.cubin(("k", code, 1, 2, 3))))
open(out, "wb").write(t.bundle(images))
"""


def makes(scratch):
    shapes = scratch / "shapes"
    shapes.mkdir()
    (shapes / "mine.json").write_text(json.dumps(SUITE))
    (scratch / "graphs").mkdir()
    (scratch / "graphs" / "one.json").write_text(json.dumps({"m": 2}))
    (scratch / "graphs" / "two.json").write_text(json.dumps({"graph": {"m": 7}, "inputs": []}))
    forms = {"bench_pack": ("  --pack FILE  makes a pack\n  --most N  candidates", "  pack  it", "bench", "--pack"),
             "bench_bundle": ("  --bundle FILE  makes a bundle", "  bundle  it", "bench", "--bundle"),
             "pack": ("", "  pack   makes a pack", "pack", "--out"),
             "bundle": ("", "  bundle makes a bundle", "bundle", "--out")}
    for name, (bench, commands, command, option) in forms.items():
        binary = scratch / name
        binary.write_text(BINARY.format(folder=str(pathlib.Path(__file__).parent), bench=bench, commands=commands,
                                        command=command, option=option, graph_command=commands.split()[0]))
        binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
        done = run("make", binary, shapes, scratch / f"by_{name}", "--device", "gpu")
        check(done.returncode == 0 and "1 suites, 3 cases, 3 images" in done.stdout, name, done)
        cases = json.loads((scratch / f"by_{name}" / "gpu" / "cases.json").read_text())
        check(list(cases["mine"]) == ["small_forward", "small_data", "large"], f"{name}: {cases}")
    done = run("compare", scratch / "by_pack", scratch / "by_bench_bundle")
    check(done.returncode == 0 and counts(done)[0] == [3, 3, 3, 0, 0, 0], "bundles of two binaries", done)
    done = run("make", scratch / "bench_pack", shapes, scratch / "with_graphs", "--device", "gpu", "--graphs",
               scratch / "graphs", "--suite", "mine")
    check("gpu: 2 suites, 5 cases, 4 images" in done.stdout, "graphs", done)
    done = run("make", scratch / "bench_pack", shapes, scratch / "tuned", "--device", "gpu", "--tune", "2")
    check("gpu: 1 suites, 3 cases, 5 images" in done.stdout, "tuned", done)
    check(run("make", scratch / "pack", shapes, scratch / "x", "--tune", "2").returncode == 2, "no option for candidates")
    check("3 distinct" in run("list", scratch / "by_pack").stdout, "list")


def main():
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        compares(scratch)
        accepts(scratch)
        makes(scratch)
    print("planted differences found")


if __name__ == "__main__":
    main()
