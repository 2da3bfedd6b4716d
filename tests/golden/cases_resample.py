"""Pooling and interpolation, forward and backward."""

import math

import torch
import torch.nn.functional as F

from golden_case import Case, gradients, leaf

MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVERAGE = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
INTERPOLATION = {1: "linear", 2: "bilinear", 3: "trilinear"}


def unflatten(position, extents):
    coordinates = []
    for extent in reversed(extents):
        coordinates.append(position % extent)
        position //= extent
    return coordinates[::-1]


def in_window(index, extents, window, stride, padding):
    """PyTorch's position in the whole input -> row-major position in the window."""
    result = torch.empty_like(index)
    spatial = list(index.shape[2:])
    for flat, position in enumerate(index.flatten().tolist()):
        output = unflatten(flat % math.prod(spatial), spatial)
        source = unflatten(position, extents)
        inside = 0
        for axis, extent in enumerate(window):
            offset = source[axis] - (output[axis] * stride[axis] - padding[axis])
            assert 0 <= offset < extent
            inside = inside * extent + offset
        result.view(-1)[flat] = inside
    return result


def add_backward(case, op_inputs, y, dy, x, attributes):
    case.input("dy", dy)
    case.output("dx", gradients([y], [dy], [x])[0])
    case.node("resample_backward", {"dy": "dy", **op_inputs}, {"dx": "dx"}, **attributes)


def max_pool(name, dims, window, stride, padding, backward_by, layout=None, ties=False):
    case = Case(name)
    x = leaf(case.random(*dims, low=-1, high=1, grid=2) if ties else case.distinct(*dims))
    spatial = len(window)
    y, index = MAX[spatial](x, window, stride, padding, return_indices=True)
    attributes = dict(mode="maxpool", window=window, stride=stride, padding=padding)
    index = in_window(index, dims[2:], window, stride, padding)
    case.input("x", x, **({"layout": layout} if layout else {}))
    case.output("y", y)
    case.output("index", index, "i32")
    case.node("resample_forward", {"x": "x"}, {"y": "y", "index": "index"}, **attributes)
    saved = {}
    if backward_by == "index":
        case.input("saved_index", index, "i32")
        saved = {"index": "saved_index"}
    else:
        saved = {"x": "x"}
    add_backward(case, saved, y, case.random(*y.shape), x, attributes)
    return case


def padded_max_pool(name, padding_mode):
    """Maximum over padding that counts: zeros, or the nearest element."""
    case = Case(name)
    x = leaf(case.distinct(2, 2, 5, 6) - 2.0)
    how = dict(value=0.0) if padding_mode == "zero" else dict(mode="replicate")
    y = F.max_pool2d(F.pad(x, (2, 0, 1, 1), **how), (3, 3), (2, 1))
    attributes = dict(mode="maxpool", window=[3, 3], stride=[2, 1], padding=[1, 2],
                      post_padding=[1, 0], padding_mode=padding_mode)
    case.input("x", x)
    case.output("y", y)
    case.node("resample_forward", {"x": "x"}, {"y": "y"}, **attributes)
    add_backward(case, {"x": "x"}, y, case.random(*y.shape), x, attributes)
    return case


def average_pool(name, dims, window, stride, padding, include, layout=None):
    case = Case(name)
    x = leaf(case.random(*dims))
    y = AVERAGE[len(window)](x, window, stride, padding, count_include_pad=include)
    attributes = dict(mode="avgpool_include_padding" if include else "avgpool_exclude_padding",
                      window=window, stride=stride, padding=padding)
    case.input("x", x, **({"layout": layout} if layout else {}))
    case.output("y", y)
    case.node("resample_forward", {"x": "x"}, {"y": "y"}, **attributes)
    add_backward(case, {}, y, case.random(*y.shape), x, attributes)
    return case


def interpolation(name, dims, size, mode, align_corners=False):
    case = Case(name)
    x = leaf(case.random(*dims))
    if mode == "nearest":
        y = F.interpolate(x, size=size, mode="nearest")
    else:
        y = F.interpolate(x, size=size, mode=INTERPOLATION[len(size)], align_corners=align_corners)
    attributes = dict(mode=mode, size=size, align_corners=align_corners)
    case.input("x", x)
    case.output("y", y)
    case.node("resample_forward", {"x": "x"}, {"y": "y"}, **attributes)
    add_backward(case, {}, y, case.random(*y.shape), x, attributes)
    return case


def cases():
    yield max_pool("max_pool_1d", (2, 3, 11), [3], [2], [1], "x")
    yield max_pool("max_pool_2d", (2, 2, 6, 7), [3, 2], [2, 2], [1, 0], "index")
    yield max_pool("max_pool_2d_overlap", (1, 3, 6, 6), [3, 3], [1, 2], [1, 1], "x",
                   layout="channels_last")
    yield max_pool("max_pool_2d_ties", (2, 2, 6, 6), [2, 3], [2, 1], [1, 1], "index", ties=True)
    yield max_pool("max_pool_3d", (1, 2, 4, 5, 4), [2, 3, 2], [2, 2, 1], [1, 1, 0], "index")
    yield padded_max_pool("max_pool_zero_padding", "zero")
    yield padded_max_pool("max_pool_edge_padding", "edge")
    for include in (True, False):
        kind = "include" if include else "exclude"
        yield average_pool(f"avg_pool_1d_{kind}", (2, 3, 10), [4], [2], [2], include)
        yield average_pool(f"avg_pool_2d_{kind}", (2, 2, 6, 5), [3, 3], [2, 1], [1, 1], include,
                           layout="channels_last")
        yield average_pool(f"avg_pool_3d_{kind}", (1, 2, 4, 4, 5), [2, 3, 2], [1, 2, 2], [1, 1, 0],
                           include)
    yield interpolation("nearest_1d", (2, 3, 5), [8], "nearest")
    yield interpolation("nearest_2d", (1, 2, 4, 6), [8, 9], "nearest")
    yield interpolation("nearest_2d_smaller", (1, 2, 7, 6), [3, 4], "nearest")
    yield interpolation("nearest_3d", (1, 2, 2, 3, 2), [4, 3, 5], "nearest")
    for align in (False, True):
        kind = "corners" if align else "centres"
        yield interpolation(f"linear_1d_{kind}", (2, 2, 5), [9], "bilinear", align)
        yield interpolation(f"bilinear_2d_{kind}", (1, 2, 4, 5), [7, 10], "bilinear", align)
        yield interpolation(f"bilinear_2d_smaller_{kind}", (1, 2, 7, 6), [3, 4], "bilinear", align)
        yield interpolation(f"trilinear_3d_{kind}", (1, 2, 2, 3, 4), [3, 5, 6], "bilinear", align)
    yield interpolation("bilinear_2d_one_row_corners", (1, 2, 4, 5), [1, 7], "bilinear", True)
