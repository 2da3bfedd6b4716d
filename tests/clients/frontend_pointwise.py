"""Elementwise graphs and reductions that nvidia-cudnn-frontend builds."""

import cudnn
import numpy as np

import numpy_reference as reference
from frontend_graph import Graph, case, cases, expect, numbers, wide


UNARY = {
    "relu": lambda x: np.maximum(x, 0), "tanh": np.tanh, "exp": np.exp, "neg": np.negative,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "gelu": reference.gelu, "abs": np.abs,
    "swish": lambda x: x / (1 + np.exp(-x)), "softplus": lambda x: np.log1p(np.exp(x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)), "sin": np.sin, "ceil": np.ceil,
}
BINARY = {"add": np.add, "mul": np.multiply, "sub": np.subtract, "div": np.divide,
          "max": np.maximum, "min": np.minimum}


@cases(*[dict(name=name) for name in UNARY])
def pointwise_unary(name):
    x = numbers((3, 5, 7), seed=1, low=-3, high=3)
    g = Graph()
    g.output("y", getattr(g.graph, name)(g.input(x, "x")))
    expect(g.run()["y"], UNARY[name](x.astype(np.float64)), "y")


@cases(*[dict(name=name) for name in BINARY])
def pointwise_binary(name):
    a = numbers((2, 3, 4, 5), seed=1)
    b = numbers((1, 3, 1, 5), seed=2, low=1, high=2)
    g = Graph()
    g.output("y", getattr(g.graph, name)(g.input(a, "a"), g.input(b, "b")))
    expect(g.run()["y"], BINARY[name](*wide(a, b)), "y")


@case
def pointwise_chain_with_select():
    a, b = numbers((4, 6, 8), seed=1), numbers((4, 6, 8), seed=2)
    g = Graph()
    ta, tb = g.input(a, "a"), g.input(b, "b")
    larger = g.graph.cmp_gt(ta, tb)
    larger.set_data_type(cudnn.data_type.BOOLEAN)
    chosen = g.graph.binary_select(ta, tb, larger)
    g.output("y", g.graph.mul(g.graph.tanh(chosen), ta))
    a, b = wide(a, b)
    expect(g.run()["y"], np.tanh(np.maximum(a, b)) * a, "y")


REDUCTIONS = {
    "ADD": lambda x, axes: x.sum(axes, keepdims=True), "MAX": lambda x, axes: x.max(axes, keepdims=True),
    "MIN": lambda x, axes: x.min(axes, keepdims=True), "AVG": lambda x, axes: x.mean(axes, keepdims=True),
    "AMAX": lambda x, axes: np.abs(x).max(axes, keepdims=True),
    "NORM1": lambda x, axes: np.abs(x).sum(axes, keepdims=True),
    "NORM2": lambda x, axes: np.sqrt((x * x).sum(axes, keepdims=True)),
}


@cases(*[dict(mode=mode) for mode in REDUCTIONS])
def reduction(mode):
    x = numbers((3, 8, 5, 6), seed=1)
    g = Graph()
    y = g.graph.reduction(g.input(x, "x"), mode=getattr(cudnn.reduction_mode, mode))
    g.output("y", y, np.float32, (3, 1, 5, 1))
    expect(g.run()["y"], REDUCTIONS[mode](x.astype(np.float64), (1, 3)), "y")
