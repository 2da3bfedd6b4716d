"""Batch, layer, instance, group and RMS norm: training, inference and gradients."""

import torch
import torch.nn.functional as F

from golden_case import Case, gradients, leaf

EPSILON = 1e-4


def channels(values, rank):
    return values.reshape([1, -1] + [1] * (rank - 2))


def statistics(x, axes):
    """Mean and 1 / sqrt(variance + epsilon), the variance over n."""
    variance, mean = torch.var_mean(x, axes, unbiased=False, keepdim=True)
    return mean, torch.rsqrt(variance + EPSILON)


def add_backward(case, y, dy, x, scale, bias, saved, mode, attributes, parameter_dims):
    """The gradient node, with the statistics of the forward pass when `saved`."""
    wanted = [x, scale] + ([bias] if bias is not None else [])
    results = dict(zip(("dx", "dscale", "dbias"), gradients([y], [dy], wanted)))
    inputs = {"x": "x", "dy": "dy", "scale": "scale"}
    for name, value in saved.items():
        case.input(f"saved_{name}", value)
        inputs[name] = f"saved_{name}"
    case.input("dy", dy)
    for name, value in results.items():
        case.output(name, value if name == "dx" else value.reshape(parameter_dims))
    case.node("norm_backward", inputs, {name: name for name in results}, mode=mode,
              epsilon=EPSILON, **attributes)


def batch(name, dims, save, layout=None, momentum=0.1):
    case = Case(name)
    rank, count = len(dims), dims[1]
    x = leaf(case.random(*dims))
    scale, bias = leaf(case.random(count)), leaf(case.random(count))
    running_mean = case.random(count)
    running_var = case.random(count, low=0.5, high=2)
    next_mean, next_var = running_mean.clone(), running_var.clone()
    y = F.batch_norm(x, next_mean, next_var, scale, bias, training=True, momentum=momentum,
                     eps=EPSILON)
    mean, inv_variance = statistics(x, [axis for axis in range(rank) if axis != 1])
    parameter = list(channels(scale, rank).shape)
    case.input("x", x, **({"layout": layout} if layout else {}))
    for key, value in (("scale", scale), ("bias", bias), ("running_mean", running_mean),
                       ("running_var", running_var)):
        case.input(key, channels(value, rank))
    case.output("y", y)
    case.output("mean", mean)
    case.output("inv_variance", inv_variance)
    case.output("next_mean", channels(next_mean, rank))
    case.output("next_var", channels(next_var, rank))
    operands = {key: key for key in ("x", "scale", "bias", "running_mean", "running_var")}
    case.node("norm_forward", operands,
              {"y": "y", "out_mean": "mean", "out_inv_variance": "inv_variance",
               "next_running_mean": "next_mean", "next_running_var": "next_var"},
              mode="batch", phase="training", epsilon=EPSILON, momentum=momentum)
    saved = {"mean": mean, "inv_variance": inv_variance} if save else {}
    add_backward(case, y, case.random(*dims), x, scale, bias, saved, "batch", {}, parameter)
    return case


def batch_inference():
    case = Case("batch_norm_inference")
    dims, count = (2, 3, 4, 4), 3
    x = case.input("x", case.random(*dims))
    scale, bias, mean = (case.random(count) for _ in range(3))
    variance = case.random(count, low=0.25, high=2)
    for key, value in (("scale", scale), ("bias", bias), ("running_mean", mean),
                       ("running_var", variance),
                       ("inv_variance", torch.rsqrt(variance + EPSILON))):
        case.input(key, channels(value, 4))
    y = F.batch_norm(x, mean, variance, scale, bias, training=False, eps=EPSILON)
    case.output("by_running", y)
    case.output("by_inverse", y)
    attributes = dict(mode="batch", phase="inference", epsilon=EPSILON)
    affine = {"x": "x", "scale": "scale", "bias": "bias"}
    case.node("norm_forward",
              {**affine, "running_mean": "running_mean", "running_var": "running_var"},
              {"y": "by_running"}, **attributes)
    case.node("norm_forward",
              {**affine, "mean": "running_mean", "inv_variance": "inv_variance"},
              {"y": "by_inverse"}, **attributes)
    return case


