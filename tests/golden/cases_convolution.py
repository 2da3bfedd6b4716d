"""Convolution: forward, both gradients, transposed."""

import torch
import torch.nn.functional as F

from golden_case import Case, gradients, leaf

CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}

# name, x dims, w dims, groups, attributes, layout of x and dy
SHAPES = [
    ("conv1d", (2, 3, 11), (4, 3, 3), 1, {}, None),
    ("conv1d_stride_dilation", (2, 2, 16), (3, 2, 4), 1,
     dict(padding=[3], stride=[2], dilation=[3]), None),
    ("conv1d_groups", (2, 6, 9), (4, 3, 2), 2, dict(padding=[1]), "channels_last"),
    ("conv2d", (2, 3, 6, 5), (4, 3, 3, 3), 1, dict(padding=[1, 1]), None),
    ("conv2d_channels_last", (1, 4, 6, 6), (5, 4, 3, 3), 1, dict(padding=[1, 1]), "channels_last"),
    ("conv2d_pointwise", (2, 5, 4, 3), (6, 5, 1, 1), 1, {}, "channels_last"),
    ("conv2d_stride", (1, 3, 9, 8), (4, 3, 3, 2), 1, dict(padding=[1, 0], stride=[2, 3]), None),
    ("conv2d_dilation", (1, 2, 10, 9), (3, 2, 3, 2), 1,
     dict(padding=[2, 1], dilation=[2, 3]), None),
    ("conv2d_groups", (2, 6, 5, 5), (9, 2, 3, 3), 3, dict(padding=[1, 1]), None),
    ("conv2d_groups_stride_dilation", (1, 4, 9, 9), (6, 2, 3, 3), 2,
     dict(padding=[2, 2], stride=[2, 2], dilation=[2, 2]), "channels_last"),
    ("conv2d_depthwise", (2, 4, 6, 6), (4, 1, 3, 3), 4, dict(padding=[1, 1]), None),
    ("conv2d_depthwise_multiplier", (1, 3, 7, 6), (6, 1, 3, 3), 3,
     dict(padding=[1, 1], stride=[2, 1]), "channels_last"),
    ("conv3d", (1, 2, 4, 5, 4), (3, 2, 3, 2, 3), 1, dict(padding=[1, 0, 1]), None),
    ("conv3d_stride_dilation_groups", (1, 4, 5, 6, 5), (4, 2, 2, 2, 3), 2,
     dict(padding=[1, 1, 2], stride=[2, 1, 2], dilation=[1, 3, 2]), "channels_last"),
]


def torch_arguments(attributes, spatial, groups):
    filled = {"padding": 0, "stride": 1, "dilation": 1}
    return {key: tuple(attributes.get(key, [default] * spatial))
            for key, default in filled.items()} | {"groups": groups}


def layout_of(layout):
    return {"layout": layout} if layout else {}


def three_passes(name, x_dims, w_dims, groups, attributes, layout):
    case = Case(name)
    x = leaf(case.random(*x_dims))
    w = leaf(case.random(*w_dims))
    spatial = len(x_dims) - 2
    y = CONV[spatial](x, w, **torch_arguments(attributes, spatial, groups))
    dy = case.random(*y.shape)
    dx, dw = gradients([y], [dy], [x, w])
    case.input("x", x, **layout_of(layout))
    case.input("w", w)
    case.input("dy", dy, **layout_of(layout))
    case.output("y", y)
    case.output("dx", dx)
    case.output("dw", dw)
    case.node("conv_forward", {"x": "x", "w": "w"}, {"y": "y"}, **attributes)
    case.node("conv_backward_data", {"dy": "dy", "w": "w"}, {"dx": "dx"}, **attributes)
    case.node("conv_backward_filter", {"x": "x", "dy": "dy"}, {"dw": "dw"}, **attributes)
    return case


def transposed(name, x_dims, w_dims, groups, output_padding, attributes):
    """PyTorch's transposed convolution of x with w [C, K/groups, ...] is conv_backward_data."""
    case = Case(name)
    x = case.input("x", case.random(*x_dims))
    w = case.input("w", case.random(*w_dims))
    spatial = len(x_dims) - 2
    y = TRANSPOSED[spatial](x, w, output_padding=output_padding,
                            **torch_arguments(attributes, spatial, groups))
    case.output("y", y)
    case.node("conv_backward_data", {"dy": "x", "w": "w"}, {"dx": "y"}, **attributes)
    return case


