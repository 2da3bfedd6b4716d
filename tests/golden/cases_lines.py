"""Scans, top-k and padding."""

import torch
import torch.nn.functional as F

from golden_case import Case, gradients, leaf

SCANS = {"add": torch.cumsum, "mul": torch.cumprod, "min": lambda x, axis: torch.cummin(x, axis).values,
         "max": lambda x, axis: torch.cummax(x, axis).values, "logsumexp": torch.logcumsumexp}
NEUTRAL = {"add": 0.0, "mul": 1.0, "min": float("inf"), "max": float("-inf"), "logsumexp": float("-inf")}


def scan(mode, axis, exclusive=False, reverse=False):
    suffix = ("_exclusive" if exclusive else "") + ("_reverse" if reverse else "")
    case = Case(f"scan_{mode}_{axis}{suffix}")
    x = case.input("x", case.random(3, 7, 4))
    y = x.flip(axis) if reverse else x
    if exclusive:
        first = torch.full_like(y.narrow(axis, 0, 1), NEUTRAL[mode])
        y = torch.cat([first, y.narrow(axis, 0, y.shape[axis] - 1)], axis)
    y = SCANS[mode](y, axis)
    case.output("y", y.flip(axis) if reverse else y)
    case.node("scan", {"x": "x"}, {"y": "y"}, mode=mode, axis=axis, exclusive=exclusive, reverse=reverse)
    return case


def top_k(k, largest):
    case = Case(f"top_k_{k}_{'largest' if largest else 'smallest'}")
    x = case.input("x", case.distinct(4, 11))
    values, index = torch.topk(x, k, dim=1, largest=largest)
    case.output("values", values)
    case.output("index", index, "i64")
    case.node("top_k", {"x": "x"}, {"values": "values", "index": "index"}, axis=1, k=k, largest=largest)
    return case


def stable_sort():
    case = Case("sort_stable")
    x = case.input("x", torch.tensor([[2.0, 1.0, 2.0, 3.0, 1.0, 2.0], [0.0, 0.0, -1.0, 0.0, 5.0, -1.0]]).double())
    values, index = torch.sort(x, dim=1, descending=False, stable=True)
    case.output("values", values)
    case.output("index", index, "i64")
    case.node("top_k", {"x": "x"}, {"values": "values", "index": "index"}, axis=1, k=0, largest=False)
    return case


def pad(mode, theirs, before, after, value=0.0):
    case = Case(f"pad_{mode}" + ("_crop" if min(before + after) < 0 else ""))
    x = leaf(case.random(2, 3, 5, 6))
    case.input("x", x)
    counts = [count for axis in (3, 2) for count in (before[axis], after[axis])]
    y = F.pad(x, counts, theirs, value) if theirs == "constant" else F.pad(x, counts, theirs)
    dy = case.input("dy", case.random(*y.shape))
    case.output("y", y)
    case.output("dx", gradients([y], [dy], [x])[0])
    extra = {"value": value} if theirs == "constant" else {}
    case.node("pad", {"x": "x"}, {"y": "y"}, mode=mode, before=before, after=after, **extra)
    case.node("pad_backward", {"dy": "dy"}, {"dx": "dx"}, mode=mode, before=before, after=after)
    return case


def cases():
    return [*(scan(mode, 1) for mode in SCANS), scan("add", 2, exclusive=True), scan("add", 0, reverse=True),
            scan("max", 1, exclusive=True, reverse=True), scan("mul", 2, exclusive=True), top_k(3, True),
            top_k(4, False), top_k(11, True), stable_sort(),
            pad("constant", "constant", [0, 0, 2, 1], [0, 0, 0, 3], -1.5),
            pad("constant", "constant", [0, 0, -1, 2], [0, 0, 1, -2], 0.5),
            pad("reflect", "reflect", [0, 0, 4, 1], [0, 0, 2, 5]),
            pad("edge", "replicate", [0, 0, 1, 7], [0, 0, 0, 2]),
            pad("circular", "circular", [0, 0, 5, 1], [0, 0, 3, 6])]
