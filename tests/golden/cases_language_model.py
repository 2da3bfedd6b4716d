"""Cross-entropy and rotary position embedding."""

import math

import torch
import torch.nn.functional as F

from golden_case import Case, gradients, leaf


def cross_entropy(name, mean=False, smoothing=0.0, ignore=-100):
    case = Case(f"cross_entropy_{name}")
    x = leaf(case.random(6, 9, low=-4, high=4))
    case.input("x", x)
    target = case.input("target", torch.tensor([[3], [8], [0], [3], [5], [1]]), "i64")
    loss = F.cross_entropy(x, target[:, 0], reduction="mean" if mean else "none", label_smoothing=smoothing,
                           ignore_index=ignore)
    loss = loss.reshape(1, 1) if mean else loss.reshape(6, 1)
    dloss = case.input("dloss", case.random(*loss.shape))
    case.output("loss", loss)
    case.output("stats", torch.logsumexp(x, 1, keepdim=True))
    case.output("dx", gradients([loss], [dloss], [x])[0])
    options = {"mean": mean, "label_smoothing": smoothing, "ignore_index": ignore}
    case.node("cross_entropy_forward", {"x": "x", "target": "target"}, {"loss": "loss", "stats": "stats"}, **options)
    case.node("cross_entropy_backward", {"x": "x", "target": "target", "stats": "stats", "dloss": "dloss"},
              {"dx": "dx"}, **options)
    return case


def rotated(x, cos, sin, interleaved):
    """Rotates all of x: [..., S, D] by tables of [..., S, D / 2]."""
    u, v = (x[..., 0::2], x[..., 1::2]) if interleaved else x.chunk(2, -1)
    parts = u * cos - v * sin, v * cos + u * sin
    return torch.stack(parts, -1).flatten(-2) if interleaved else torch.cat(parts, -1)


def rope(name, pairs="half", width=0, base=10000.0, positions=False):
    case = Case(f"rope_{name}")
    x = leaf(case.random(2, 3, 5, 8))
    case.input("x", x)
    inputs = {"x": "x"}
    where = torch.arange(5).double().expand(2, 5)
    if positions:
        where = torch.tensor([[0, 7, 100, 4095, 3], [1, 2, 3, 50, 131071]])
        case.input("positions", where, "i64")
        inputs["positions"] = "positions"
    rotates = width or 8
    frequency = base ** (-torch.arange(0, rotates, 2).double() / rotates)
    angle = (where.double()[:, None, :, None] * frequency)
    y = torch.cat([rotated(x[..., :rotates], angle.cos(), angle.sin(), pairs == "interleaved"), x[..., rotates:]], -1)
    dy = case.input("dy", case.random(2, 3, 5, 8))
    case.output("y", y)
    case.output("dx", gradients([y], [dy], [x])[0])
    options = {"pairs": pairs, "width": width, "base": base}
    case.node("rope", inputs, {"y": "y"}, **options)
    case.node("rope", {**inputs, "x": "dy"}, {"y": "dx"}, inverse=True, **options)
    return case


def rope_tables():
    case = Case("rope_tables", "f32")
    x = case.input("x", case.random(2, 2, 4, 6))
    angle = case.random(1, 1, 4, 3, low=-math.pi, high=math.pi)
    cos, sin = case.input("cos", angle.cos().float().double()), case.input("sin", angle.sin().float().double())
    case.output("y", rotated(x, cos, sin, True))
    case.node("rope", {"x": "x", "cos": "cos", "sin": "sin"}, {"y": "y"}, pairs="interleaved")
    return case


def cases():
    return [cross_entropy("rows"), cross_entropy("mean", mean=True), cross_entropy("smoothing", smoothing=0.1),
            cross_entropy("ignored", mean=True, smoothing=0.2, ignore=3), cross_entropy("ignored_rows", ignore=3),
            rope("half"), rope("interleaved", "interleaved"), rope("partial", width=4),
            rope("positions", base=500000.0, positions=True), rope_tables()]
