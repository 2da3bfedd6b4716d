"""Graphs of nvidia-cudnn-frontend that move data or combine several kinds of operations."""

import cudnn
import numpy as np

import numpy_reference as reference
from frontend_graph import Graph, case, cases, expect, numbers, wide


@case
def transposed():
    x = numbers((2, 3, 4, 5))
    g = Graph()
    g.output("y", g.graph.transpose(g.input(x, "x"), permutation=[0, 2, 3, 1]))
    expect(g.run()["y"], np.transpose(x, (0, 2, 3, 1)).astype(np.float64), "y", 0, 0)


@case
def sliced_and_added():
    x, z = numbers((4, 8, 16), seed=1), numbers((2, 7, 16), seed=2)
    g = Graph()
    part = g.graph.slice(g.input(x, "x"), [slice(1, 3), slice(1, 8), slice(0, 16)])
    g.output("y", g.graph.add(part, g.input(z, "z")))
    expect(g.run()["y"], x[1:3, 1:8].astype(np.float64) + z, "y")


@case
def concatenated():
    parts = [numbers((2, n, 5), seed=n) for n in (3, 1, 4)]
    g = Graph()
    y = g.graph.concatenate(inputs=[g.input(p, f"part{i}") for i, p in enumerate(parts)], axis=1)
    g.output("y", y, np.float32, (2, 8, 5))
    expect(g.run()["y"], np.concatenate(parts, 1).astype(np.float64), "y", 0, 0)


@case
def reshaped():
    x = numbers((6, 8, 4))
    g = Graph()
    g.output("y", g.graph.reshape(g.input(x, "x")), np.float32, (6, 2, 16))
    expect(g.run()["y"], x.reshape(6, 2, 16).astype(np.float64), "y", 0, 0)


@cases(dict(axis=1), dict(axis=2))
def index_added(axis):
    x = numbers((3, 4, 5))
    g = Graph()
    tensor = g.input(x, "x")
    index = g.graph.gen_index(tensor, axis=axis)
    g.output("y", g.graph.add(tensor, index))
    places = np.arange(x.shape[axis]).reshape([-1 if a == axis else 1 for a in range(3)])
    expect(g.run()["y"], x.astype(np.float64) + places, "y")


@case
def statistics_of_channels():
    x = numbers((4, 8, 5, 6), np.float16, channels_last=True)
    g = Graph(np.float16)
    total, squares = g.graph.genstats(g.input(x, "x"))
    g.output("total", total, np.float32)
    g.output("squares", squares, np.float32)
    got = g.run()
    values = x.astype(np.float64)
    expect(got["total"], values.sum((0, 2, 3), keepdims=True), "total")
    expect(got["squares"], (values**2).sum((0, 2, 3), keepdims=True), "squares")


@case
def data_gradient_through_relu():
    """A data gradient, masked where the previous layer's ReLU was 0."""
    x, w, dy = (numbers(shape, seed=seed, channels_last=True) for seed, shape in
                enumerate([(2, 8, 9, 7), (6, 8, 3, 3), (2, 6, 9, 7)]))
    geometry = dict(padding=[1, 1], stride=[1, 1], dilation=[1, 1])
    g = Graph()
    dx = g.graph.conv_dgrad(loss=g.input(dy, "dy"), filter=g.input(w, "w"), **geometry)
    dx.set_dim(list(x.shape)).set_stride([s // 4 for s in x.strides])
    g.output("dx", g.graph.relu_backward(loss=dx, input=g.input(x, "x")), np.float32, x.shape, True)
    expected, _ = reference.convolution_gradients(*wide(x, w, dy), *geometry.values())
    expect(g.run()["dx"], np.where(x > 0, expected, 0), "dx")


@case
def convolution_of_scaled_relu():
    """A convolution with a prologue and per-channel statistics, in one graph."""
    x, w = (numbers(shape, np.float16, seed, channels_last=True) for seed, shape in
            enumerate([(2, 8, 9, 7), (8, 8, 3, 3)]))
    scale, bias = numbers((1, 8, 1, 1), np.float16, 3), numbers((1, 8, 1, 1), np.float16, 4)
    g = Graph(np.float16)
    before = g.graph.relu(g.graph.bias(g.graph.scale(g.input(x, "x"), g.input(scale, "scale")),
                                       g.input(bias, "bias")))
    y = g.graph.conv_fprop(before, g.input(w, "w"), padding=[1, 1], stride=[1, 1], dilation=[1, 1])
    g.output("y", y, np.float16)
    total, _ = g.graph.genstats(y)
    g.output("total", total, np.float32)
    got = g.run()
    x, w, scale, bias = wide(x, w, scale, bias)
    expected = reference.convolution(np.maximum(x * scale + bias, 0), w, [1, 1], [1, 1], [1, 1])
    expect(got["y"], expected, "y")
    expect(got["total"], expected.sum((0, 2, 3), keepdims=True), "total", compute_roundings=1e5)


@case
def integer_product():
    a = np.random.default_rng(1).integers(-100, 100, (2, 16, 32), dtype=np.int8)
    b = np.random.default_rng(2).integers(-100, 100, (2, 32, 8), dtype=np.int8)
    g = Graph()
    c = g.graph.matmul(g.input(a, "a"), g.input(b, "b"), compute_data_type=cudnn.data_type.INT32)
    g.output("c", c, np.int32)
    assert np.array_equal(g.run()["c"], a.astype(np.int32) @ b.astype(np.int32))


@cases(*[dict(kind=kind) for kind in ("instancenorm", "adalayernorm")])
def other_norms(kind):
    """Forward and backward: per image and channel, and per image with its own parameters."""
    shape, axes, form, others = {
        "instancenorm": ((3, 8, 5, 6), (2, 3), (1, 8, 1, 1), (0, 2, 3)),
        "adalayernorm": ((3, 4, 60, 1), (2, 3), (3, 1, 60, 1), (1,))}[kind]
    x, dy = numbers(shape, seed=1), numbers(shape, seed=4)
    scale, bias = numbers(form, seed=2), numbers(form, seed=3)
    normal, mean, inverse = reference.normalize(x.astype(np.float64), axes, 1e-3)
    g = Graph()
    results = getattr(g.graph, kind)(
        norm_forward_phase=cudnn.norm_forward_phase.TRAINING, input=g.input(x, "x"),
        scale=g.input(scale, "scale"), bias=g.input(bias, "bias"), epsilon=g.scalar(1e-3, "epsilon"))
    for name, tensor in zip(("y", "mean", "inverse"), results):
        g.output(name, tensor, np.float32)
    got = g.run()
    for name, value in dict(y=normal * scale + bias, mean=mean, inverse=inverse).items():
        expect(got[name], value, name)
    back = Graph()
    results = getattr(back.graph, f"{kind}_backward")(
        grad=back.input(dy, "dy"), input=back.input(x, "x"), scale=back.input(scale, "scale"),
        mean=back.input(got["mean"], "mean"), inv_variance=back.input(got["inverse"], "inverse"))
    for name, tensor in zip(("dx", "dscale", "dbias"), results):
        back.output(name, tensor, np.float32)
    gradients = back.run()
    expected = reference.normalize_gradients(*wide(x, dy, scale), axes, mean, inverse, others)
    for name, value in zip(("dx", "dscale", "dbias"), expected):
        expect(gradients[name], value, name)
