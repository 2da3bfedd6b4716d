"""Attention that nvidia-cudnn-frontend builds, forward and backward."""

import cudnn
import numpy as np

import numpy_reference as reference
from frontend_graph import Graph, cases, expect, numbers, wide


ATTENTIONS = [
    dict(shape=(2, 3, 3, 24, 24, 16)),  # batch, heads, key heads, queries, keys, head dim
    dict(shape=(2, 4, 2, 16, 40, 32), causal=True),
    dict(shape=(1, 2, 2, 24, 24, 16), bias=True),
    dict(shape=(2, 2, 2, 32, 24, 16), padding=True),
    dict(shape=(2, 4, 1, 40, 40, 64), causal=True, bias=True, padding=True),
    dict(shape=(1, 2, 2, 24, 24, 16), dropout=True),
]


def attention_data(shape, causal=False, bias=False, padding=False, dropout=False):
    batch, heads, groups, queries, keys, depth = shape
    q, do = (numbers((batch, heads, queries, depth), np.float16, seed) for seed in (1, 4))
    k, v = (numbers((batch, groups, keys, depth), np.float16, seed) for seed in (2, 3))
    added = numbers((1, heads, queries, keys), np.float16, 5) if bias else None
    lengths = None
    mask = np.ones((batch, 1, queries, keys), bool)
    if causal:
        mask &= np.arange(keys)[None, :] <= np.arange(queries)[:, None]
    if padding:
        lengths = [np.array([max(1, n - 5 * b) for b in range(batch)], np.int32)
                   .reshape(batch, 1, 1, 1) for n in (queries, keys)]
        mask &= (np.arange(keys) < lengths[1]) & (np.arange(queries)[:, None] < lengths[0])
    return q, k, v, do, added, lengths, mask


def attention_options(g, causal, added, lengths, dropout):
    options = dict(use_causal_mask=causal, bias=g.input(added, "bias") if added is not None else None)
    if lengths is not None:
        options.update(use_padding_mask=True, seq_len_q=g.input(lengths[0], "seq_len_q"),
                       seq_len_kv=g.input(lengths[1], "seq_len_kv"))
    if dropout:
        seed, offset = (np.full((1, 1, 1, 1), n, np.int64) for n in (11, 3))
        options["dropout"] = (0.0, g.input(seed, "seed"), g.input(offset, "offset"))
    return options


@cases(*ATTENTIONS)
def attention_forward(**variant):
    q, k, v, _, added, lengths, mask = attention_data(**variant)
    scale = 1 / np.sqrt(q.shape[-1])
    g = Graph(np.float16)
    o, stats = g.graph.sdpa(
        q=g.input(q, "q"), k=g.input(k, "k"), v=g.input(v, "v"), generate_stats=True,
        attn_scale=float(scale), **attention_options(g, variant.get("causal", False), added,
                                                     lengths, variant.get("dropout", False)))
    g.output("o", o, np.float16, q.shape)
    g.output("stats", stats, np.float32)
    got = g.run()
    expected, expected_stats, _ = reference.attention(
        *wide(q, k, v), scale, mask, added.astype(np.float64) if added is not None else None)
    rows = np.broadcast_to(mask.any(-1, keepdims=True), expected_stats.shape)
    expect(got["o"], expected, "o")
    expect(np.where(rows, got["stats"], 0).astype(np.float32), np.where(rows, expected_stats, 0),
           "stats")


@cases(*ATTENTIONS)
def attention_backward(**variant):
    q, k, v, do, added, lengths, mask = attention_data(**variant)
    scale = 1 / np.sqrt(q.shape[-1])
    wide_bias = added.astype(np.float64) if added is not None else None
    o, stats, _ = reference.attention(*wide(q, k, v), scale, mask, wide_bias)
    o, stats = o.astype(np.float16), stats.astype(np.float32)
    expected = reference.attention_gradients(*wide(q, k, v, do), scale, mask, wide_bias)
    g = Graph(np.float16)
    results = g.graph.sdpa_backward(
        q=g.input(q, "q"), k=g.input(k, "k"), v=g.input(v, "v"), o=g.input(o, "o"),
        dO=g.input(do, "do"), stats=g.input(stats, "stats"), attn_scale=float(scale),
        **attention_options(g, variant.get("causal", False), added, lengths,
                            variant.get("dropout", False)))
    for name, tensor, model in zip(("dq", "dk", "dv"), results, (q, k, v)):
        g.output(name, tensor, np.float16, model.shape)
    got = g.run()
    for name, value in zip(("dq", "dk", "dv"), expected):
        expect(got[name], value, name, roundings=8)  # o is a rounded input, and P and dS may be rounded