def by_input(name, mode, dims, function, axes_of_statistics, parameter_dims, save=True, dtype="f64",
             layout=None, grouped=0, **attributes):
    """Norms whose statistics always come from x; inference gives the y of training.

    The statistics of group norm run over x seen as [N, groups, C / groups, ...].
    """
    case = Case(name, dtype)
    x = leaf(case.random(*dims))
    scale, bias = leaf(case.random(*parameter_dims)), leaf(case.random(*parameter_dims))
    y = function(x, scale, bias)
    seen = x.reshape(dims[0], grouped, dims[1] // grouped, *dims[2:]) if grouped else x
    mean, inv_variance = statistics(seen, axes_of_statistics)
    if grouped:
        mean, inv_variance = mean.squeeze(2), inv_variance.squeeze(2)
    case.input("x", x, **({"layout": layout} if layout else {}))
    case.input("scale", scale)
    case.input("bias", bias)
    operands = {"x": "x", "scale": "scale", "bias": "bias"}
    common = dict(mode=mode, epsilon=EPSILON, **attributes)
    case.output("y", y)
    statistics_type = "f64" if dtype == "f64" else "f32"
    case.output("mean", mean, statistics_type)
    case.output("inv_variance", inv_variance, statistics_type)
    case.node("norm_forward", operands,
              {"y": "y", "out_mean": "mean", "out_inv_variance": "inv_variance"},
              phase="training", **common)
    if dtype != "f64":
        return case
    case.output("y_inference", y)
    case.node("norm_forward", operands, {"y": "y_inference"}, phase="inference", **common)
    saved = {"mean": mean, "inv_variance": inv_variance} if save else {}
    add_backward(case, y, case.random(*dims), x, scale, bias, saved, mode, attributes,
                 parameter_dims)
    return case


def layer(name, dims, count, **more):
    """Over the last `count` axes."""
    rank = len(dims)
    axes = list(range(rank - count, rank))
    parameter = [1] * (rank - count) + list(dims[rank - count:])

    def function(x, scale, bias):
        inner = dims[rank - count:]
        return F.layer_norm(x, inner, scale.reshape(inner), bias.reshape(inner), EPSILON)

    return by_input(name, "layer", dims, function, axes, parameter, **more)


def instance(name, dims, **more):
    rank = len(dims)

    def function(x, scale, bias):
        return F.instance_norm(x, weight=scale.flatten(), bias=bias.flatten(), eps=EPSILON)

    return by_input(name, "instance", dims, function, list(range(2, rank)),
                    [1, dims[1]] + [1] * (rank - 2), **more)


def group(name, dims, groups, **more):
    rank = len(dims)

    def function(x, scale, bias):
        return F.group_norm(x, groups, scale.flatten(), bias.flatten(), EPSILON)

    return by_input(name, "group", dims, function, list(range(2, rank + 1)),
                    [1, dims[1]] + [1] * (rank - 2), grouped=groups, groups=groups, **more)


def rms(name, dims, axes, save, with_bias, epsilon_tensor=False):
    """x * rsqrt(mean(x^2) + epsilon) * scale + bias."""
    case = Case(name)
    parameter = [dims[axis] if axis in axes else 1 for axis in range(len(dims))]
    x, scale = leaf(case.random(*dims)), leaf(case.random(*parameter))
    bias = leaf(case.random(*parameter)) if with_bias else None
    inv_rms = torch.rsqrt((x * x).mean(axes, keepdim=True) + EPSILON)
    y = x * inv_rms * scale + (bias if with_bias else 0.0)
    case.input("x", x)
    case.input("scale", scale)
    operands = {"x": "x", "scale": "scale"}
    if with_bias:
        case.input("bias", bias)
        operands["bias"] = "bias"
    common = dict(mode="rms", axes=axes, epsilon=EPSILON)
    if epsilon_tensor:
        case.scalar("epsilon", EPSILON, len(dims))
        operands["epsilon_tensor"] = "epsilon"
        common["epsilon"] = 0.5
    case.output("y", y)
    case.output("inv_variance", inv_rms)
    case.node("norm_forward", operands, {"y": "y", "out_inv_variance": "inv_variance"},
              phase="training", **common)
    saved = {"inv_variance": inv_rms} if save else {}
    add_backward(case, y, case.random(*dims), x, scale, bias, saved, "rms", dict(axes=axes),
                 parameter)
    return case


def layer_without_parameters():
    case = Case("layer_norm_plain")
    x = leaf(case.random(4, 9))
    y = F.layer_norm(x, [9], eps=EPSILON)
    dy = case.random(4, 9)
    case.input("x", x)
    case.input("dy", dy)
    case.output("y", y)
    case.output("dx", gradients([y], [dy], [x])[0])
    common = dict(mode="layer", epsilon=EPSILON, axes=[-1])
    case.node("norm_forward", {"x": "x"}, {"y": "y"}, **common)
    case.node("norm_backward", {"x": "x", "dy": "dy"}, {"dx": "dx"}, **common)
    return case


def cases():
    yield batch("batch_norm_1d", (6, 4, 5), save=True)
    yield batch("batch_norm_2d", (3, 4, 4, 3), save=True, layout="channels_last")
    yield batch("batch_norm_recomputed", (3, 4, 4, 3), save=False, momentum=0.3)
    yield batch("batch_norm_3d", (2, 3, 2, 3, 4), save=True)
    yield batch("batch_norm_features", (8, 5), save=True)
    yield batch_inference()
    yield layer("layer_norm", (3, 4, 8), 1)
    yield layer("layer_norm_two_axes", (3, 4, 6), 2)
    yield layer("layer_norm_recomputed", (5, 7), 1, save=False)
    yield layer("layer_norm_f16", (4, 16), 1, dtype="f16")
    yield layer("layer_norm_f32", (4, 16), 1, dtype="f32")
    yield layer_without_parameters()
    yield instance("instance_norm", (2, 3, 4, 4), layout="channels_last")
    yield instance("instance_norm_1d", (2, 3, 9), save=False)
    yield group("group_norm", (2, 6, 3, 4), 3)
    yield group("group_norm_recomputed", (2, 4, 3, 3), 2, save=False, layout="channels_last")
    yield rms("rms_norm", (4, 9), [1], save=True, with_bias=False)
    yield rms("rms_norm_bias", (2, 3, 8), [2], save=False, with_bias=True)
    yield rms("rms_norm_two_axes", (3, 4, 5), [1, 2], save=True, with_bias=True)
    yield rms("rms_norm_epsilon_tensor", (3, 6), [1], save=True, with_bias=False,
              epsilon_tensor=True)
