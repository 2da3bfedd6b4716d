"""Complex products, and blocks of numbers with a scale each."""

import torch

from golden_case import Case


def complex_matmul(name, a_dims, b_dims, **extra):
    case = Case(name, "complex_f64")
    parts = [case.random(*dims, 2) for dims in (a_dims, b_dims)]
    a, b = (torch.view_as_complex(part) for part in parts)
    for key, value in (("a", a), ("b", b)):
        case.input(key, value, **(extra if key == "a" else {}))
        case.inputs[key] = torch.view_as_real(value)
    c = torch.matmul(a, b)
    case.output("c", c)
    case.outputs["c"] = torch.view_as_real(c)
    case.node("matmul", {"a": "a", "b": "b"}, {"c": "c"})
    return case


def block_scales():
    """Powers of two as scales: 2 to the ceiling of log2(amax / 127)."""
    case = Case("block_scale_i8")
    rows, columns, block = 3, 24, 8
    x = case.input("x", case.random(rows, columns, low=-40, high=40))
    amax = x.reshape(rows, columns // block, block).abs().amax(2)
    scale = torch.exp2(torch.ceil(torch.log2(amax / 127)))
    wide = scale.repeat_interleave(block, 1)
    y = torch.round(x / wide)
    case.output("scale", scale, "e8m0")
    case.output("y", y, "i8")
    case.node("block_scale_quantize", {"x": "x"}, {"y": "y", "scale": "scale"},
              block_size=[1, block])
    case.input("stored", y, "i8")
    case.input("factor", scale, "e8m0")
    case.output("z", -y * wide)
    case.node("block_scale_dequantize", {"x": "stored", "scale": "factor"}, {"y": "z"},
              block_size=[1, block], negative_scale=True)
    return case


def cases():
    yield complex_matmul("matmul_complex", (5, 7), (7, 4))
    yield complex_matmul("matmul_complex_broadcast", (2, 1, 3, 4), (1, 3, 4, 2))
    yield complex_matmul("matmul_complex_transposed", (2, 4, 3), (1, 3, 5), strides=[12, 1, 4])
    yield block_scales()
