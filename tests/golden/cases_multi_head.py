"""Multi-head attention with projection weights: PyTorch's own, and written out with windows."""

import math

import torch

from golden_case import Case, gradients, leaf


def pieces(weights, sizes, biases):
    """Matrices and biases of q, k, v and o in the order of the flat weights."""
    matrices, vectors, at = [], [], 0
    for rows, columns in sizes:
        matrices.append(weights[at:at + rows * columns].reshape(rows, columns))
        at += rows * columns
    for rows, _ in sizes:
        vectors.append(weights[at:at + rows] if biases else 0.0)
        at += rows if biases else 0
    return matrices, vectors


def formula(q, k, v, weights, heads, sizes, biases, scale, seen, inside):
    """q [B, M, T, D]; seen [B, 1, M, T, Tk]: which keys a step sees; inside [B, M, T, 1]."""
    (wq, wk, wv, wo), (bq, bk, bv, bo) = pieces(weights, sizes, biases)

    def split(x, w, b):
        y = x @ w.t() + b
        return y.reshape(*y.shape[:3], heads, -1).permute(0, 3, 1, 2, 4)

    scores = scale * split(q, wq, bq) @ split(k, wk, bk).transpose(-1, -2)
    scores = scores.masked_fill(~seen, -math.inf)
    empty = ~seen.any(-1, keepdim=True)
    attention = torch.softmax(scores.masked_fill(empty, 0.0), -1).masked_fill(empty, 0.0)
    o = (attention @ split(v, wv, bv)).permute(0, 2, 3, 1, 4)
    o = o.reshape(*o.shape[:3], -1) @ wo.t() + bo
    return torch.where(inside, o, torch.zeros_like(o))


def multi_head(name, b=2, beams=1, key_beams=1, tq=3, tk=4, dims=(4, 4, 4), heads=2, proj=(3, 2, 5),
               biases=True, scale=0.5, residual=False, lengths=None, windows=None, torch_own=False):
    case = Case(name)
    head, value, result = proj
    sizes = ((heads * head, dims[0]), (heads * head, dims[1]), (heads * value, dims[2]),
             (result, heads * value))
    count = sum(r * c for r, c in sizes) + (sum(r for r, _ in sizes) if biases else 0)
    q = leaf(case.random(b, beams, tq, dims[0]))
    k = leaf(case.random(b, key_beams, tk, dims[1]))
    v = leaf(case.random(b, key_beams, tk, dims[2]))
    weights = leaf(case.random(count, low=-1.0, high=1.0))
    operands = {}
    len_q, len_kv = lengths or ([[tq] * beams] * b, [[tk] * key_beams] * b)
    inside = torch.arange(tq).reshape(1, 1, tq, 1) < torch.tensor(len_q)[:, :, None, None]
    key = torch.arange(tk)
    seen = inside & (key < torch.tensor(len_kv)[:, :, None, None])
    if lengths:
        case.input("len_q", torch.tensor(len_q).reshape(b, beams, 1, 1), "i32")
        case.input("len_kv", torch.tensor(len_kv).reshape(b, key_beams, 1, 1), "i32")
        operands.update(seq_len_q="len_q", seq_len_kv="len_kv")
    if windows:
        low, high = (torch.tensor(bound).reshape(1, 1, tq, 1) for bound in windows)
        case.input("low", low, "i32")
        case.input("high", high, "i32")
        operands.update(window_low="low", window_high="high")
        seen = seen & (key >= low) & (key < high)
    extra = {}
    if torch_own:
        (wq, wk, wv, wo), (bq, bk, bv, bo) = pieces(weights, sizes, biases)
        own = [x[:, 0].transpose(0, 1) for x in (q, k, v)]
        o = torch.nn.functional.multi_head_attention_forward(
            *own, dims[0], heads, None, torch.cat([bq, bk, bv]), None, None, False, 0.0, wo, bo,
            use_separate_proj_weight=True, q_proj_weight=wq, k_proj_weight=wk, v_proj_weight=wv,
            need_weights=False)[0].transpose(0, 1)[:, None]
    else:
        o = formula(q, k, v, weights, heads, sizes, biases, scale, seen[:, None], inside)
    d_o = case.input("d_o", case.random(*o.shape))
    results = gradients([o], [d_o], [q, k, v, weights])
    if residual:
        added = case.input("residual", case.random(*o.shape))
        extra["residual"] = "residual"
        o = o + torch.where(inside, added, torch.zeros_like(added))
    for key_name, tensor in (("q", q), ("k", k), ("v", v), ("weights", weights)):
        case.input(key_name, tensor)
        operands[key_name] = key_name
    attributes = {"heads": heads, "q_projection": head, "k_projection": head,
                  "v_projection": value, "o_projection": result, "projection_biases": biases,
                  "softmax_scale": scale}
    case.output("o", o)
    case.node("multi_head_attention_forward", {**operands, **extra}, {"o": "o"}, **attributes)
    for key_name, tensor in zip(("dq", "dk", "dv", "dweights"), results):
        case.output(key_name, tensor)
    case.node("multi_head_attention_backward_data", {**operands, "d_o": "d_o"},
              {"dq": "dq", "dk": "dk", "dv": "dv"}, **attributes)
    case.node("multi_head_attention_backward_weights", {**operands, "d_o": "d_o"},
              {"dweights": "dweights"}, **attributes)
    return case


def cases():
    yield multi_head("multi_head_torch", dims=(4, 3, 5), proj=(2, 2, 4), scale=2 ** -0.5,
                     torch_own=True)
    yield multi_head("multi_head_biases_residual", dims=(4, 3, 5), residual=True)
    yield multi_head("multi_head_no_biases", biases=False)
    yield multi_head("multi_head_lengths", lengths=([[3], [2]], [[4], [1]]), residual=True)
    yield multi_head("multi_head_windows", windows=([0, 1, 2], [2, 4, 2]))
    yield multi_head("multi_head_beams", beams=2, lengths=([[3, 1], [2, 3]], [[4], [2]]),
                     windows=([0, 0, 1], [2, 3, 9]))
    yield multi_head("multi_head_beams_own_keys", beams=2, key_beams=2,
                     lengths=([[3, 1], [2, 3]], [[4, 2], [2, 3]]))
