"""Gather and scatter: embeddings, elements along an axis, and their gradients."""

import torch
import torch.nn.functional as F

from golden_case import Case, gradients, leaf


def embedding():
    case = Case("gather_embedding")
    table = leaf(case.random(9, 5))
    case.input("x", table)
    index = case.input("index", torch.tensor([[3, 0, 8], [3, 7, 3]]), "i64")
    y = F.embedding(index, table)
    dy = case.input("dy", case.random(2, 3, 5))
    case.output("y", y)
    case.output("dx", gradients([y], [dy], [table])[0])
    case.node("gather", {"x": "x", "index": "index"}, {"y": "y"}, axis=0)
    case.node("scatter", {"source": "dy", "index": "index"}, {"y": "dx"}, axis=0, combine="add")
    return case


def index_select():
    case = Case("gather_middle_axis", "f32")
    x = case.input("x", case.random(3, 6, 4))
    index = case.input("index", torch.tensor([5, 0, 0, 2]), "i32")
    case.output("y", torch.index_select(x, 1, index))
    case.node("gather", {"x": "x", "index": "index"}, {"y": "y"}, axis=1)
    return case


def take_along():
    case = Case("gather_elements")
    x = leaf(case.random(3, 6, 4))
    case.input("x", x)
    index = case.input("index", torch.randint(0, 6, (3, 2, 4), generator=torch.Generator().manual_seed(1)), "i64")
    y = torch.gather(x, 1, index)
    dy = case.input("dy", case.random(3, 2, 4))
    case.output("y", y)
    case.output("dx", gradients([y], [dy], [x])[0])
    case.node("gather", {"x": "x", "index": "index"}, {"y": "y"}, axis=1, mode="elements")
    case.node("scatter", {"source": "dy", "index": "index"}, {"y": "dx"}, axis=1, mode="elements", combine="add")
    return case


def scatter_elements(combine, reduce):
    case = Case(f"scatter_elements_{combine}")
    base = case.input("base", case.random(5, 4))
    source = case.input("source", case.random(3, 4))
    index = case.input("index", torch.tensor([[0, 4, 2, 2], [0, 1, 2, 3], [4, 4, 1, 0]]), "i64")
    case.output("y", base.scatter_reduce(0, index, source, reduce, include_self=True))
    case.node("scatter", {"source": "source", "index": "index", "base": "base"}, {"y": "y"}, axis=0,
              mode="elements", combine=combine)
    return case


def index_copy():
    case = Case("scatter_set_slices", "f32")
    base = case.input("base", case.random(2, 6, 3))
    source = case.input("source", case.random(2, 2, 3))
    index = case.input("index", torch.tensor([4, 1]), "i32")
    case.output("y", base.index_copy(1, index.long(), source))
    case.node("scatter", {"source": "source", "index": "index", "base": "base"}, {"y": "y"}, axis=1,
              combine="set")
    return case


def cases():
    reductions = {"add": "sum", "mul": "prod", "min": "amin", "max": "amax"}
    return [embedding(), index_select(), take_along(), index_copy(),
            *(scatter_elements(*pair) for pair in reductions.items())]
