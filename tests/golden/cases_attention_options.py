"""Attention's further options: what happens to the scores, sinks, pages, block masks, fp8 scales."""

import math

import torch

from cases_attention import visible
from golden_case import Case, gradients, leaf


def step(mode, *args, **attributes):
    return {"mode": mode, "args": list(args), **attributes}


def index_grids(b, h, sq, skv):
    """Query position, key position, batch and head, as a score program sees them."""
    return [torch.arange(n, dtype=torch.float64).reshape([n if a == axis else 1 for a in range(4)])
            for n, axis in ((sq, 2), (skv, 3), (b, 0), (h, 1))]


def relative_position(score, query, key, batch, head, factor):
    """A bias that grows with the logarithm of the distance, and a cube: smooth in the score."""
    return score * factor + torch.log(1.0 + (query - key) ** 2) + 0.1 * score * score * score


RELATIVE_POSITION = [
    step("mul", 0, 5), step("sub", 1, 2), {"constant": 1.0}, step("add_square", 12, 11),
    step("log", 13), step("add", 10, 14), step("mul", 0, 0), step("mul", 16, 0, alpha1=0.1),
    step("add", 15, 17)]


def gated(score, query, key, batch, head, factor):
    """Even keys pass through gelu, odd ones through sigmoid; later heads are hidden from key 3 on."""
    value = torch.where(key % 2 == 0, torch.nn.functional.gelu(score), torch.sigmoid(1.5 * score))
    return torch.where((key >= 3) & (head >= 1), torch.tensor(-math.inf, dtype=torch.float64), value)


GATED = [
    {"constant": 2.0}, step("mod", 2, 10), step("gelu_fwd", 0),
    step("sigmoid_fwd", 0, alpha1=1.5), step("binary_select", 13, 12, 11), {"constant": 3.0},
    step("cmp_ge", 2, 15), {"constant": 1.0}, step("cmp_ge", 4, 17), step("logical_and", 16, 18),
    {"constant": "-inf"}, step("binary_select", 20, 14, 19)]


def alibi_slopes(heads):
    """As the method's authors give them for head counts that are no power of two."""
    def of_power(n):
        start = 2.0 ** (-(2.0 ** -(math.log2(n) - 3)))
        return [start ** (i + 1) for i in range(n)]
    closest = 2 ** math.floor(math.log2(heads))
    slopes = of_power(closest)
    if closest < heads:
        slopes += of_power(2 * closest)[0::2][:heads - closest]
    return torch.tensor(slopes, dtype=torch.float64).reshape(1, heads, 1, 1)


def paged(case, name, container, table, length, operands):
    """[B, H, length, D] gathered from the container, and the operands that say so."""
    case.input(f"table_{name}", table[:, None, :, None], "i32")
    operands[f"page_table_{name}"] = f"table_{name}"
    block = container.shape[2]
    rows = [torch.cat([container[page] for page in batch], 1)[:, :length] for batch in table]
    assert all(row.shape[1] == length for row in rows) and block > 0
    return torch.stack(rows)


