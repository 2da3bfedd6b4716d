#!/usr/bin/env python3
"""Instruction mix of the mainloops in a kernel bundle.

    build/ashlar bundle --device h200 SUITE --out FILE      compiles without a GPU
    tools/sass_mix.py FILE [--nvdisasm PATH] [--most N]

A mainloop is an innermost loop with HGMMA (wgmma). For each it prints the instructions of one warp and iteration by kind,
and those between the waits for wgmma (WARPGROUP.DEPBAR), in order: exponentials (MUFU) behind the last wait do not
overlap with it. Exit codes: 0 all is well; 1 a kernel with HGMMA accesses local memory, or a loop has more than N
instructions; 2 bad input or no disassembler. nvdisasm is in the CUDA toolkit and the Python package
nvidia-cuda-nvdisasm.
"""

import argparse
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import compare_kernels  # noqa: E402

KINDS = {
    "HGMMA": {"HGMMA"},
    "MUFU": {"MUFU"},
    "FP32": {"FFMA", "FMUL", "FADD"},
    "FMNMX": {"FMNMX"},
    "F2FP": {"F2FP"},
    "SHFL": {"SHFL"},
    "mbarrier": {"SYNCS"},
    "R2UR": {"R2UR"},
    "local": {"LDL", "STL"},
    "shared": {"LDS", "STS", "LDSM", "STSM"},
}


def kind_of(opcode):
    for kind, names in KINDS.items():
        if opcode in names:
            return kind
    return "uniform" if opcode.startswith("U") else "other"


def functions(disassembly):
    """Yields name, instructions and label positions of every function."""
    name, instructions, labels = None, [], {}
    for line in disassembly.split("\n"):
        if section := re.match(r"\s*\.section\s+\.text\.([^,\s]+)", line):
            if name:
                yield name, instructions, labels
            name, instructions, labels = section.group(1), [], {}
        elif label := re.match(r"\s*(\.L_x_\d+):", line):
            labels[label.group(1)] = len(instructions)
        elif instruction := re.match(r"\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?(.*?)\s*;", line):
            instructions.append(instruction.group(1))
    if name:
        yield name, instructions, labels


def mainloops(instructions, labels):
    """Innermost loops with HGMMA, as (begin, end). The assembler moves polls of mbarriers behind the function's exit, from
    where they branch back: such a range is no loop."""
    loops = []
    for end, instruction in enumerate(instructions):
        target = re.match(r"BRA\b.*`\((\.L_x_\d+)\)", instruction)
        begin = labels.get(target.group(1), end + 1) if target else end + 1
        body = instructions[begin:end + 1]
        if any(i.startswith("HGMMA") for i in body) and "EXIT" not in body:
            loops.append((begin, end + 1))
    return [x for x in loops if not any(y != x and x[0] <= y[0] and y[1] <= x[1] for y in loops)]


def count(instructions):
    return collections.Counter(kind_of(re.split(r"[.\s]", i, maxsplit=1)[0]) for i in instructions)


def text_of(counts):
    return ", ".join(f"{number} {kind}" for kind, number in counts.most_common())


def report(name, instructions, labels, most):
    """Prints the loops of a function; False where it breaks a limit."""
    if not any(i.startswith("HGMMA") for i in instructions):
        return True
    local = count(instructions)["local"]
    print(f"{name}: {len(instructions)} instructions, {local} accesses of local memory")
    is_good = local == 0
    for begin, end in mainloops(instructions, labels):
        body = instructions[begin:end]
        print(f"  loop of {len(body)}: {text_of(count(body))}")
        is_good = is_good and len(body) <= most
        first = 0
        for i, instruction in enumerate(body):
            if instruction.startswith("WARPGROUP.DEPBAR"):
                print(f"    before {instruction.split(', ')[-1]} in flight: {text_of(count(body[first:i]))}")
                first = i + 1
        print(f"    then: {text_of(count(body[first:]))}")
    return is_good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("--nvdisasm", default=shutil.which("nvdisasm"))
    parser.add_argument("--most", type=int, default=1 << 30, help="instructions of a loop")
    arguments = parser.parse_args()
    if not arguments.nvdisasm:
        sys.exit("no nvdisasm: install the CUDA toolkit or nvidia-cuda-nvdisasm, or pass --nvdisasm")
    try:
        images = compare_kernels.read_bundle(pathlib.Path(arguments.bundle).read_bytes())
    except (OSError, compare_kernels.BadInput) as problem:
        print(problem, file=sys.stderr)
        return 2
    is_good = True
    for name, entry in images.values():
        with tempfile.NamedTemporaryFile(suffix=".cubin") as cubin:
            cubin.write(compare_kernels.split_entry(entry)[1])
            cubin.flush()
            run = subprocess.run([arguments.nvdisasm, "-c", cubin.name], capture_output=True, text=True, check=False)
        if run.returncode != 0:
            print(run.stderr, file=sys.stderr)
            return 2
        for function, instructions, labels in functions(run.stdout):
            is_good = report(f"{name} {function}", instructions, labels, arguments.most) and is_good
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
