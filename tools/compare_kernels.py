#!/usr/bin/env python3
"""Compares the machine code of all kernels that two builds of Ashlar compile for the same suites.

    tools/compare_kernels.py make build/ashlar shapes FOLDER     compiles the kernels of every suite, without a GPU
    tools/compare_kernels.py compare OLD NEW [--accept FILE]     compares two such folders
    tools/compare_kernels.py list FOLDER                         prints what a folder holds

`make` writes FOLDER/DEVICE/SUITE.bundle (kernel bundles, docs/jit.md) and FOLDER/DEVICE/cases.json, which names the
images of every case. NVRTC is needed; FOLDER/cache keeps what was compiled, so a second run is short.

`compare` pairs functions by the case that needs them and by their contents, never by name: identifiers, file names and
comments may change between the two builds. Two functions are identical when instructions, relocations, registers,
stack, static shared memory, parameter bytes, launch bounds and the tables in constant and global memory are. Grids and
dynamic shared memory belong to the launch and are not part of a bundle.

A file of accepted differences has one line per difference: DEVICE OLD NEW REASON, where OLD and NEW are the digests that
`compare` prints, or "-" for a function that one side lacks. Exit codes: 0 nothing differs, or only what is accepted;
1 something differs; 2 bad input or usage.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import itertools
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time

DEVICES = ("h200", "a100", "rtx5090")
INSTRUCTION_BYTES = 16


class BadInput(Exception):
    """A file that is not what it should be; the text is for the user."""


# ---------------------------------------------------------------------------------------------------------------------
# A cubin is an ELF file: one section .text.NAME per function, and sections about it.


class Elf:
    """Sections, symbols and relocations of a 64-bit little-endian ELF file."""

    SYMTAB, RELA, NOBITS, REL = 2, 4, 8, 9
    Section = collections.namedtuple("Section", "name type info link data size")
    Symbol = collections.namedtuple("Symbol", "name type section value size")

    def __init__(self, data):
        if data[:6] != b"\x7fELF\x02\x01":
            raise BadInput("not a 64-bit little-endian ELF file")
        table = struct.unpack_from("<Q", data, 40)[0]
        entry_bytes, count, names = struct.unpack_from("<HHH", data, 58)
        headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * entry_bytes) for i in range(count)]
        texts = [data[h[4]:h[4] + h[5]] if h[1] != self.NOBITS else b"" for h in headers]
        self.sections = [self.Section(_text_at(texts[names], h[0]), h[1], h[7], h[6], texts[i], h[5])
                         for i, h in enumerate(headers)]
        self.symbols = []
        for section in self.sections:
            if section.type == self.SYMTAB:
                for name, info, _, where, value, size in struct.iter_unpack("<IBBHQQ", section.data):
                    self.symbols.append(
                        self.Symbol(_text_at(texts[section.link], name), info & 15, where, value, size))

    def named(self, name):
        return next((section for section in self.sections if section.name == name), None)

    def relocations_of(self, index):
        """(offset, symbol index, type, addend) of what is patched in section `index`."""
        for section in self.sections:
            if section.type == self.RELA and section.info == index:
                for offset, info, addend in struct.iter_unpack("<QQq", section.data):
                    yield offset, info >> 32, info & 0xffffffff, addend
            if section.type == self.REL and section.info == index:
                for offset, info in struct.iter_unpack("<QQ", section.data):
                    yield offset, info >> 32, info & 0xffffffff, 0


def _text_at(table, offset):
    return table[offset:table.index(b"\0", offset)].decode()


# Attributes of .nv.info that the comparison reads or must not read.
REGISTER_COUNT, FRAME_SIZE, MIN_STACK_SIZE, EXTERNS, PARAMETER_BANK = 0x2f, 0x11, 0x12, 0x0f, 0x0a


def attributes(data):
    """(attribute, payload) of a section .nv.info: payloads of 2 bytes inline, longer ones behind their size."""
    at = 0
    while at + 4 <= len(data):
        form, attribute, value = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == 4:
            yield attribute, data[at:at + value]
            at += value
        else:
            yield attribute, struct.pack("<H", value)


def short_digest(parts):
    digest = hashlib.sha256()
    for part in parts:
        digest.update(struct.pack("<Q", len(part)))
        digest.update(part)
    return digest.hexdigest()[:16]


class Function:
    """One function of a cubin: its code, its resources, and a digest of both that no name takes part in."""

    def __init__(self, image, name, code, resources, digest):
        self.image, self.name, self.code, self.digest = image, name, code, digest
        for key, value in resources.items():
            setattr(self, key, value)
        self.resources = resources

    @property
    def instructions(self):
        return len(self.code) // INSTRUCTION_BYTES


def spills_in(log):
    """Function -> bytes of spill stores and loads, of what the assembler reported."""
    spills = {}
    for name, rest in re.findall(r"Function properties for (\S+)\n(.*)", log):
        spills[name] = sum(int(n) for n in re.findall(r"(\d+) bytes spill", rest))
    return spills


def tables_of(elf):
    """Contents of constant bank 3 and of all initialised arrays, sorted: their order follows their names.

    Scalars (up to 8 bytes) are constants that the compiler folds into instructions, and leaves behind.
    """
    found = [section.data for section in elf.sections if section.name == ".nv.constant3"]
    for symbol in elf.symbols:
        if symbol.type == 1 and symbol.size > 8 and symbol.section < len(elf.sections):
            section = elf.sections[symbol.section]
            if section.name == ".nv.global.init":
                found.append(section.data[symbol.value:symbol.value + symbol.size])
    return sorted(found)


def functions_of(cubin, log="", image=""):
    """The functions of a cubin."""
    elf = Elf(cubin)
    per_symbol = collections.defaultdict(dict)
    info = elf.named(".nv.info")
    for attribute, payload in attributes(info.data if info else b""):
        if attribute in (REGISTER_COUNT, FRAME_SIZE, MIN_STACK_SIZE) and len(payload) == 8:
            symbol, value = struct.unpack("<II", payload)
            per_symbol[elf.symbols[symbol].name][attribute] = value
    spills = spills_in(log)
    tables = tables_of(elf)
    functions = []
    for index, section in enumerate(elf.sections):
        if not section.name.startswith(".text."):
            continue
        name = section.name[len(".text."):]
        own = {s.name[:-len(name) - 1]: s for s in elf.sections if s.name.endswith("." + name) and s is not section}
        facts = per_symbol[name]
        resources = {
            "registers": facts.get(REGISTER_COUNT, 0),
            "stack": max(facts.get(FRAME_SIZE, 0), facts.get(MIN_STACK_SIZE, 0)),
            "spills": spills.get(name, 0),
            "shared": own[".nv.shared"].size if ".nv.shared" in own else 0,
            "parameters": own[".nv.constant0"].size if ".nv.constant0" in own else 0,
        }
        parts = [section.data, json.dumps(resources).encode()]
        for offset, symbol, kind, addend in sorted(elf.relocations_of(index)):
            target = elf.symbols[symbol]
            where = elf.sections[target.section] if target.section < len(elf.sections) else None
            code = where.data if where and where.name.startswith(".text.") else b""
            parts.append(struct.pack("<QIqI", offset, kind, addend, target.type) + code)
        about = own.get(".nv.info")
        for attribute, payload in attributes(about.data if about else b""):
            # An index of a symbol is not a property of the function.
            if attribute == PARAMETER_BANK:
                payload = payload[4:]
            if attribute != EXTERNS:
                parts.append(bytes([attribute]) + payload)
        for kind in sorted(own):
            if re.fullmatch(r"\.nv\.constant[1-9]\d*", kind):
                parts.append(kind.encode() + own[kind].data)
        functions.append(Function(image, name, section.data, resources, short_digest(parts + tables)))
    return functions


# ---------------------------------------------------------------------------------------------------------------------
# Bundles: an index of 128 bytes per image, sorted by the digest of the image's key; src/cuda/jit describes the bytes.

HEADER_BYTES, ROW_BYTES = 104, 128


def read_bundle(data):
    """Key digest -> (name, entry) of every image in a bundle."""
    if data[:7] != b"ashlar " or len(data) < HEADER_BYTES:
        raise BadInput("not a kernel bundle")
    file_bytes, count = struct.unpack_from("<QQ", data, 16)
    if file_bytes != len(data) or HEADER_BYTES + count * ROW_BYTES > len(data):
        raise BadInput("a damaged kernel bundle")
    images = {}
    for i in range(count):
        row = data[HEADER_BYTES + i * ROW_BYTES:HEADER_BYTES + (i + 1) * ROW_BYTES]
        key, name = (field.rstrip(b"\0").decode() for field in (row[:32], row[32:96]))
        offset, size = struct.unpack_from("<QQ", row, 96)
        images[key] = (name, data[offset:offset + size])
    return images


def split_entry(entry):
    """The compiler's log and the cubin of an entry: the log's length, a newline, the log, the cubin."""
    length, rest = entry.split(b"\n", 1)
    return rest[:int(length)].decode(errors="replace"), rest[int(length):]


# ---------------------------------------------------------------------------------------------------------------------
# Making bundles.


def help_of(ashlar, *command):
    done = subprocess.run([ashlar, *command, "--help"], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


# Names that options and commands have had, the newest first.
BUNDLE_OPTIONS, BUNDLE_COMMANDS = ("--bundle", "--pack"), ("bundle", "pack")
CANDIDATE_OPTIONS = ("--max-candidates", "--candidates", "--most", "--top")


class Binary:
    """An ashlar binary, and how it makes bundles."""

    def __init__(self, path, cache, tune=0):
        self.path, self.cache = str(pathlib.Path(path).resolve()), cache
        if not os.access(self.path, os.X_OK):
            raise BadInput(f"{path} is not a program")
        bench = help_of(self.path, "bench")
        self.option = self._first(BUNDLE_OPTIONS, bench, r" FILE")
        self.command = self._first(BUNDLE_COMMANDS, help_of(self.path), r"\s")
        if not self.option and not self.command:
            raise BadInput(f"{path} knows neither a command nor an option that makes kernel bundles")
        self.tune = tune

    def tuning(self, command):
        """Options that add the best candidates of every region to what a command compiles."""
        if not self.tune:
            return []
        option = self._first(CANDIDATE_OPTIONS, help_of(self.path, command), r"\s")
        if not option:
            raise BadInput(f"{self.path} {command} has none of the options {', '.join(CANDIDATE_OPTIONS)}")
        return ["--tune", option, str(self.tune)]

    @staticmethod
    def _first(names, text, end):
        return next((name for name in names if re.search(rf"^\s+{name}{end}", text, re.MULTILINE)), None)

    def make(self, device, source, out, is_suite):
        """`bench` makes the bundles of suites where it can: it obeys the suite's options (tf32) and adds the kernels of
        the graphs that a case is compared with."""
        if is_suite and self.option:
            command = [self.path, "bench", "--device", device, self.option, str(out), str(source)]
        elif self.command:
            command = [self.path, self.command, "--device", device, "--out", str(out), str(source)]
        else:
            raise BadInput(f"{self.path} has no command that makes the bundle of a graph")
        run_ashlar(command + self.tuning(command[1]), self.cache)


def single_cases(suite):
    """(name, suite with this case alone) of every case, repeated for the values of "each" as shapes/README.md says."""
    each = suite.get("each", {})
    for case in suite["cases"]:
        repeated = [key for key in each if key not in case]
        for values in itertools.product(*(each[key] for key in repeated)):
            chosen = dict(zip(repeated, values))
            endings = [value if isinstance(value, str) else f"{key}{json.dumps(value)}"
                       for key, value in chosen.items()]
            name = "_".join([case["name"], *endings])
            yield name, alone(suite, {**case, **chosen, "name": name})


def alone(suite, case):
    """A suite with one case, without parameters that only graphs of other cases use: `ashlar` refuses these."""
    graphs = suite.get("graphs", {})
    merged = json.dumps({**suite.get("defaults", {}), **case})
    used = "".join(json.dumps(graph) for name, graph in graphs.items() if json.dumps(name) in merged)
    every = json.dumps(list(graphs.values()))

    def pruned(members):
        return {key: pruned(value) if isinstance(value, dict) else value for key, value in members.items()
                if f'"${key}"' in used or f'"${key}"' not in every}
    defaults = {"defaults": pruned(suite["defaults"])} if "defaults" in suite else {}
    return {**suite, **defaults, "cases": [pruned(case)]}


def run_ashlar(command, cache):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ASHLAR_")}
    for key in ("ASHLAR_NVRTC", "ASHLAR_KERNELS"):
        if key in os.environ:
            environment[key] = os.environ[key]
    environment["ASHLAR_CACHE"] = str(cache)
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise BadInput(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr[-2000:]}")


def keys_of_cases(binary, device, cases, jobs):
    """Keys of the images that each case, a suite of one, needs."""
    with tempfile.TemporaryDirectory() as scratch:
        def keys_of(index):
            place = pathlib.Path(scratch) / str(index)
            place.mkdir()
            (place / "case.json").write_text(json.dumps(cases[index][1]))
            binary.make(device, place / "case.json", place / "bundle", is_suite=True)
            return sorted(read_bundle((place / "bundle").read_bytes()))
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(keys_of, range(len(cases))))


def make_suite(binary, device, path, bundle, jobs):
    """Writes the bundle of a suite; returns case -> keys of the images that it needs."""
    binary.make(device, path, bundle, is_suite=True)
    cases = list(single_cases(json.loads(path.read_text())))
    keys = keys_of_cases(binary, device, cases, jobs)
    needed, held = set(itertools.chain(*keys)), set(read_bundle(bundle.read_bytes()))
    if needed != held:
        raise BadInput(f"{bundle} holds {len(held)} images, its cases need {len(needed)}: were they made by one binary?")
    return {case: its for (case, _), its in zip(cases, keys)}


def make_graphs(binary, device, folder, bundles, jobs):
    """Writes one bundle per graph of a folder; a graph may be the member "graph" of its file."""
    bundles.mkdir(parents=True, exist_ok=True)

    def keys_of(path):
        document = json.loads(path.read_text())
        source, bundle = bundles / path.name, bundles / f"{path.stem}.bundle"
        source.write_text(json.dumps(document.get("graph", document)))
        binary.make(device, source, bundle, is_suite=False)
        source.unlink()
        return path.stem, sorted(read_bundle(bundle.read_bytes()))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return dict(pool.map(keys_of, sorted(folder.glob("*.json"))))


def make(arguments):
    shapes = pathlib.Path(arguments.shapes)
    suites = {str(path.relative_to(shapes).with_suffix("")): path for path in sorted(shapes.glob("**/*.json"))}
    suites = {name: path for name, path in suites.items() if not arguments.suite or name in arguments.suite}
    if not suites:
        raise BadInput(f"{shapes} has no such suite")
    folder = pathlib.Path(arguments.folder)
    cache = pathlib.Path(arguments.cache or folder / "cache").resolve()
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    binary = Binary(arguments.ashlar, cache, arguments.tune)
    for device in arguments.device or DEVICES:
        place = folder / device
        place.mkdir(parents=True, exist_ok=True)
        cases, started = {}, time.monotonic()

        def note(name, made, before):
            cases[name] = made
            count = len(set(itertools.chain(*made.values())))
            print(f"{device} {name}: {len(made)} cases, {count} images, {time.monotonic() - before:.1f} s", flush=True)
        for name, path in suites.items():
            before = time.monotonic()
            bundle = place / (name.replace("/", "_") + ".bundle")
            note(name, make_suite(binary, device, path, bundle, arguments.jobs), before)
        for graphs in map(pathlib.Path, arguments.graphs):
            before = time.monotonic()
            name = "/".join(["graphs", *graphs.resolve().parts[-2:]])
            note(name, make_graphs(binary, device, graphs, place / name, arguments.jobs), before)
        images = set(itertools.chain(*(keys for made in cases.values() for keys in made.values())))
        (place / "cases.json").write_text(json.dumps(cases, indent=1) + "\n")
        print(f"{device}: {len(cases)} suites, {sum(map(len, cases.values()))} cases, {len(images)} images, "
              f"{time.monotonic() - started:.0f} s", flush=True)
    return 0


# ---------------------------------------------------------------------------------------------------------------------
# Comparing.


class Side:
    """What was made for one device by one build: the functions of every image, the images of every case."""

    def __init__(self, folder, device):
        place = pathlib.Path(folder) / device
        if not (place / "cases.json").is_file():
            raise BadInput(f"{place} has no cases.json: run `compare_kernels.py make` first")
        self.cases = {f"{suite}/{case}": keys
                      for suite, cases in json.loads((place / "cases.json").read_text()).items()
                      for case, keys in cases.items()}
        wanted = set(itertools.chain(*self.cases.values()))
        self.images, self.functions = {}, {}
        for path in sorted(place.glob("**/*.bundle")):
            for key, (name, entry) in read_bundle(path.read_bytes()).items():
                if key in wanted and key not in self.images:
                    log, cubin = split_entry(entry)
                    self.images[key] = functions_of(cubin, log, name)
                    for function in self.images[key]:
                        self.functions.setdefault(function.digest, function)
        if missing := wanted - set(self.images):
            raise BadInput(f"{place}: {len(missing)} images that cases.json names are in no bundle")

    def digests_of(self, case):
        return {function.digest for key in self.cases[case] for function in self.images[key]}


def pair_cases(old, new):
    """(old case, new case), either may be None: by name, and the rest by equal functions."""
    shared = old.cases.keys() & new.cases.keys()
    pairs = [(case, case) for case in old.cases if case in shared]
    by_contents = collections.defaultdict(list)
    for case in new.cases:
        if case not in shared:
            by_contents[frozenset(new.digests_of(case))].append(case)
    for case in old.cases:
        if case not in shared:
            same = by_contents.get(frozenset(old.digests_of(case)))
            pairs.append((case, same.pop(0) if same else None))
    return pairs + [(None, case) for rest in by_contents.values() for case in rest]


def pair_functions(olds, news):
    """Pairs of functions that differ: the same names first, then the nearest sizes; then what has no partner."""
    olds, news = list(olds), list(news)
    pairs = []

    def take(distance):
        candidates = sorted(((distance(a, b), i, j) for i, a in enumerate(olds) for j, b in enumerate(news)
                             if distance(a, b) is not None))
        used_old, used_new = set(), set()
        for _, i, j in candidates:
            if i not in used_old and j not in used_new:
                used_old.add(i)
                used_new.add(j)
                pairs.append((olds[i], news[j]))
        olds[:] = [a for i, a in enumerate(olds) if i not in used_old]
        news[:] = [b for j, b in enumerate(news) if j not in used_new]

    def apart(a, b):
        return abs(a.instructions - b.instructions)
    take(lambda a, b: apart(a, b) if (a.image, a.name) == (b.image, b.name) else None)
    take(apart)
    return pairs + [(a, None) for a in olds] + [(None, b) for b in news]


class Comparison:
    """Of one device."""

    def __init__(self, old, new):
        self.old, self.new = old, new
        self.uses = collections.Counter()
        self.differences = collections.defaultdict(list)  # (old digest or "-", new digest or "-") -> cases
        for old_case, new_case in pair_cases(old, new):
            before = old.digests_of(old_case) if old_case else set()
            after = new.digests_of(new_case) if new_case else set()
            # A case that only one side has takes no function away that the other side still compiles.
            if not old_case:
                before = after & old.functions.keys()
            if not new_case:
                after = before & new.functions.keys()
            self.uses["old"] += len(before) if old_case else 0
            self.uses["new"] += len(after) if new_case else 0
            self.uses["identical"] += len(before & after)
            left = sorted(before - after), sorted(after - before)
            for a, b in pair_functions((old.functions[d] for d in left[0]), (new.functions[d] for d in left[1])):
                self.uses["different" if a and b else "only in old" if a else "only in new"] += 1
                self.differences[a.digest if a else "-", b.digest if b else "-"].append(old_case or new_case)
        touched_old = {a for a, _ in self.differences}
        touched_new = {b for _, b in self.differences}
        self.distinct = {
            "old": len(old.functions), "new": len(new.functions),
            "identical": len((old.functions.keys() & new.functions.keys()) - touched_old - touched_new),
            "different": sum(a != "-" and b != "-" for a, b in self.differences),
            "only in old": sum(b == "-" for _, b in self.differences),
            "only in new": sum(a == "-" for a, _ in self.differences),
        }

    def sentences(self, accepted):
        """One paragraph per difference."""
        for (a, b), cases in sorted(self.differences.items(), key=lambda item: item[1][0]):
            old, new = self.old.functions.get(a), self.new.functions.get(b)
            names = " -> ".join(dict.fromkeys(f"{f.image}:{f.name}" for f in (old, new) if f))
            yield f"  {a} {b} {names}" + (f" (accepted: {accepted[a, b]})" if (a, b) in accepted else "")
            yield f"    {change(old, new)}"
            more = f" and {len(cases) - 3} more" if len(cases) > 3 else ""
            yield f"    cases: {', '.join(cases[:3])}{more}"


def change(old, new):
    if not old or not new:
        only = old or new
        facts = ", ".join(f"{key} {value}" for key, value in only.resources.items())
        return f"only in {'old' if old else 'new'}: {only.instructions} instructions, {facts}"
    parts = [f"instructions {old.instructions} -> {new.instructions} ({new.instructions - old.instructions:+})"]
    parts += [f"{key} {old.resources[key]} -> {new.resources[key]}" for key in old.resources
              if old.resources[key] != new.resources[key]]
    if len(old.code) == len(new.code):
        step = INSTRUCTION_BYTES
        count = sum(old.code[i:i + step] != new.code[i:i + step] for i in range(0, len(old.code), step))
        parts.append(f"{count} instructions differ in place" if count else "the same instructions")
    return ", ".join(parts)


def read_accepted(path):
    """Device -> (old, new) -> reason."""
    accepted = collections.defaultdict(dict)
    for number, line in enumerate(pathlib.Path(path).read_text().splitlines() if path else [], 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split(maxsplit=3)
        if len(words) < 4:
            raise BadInput(f"{path}:{number}: a line is DEVICE OLD NEW REASON")
        accepted[words[0]][words[1], words[2]] = words[3]
    return accepted


def devices_in(folder):
    return sorted(path.parent.name for path in pathlib.Path(folder).glob("*/cases.json"))


def compare(arguments):
    accepted = read_accepted(arguments.accept)
    devices = devices_in(arguments.old)
    if not devices or devices != devices_in(arguments.new):
        raise BadInput(f"devices in {arguments.old}: {devices}, in {arguments.new}: {devices_in(arguments.new)}")
    columns = ("old", "new", "identical", "different", "only in old", "only in new")
    rows, details, refused = [], [], 0
    for device in devices:
        result = Comparison(Side(arguments.old, device), Side(arguments.new, device))
        rows.append((device, "functions", *(result.distinct[column] for column in columns)))
        rows.append((device, "uses by cases", *(result.uses[column] for column in columns)))
        refused += sum(pair not in accepted[device] for pair in result.differences)
        if result.differences:
            details += [f"{device}: {len(result.differences)} differences", *result.sentences(accepted[device])]
    print(f"{'device':<10} {'count of':<14}" + "".join(f"{column:>13}" for column in columns))
    for row in rows:
        print(f"{row[0]:<10} {row[1]:<14}" + "".join(f"{value:>13}" for value in row[2:]))
    print("\n".join(details) if details else "all functions are identical")
    if details:
        print(f"{refused} differences are not accepted" if refused else "all differences are accepted")
    return 1 if refused else 0


def list_folder(arguments):
    for device in devices_in(arguments.folder):
        side = Side(arguments.folder, device)
        functions = [function for image in side.images.values() for function in image]
        print(f"{device}: {len(side.cases)} cases, {len(side.images)} images, {len(functions)} functions, "
              f"{len(side.functions)} distinct, {sum(f.instructions for f in side.functions.values())} instructions")
        counts = collections.Counter(f.image for f in side.functions.values())
        for name, count in sorted(counts.items()):
            print(f"  {name:<40} {count:>5}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("make", help="compile the kernels of suites into a folder of bundles")
    one.add_argument("ashlar", help="the ashlar binary")
    one.add_argument("shapes", help="folder of suites that this binary reads")
    one.add_argument("folder", help="folder to write")
    one.add_argument("--device", action="append", help=f"may be repeated; default: {', '.join(DEVICES)}")
    one.add_argument("--suite", action="append", help="path without .json below the folder of suites; default: all")
    one.add_argument("--graphs", action="append", default=[], help="also the graphs of a folder; may be repeated")
    one.add_argument("--tune", type=int, default=0, metavar="N", help="also the N best candidates of every region")
    one.add_argument("--cache", help="kernel cache; default: FOLDER/cache")
    one.add_argument("--jobs", type=int, default=2, help="processes at once (default 2)")
    one.set_defaults(action=make)
    two = commands.add_parser("compare", help="compare two folders")
    two.add_argument("old")
    two.add_argument("new")
    two.add_argument("--accept", help="file of accepted differences")
    two.set_defaults(action=compare)
    three = commands.add_parser("list", help="print what a folder holds")
    three.add_argument("folder")
    three.set_defaults(action=list_folder)
    arguments = parser.parse_args()
    try:
        return arguments.action(arguments)
    except (BadInput, OSError, struct.error, ValueError) as error:
        print(f"compare_kernels: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
