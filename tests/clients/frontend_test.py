#!/usr/bin/env python3
"""NVIDIA's Python package for cuDNN (nvidia-cudnn-frontend) as a client of our libcudnn.so.9, on a
machine without a GPU: the package builds the graphs, our library runs them on the processor, and
numpy judges.

    LD_LIBRARY_PATH=build/cudnn/host tests/clients/frontend_test.py [NAME...]

`./dev test --clients` installs the package and starts this. With names, only cases that contain one
of them run.
"""

import ctypes
import sys
import traceback

import cudnn
import numpy as np

import numpy_reference as reference

TYPES = {np.dtype(np.float32): cudnn.data_type.FLOAT, np.dtype(np.float16): cudnn.data_type.HALF,
         np.dtype(np.float64): cudnn.data_type.DOUBLE, np.dtype(np.int32): cudnn.data_type.INT32,
         np.dtype(np.int64): cudnn.data_type.INT64}
NUMPY = {value: key for key, value in TYPES.items()}
CASES = []


def case(function):
    CASES.append((function.__name__, function))
    return function


def cases(*variants):
    """A case for each of these keyword dictionaries, named by its values."""
    def register(function):
        for variant in variants:
            label = ",".join(f"{k}={v}" for k, v in variant.items())
            CASES.append((f"{function.__name__}[{label}]",
                          lambda function=function, variant=variant: function(**variant)))
        return function
    return register


def numbers(shape, dtype=np.float32, seed=1, low=-1, high=1, channels_last=False):
    values = np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)
    if channels_last:
        last = np.ascontiguousarray(np.moveaxis(values, 1, -1))
        values = np.moveaxis(last, -1, 1)
    return values


def wide(*arrays):
    return [a.astype(np.float64) for a in arrays]


