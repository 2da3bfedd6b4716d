"""Batch norm in parts, local norms, adaptive layer norm, and positions of extremes."""

import torch
import torch.nn.functional as F

from golden_case import Case, gradients, leaf

EPSILON = 1e-4


def channels(values, rank):
    return values.reshape([1, -1] + [1] * (rank - 2))


def batch_norm_in_parts(name, dims, momentum, layout=None):
    """gen_stats, bn_finalize and bn_backward_weights together do what batch_norm does."""
    case = Case(name)
    rank, count = len(dims), torch.Size(dims).numel() // dims[1]
    x = leaf(case.random(*dims))
    scale, bias = leaf(case.random(dims[1])), leaf(case.random(dims[1]))
    running_mean, running_var = case.random(dims[1]), case.random(dims[1], low=0.5)
    next_mean, next_var = running_mean.clone(), running_var.clone()
    y = F.batch_norm(x, next_mean, next_var, scale, bias, True, momentum, EPSILON)
    dy = case.random(*dims)
    dx, dscale, dbias = gradients([y], [dy], [x, scale, bias])
    axes = [0] + list(range(2, rank))
    case.input("x", x, **({"layout": layout} if layout else {}))
    case.input("dy", dy)
    for key, value in (("scale", scale), ("bias", bias), ("running_mean", running_mean),
                       ("running_var", running_var)):
        case.input(key, channels(value, rank))
    case.output("sum", channels(x.sum(axes), rank))
    case.output("sq_sum", channels((x * x).sum(axes), rank))
    case.output("y", y)
    case.output("next_mean", channels(next_mean, rank))
    case.output("next_var", channels(next_var, rank))
    case.output("dscale", channels(dscale, rank))
    case.output("dbias", channels(dbias, rank))
    case.output("dx", dx)
    case.node("gen_stats", {"x": "x"}, {"sum": "sum", "sq_sum": "sq_sum"})
    case.node("bn_finalize",
              {"sum": "sum", "sq_sum": "sq_sum", "scale": "scale", "bias": "bias",
               "running_mean": "running_mean", "running_var": "running_var"},
              {"eq_scale": "eq_scale", "eq_bias": "eq_bias", "saved_mean": "mean",
               "saved_inv_variance": "inv_variance", "next_running_mean": "next_mean",
               "next_running_var": "next_var"},
              epsilon=EPSILON, momentum=momentum, count=count)
    case.node("pointwise", {"x": "x", "b": "eq_scale"}, {"y": "scaled"}, mode="mul")
    case.node("pointwise", {"x": "scaled", "b": "eq_bias"}, {"y": "y"}, mode="add")
    case.node("bn_backward_weights",
              {"x": "x", "dy": "dy", "mean": "mean", "inv_variance": "inv_variance",
               "scale": "scale"},
              {"dscale": "dscale", "dbias": "dbias", "eq_dy_scale": "a", "eq_x_scale": "b",
               "eq_bias": "c"})
    case.node("pointwise", {"x": "dy", "b": "a"}, {"y": "dx1"}, mode="mul")
    case.node("pointwise", {"x": "x", "b": "b"}, {"y": "dx2"}, mode="mul")
    case.node("pointwise", {"x": "dx1", "b": "dx2"}, {"y": "dx3"}, mode="add")
    case.node("pointwise", {"x": "dx3", "b": "c"}, {"y": "dx"}, mode="add")
    return case


def local_norm(case, op, function, x, extra, attributes):
    """Forward and backward of y = function(x, *extra values)."""
    y = function(x, *extra.values())
    dy = case.random(*x.shape)
    case.input("x", x)
    case.input("dy", dy)
    for key, value in extra.items():
        case.input(key, value)
    case.output("y", y)
    operands = {"x": "x", **{key: key for key in extra}}
    case.node(f"{op}_forward", operands, {"y": "y"}, **attributes)
    results = gradients([y], [dy], [x, *extra.values()])
    names = ["dx", *(f"d{key}" for key in extra)]
    for key, value in zip(names, results):
        case.output(key, value)
    case.node(f"{op}_backward", {**operands, "dy": "dy"}, {key: key for key in names}, **attributes)
    return case


def lrn(name, dims, window, alpha, beta, k):
    """PyTorch's window of even size reaches further down, ours further up: flip the channels."""
    case = Case(name)

    def function(x):
        y = F.local_response_norm(x.flip(1) if window % 2 == 0 else x, window, alpha, beta, k)
        return y.flip(1) if window % 2 == 0 else y

    return local_norm(case, "lrn", function, leaf(case.random(*dims)), {},
                      dict(window=window, alpha=alpha, beta=beta, k=k))


