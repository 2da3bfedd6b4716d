#!/usr/bin/env python3
"""JAX on a GPU with our libcudnn.so.9 in place of NVIDIA's: convolutions and fused attention with both
libraries, checked against float64 on the CPU.

    tests/clients/jax_cudnn.py --library build/cudnn/libcudnn.so.9 [--json FILE] [--only WORD...]

Two processes run the cases, one with each library. A result is good when its error is within the bound of
its type and accumulation length, or at most twice the error with NVIDIA's library.
"""

import argparse
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import time

# Rounding of the results, times the root of the accumulation length where values are random.
ROUNDING = {"float32": 2**-10, "float16": 2**-10, "bfloat16": 2**-7}  # f32 convolutions may use TF32
CONVOLUTIONS = {  # image [N, C, H, W], filter [K, C / groups, R, S], stride, padding, groups
    "3x3": ((4, 32, 28, 28), (48, 32, 3, 3), 1, 1, 1),
    "1x1": ((4, 64, 14, 14), (128, 64, 1, 1), 1, 0, 1),
    "stem": ((2, 3, 64, 64), (16, 3, 7, 7), 2, 3, 1),
    "groups": ((2, 32, 20, 20), (32, 8, 3, 3), 1, 1, 4),
    "depthwise": ((2, 32, 20, 20), (32, 1, 3, 3), 1, 1, 32),
}
ATTENTIONS = {  # batch, queries, keys, heads, heads of keys, width, causal
    "plain": (2, 256, 256, 4, 4, 64, False),
    "causal": (2, 256, 256, 4, 4, 64, True),
    "gqa": (2, 192, 192, 8, 2, 128, True),
    "cross": (1, 128, 320, 4, 4, 64, False),
}


def cases():
    for shape in CONVOLUTIONS:
        for dtype in ROUNDING:
            yield f"conv_{shape}_{dtype}"
    for shape in ATTENTIONS:
        for dtype in ("float16", "bfloat16"):
            yield f"attention_{shape}_{dtype}"


def random(name, shapes):
    import numpy

    source = numpy.random.default_rng(sum(map(ord, name)))
    return [source.standard_normal(shape).astype("float32") for shape in shapes]


def convolution_case(name, shape, dtype, exact):
    import jax
    from jax import lax

    image, weights, stride, padding, groups = CONVOLUTIONS[shape]
    x, w = random(name, [image, weights])

    def forward(x, w):
        return lax.conv_general_dilated(x, w, (stride, stride), [(padding, padding)] * 2, feature_group_count=groups,
                                        precision=lax.Precision.HIGHEST if exact else None)

    return step(forward, [x, w], dtype, exact, jax)


def attention_case(name, shape, dtype, exact):
    import jax

    batch, queries, keys, heads, kv_heads, width, causal = ATTENTIONS[shape]
    operands = random(name, [(batch, queries, heads, width)] + [(batch, keys, kv_heads, width)] * 2)

    def forward(q, k, v):
        return jax.nn.dot_product_attention(q, k, v, is_causal=causal, implementation="xla" if exact else "cudnn")

    return step(forward, operands, dtype, exact, jax)


def step(forward, operands, dtype, exact, jax):
    """The result and the gradients of sum(result * weights), operands rounded to `dtype`."""
    import numpy

    rounded = [jax.numpy.asarray(x).astype(dtype) for x in operands]
    if exact:
        rounded = [x.astype("float64") for x in rounded]
    shape = jax.eval_shape(forward, *rounded).shape
    out_gradient = jax.numpy.asarray(random("gradient", [shape])[0]).astype(dtype)
    if exact:
        out_gradient = out_gradient.astype("float64")

    @jax.jit
    def whole(gradient, *operands):
        result, pull_back = jax.vjp(forward, *operands)
        return (result, *pull_back(gradient))

    return [numpy.asarray(y, dtype="float64") for y in whole(out_gradient, *rounded)]


def run_case(name, exact):
    kind, shape, dtype = name.split("_")
    case = {"conv": convolution_case, "attention": attention_case}[kind]
    return case(name, shape, dtype, exact)


def worker(options):
    import jax

    if options.role == "reference":
        jax.config.update("jax_enable_x64", True)
    answers = {}
    for name in options.names:
        start = time.perf_counter()
        try:
            answers[name] = run_case(name, options.role == "reference")
        except Exception as error:  # of the library: reported for this case, the next one runs
            answers[name] = f"{type(error).__name__}: {error}"[:400]
        print(f"{options.role}: {name} {time.perf_counter() - start:.1f} s", flush=True)
        pathlib.Path(options.worker).write_bytes(pickle.dumps((str(jax.devices()[0]), answers)))
    maps = pathlib.Path("/proc/self/maps").read_text().splitlines()
    print(f"{options.role}: libraries", sorted({line.split()[-1] for line in maps if "/libcudnn" in line}))


def error_of(actual, reference):
    """The largest error over all tensors, in units of each tensor's root mean square."""
    import numpy

    return max(float(numpy.max(numpy.abs(a - r)) / numpy.sqrt(numpy.mean(r * r))) for a, r in zip(actual, reference))


def compare(options):
    names = [name for name in cases() if not options.only or any(word in name for word in options.only)]
    library = str(pathlib.Path(options.library).resolve(strict=True))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="jax_cudnn"))
    results = {}
    environment = dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false")
    roles = {"reference": {"JAX_PLATFORMS": "cpu"}, "nvidia": {}, "ours": {"LD_PRELOAD": library}}
    for role, change in roles.items():
        path = folder / role
        command = [sys.executable, __file__, "--worker", str(path), "--role", role, "--names", *names]
        try:
            subprocess.run(command, env=dict(environment, **change), timeout=options.limit, check=False)
        except subprocess.TimeoutExpired:
            print(f"{role}: stopped after {options.limit} s")
        results[role] = pickle.loads(path.read_bytes())[1] if path.exists() else {}
    rows = []
    for name in names:
        answers = {role: results[role].get(name, "not run") for role in roles}
        row = {"name": name, "ok": False}
        good = {role: not isinstance(answer, str) for role, answer in answers.items()}
        for role in ("nvidia", "ours"):
            if good[role] and good["reference"]:
                row[role] = error_of(answers[role], answers["reference"])
            else:
                row[f"{role}_error"] = answers[role] if not good[role] else answers["reference"]
        if "ours" in row:
            bound = 8 * ROUNDING[name.split("_")[2]]
            row["ok"] = row["ours"] <= max(bound, 2 * row.get("nvidia", 0))
        rows.append(row)
        print(json.dumps(row))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=2) + "\n")
    passed = sum(row["ok"] for row in rows)
    print(f"jax: {passed} passed, {len(rows) - passed} failed")
    return 0 if passed == len(rows) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="build/cudnn/libcudnn.so.9")
    parser.add_argument("--json", help="where the table goes as JSON")
    parser.add_argument("--only", nargs="*", help="cases whose name contains one of these")
    parser.add_argument("--limit", type=float, default=120, help="seconds for each process")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--role", help=argparse.SUPPRESS)
    parser.add_argument("--names", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    return worker(options) if options.worker else compare(options)


if __name__ == "__main__":
    sys.exit(main())