class Graph:
    """A graph of the package, with numpy arrays for its tensors."""

    handle = None

    def __init__(self, dtype=np.float32):
        if Graph.handle is None:
            Graph.handle = cudnn.create_handle()
        self.graph = cudnn.pygraph(
            handle=Graph.handle, io_data_type=TYPES[np.dtype(dtype)],
            intermediate_data_type=cudnn.data_type.FLOAT, compute_data_type=cudnn.data_type.FLOAT)
        self.arrays = {}
        self.results = {}

    def input(self, array, name):
        tensor = self.graph.tensor(name=name, dim=list(array.shape), data_type=TYPES[array.dtype],
                                   stride=[s // array.itemsize for s in array.strides])
        self.arrays[tensor] = array
        return tensor

    def scalar(self, value, name, rank=4):
        """A number that travels with the call."""
        array = np.full([1] * rank, value, np.float32)
        tensor = self.graph.tensor(name=name, dim=list(array.shape), stride=[1] * rank,
                                   data_type=cudnn.data_type.FLOAT, is_pass_by_value=True)
        self.arrays[tensor] = array
        return tensor

    def output(self, name, tensor, dtype=None, shape=None, channels_last=False):
        tensor.set_output(True)
        if dtype is not None:
            tensor.set_data_type(TYPES[np.dtype(dtype)])
        if shape is not None:
            model = numbers(shape, channels_last=channels_last)
            tensor.set_dim(list(shape)).set_stride([s // model.itemsize for s in model.strides])
        self.results[name] = tensor
        return tensor

    def build(self):
        self.graph.validate()
        self.graph.build_operation_graph()
        self.graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        self.graph.check_support()
        self.graph.build_plans()

    def allocate(self):
        """Memory for the outputs, full of what no result is; they are known by name."""
        views = {}
        for name, tensor in self.results.items():
            shape, strides = tensor.get_dim(), tensor.get_stride()
            dtype = NUMPY[tensor.get_data_type()]
            room = np.full(1 + sum((n - 1) * s for n, s in zip(shape, strides)), 77, dtype)
            views[name] = np.lib.stride_tricks.as_strided(
                room, shape, [s * dtype.itemsize for s in strides])
            self.arrays[tensor] = views[name]
        return views

    def pointers(self):
        return {tensor: array.ctypes.data for tensor, array in self.arrays.items()}

    def run(self):
        self.build()
        views = self.allocate()
        workspace = np.empty(max(1, self.graph.get_workspace_size()), np.uint8)
        self.graph.execute(self.pointers(), workspace.ctypes.data, handle=Graph.handle)
        return views


def expect(got, expected, what, roundings=2.0, compute_roundings=64.0):
    """At most `roundings` steps of the result's own type and some of the 32-bit arithmetic, at the
    size of the largest expected number."""
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, expected {expected.shape}"
    known = np.isfinite(expected)
    assert np.array_equal(np.isfinite(got), known), f"{what}: not finite at other places"
    size = max(1e-3, np.abs(expected[known]).max(initial=0))
    bound = size * (roundings * np.finfo(got.dtype).eps +
                    compute_roundings * np.finfo(np.float32).eps)
    worst = np.abs(got.astype(np.float64) - expected)[known].max(initial=0)
    assert worst <= bound, f"{what}: off by {worst:.3g}, allowed are {bound:.3g}"


# ------------------------------------------------------------------- convolution

CONVOLUTIONS = [
    dict(dtype="float32", channels_last=False, x=(2, 4, 9, 7), k=6, f=(3, 3), pad=1, stride=1),
    dict(dtype="float32", channels_last=True, x=(2, 8, 9, 7), k=5, f=(3, 2), pad=1, stride=2),
    dict(dtype="float16", channels_last=True, x=(1, 16, 8, 8), k=8, f=(1, 1), pad=0, stride=1),
    dict(dtype="float16", channels_last=True, x=(2, 8, 10, 9), k=8, f=(3, 3), pad=2, stride=1,
         dilation=2),
    dict(dtype="float32", channels_last=False, x=(1, 6, 8, 8), k=6, f=(3, 3), pad=1, stride=1,
         groups=3),
    dict(dtype="float16", channels_last=True, x=(1, 8, 5, 6, 7), k=8, f=(3, 3, 3), pad=1, stride=2),
]


def convolution_data(dtype, channels_last, x, k, f, pad, stride, dilation=1, groups=1):
    rank = len(f)
    geometry = dict(padding=[pad] * rank, stride=[stride] * rank, dilation=[dilation] * rank)
    data = numbers(x, dtype, 1, channels_last=channels_last)
    filters = numbers((k, x[1] // groups, *f), dtype, 2, channels_last=channels_last)
    result = reference.convolution(*wide(data, filters), *geometry.values())
    return data, filters, result, geometry


@cases(*CONVOLUTIONS)
def convolution_forward(**variant):
    x, w, expected, geometry = convolution_data(**variant)
    g = Graph(x.dtype)
    g.output("y", g.graph.conv_fprop(g.input(x, "x"), g.input(w, "w"), **geometry), x.dtype)
    expect(g.run()["y"], expected, "y")


@cases(*CONVOLUTIONS)
def convolution_data_gradient(**variant):
    x, w, y, geometry = convolution_data(**variant)
    dy = numbers(y.shape, x.dtype, 3, channels_last=variant["channels_last"])
    expected, _ = reference.convolution_gradients(*wide(x, w, dy), *geometry.values())
    g = Graph(x.dtype)
    dx = g.graph.conv_dgrad(loss=g.input(dy, "dy"), filter=g.input(w, "w"), **geometry)
    g.output("dx", dx, x.dtype, x.shape, variant["channels_last"])
    expect(g.run()["dx"], expected, "dx")


@cases(*CONVOLUTIONS)
def convolution_filter_gradient(**variant):
    x, w, y, geometry = convolution_data(**variant)
    dy = numbers(y.shape, x.dtype, 3, channels_last=variant["channels_last"])
    _, expected = reference.convolution_gradients(*wide(x, w, dy), *geometry.values())
    g = Graph(x.dtype)
    dw = g.graph.conv_wgrad(image=g.input(x, "x"), loss=g.input(dy, "dy"), **geometry)
    g.output("dw", dw, x.dtype, w.shape, variant["channels_last"])
    expect(g.run()["dw"], expected, "dw")


@cases(*CONVOLUTIONS[:4])
def convolution_bias_relu(**variant):
    x, w, y, geometry = convolution_data(**variant)
    b = numbers((1, w.shape[0], 1, 1), x.dtype, 4)
    g = Graph(x.dtype)
    y_before = g.graph.conv_fprop(g.input(x, "x"), g.input(w, "w"), **geometry)
    g.output("y", g.graph.relu(g.graph.bias(y_before, g.input(b, "b"))), x.dtype)
    expect(g.run()["y"], np.maximum(y + b.astype(np.float64), 0), "y")


@case
def convolution_every_plan():
    """Whatever the heuristics offer builds and gives the result."""
    x, w, expected, geometry = convolution_data(**CONVOLUTIONS[0])
    g = Graph(x.dtype)
    g.output("y", g.graph.conv_fprop(g.input(x, "x"), g.input(w, "w"), **geometry), x.dtype)
    g.graph.validate()
    g.graph.build_operation_graph()
    g.graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.B, cudnn.heur_mode.FALLBACK])
    g.graph.check_support()
    g.graph.build_plans(cudnn.build_plan_policy.ALL)
    count = g.graph.get_execution_plan_count()
    assert count >= 1
    for index in range(count):
        views = g.allocate()
        room = max(1, g.graph.get_workspace_size_plan_at_index(index))
        workspace = np.empty(room, np.uint8)
        g.graph.execute_plan_at_index(g.pointers(), workspace.ctypes.data, index, Graph.handle)
        expect(views["y"], expected, f"y of plan {index} ({g.graph.get_plan_name_at_index(index)})")


# ------------------------------------------------------------------- matmul, pointwise, reduction

@cases(dict(dtype="float32", shape=(1, 5, 7, 3)), dict(dtype="float32", shape=(3, 33, 17, 20)),
       dict(dtype="float16", shape=(2, 16, 32, 24)))
def matmul_bias_relu(dtype, shape):
    batch, m, k, n = shape
    a, b = numbers((batch, m, k), dtype, 1), numbers((batch, k, n), dtype, 2)
    bias = numbers((1, 1, n), dtype, 3)
    g = Graph(dtype)
    product = g.graph.matmul(g.input(a, "a"), g.input(b, "b"))
    g.output("c", g.graph.relu(g.graph.add(product, g.input(bias, "bias"))), dtype)
    a, b, bias = wide(a, b, bias)
    expect(g.run()["c"], np.maximum(a @ b + bias, 0), "c")


@case
def matmul_of_transposed_operands():
    a = np.swapaxes(numbers((2, 9, 6), seed=1), 1, 2)
    b = np.swapaxes(numbers((2, 4, 9), seed=2), 1, 2)
    g = Graph()
    g.output("c", g.graph.matmul(g.input(a, "a"), g.input(b, "b")))
    expect(g.run()["c"], np.matmul(*wide(a, b)), "c")


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


# ------------------------------------------------------------------- normalisation

EPSILON = 1e-3
ROWS = (12, 24, 1, 1)  # rows of 24 numbers
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


# ------------------------------------------------------------------- attention

ATTENTIONS = [
    dict(shape=(2, 3, 3, 24, 24, 16)),  # batch, heads, heads of k and v, queries, keys, depth
    dict(shape=(2, 4, 2, 16, 40, 32), causal=True),
    dict(shape=(1, 2, 2, 24, 24, 16), bias=True),
    dict(shape=(2, 2, 2, 32, 24, 16), padding=True),
    dict(shape=(2, 4, 1, 40, 40, 64), causal=True, bias=True, padding=True),
    dict(shape=(1, 2, 2, 24, 24, 16), dropout=True),
]


def attention_data(shape, causal=False, bias=False, padding=False, dropout=False):
    batch, heads, groups, queries, keys, depth = shape
    q, do = (numbers((batch, heads, queries, depth), np.float16, seed) for seed in (1, 4))
    k, v = (numbers((batch, groups, keys, depth), np.float16, seed) for seed in (2, 3))
    added = numbers((1, heads, queries, keys), np.float16, 5) if bias else None
    lengths = None
    mask = np.ones((batch, 1, queries, keys), bool)
    if causal:
        mask &= np.arange(keys)[None, :] <= np.arange(queries)[:, None]
    if padding:
        lengths = [np.array([max(1, n - 5 * b) for b in range(batch)], np.int32)
                   .reshape(batch, 1, 1, 1) for n in (queries, keys)]
        mask &= (np.arange(keys) < lengths[1]) & (np.arange(queries)[:, None] < lengths[0])
    return q, k, v, do, added, lengths, mask


def attention_options(g, causal, added, lengths, dropout):
    options = dict(use_causal_mask=causal, bias=g.input(added, "bias") if added is not None else None)
    if lengths is not None:
        options.update(use_padding_mask=True, seq_len_q=g.input(lengths[0], "seq_len_q"),
                       seq_len_kv=g.input(lengths[1], "seq_len_kv"))
    if dropout:
        seed, offset = (np.full((1, 1, 1, 1), n, np.int64) for n in (11, 3))
        options["dropout"] = (0.0, g.input(seed, "seed"), g.input(offset, "offset"))
    return options


@cases(*ATTENTIONS)
def attention_forward(**variant):
    q, k, v, _, added, lengths, mask = attention_data(**variant)
    scale = 1 / np.sqrt(q.shape[-1])
    g = Graph(np.float16)
    o, stats = g.graph.sdpa(
        q=g.input(q, "q"), k=g.input(k, "k"), v=g.input(v, "v"), generate_stats=True,
        attn_scale=float(scale), **attention_options(g, variant.get("causal", False), added,
                                                     lengths, variant.get("dropout", False)))
    g.output("o", o, np.float16, q.shape)
    g.output("stats", stats, np.float32)
    got = g.run()
    expected, expected_stats, _ = reference.attention(
        *wide(q, k, v), scale, mask, added.astype(np.float64) if added is not None else None)
    rows = np.broadcast_to(mask.any(-1, keepdims=True), expected_stats.shape)
    expect(got["o"], expected, "o")
    expect(np.where(rows, got["stats"], 0).astype(np.float32), np.where(rows, expected_stats, 0),
           "stats")


@cases(*ATTENTIONS)
def attention_backward(**variant):
    q, k, v, do, added, lengths, mask = attention_data(**variant)
    scale = 1 / np.sqrt(q.shape[-1])
    wide_bias = added.astype(np.float64) if added is not None else None
    o, stats, _ = reference.attention(*wide(q, k, v), scale, mask, wide_bias)
    o, stats = o.astype(np.float16), stats.astype(np.float32)
    expected = reference.attention_gradients(*wide(q, k, v, do), scale, mask, wide_bias)
    g = Graph(np.float16)
    results = g.graph.sdpa_backward(
        q=g.input(q, "q"), k=g.input(k, "k"), v=g.input(v, "v"), o=g.input(o, "o"),
        dO=g.input(do, "do"), stats=g.input(stats, "stats"), attn_scale=float(scale),
        **attention_options(g, variant.get("causal", False), added, lengths,
                            variant.get("dropout", False)))
    for name, tensor, model in zip(("dq", "dk", "dv"), results, (q, k, v)):
        g.output(name, tensor, np.float16, model.shape)
    got = g.run()
    for name, value in zip(("dq", "dk", "dv"), expected):
        expect(got[name], value, name, roundings=8)  # o came rounded, and P and dS may be


# ------------------------------------------------------------------- the package itself

@case
def version():
    assert cudnn.backend_version() == 91900, cudnn.backend_version()


@case
def serialised_plan():
    """A graph with its plan, written and read back, gives the same numbers."""
    a, b = numbers((1, 6, 8), seed=1), numbers((1, 8, 5), seed=2)

    def make():
        g = Graph()
        tensors = [g.input(a, "a"), g.input(b, "b")]
        tensors.append(g.output("c", g.graph.matmul(*tensors)))
        for uid, tensor in enumerate(tensors, 1):
            tensor.set_uid(uid)
        return g

    first = make()
    expected = first.run()["c"]
    again = cudnn.pygraph(handle=Graph.handle)
    again.deserialize(Graph.handle, first.graph.serialize())
    c = np.zeros(expected.shape, np.float32)
    workspace = np.empty(max(1, again.get_workspace_size()), np.uint8)
    again.execute({1: a.ctypes.data, 2: b.ctypes.data, 3: c.ctypes.data}, workspace.ctypes.data,
                  handle=Graph.handle)
    assert np.array_equal(c, expected)


@case
def captured_execution():
    """On a captured stream nothing is done until the graph is launched, and then each time; a number
    that comes with the call is the one of the capture."""
    runtime = ctypes.CDLL("libcudart.so.13")
    stream, graph, launchable = (ctypes.c_void_p() for _ in range(3))
    succeed = lambda status: status == 0 or sys.exit(f"the runtime answered {status}")
    succeed(runtime.cudaStreamCreate(ctypes.byref(stream)))
    handle = cudnn.create_handle()
    cudnn.set_stream(handle=handle, stream=stream.value)
    x = numbers((2, 3, 4, 5))
    g = Graph()
    factor = g.scalar(3.0, "factor")
    g.output("y", g.graph.mul(g.input(x, "x"), factor))
    g.build()
    y = g.allocate()["y"]
    workspace = np.empty(max(1, g.graph.get_workspace_size()), np.uint8)
    succeed(runtime.cudaStreamBeginCapture(stream, 2))
    g.graph.execute(g.pointers(), workspace.ctypes.data, handle=handle)
    succeed(runtime.cudaStreamEndCapture(stream, ctypes.byref(graph)))
    assert (y == 77).all(), "done during the capture"
    g.arrays[factor][:] = 5
    succeed(runtime.cudaGraphInstantiate(ctypes.byref(launchable), graph, ctypes.c_ulonglong(0)))
    for change in (0, 1):
        x += np.float32(change)
        succeed(runtime.cudaGraphLaunch(launchable, stream))
        expect(y, 3.0 * x.astype(np.float64), "y")
    succeed(runtime.cudaGraphExecDestroy(launchable))
    succeed(runtime.cudaGraphDestroy(graph))
    cudnn.destroy_handle(handle)
    succeed(runtime.cudaStreamDestroy(stream))


@case
def contradiction_is_explained():
    """Shapes that cannot be meant: the package raises, with our library's words."""
    g = Graph()
    c = g.graph.matmul(g.input(numbers((1, 4, 8)), "a"), g.input(numbers((1, 9, 5)), "b"))
    g.output("c", c, np.float32, (1, 4, 5))
    try:
        g.build()
    except Exception as error:  # which class it is depends on the package's release
        assert str(error), "an error without words"
        return
    raise AssertionError("a matmul of 4x8 by 9x5 was accepted")


def main():
    chosen = [(n, f) for n, f in CASES if not sys.argv[1:] or any(w in n for w in sys.argv[1:])]
    failed = []
    print(f"nvidia-cudnn-frontend {cudnn.__version__}, cuDNN {cudnn.backend_version()}")
    for name, function in chosen:
        try:
            function()
        except Exception:
            failed.append(name)
            print(f"FAILED {name}\n{traceback.format_exc()}")
    for name in failed:
        print(f"FAILED {name}")
    print(f"{len(chosen) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
