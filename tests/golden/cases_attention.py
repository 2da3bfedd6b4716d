"""Scaled-dot-product attention with every mask, written out in PyTorch and differentiated by it."""

import math

import torch

from golden_case import Case, gradients, leaf


def visible(q_length, kv_length, sq, skv, left=None, right=None, alignment="top_left"):
    """[sq, skv]: which keys a query sees, for one batch."""
    row, column = torch.arange(sq)[:, None], torch.arange(skv)[None, :]
    shift = kv_length - q_length if alignment == "bottom_right" else 0
    seen = (row < q_length) & (column < kv_length)
    if left is not None:
        seen = seen & (column > row + shift - left)
    if right is not None:
        seen = seen & (column <= row + shift + right)
    return seen


def formula(q, k, v, bias, seen, scale, keep, dropout):
    """o and the logarithm of the sum of exponentials; fully masked rows have 0 and -inf."""
    heads = q.shape[1]
    k = k.repeat_interleave(heads // k.shape[1], 1)
    v = v.repeat_interleave(heads // v.shape[1], 1)
    scores = scale * torch.matmul(q, k.transpose(2, 3))
    if bias is not None:
        scores = scores + bias
    scores = scores.masked_fill(~seen, -math.inf)
    # PyTorch's softmax of a row of -inf is NaN, in its gradient too; such rows are set apart.
    empty = ~seen.any(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(empty, 0.0), -1).masked_fill(empty, 0.0)
    if keep is not None:
        weights = weights * keep / (1.0 - dropout)
    return torch.matmul(weights, v), torch.logsumexp(scores, -1, keepdim=True)


def attention(name, b=1, h=2, hk=None, hv=None, sq=4, skv=4, d=4, dv=None, bias=None,
              lengths=None, scale=None, scale_tensor=False, dropout=0.0, dtype="f64",
              left=None, right=None, alignment="top_left"):
    case = Case(name, dtype)
    hk, hv, dv = hk or h, hv or hk or h, dv or d
    q = leaf(case.random(b, h, sq, d))
    k = leaf(case.random(b, hk, skv, d))
    v = leaf(case.random(b, hv, skv, dv))
    attributes = {}
    operands = {}
    if scale is not None:
        attributes["scale"] = scale
    if left is not None:
        attributes["left_bound"] = left
    if right is not None:
        attributes["right_bound"] = right
    if alignment != "top_left":
        attributes["alignment"] = alignment
    factor = scale if scale is not None else 1.0 / math.sqrt(d)
    if scale_tensor:
        factor = 0.375
        case.scalar("factor", factor, 4)
        operands["scale_tensor"] = "factor"

    bias_value = None
    if bias:
        bias_value = leaf(case.random(*bias))
        case.input("bias", bias_value)
        operands["bias"] = "bias"
    q_lengths, kv_lengths = lengths or ([sq] * b, [skv] * b)
    if lengths:
        case.input("len_q", torch.tensor(q_lengths).reshape(b, 1, 1, 1), "i32")
        case.input("len_kv", torch.tensor(kv_lengths).reshape(b, 1, 1, 1), "i32")
        operands.update(seq_len_q="len_q", seq_len_kv="len_kv")
    keep = None
    if dropout:
        keep = case.random(b, h, sq, skv, low=0, high=1) >= dropout
        case.input("keep", keep, "bool")
        operands["dropout_mask"] = "keep"
        attributes["dropout"] = dropout

    seen = torch.stack([visible(q_lengths[i], kv_lengths[i], sq, skv, left, right, alignment)
                        for i in range(b)])[:, None].expand(b, h, sq, skv)
    o, stats = formula(q, k, v, bias_value, seen, factor, keep, dropout)
    for key, value in (("q", q), ("k", k), ("v", v)):
        case.input(key, value)
    case.output("o", o)
    case.output("stats", stats, "f64" if dtype == "f64" else "f32")
    case.node("attention_forward", {"q": "q", "k": "k", "v": "v", **operands},
              {"o": "o", "stats": "stats"}, **attributes)
    if dtype != "f64":
        return case

    d_o = case.input("d_o", case.random(*o.shape))
    case.input("saved_o", o)
    case.input("saved_stats", stats)
    wanted = [q, k, v] + ([bias_value] if bias else [])
    results = dict(zip(("dq", "dk", "dv", "dbias"), gradients([o], [d_o], wanted)))
    for key, value in results.items():
        case.output(key, value)
    case.node("attention_backward",
              {"q": "q", "k": "k", "v": "v", "o": "saved_o", "d_o": "d_o", "stats": "saved_stats",
               **operands}, {key: key for key in results}, **attributes)
    return case


def cases():
    yield attention("attention_plain", b=2, sq=3, skv=5, dv=3)
    yield attention("attention_scale", scale=0.2)
    yield attention("attention_scale_tensor", scale_tensor=True)
    yield attention("attention_causal_top_left", sq=5, skv=5, right=0)
    yield attention("attention_causal_top_left_wide", sq=3, skv=6, right=0)
    yield attention("attention_causal_bottom_right", sq=3, skv=6, right=0, alignment="bottom_right")
    yield attention("attention_causal_bottom_right_tall", sq=6, skv=4, right=0,
                    alignment="bottom_right")
    yield attention("attention_window", sq=6, skv=6, left=3, right=0)
    yield attention("attention_window_both_sides", sq=6, skv=7, left=2, right=1)
    yield attention("attention_window_bottom_right", sq=4, skv=8, left=3, right=0,
                    alignment="bottom_right")
    yield attention("attention_bias", b=2, sq=3, skv=4, bias=(2, 2, 3, 4))
    yield attention("attention_bias_broadcast", b=2, sq=3, skv=4, bias=(1, 2, 3, 4))
    yield attention("attention_bias_per_key", b=2, sq=3, skv=4, bias=(2, 1, 1, 4))
    yield attention("attention_padding", b=3, sq=4, skv=5, lengths=([4, 2, 1], [5, 3, 1]))
    yield attention("attention_padding_causal_bottom_right", b=3, sq=4, skv=6, right=0,
                    lengths=([4, 2, 3], [6, 5, 2]), alignment="bottom_right")
    yield attention("attention_padding_empty", b=2, sq=3, skv=4, lengths=([3, 0], [0, 4]))
    yield attention("attention_gqa", h=6, hk=2, sq=3, skv=4)
    yield attention("attention_mqa_causal", h=4, hk=1, sq=4, skv=4, right=0)
    yield attention("attention_gqa_different_heads", h=4, hk=2, hv=4, sq=3, skv=4)
    yield attention("attention_gqa_window_bias", b=2, h=4, hk=2, sq=4, skv=5, left=3, right=1,
                    bias=(1, 4, 4, 5))
    yield attention("attention_dropout_mask", b=2, sq=3, skv=4, dropout=0.25)
    yield attention("attention_f32_causal", sq=5, skv=5, right=0, dtype="f32")
    yield attention("attention_f16_gqa", h=4, hk=2, sq=4, skv=6, d=8, dtype="f16")