def options(name, b=1, h=2, hk=None, sq=4, skv=4, d=4, dv=3, bias=None, sink=False, alibi=False,
            soft_cap=None, modifier=None, blocks=None, pages=None, lengths=None, right=None,
            dropout=0.0):
    case = Case(name)
    hk = hk or h
    attributes, operands = {"scale": 0.75}, {}
    q = leaf(case.random(b, h, sq, d))
    containers = (pages[0], hk, pages[1]) if pages else (b, hk, skv)
    k, v = leaf(case.random(*containers, d)), leaf(case.random(*containers, dv))
    keys, values = k, v
    if pages:
        attributes["max_seq_len_kv"] = skv
        keys = paged(case, "k", k, torch.tensor(pages[2]), skv, operands)
        values = paged(case, "v", v, torch.tensor(pages[3]), skv, operands)
    keys = keys.repeat_interleave(h // hk, 1)
    values = values.repeat_interleave(h // hk, 1)

    scores = 0.75 * torch.matmul(q, keys.transpose(2, 3))
    if soft_cap:
        attributes["soft_cap"] = soft_cap
        scores = soft_cap * torch.tanh(scores / soft_cap)
    if modifier:
        function, attributes["score_modifier"] = modifier
        factor = case.input("factor", case.random(1, h, 1, skv))
        operands["score_input0"] = "factor"
        scores = function(scores, *index_grids(b, h, sq, skv), factor)
    wanted = [q, k, v]
    if bias:
        wanted.append(case.input("bias", leaf(case.random(*bias))))
        operands["bias"] = "bias"
        scores = scores + wanted[-1]
    if alibi:
        attributes["alibi"] = True
        query, key, _, _ = index_grids(b, h, sq, skv)
        scores = scores + alibi_slopes(h) * (key - query)
    q_lengths, kv_lengths = lengths or ([sq] * b, [skv] * b)
    if lengths:
        case.input("len_q", torch.tensor(q_lengths).reshape(b, 1, 1, 1), "i32")
        case.input("len_kv", torch.tensor(kv_lengths).reshape(b, 1, 1, 1), "i32")
        operands.update(seq_len_q="len_q", seq_len_kv="len_kv")
    if right is not None:
        attributes["right_bound"] = right
    seen = torch.stack([visible(q_lengths[i], kv_lengths[i], sq, skv, None, right)
                        for i in range(b)])[:, None].expand(b, h, sq, skv)
    if blocks:
        rows, columns = blocks
        attributes.update(block_rows=rows, block_columns=columns)
        mask = case.random(b, h, -(-sq // rows), -(-skv // columns), low=0, high=1) >= 0.4
        case.input("blocks", mask, "bool")
        operands["block_mask"] = "blocks"
        expanded = mask.repeat_interleave(rows, 2).repeat_interleave(columns, 3)
        seen = seen & expanded[:, :, :sq, :skv]
    scores = scores.masked_fill(~seen, -math.inf)
    if sink:
        wanted.append(case.input("sink", leaf(case.random(1, h, 1, 1))))
        operands["sink"] = "sink"
        exists = torch.stack([torch.arange(sq) < n for n in q_lengths]).reshape(b, 1, sq, 1)
        extra = wanted[-1].expand(b, h, sq, 1).masked_fill(~exists, -math.inf)
        scores = torch.cat([scores, extra], 3)

    largest = scores.detach().amax(-1, keepdim=True)
    empty = largest == -math.inf
    weights = torch.softmax(scores.masked_fill(empty, 0.0), -1).masked_fill(empty, 0.0)[..., :skv]
    if dropout:
        keep = case.random(b, h, sq, skv, low=0, high=1) >= dropout
        case.input("keep", keep, "bool")
        operands["dropout_mask"] = "keep"
        attributes["dropout"] = dropout
        weights = weights * keep / (1.0 - dropout)
    o = torch.matmul(weights, values)
    sums = torch.exp(scores - largest.masked_fill(empty, 0.0)).sum(-1, keepdim=True)
    stats = torch.logsumexp(scores, -1, keepdim=True)

    for key, value in (("q", q), ("k", k), ("v", v)):
        case.input(key, value)
    results = {"o": o, "stats": stats, "max": largest, "sum_exp": sums}
    for key, value in results.items():
        case.output(key, value)
    inputs = {"q": "q", "k": "k", "v": "v", **operands}
    case.node("attention_forward", inputs, {key: key for key in results}, **attributes)
    d_o = case.input("d_o", case.random(*o.shape))
    case.input("saved_o", o)
    case.input("saved_stats", stats)
    names = ["dq", "dk", "dv"] + (["dbias"] if bias else []) + (["dsink"] if sink else [])
    for key, value in zip(names, gradients([o], [d_o], wanted)):
        case.output(key, value)
    case.node("attention_backward",
              {**inputs, "o": "saved_o", "d_o": "d_o", "stats": "saved_stats"},
              {key: key for key in names}, **attributes)
    return case


def fp8(name, dtype, sq=4, skv=5, d=8):
    """Scaled fp8 attention without the roundings of the weights, which the oracle's bound covers."""
    case = Case(name, dtype)
    # Multiples of 1/2 up to 2: both fp8 types hold them.
    q, k, v, d_o = (case.random(1, 2, rows, d, grid=2) for rows in (sq, skv, skv, sq))
    factors = dict(descale_q=0.5, descale_k=1.5, descale_v=0.75, descale_s=1 / 256, scale_s=256.0,
                   scale_o=2.0, descale_o=1.25, descale_do=0.5, descale_dp=1 / 64, scale_dp=64.0,
                   scale_dq=4.0, scale_dk=0.5, scale_dv=3.0)
    for key, value in factors.items():
        case.scalar(key, value, 4, "f32")
    f = factors
    score_scale = 0.25 * f["descale_q"] * f["descale_k"]
    p = torch.softmax(score_scale * torch.matmul(q, k.transpose(2, 3)), -1)
    o = f["descale_v"] * torch.matmul(p, v)
    stats = torch.logsumexp(score_scale * torch.matmul(q, k.transpose(2, 3)), -1, keepdim=True)
    for key, value in (("q", q), ("k", k), ("v", v), ("d_o", d_o)):
        case.input(key, value)
    single = lambda x: x.abs().max().reshape(1, 1, 1, 1)
    outputs = {"o": o * f["scale_o"], "amax_s": single(p), "amax_o": single(o), "stats": stats}
    for key, value in outputs.items():
        case.output(key, value, "f32")
    shared = {key: key for key in ("q", "k", "v", "descale_q", "descale_k", "descale_v",
                                   "descale_s", "scale_s")}
    case.node("attention_forward", {**shared, "scale_o": "scale_o"},
              {key: key for key in outputs}, scale=0.25)

    saved = case.input("saved_o", case.random(1, 2, sq, d, grid=2))
    case.input("saved_stats", stats, "f32")
    delta = f["descale_do"] * f["descale_o"] * (saved * d_o).sum(-1, keepdim=True)
    dp = f["descale_do"] * f["descale_v"] * torch.matmul(d_o, v.transpose(2, 3))
    ds = 0.25 * p * (dp - delta)
    products = {"dq": f["descale_k"] * torch.matmul(ds, k),
                "dk": f["descale_q"] * torch.matmul(ds.transpose(2, 3), q),
                "dv": f["descale_do"] * torch.matmul(p.transpose(2, 3), d_o)}
    backward = {key: value * f[f"scale_{key}"] for key, value in products.items()}
    backward.update({f"amax_{key}": single(value) for key, value in products.items()})
    backward["amax_dp"] = single(ds)
    for key, value in backward.items():
        case.output(key, value, "f32")
    own = {key: key for key in ("descale_o", "descale_do", "descale_dp", "scale_dq", "scale_dk",
                                "scale_dv", "scale_dp")}
    case.node("attention_backward",
              {**shared, **own, "o": "saved_o", "d_o": "d_o", "stats": "saved_stats"},
              {key: key for key in backward}, scale=0.25)
    return case


def cases():
    yield options("attention_option_outputs", b=2, sq=3, skv=5, lengths=([3, 2], [5, 0]))
    yield options("attention_option_alibi", h=4, sq=4, skv=5, alibi=True, right=0)
    yield options("attention_option_alibi_six_heads", h=6, hk=2, sq=3, skv=4, alibi=True,
                  bias=(1, 6, 1, 4))
    yield options("attention_option_soft_cap", soft_cap=1.5, bias=(1, 2, 4, 4))
    yield options("attention_option_sink", b=2, sink=True, right=0)
    yield options("attention_option_sink_dropout", b=2, sq=3, skv=5, sink=True, dropout=0.25,
                  lengths=([3, 2], [5, 0]), bias=(2, 1, 3, 5))
    yield options("attention_option_block_mask", h=3, sq=5, skv=7, blocks=(2, 3))
    yield options("attention_option_block_mask_sink", sq=5, skv=7, blocks=(3, 2), sink=True)
    yield options("attention_option_paged", b=2, h=4, hk=2, skv=5, lengths=([4, 3], [5, 3]),
                  pages=(4, 2, [[3, 0, 1], [2, 0, 0]], [[1, 2, 3], [0, 3, 1]]))
    yield options("attention_option_modifier", h=2, sq=4, skv=5, bias=(1, 2, 4, 5),
                  modifier=(relative_position, RELATIVE_POSITION))
    yield options("attention_option_modifier_masks", h=3, sq=3, skv=5, modifier=(gated, GATED))
    yield options("attention_option_everything", b=2, h=3, sq=4, skv=6, alibi=True, sink=True,
                  soft_cap=2.0, modifier=(relative_position, RELATIVE_POSITION), blocks=(2, 2),
                  lengths=([4, 3], [6, 4]), right=2, dropout=0.25, bias=(1, 3, 1, 6))
    yield fp8("attention_fp8_e4m3", "e4m3")
    yield fp8("attention_fp8_e5m2", "e5m2")
