"""Causal convolution, mixtures of experts, pages, bands and dropout."""

import torch
import torch.nn.functional as F

from golden_case import Case, gradients, leaf


def causal_conv(name, dims, taps, silu, full, dtype="f64", grid=64, layout=None):
    """Depthwise conv1d over the state and the sequence, joined along time."""
    case = Case(name, dtype)
    batch, channels, steps = dims
    extra = {"layout": layout} if layout else {}
    x = leaf(case.random(*dims, grid=grid))
    w = leaf(case.random(channels, taps, low=-1, high=1, grid=grid))
    bias = leaf(case.random(channels, grid=grid)) if full else None
    state = case.random(batch, channels, taps - 1, grid=grid)
    state = leaf(state) if full else torch.zeros_like(state)
    past = torch.cat([state, x], 2)
    y = F.conv1d(past, w[:, None, :], bias, groups=channels)
    y = F.silu(y) if silu else y
    activation = "silu" if silu else "identity"
    case.input("x", x, **extra)
    case.input("w", w)
    operands, outputs = {"x": "x", "w": "w"}, {"y": "y"}
    case.output("y", y)
    if full:
        case.input("bias", bias)
        case.input("state", state)
        operands |= {"bias": "bias", "initial_state": "state"}
        outputs |= {"final_state": "final"}
        case.output("final", past[:, :, steps:])
    case.node("causal_conv_forward", operands, outputs, activation=activation)
    if dtype != "f64":
        return case
    dy = case.input("dy", case.random(*dims))
    leaves = [x, w, bias, state] if full else [x, w]
    names = ["dx", "dw", "dbias", "dinitial_state"][:len(leaves)]
    for result, gradient in zip(names, gradients([y], [dy], leaves)):
        case.output(result, gradient)
    case.node("causal_conv_backward", operands | {"dy": "dy"}, {n: n for n in names},
              activation=activation)
    return case


def experts(name, mode, tokens, depth, columns, starts, index=None, ks=None, top_k=1, rows=None,
            dtype="f64"):
    """One matmul per expert; collisions of scattered rows add up, as index_add does."""
    case = Case(name, dtype)
    token = leaf(case.random(1, tokens, depth))
    weight = leaf(case.random(len(starts), depth, columns))
    case.input("token", token)
    case.input("weight", weight)
    case.input("first", torch.tensor(starts).reshape(-1, 1, 1), "i32")
    operands = {"token": "token", "weight": "weight", "first_token_offset": "first"}
    if index is not None:
        operands["token_index"] = "index"
        case.input("index", torch.tensor(index).reshape(1, -1, 1), "i32")
    if ks is not None:
        operands["token_ks"] = "ks"
        case.input("ks", torch.tensor(ks).reshape(1, -1, 1), "i32")
    source = token[0][index] if mode == "gather" else token[0]
    ends = starts[1:] + [len(source)]
    product = torch.cat([source[:starts[0]] @ torch.zeros_like(weight[0])]
                        + [source[begin:end] @ weight[e]
                           for e, (begin, end) in enumerate(zip(starts, ends))])
    if mode == "scatter":
        place = torch.tensor(index) * top_k + torch.tensor(ks)
        product = torch.zeros(rows, columns, dtype=torch.float64).index_add(0, place, product)
    output = product[None]
    case.output("output", output)
    attributes = dict(mode=mode, top_k=top_k)
    case.node("moe_grouped_matmul", operands, {"output": "output"}, **attributes)
    doutput = case.input("doutput", case.random(*output.shape))
    dweight, dtoken = gradients([output], [doutput], [weight, token])
    case.output("dweight", dweight)
    case.output("dtoken", dtoken)
    case.node("moe_grouped_matmul_backward", operands | {"doutput": "doutput"},
              {"dweight": "dweight", "dtoken": "dtoken"}, **attributes)
    return case