def divisive(name, dims, window, alpha, beta, k, with_means):
    """The mean of squares over the window, zeros outside, by average pooling: of x less the mean at
    the window's centre, (x - m)^2 = x^2 - 2 m x + m^2."""
    case = Case(name)
    spatial = len(dims) - 2
    below = (window - 1) // 2
    pool = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}[spatial]

    def pooled(values):
        return pool(F.pad(values, [below, window - 1 - below] * spatial), window, 1)

    def function(x, means=None):
        squares = pooled(x ** 2)
        if means is not None:
            squares = squares - 2 * means * pooled(x) + means ** 2 * pooled(torch.ones_like(x))
        return x / (k + alpha * squares) ** beta

    x = leaf(case.random(*dims))
    extra = {"means": leaf(case.random(*dims, low=-1, high=1))} if with_means else {}
    return local_norm(case, "divisive_norm", function, x, extra,
                      dict(window=window, alpha=alpha, beta=beta, k=k))


def adaptive_layer_norm(name, dims, count):
    """Layer norm over the last `count` axes, separate scale and bias for each sample."""
    case = Case(name)
    rank = len(dims)
    inner = dims[rank - count:]
    parameter = [dims[0]] + [1] * (rank - count - 1) + list(inner)
    x = leaf(case.random(*dims))
    scale, bias = leaf(case.random(*parameter)), leaf(case.random(*parameter))
    y = F.layer_norm(x, inner, eps=EPSILON) * scale + bias
    dy = case.random(*dims)
    axes = list(range(rank - count, rank))
    variance, mean = torch.var_mean(x, axes, unbiased=False, keepdim=True)
    for key, value in (("x", x), ("dy", dy), ("scale", scale), ("bias", bias)):
        case.input(key, value)
    case.output("y", y)
    case.output("mean", mean)
    case.output("inv_variance", torch.rsqrt(variance + EPSILON))
    common = dict(mode="ada_layer", axes=axes, epsilon=EPSILON)
    operands = {"x": "x", "scale": "scale", "bias": "bias"}
    case.node("norm_forward", operands,
              {"y": "y", "out_mean": "mean", "out_inv_variance": "inv_variance"}, **common)
    case.output("y_inference", y)
    case.node("norm_forward", operands, {"y": "y_inference"}, phase="inference", **common)
    for key, value in zip(("dx", "dscale", "dbias"), gradients([y], [dy], [x, scale, bias])):
        case.output(key, value)
    case.node("norm_backward",
              {"x": "x", "dy": "dy", "scale": "scale", "mean": "mean",
               "inv_variance": "inv_variance"},
              {"dx": "dx", "dscale": "dscale", "dbias": "dbias"}, **common)
    return case


def positions(name, dims, axis):
    case = Case(name)
    x = case.input("x", case.distinct(*dims))
    for mode, function in (("max", torch.max), ("min", torch.min)):
        values, index = function(x, axis, keepdim=True)
        case.output(mode, values)
        case.output(f"{mode}_at", index, "i64")
        case.node("reduction", {"x": "x"}, {"y": mode, "index": f"{mode}_at"}, mode=mode,
                  axes=[axis])
    flat = x.abs().flatten()
    case.output("amax", flat.max().reshape([1] * len(dims)))
    case.output("amax_at", flat.argmax().reshape([1] * len(dims)), "i32")
    case.node("reduction", {"x": "x"}, {"y": "amax", "index": "amax_at"}, mode="amax",
              axes=list(range(len(dims))))
    return case


def cases():
    yield batch_norm_in_parts("batch_norm_parts", (3, 4, 4, 3), 0.1)
    yield batch_norm_in_parts("batch_norm_parts_channels_last", (2, 3, 5, 4), 0.3, "channels_last")
    yield batch_norm_in_parts("batch_norm_parts_features", (8, 5), 0.5)
    yield lrn("lrn", (2, 7, 3, 2), 5, 0.5, 0.75, 2.0)
    yield lrn("lrn_even", (2, 6, 5), 4, 1.0, 0.5, 1.0)
    yield lrn("lrn_wide", (3, 4, 3), 7, 2.0, 1.25, 0.5)
    yield divisive("divisive_norm", (2, 2, 5, 4), 3, 1.0, 0.75, 1.0, False)
    yield divisive("divisive_norm_means", (1, 2, 5, 4), 3, 1.0, 0.5, 0.5, True)
    yield divisive("divisive_norm_even", (2, 2, 9), 4, 0.5, 1.0, 2.0, True)
    yield divisive("divisive_norm_3d", (1, 2, 3, 3, 4), 2, 0.5, 0.75, 1.0, False)
    yield adaptive_layer_norm("ada_layer_norm", (3, 4, 8), 1)
    yield adaptive_layer_norm("ada_layer_norm_image", (2, 3, 4), 2)
    yield positions("reduction_positions_rows", (5, 9), 1)
    yield positions("reduction_positions_middle", (3, 6, 4), 1)
