"""Matmul, reductions, softmax, and elements in other places."""

import torch
import torch.nn.functional as F

from golden_case import Case, gradients, leaf


def matmul(name, a_dims, b_dims, dtype="f64", out=None, grid=64, **extra):
    case = Case(name, dtype)
    a = case.input("a", case.random(*a_dims, grid=grid), **extra)
    b = case.input("b", case.random(*b_dims, grid=grid))
    case.output("c", torch.matmul(a, b), out)
    case.node("matmul", {"a": "a", "b": "b"}, {"c": "c"})
    return case


def ragged_matmul():
    """One m, n and k per batch: no terms past k, `padding_value` past m and n."""
    case = Case("matmul_overrides")
    batches, m, n, k = 4, 5, 6, 7
    a = case.input("a", case.random(batches, m, k))
    b = case.input("b", case.random(batches, k, n))
    lengths = {"m": torch.tensor([5, 3, 0, 2]), "n": torch.tensor([6, 4, 6, 1]),
               "k": torch.tensor([7, 2, 3, 0])}
    inputs = {"a": "a", "b": "b"}
    for axis, values in lengths.items():
        case.input(axis, values.reshape(batches, 1, 1), "i32")
        inputs[f"{axis}_override"] = axis
    inside = {axis: torch.arange(extent) < lengths[axis][:, None]
              for axis, extent in (("m", m), ("n", n), ("k", k))}
    product = torch.matmul(a * inside["k"][:, None, :], b)
    kept = inside["m"][:, :, None] & inside["n"][:, None, :]
    case.output("c", torch.where(kept, product, torch.tensor(-3.5, dtype=torch.float64)))
    case.node("matmul", inputs, {"c": "c"}, padding_value=-3.5)
    return case


def mlp():
    case = Case("mlp_gelu")
    x = case.input("x", case.random(6, 8))
    w1 = case.input("w1", case.random(8, 12, low=-1, high=1))
    b1 = case.input("b1", case.random(1, 12))
    w2 = case.input("w2", case.random(12, 5, low=-1, high=1))
    b2 = case.input("b2", case.random(1, 5))
    case.output("y", F.linear(F.gelu(F.linear(x, w1.T, b1[0])), w2.T, b2[0]))
    case.node("matmul", {"a": "x", "b": "w1"}, {"c": "h1"})
    case.node("pointwise", {"x": "h1", "b": "b1"}, {"y": "h2"}, mode="add")
    case.node("pointwise", {"x": "h2"}, {"y": "h3"}, mode="gelu_fwd")
    case.node("matmul", {"a": "h3", "b": "w2"}, {"c": "h4"})
    case.node("pointwise", {"x": "h4", "b": "b2"}, {"y": "y"}, mode="add")
    return case


def product(values, axes):
    for axis in axes:
        values = torch.prod(values, axis, keepdim=True)
    return values


REDUCTIONS = {
    "add": lambda x, axes: x.sum(axes, keepdim=True),
    "avg": lambda x, axes: x.mean(axes, keepdim=True),
    "mul": product,
    "mul_no_zeros": lambda x, axes: product(torch.where(x == 0, torch.ones_like(x), x), axes),
    "min": lambda x, axes: torch.amin(x, axes, keepdim=True),
    "max": lambda x, axes: torch.amax(x, axes, keepdim=True),
    "amax": lambda x, axes: torch.amax(x.abs(), axes, keepdim=True),
    "norm1": lambda x, axes: torch.linalg.vector_norm(x, 1, axes, keepdim=True),
    "norm2": lambda x, axes: torch.linalg.vector_norm(x, 2, axes, keepdim=True),
}


def reductions(name, dims, axes, zeros):
    case = Case(name)
    x = case.random(*dims)
    if zeros:
        x[x.abs() < 0.3] = 0.0
    case.input("x", x)
    for mode, reduce in REDUCTIONS.items():
        case.output(mode, reduce(x, axes))
        case.node("reduction", {"x": "x"}, {"y": mode}, mode=mode, axes=list(axes))
    return case


def softmax(name, dims, axis, log, dtype="f64", spread=2.0):
    case = Case(name, dtype)
    x = leaf(case.random(*dims, low=-spread, high=spread))
    y = (F.log_softmax if log else F.softmax)(x, axis)
    attributes = dict(axis=axis, log=log)
    case.input("x", x)
    case.output("y", y)
    case.output("stats", torch.logsumexp(x, axis, keepdim=True))
    case.node("softmax_forward", {"x": "x"}, {"y": "y", "stats": "stats"}, **attributes)
    if dtype == "f64":
        dy = case.input("dy", case.random(*dims))
        case.input("saved", y)
        case.output("dx", gradients([y], [dy], [x])[0])
        case.node("softmax_backward", {"y": "saved", "dy": "dy"}, {"dx": "dx"}, **attributes)
    return case


def data_movement():
    case = Case("data_movement")
    x = case.input("x", case.random(2, 3, 4, 5), layout="channels_last")
    z = case.input("z", case.random(2, 2, 4, 5))
    case.output("reshaped", x.reshape(6, 20))
    case.output("transposed", x.permute(2, 0, 3, 1))
    case.output("sliced", x[:, 1:3, 0:4:3, 1:5:2])
    case.output("joined", torch.cat([x, z, x], 1))
    case.node("reshape", {"x": "x"}, {"y": "reshaped"}, dims=[6, -1])
    case.node("transpose", {"x": "x"}, {"y": "transposed"}, permutation=[2, 0, 3, 1])
    case.node("slice", {"x": "x"}, {"y": "sliced"}, start=[0, 1, 0, 1], limit=[2, 3, 4, 5],
              step=[1, 1, 3, 2])
    case.node("concat", {"x": ["x", "z", "x"]}, {"y": "joined"}, axis=1)
    return case


def cases():
    yield matmul("matmul_2d", (7, 5), (5, 9))
    yield matmul("matmul_batched", (3, 4, 6), (3, 6, 5))
    yield matmul("matmul_broadcast", (2, 1, 4, 3), (1, 3, 3, 5))
    yield matmul("matmul_broadcast_one_side", (1, 1, 4, 6), (2, 3, 6, 4))
    yield matmul("matmul_transposed_strides", (2, 5, 4), (2, 4, 3), strides=[20, 1, 5])
    yield matmul("matmul_vector", (1, 1, 12), (3, 12, 1))
    yield matmul("matmul_f32", (6, 16), (16, 7), "f32")
    yield matmul("matmul_f16", (6, 16), (16, 7), "f16")
    yield matmul("matmul_bf16_to_f32", (6, 16), (16, 7), "bf16", "f32", grid=32)
    yield matmul("matmul_e4m3_to_f32", (5, 16), (16, 6), "e4m3", "f32", grid=4)
    yield ragged_matmul()
    yield mlp()
    yield reductions("reduction_one_axis", (3, 4, 5), (1,), False)
    yield reductions("reduction_two_axes", (3, 4, 5), (0, 2), False)
    yield reductions("reduction_all_with_zeros", (2, 3, 4), (0, 1, 2), True)
    for log in (False, True):
        kind = "log_softmax" if log else "softmax"
        yield softmax(f"{kind}_last_axis", (3, 4, 7), -1, log)
        yield softmax(f"{kind}_middle_axis", (3, 5, 4), 1, log)
        yield softmax(f"{kind}_wide_range", (4, 9), 1, log, spread=60.0)
        yield softmax(f"{kind}_f32", (4, 9), 1, log, dtype="f32")
    yield data_movement()