def pages():
    """Advanced indexing by the page table, then a mask by length."""
    case = Case("paged_cache_load")
    container = case.input("container", case.random(6, 2, 4, 3))
    table = torch.tensor([[5, 0, 3], [2, 2, 1]])
    lengths = torch.tensor([7, 12])
    case.input("table", table.reshape(2, 1, 3, 1), "i32")
    case.input("lengths", lengths.reshape(2, 1, 1, 1), "i32")
    joined = container[table].permute(0, 2, 1, 3, 4).reshape(2, 2, 12, 3)
    joined = joined * (torch.arange(12) < lengths[:, None])[:, None, :, None]
    case.output("y", joined)
    case.output("cut", joined[:, :, :10].transpose(2, 3))
    operands = {"container": "container", "page_table": "table", "sequence": "lengths"}
    case.node("paged_cache_load", operands, {"y": "y"})
    case.node("paged_cache_load", operands, {"y": "cut"}, transposed=True)
    return case


def bands():
    """A band is what stays between two diagonals of tril and triu."""
    case = Case("band_matrices")
    full = case.random(2, 6, 8)
    banded = torch.triu(torch.tril(full, 2), -1)
    band = torch.stack([torch.stack([F.pad(matrix[i], (1, 3))[i:i + 4] for i in range(6)])
                        for matrix in banded])
    case.input("full", full)
    case.input("stored", band)
    case.output("band", band)
    case.output("expanded", banded)
    attributes = dict(lower_bandwidth=1, upper_bandwidth=2)
    case.node("contract_band_matrix", {"x": "full"}, {"y": "band"}, **attributes)
    case.node("expand_band_matrix", {"x": "stored"}, {"y": "expanded"}, **attributes)
    return case


def dropout():
    """What does not depend on the random numbers: all kept, none kept, and a given mask."""
    case = Case("dropout")
    x = leaf(case.random(3, 5, 4))
    case.input("x", x)
    for probability, name in ((0.0, "all"), (1.0, "none")):
        case.output(name, F.dropout(x, probability, training=True))
        case.node("dropout_forward", {"x": "x"}, {"y": name}, probability=probability)
    mask = case.input("mask", (case.random(3, 5, 4) > 0).double(), "bool")
    dy = case.input("dy", case.random(3, 5, 4))
    case.output("dx", gradients([x * mask / (1 - 0.375)], [dy], [x])[0])
    case.node("dropout_backward", {"dy": "dy", "mask": "mask"}, {"dx": "dx"}, probability=0.375)
    return case


def cases():
    for silu in (False, True):
        kind = "silu" if silu else "identity"
        yield causal_conv(f"causal_conv_{kind}", (2, 3, 9), 4, silu, False)
        yield causal_conv(f"causal_conv_{kind}_states", (2, 3, 7), 3, silu, True)
        yield causal_conv(f"causal_conv_{kind}_channels_last", (2, 5, 6), 4, silu, True,
                          layout="channels_last")
        yield causal_conv(f"causal_conv_{kind}_short", (1, 2, 2), 5, silu, True)
    yield causal_conv("causal_conv_f32", (1, 4, 16), 4, True, True, "f32")
    yield causal_conv("causal_conv_bf16", (1, 4, 16), 4, False, True, "bf16", grid=16)
    yield experts("moe_none", "none", 9, 4, 5, [0, 3, 3, 7])
    yield experts("moe_none_late_start", "none", 7, 3, 4, [2, 4])
    yield experts("moe_gather", "gather", 5, 4, 3, [0, 2, 6], [4, 0, 0, 1, 3, 2, 4, 4])
    yield experts("moe_scatter", "scatter", 6, 4, 3, [0, 2, 3], [0, 2, 1, 0, 1, 2],
                  [0, 1, 1, 1, 0, 0], 2, 6)
    yield experts("moe_scatter_collisions", "scatter", 6, 3, 2, [0, 1], [0, 0, 1, 3, 0, 1],
                  [0, 0, 0, 0, 0, 0], 1, 5)
    yield pages()
    yield bands()
    yield dropout()
