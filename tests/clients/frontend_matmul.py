"""Convolutions and matmuls that nvidia-cudnn-frontend builds."""

import cudnn
import numpy as np

import numpy_reference as reference
from frontend_graph import Graph, case, cases, expect, numbers, wide


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
    """Every configuration of the heuristics builds and computes the result."""
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


# ------------------------------------------------------------------- matmul

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
