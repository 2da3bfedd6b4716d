"""Pointwise operations: activations with their gradients, then every other mode."""

import torch
import torch.nn.functional as F

from golden_case import Case, gradients, leaf

# mode stem, case name, function, attributes. Kinks are among the inputs.
ACTIVATIONS = [
    ("relu", "relu", F.relu, {}),
    ("relu", "relu_leaky", lambda x: F.leaky_relu(x, 0.125), dict(relu_lower_slope=0.125)),
    ("relu", "relu_clipped", lambda x: F.hardtanh(x, -0.5, 1.5),
     dict(relu_lower_clip=-0.5, relu_upper_clip=1.5)),
    ("tanh", "tanh", torch.tanh, {}),
    ("sigmoid", "sigmoid", torch.sigmoid, {}),
    ("elu", "elu", F.elu, {}),
    ("elu", "elu_alpha", lambda x: F.elu(x, 0.7), dict(elu_alpha=0.7)),
    ("gelu", "gelu_erf", F.gelu, {}),
    ("gelu_approx_tanh", "gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), {}),
    ("softplus", "softplus", lambda x: F.softplus(x, threshold=1e3), {}),
    ("softplus", "softplus_beta", lambda x: F.softplus(x, 2.5, threshold=1e3),
     dict(softplus_beta=2.5)),
    ("swish", "silu", F.silu, {}),
    ("swish", "swish_beta", lambda x: x * torch.sigmoid(1.7 * x), dict(swish_beta=1.7)),
]


def activation(mode, name, function, attributes, dtype="f64"):
    case = Case(f"activation_{name}" + ("" if dtype == "f64" else f"_{dtype}"), dtype)
    points = torch.tensor([0.0, -0.5, 1.5, 30.0, -30.0, 8.0, -8.0], dtype=torch.float64)
    x = leaf(torch.cat([points, case.random(25, low=-4, high=4)]).reshape(4, 8))
    y = function(x)
    dy = case.random(4, 8)
    case.input("x", x)
    case.input("dy", dy)
    case.output("y", y)
    case.output("dx", gradients([y], [dy], [x])[0])
    case.node("pointwise", {"x": "x"}, {"y": "y"}, mode=f"{mode}_fwd", **attributes)
    case.node("pointwise", {"x": "dy", "b": "x"}, {"y": "dx"}, mode=f"{mode}_bwd", **attributes)
    return case


BINARY = {
    "add": torch.add, "mul": torch.mul, "min": torch.minimum, "max": torch.maximum,
    "add_square": lambda x, b: x + b * b, "div": torch.div, "mod": torch.fmod,
    "sub": torch.sub, "atan2": torch.atan2,
}
UNARY = {
    "abs": torch.abs, "ceil": torch.ceil, "cos": torch.cos, "exp": torch.exp,
    "floor": torch.floor, "neg": torch.neg, "sin": torch.sin, "tan": torch.tan,
    "erf": torch.erf, "identity": lambda x: x,
}
UNARY_POSITIVE = {
    "sqrt": torch.sqrt, "log": torch.log, "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal,
}
COMPARISONS = {
    "cmp_eq": torch.eq, "cmp_neq": torch.ne, "cmp_gt": torch.gt, "cmp_ge": torch.ge,
    "cmp_lt": torch.lt, "cmp_le": torch.le, "logical_and": torch.logical_and,
    "logical_or": torch.logical_or,
}


def binary(name, x_dims, b_dims, **alphas):
    case = Case(name)
    x = case.input("x", case.random(*x_dims))
    b = case.random(*b_dims)
    b[b == 0] = 0.25
    case.input("b", b)
    for mode, function in BINARY.items():
        case.output(mode, function(alphas.get("alpha1", 1.0) * x, alphas.get("alpha2", 1.0) * b))
        case.node("pointwise", {"x": "x", "b": "b"}, {"y": mode}, mode=mode, **alphas)
    return case


def unary():
    case = Case("pointwise_unary")
    x = case.input("x", case.random(2, 3, 4))
    positive = case.input("positive", case.random(2, 3, 4, low=0.25, high=4))
    exponent = case.input("exponent", case.random(2, 3, 4))
    for mode, function in UNARY.items():
        case.output(mode, function(x))
        case.node("pointwise", {"x": "x"}, {"y": mode}, mode=mode)
    for mode, function in UNARY_POSITIVE.items():
        case.output(mode, function(positive))
        case.node("pointwise", {"x": "positive"}, {"y": mode}, mode=mode)
    case.output("pow", torch.pow(positive, exponent))
    case.node("pointwise", {"x": "positive", "b": "exponent"}, {"y": "pow"}, mode="pow")
    return case


def comparisons():
    case = Case("pointwise_comparisons")
    x = case.input("x", case.random(2, 3, 8, low=-1, high=1, grid=2))
    b = case.input("b", case.random(2, 1, 8, low=-1, high=1, grid=2))
    for mode, function in COMPARISONS.items():
        case.output(mode, function(x, b), "bool")
        case.node("pointwise", {"x": "x", "b": "b"}, {"y": mode}, mode=mode)
    case.output("logical_not", torch.logical_not(x), "bool")
    case.node("pointwise", {"x": "x"}, {"y": "logical_not"}, mode="logical_not")
    case.output("gen_index", torch.arange(3).reshape(1, 3, 1).expand(2, 3, 8), "i32")
    case.node("pointwise", {"x": "x"}, {"y": "gen_index"}, mode="gen_index", axis=1)
    case.output("selected", torch.where(x > b, x, b))
    case.node("pointwise", {"x": "x", "b": "b"}, {"y": "greater"}, mode="cmp_gt")
    case.node("pointwise", {"x": "x", "b": "b", "predicate": "greater"}, {"y": "selected"},
              mode="binary_select")
    return case


def cases():
    for row in ACTIVATIONS:
        yield activation(*row)
    yield activation(*ACTIVATIONS[7], dtype="f32")
    yield activation(*ACTIVATIONS[8], dtype="f16")
    yield binary("pointwise_binary", (2, 3, 4), (2, 3, 4))
    yield binary("pointwise_binary_broadcast", (2, 1, 4), (1, 3, 4), alpha1=0.5, alpha2=-2.0)
    yield unary()
    yield comparisons()
