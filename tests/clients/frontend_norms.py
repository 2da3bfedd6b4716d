"""Normalisations that nvidia-cudnn-frontend builds."""

import cudnn
import numpy as np

import numpy_reference as reference
from frontend_graph import Graph, case, cases, expect, numbers, wide


EPSILON = 1e-3
ROWS = (12, 24, 1, 1)  # rows of 24 elements
LAYER = dict(axes=(1, 2, 3), others=(0,))


def row_data(dtype):
    x = numbers(ROWS, dtype, 1, -2, 3)
    scale, bias = numbers((1, *ROWS[1:]), np.float32, 2), numbers((1, *ROWS[1:]), np.float32, 3)
    return x, scale, bias, numbers(ROWS, dtype, 4)


@cases(*[dict(kind=kind, training=training, dtype=dtype) for kind in ("layernorm", "rmsnorm")
         for training in (True, False) for dtype in ("float32", "float16")])
def row_norm_forward(kind, training, dtype):
    x, scale, bias, _ = row_data(dtype)
    phase = getattr(cudnn.norm_forward_phase, "TRAINING" if training else "INFERENCE")
    g = Graph(dtype)
    y, *stats = getattr(g.graph, kind)(
        norm_forward_phase=phase, input=g.input(x, "x"), scale=g.input(scale, "scale"),
        bias=g.input(bias, "bias"), epsilon=g.scalar(EPSILON, "epsilon"))
    g.output("y", y, dtype)
    normal, mean, inverse = reference.normalize(x.astype(np.float64), LAYER["axes"], EPSILON,
                                                kind == "layernorm")
    wanted = [("mean", mean)] * (kind == "layernorm") + [("inverse", inverse)]
    if training:
        for (name, _), tensor in zip(wanted, stats):
            g.output(name, tensor, np.float32)
    got = g.run()
    expect(got["y"], normal * scale + bias, "y")
    if training:
        for name, value in wanted:
            expect(got[name], value, name)


@cases(*[dict(kind=kind, dtype=dtype) for kind in ("layernorm", "rmsnorm")
         for dtype in ("float32", "float16")])
def row_norm_backward(kind, dtype):
    x, scale, _, dy = row_data(dtype)
    centered = kind == "layernorm"
    _, mean, inverse = reference.normalize(x.astype(np.float64), LAYER["axes"], EPSILON, centered)
    mean, inverse = mean.astype(np.float32), inverse.astype(np.float32)
    expected = reference.normalize_gradients(*wide(x, dy, scale), LAYER["axes"],
                                             *wide(mean, inverse), LAYER["others"], centered)
    g = Graph(dtype)
    common = dict(grad=g.input(dy, "dy"), input=g.input(x, "x"), scale=g.input(scale, "scale"))
    statistics = dict(mean=g.input(mean, "mean")) if centered else dict(has_dbias=True)
    results = getattr(g.graph, f"{kind}_backward")(
        **common, **statistics, inv_variance=g.input(inverse, "inverse"))
    for name, tensor, kind_of in zip(("dx", "dscale", "dbias"), results, (dtype, "f4", "f4")):
        g.output(name, tensor, kind_of)
    got = g.run()
    for name, value in zip(("dx", "dscale", "dbias"), expected):
        expect(got[name], value, name)


CHANNELS = dict(axes=(0, 2, 3))


def batch_data(dtype):
    x = numbers((4, 8, 5, 6), dtype, 1, -1, 2, channels_last=True)
    rows = [numbers((1, 8, 1, 1), np.float32, seed, 0.5, 1.5) for seed in range(2, 6)]
    return x, *rows


@cases(dict(dtype="float32"), dict(dtype="float16"))
def batch_norm_training(dtype):
    x, scale, bias, running_mean, running_variance = batch_data(dtype)
    momentum = 0.1
    g = Graph(dtype)
    results = g.graph.batchnorm(
        input=g.input(x, "x"), scale=g.input(scale, "scale"), bias=g.input(bias, "bias"),
        in_running_mean=g.input(running_mean, "running_mean"),
        in_running_var=g.input(running_variance, "running_variance"),
        epsilon=g.scalar(EPSILON, "epsilon"), momentum=g.scalar(momentum, "momentum"))
    names = ("y", "mean", "inverse", "next_mean", "next_variance")
    for name, tensor in zip(names, results):
        g.output(name, tensor, dtype if name == "y" else np.float32)
    got = g.run()
    wide_x = x.astype(np.float64)
    normal, mean, inverse = reference.normalize(wide_x, CHANNELS["axes"], EPSILON)
    count = x.size // x.shape[1]
    variance = wide_x.var(CHANNELS["axes"], keepdims=True) * count / (count - 1)
    expected = (normal * scale + bias, mean, inverse,
                (1 - momentum) * running_mean + momentum * mean,
                (1 - momentum) * running_variance + momentum * variance)
    for name, value in zip(names, expected):
        expect(got[name], value, name)


@case
def batch_norm_inference():
    x, scale, bias, mean, inverse = batch_data("float32")
    g = Graph()
    g.output("y", g.graph.batchnorm_inference(
        input=g.input(x, "x"), mean=g.input(mean, "mean"), inv_variance=g.input(inverse, "inverse"),
        scale=g.input(scale, "scale"), bias=g.input(bias, "bias")))
    x, scale, bias, mean, inverse = wide(x, scale, bias, mean, inverse)
    expect(g.run()["y"], (x - mean) * inverse * scale + bias, "y")


@cases(dict(dtype="float32"), dict(dtype="float16"))
def batch_norm_backward(dtype):
    x, scale, *_ = batch_data(dtype)
    dy = numbers(x.shape, dtype, 7, channels_last=True)
    _, mean, inverse = reference.normalize(x.astype(np.float64), CHANNELS["axes"], EPSILON)
    mean, inverse = mean.astype(np.float32), inverse.astype(np.float32)
    expected = reference.normalize_gradients(*wide(x, dy, scale), CHANNELS["axes"],
                                             *wide(mean, inverse), CHANNELS["axes"])
    g = Graph(dtype)
    results = g.graph.batchnorm_backward(
        grad=g.input(dy, "dy"), input=g.input(x, "x"), scale=g.input(scale, "scale"),
        mean=g.input(mean, "mean"), inv_variance=g.input(inverse, "inverse"))
    for name, tensor in zip(("dx", "dscale", "dbias"), results):
        g.output(name, tensor, dtype if name == "dx" else np.float32)
    got = g.run()
    for name, value in zip(("dx", "dscale", "dbias"), expected):
        expect(got[name], value, name)