def flipped():
    """Mode `convolution` is cross-correlation with the filter turned round."""
    case = Case("conv2d_mode_convolution")
    x = leaf(case.random(2, 2, 6, 5))
    w = leaf(case.random(3, 2, 3, 2))
    y = F.conv2d(x, torch.flip(w, [2, 3]), padding=(1, 1), stride=(2, 1))
    dy = case.random(*y.shape)
    dx, dw = gradients([y], [dy], [x, w])
    for name, value in (("x", x), ("w", w), ("dy", dy)):
        case.input(name, value)
    for name, value in (("y", y), ("dx", dx), ("dw", dw)):
        case.output(name, value)
    attributes = dict(padding=[1, 1], stride=[2, 1], mode="convolution")
    case.node("conv_forward", {"x": "x", "w": "w"}, {"y": "y"}, **attributes)
    case.node("conv_backward_data", {"dy": "dy", "w": "w"}, {"dx": "dx"}, **attributes)
    case.node("conv_backward_filter", {"x": "x", "dy": "dy"}, {"dw": "dw"}, **attributes)
    return case


def asymmetric():
    case = Case("conv2d_asymmetric_padding")
    x = leaf(case.random(1, 3, 5, 6))
    w = leaf(case.random(2, 3, 3, 3))
    y = F.conv2d(F.pad(x, (0, 2, 2, 1)), w)
    dy = case.random(*y.shape)
    dx, dw = gradients([y], [dy], [x, w])
    for name, value in (("x", x), ("w", w), ("dy", dy)):
        case.input(name, value)
    for name, value in (("y", y), ("dx", dx), ("dw", dw)):
        case.output(name, value)
    attributes = dict(padding=[2, 0], post_padding=[1, 2])
    case.node("conv_forward", {"x": "x", "w": "w"}, {"y": "y"}, **attributes)
    case.node("conv_backward_data", {"dy": "dy", "w": "w"}, {"dx": "dx"}, **attributes)
    case.node("conv_backward_filter", {"x": "x", "dy": "dy"}, {"dw": "dw"}, **attributes)
    return case


def blended():
    case = Case("conv2d_alpha_beta")
    x = leaf(case.random(2, 2, 5, 5))
    w = leaf(case.random(3, 2, 3, 3))
    y = F.conv2d(x, w)
    dy = case.random(*y.shape)
    dx, dw = gradients([y], [dy], [x, w])
    zy, zx, zw = (case.random(*t.shape) for t in (y, x, w))
    for name, value in (("x", x), ("w", w), ("dy", dy), ("zy", zy), ("zx", zx), ("zw", zw)):
        case.input(name, value)
    for name, value, z in (("y", y, zy), ("dx", dx, zx), ("dw", dw, zw)):
        case.output(name, 0.75 * value - 1.5 * z)
    blend = dict(alpha=0.75, beta=-1.5)
    case.node("conv_forward", {"x": "x", "w": "w", "z": "zy"}, {"y": "y"}, **blend)
    case.node("conv_backward_data", {"dy": "dy", "w": "w", "z": "zx"}, {"dx": "dx"}, **blend)
    case.node("conv_backward_filter", {"x": "x", "dy": "dy", "z": "zw"}, {"dw": "dw"}, **blend)
    return case


def bias_relu(dtype, grid):
    case = Case(f"conv2d_bias_relu_{dtype}", dtype)
    x = case.input("x", case.random(1, 4, 6, 6, grid=grid), layout="channels_last")
    w = case.input("w", case.random(5, 4, 3, 3, grid=grid))
    b = case.input("b", case.random(1, 5, 1, 1, grid=grid))
    case.output("y", F.relu(F.conv2d(x, w, padding=1) + b))
    # What stays inside a graph keeps its digits: f32 between the operations.
    case.tensors += [{"name": "conv", "dtype": "f32"}, {"name": "sum", "dtype": "f32"}]
    case.node("conv_forward", {"x": "x", "w": "w"}, {"y": "conv"}, padding=[1, 1])
    case.node("pointwise", {"x": "conv", "b": "b"}, {"y": "sum"}, mode="add")
    case.node("pointwise", {"x": "sum"}, {"y": "y"}, mode="relu_fwd")
    return case


def cases():
    for shape in SHAPES:
        yield three_passes(*shape)
    yield transposed("conv1d_transposed", (2, 4, 6), (4, 3, 3), 1, (0,), dict(stride=[2]))
    yield transposed("conv2d_transposed", (1, 4, 4, 5), (4, 3, 3, 3), 1, (1, 0),
                     dict(padding=[1, 1], stride=[2, 2]))
    yield transposed("conv2d_transposed_groups_dilation", (1, 4, 5, 4), (4, 3, 2, 3), 2, (0, 1),
                     dict(padding=[1, 2], stride=[1, 2], dilation=[2, 1]))
    yield transposed("conv3d_transposed", (1, 3, 3, 3, 2), (3, 2, 3, 2, 2), 1, (0, 1, 0),
                     dict(padding=[1, 0, 0], stride=[2, 2, 1]))
    yield flipped()
    yield asymmetric()
    yield blended()
    yield bias_relu("f32", 64)
    yield bias_relu("f16", 64)
    yield bias_relu("bf16", 32)
