"""Attention of nvidia-cudnn-frontend with the rest of its options: windows, ALiBi, sinks, dropout,
paged caches, packed (ragged) sequences."""

import cudnn
import numpy as np

import numpy_reference as reference
from frontend_graph import Graph, case, cases, expect, numbers, wide


def data(batch, heads, groups, queries, keys, depth):
    q = numbers((batch, heads, queries, depth), np.float16, 1)
    k, v = (numbers((batch, groups, keys, depth), np.float16, seed) for seed in (2, 3))
    return q, k, v, 1 / np.sqrt(depth)


def distance(queries, keys):
    """The distance from a query to a key before it."""
    return np.arange(queries)[:, None] - np.arange(keys)[None, :]


def attend(g, q, k, v, scale, stats=False, **options):
    o, s = g.graph.sdpa(q=g.input(q, "q"), k=g.input(k, "k"), v=g.input(v, "v"),
                        generate_stats=stats, attn_scale=float(scale), **options)
    g.output("o", o, np.float16, q.shape)
    if stats:
        g.output("stats", s, np.float32)
    return g


@cases(dict(queries=32, keys=32), dict(queries=17, keys=40), dict(queries=1, keys=33))
def attention_bottom_right(queries, keys):
    q, k, v, scale = data(2, 2, 2, queries, keys, 32)
    g = attend(Graph(np.float16), q, k, v, scale, use_causal_mask_bottom_right=True)
    mask = distance(queries, keys) >= queries - keys
    expect(g.run()["o"], reference.attention(*wide(q, k, v), scale, mask)[0], "o")


@cases(dict(left=5), dict(left=16))
def attention_sliding_window(left):
    q, k, v, scale = data(1, 2, 2, 40, 40, 32)
    g = attend(Graph(np.float16), q, k, v, scale, diagonal_band_left_bound=left,
               diagonal_band_right_bound=0)
    behind = distance(40, 40)
    mask = (behind >= 0) & (behind < left)
    expect(g.run()["o"], reference.attention(*wide(q, k, v), scale, mask)[0], "o")


@case
def attention_alibi():
    q, k, v, scale = data(1, 4, 4, 24, 24, 32)
    g = attend(Graph(np.float16), q, k, v, scale, use_alibi_mask=True, use_causal_mask=True)
    behind = distance(24, 24)
    slopes = 2.0 ** (-8 * np.arange(1, 5) / 4)
    bias = -slopes[:, None, None] * behind
    expect(g.run()["o"], reference.attention(*wide(q, k, v), scale, behind >= 0, bias)[0], "o")


@case
def attention_sink():
    q, k, v, scale = data(2, 3, 3, 16, 24, 32)
    sink = numbers((1, 3, 1, 1), np.float32, 5)
    g = Graph(np.float16)
    attend(g, q, k, v, scale, sink_token=g.input(sink, "sink"))
    _, stats, probabilities = reference.attention(*wide(q, k, v), scale)
    kept = probabilities * np.exp(stats) / (np.exp(stats) + np.exp(sink.astype(np.float64)))
    expect(g.run()["o"], np.einsum("bhqk,bhkd->bhqd", kept, v.astype(np.float64)), "o")


@case
def attention_dropout():
    """The mask is a second output; it keeps about 1 - p of the elements, and kept ones are scaled."""
    q, k, v, scale = data(2, 2, 2, 64, 64, 32)
    dropped = 0.25
    g = Graph(np.float16)
    seed, offset = (np.full((1, 1, 1, 1), n, np.int64) for n in (11, 3))
    mask = g.graph.tensor(name="mask", dim=[2, 2, 64, 64], stride=[8192, 4096, 64, 1],
                          data_type=cudnn.data_type.FLOAT)
    attend(g, q, k, v, scale, rng_dump=mask,
           dropout=(dropped, g.input(seed, "seed"), g.input(offset, "offset")))
    g.output("mask", mask)
    got = g.run()
    kept = got["mask"] != 0
    assert abs(kept.mean() - (1 - dropped)) < 0.02, f"{kept.mean():.3f} are kept"
    _, _, probabilities = reference.attention(*wide(q, k, v), scale)
    weights = np.where(kept, probabilities / (1 - dropped), 0)
    expect(got["o"], np.einsum("bhqk,bhkd->bhqd", weights, v.astype(np.float64)), "o", roundings=4)


@case
def attention_soft_cap():
    """A score modifier of the caller between the scores and the softmax."""
    q, k, v, scale = data(1, 2, 2, 24, 24, 32)
    g = Graph(np.float16)
    cap, cap_inverse = g.scalar(0.5, "cap"), g.scalar(2.0, "cap_inverse")
    attend(g, q, k, v, scale, score_mod=lambda graph, scores: graph.mul(
        graph.tanh(graph.mul(scores, cap_inverse)), cap))
    scores = np.einsum("bhqd,bhkd->bhqk", *wide(q, k)) * scale
    capped = 0.5 * np.tanh(2 * scores)
    expected = reference.attention(*wide(q, k, v), scale, bias=capped - scores)[0]
    expect(g.run()["o"], expected, "o")


@cases(dict(queries=1), dict(queries=12))
def attention_paged(queries):
    """Paged k and v: pages of 8 rows, addressed by a page table."""
    batch, heads, pages, rows, depth = 2, 2, 5, 8, 32
    q, k, v, scale = data(batch, heads, heads, queries, pages * rows, depth)
    order = np.random.default_rng(7).permutation(batch * pages).astype(np.int32)
    table = order.reshape(batch, 1, pages, 1)
    stores = []
    for whole in (k, v):
        store = np.empty((batch * pages, heads, rows, depth), np.float16)
        for b in range(batch):
            for page in range(pages):
                store[table[b, 0, page, 0]] = whole[b, :, page * rows:(page + 1) * rows]
        stores.append(store)
    lengths = [np.full((batch, 1, 1, 1), queries, np.int32),
               np.array([37, 21], np.int32).reshape(batch, 1, 1, 1)]
    g = Graph(np.float16)
    attend(g, q, *stores, scale, use_padding_mask=True, seq_len_q=g.input(lengths[0], "seq_len_q"),
           seq_len_kv=g.input(lengths[1], "seq_len_kv"),
           paged_attention_k_table=g.input(table, "k_table"),
           paged_attention_v_table=g.input(table, "v_table"),
           paged_attention_max_seq_len_kv=pages * rows)
    mask = np.arange(pages * rows) < lengths[1]
    expect(g.run()["o"], reference.attention(*wide(q, k, v), scale, mask)[0], "o")


@cases(dict(causal=False), dict(causal=True))
def attention_packed(causal):
    """Packed sequences of different lengths, addressed by ragged offsets in elements."""
    heads, depth, longest = 2, 32, 24
    lengths = [24, 9, 17]
    batch, total = len(lengths), sum(lengths)
    begin = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    offsets = (begin * heads * depth).reshape(batch + 1, 1, 1, 1)
    packed = [numbers((total, heads, depth), np.float16, seed) for seed in (1, 2, 3)]
    result = np.full((total, heads, depth), 77, np.float16)
    scale = 1 / np.sqrt(depth)
    g = Graph(np.float16)
    form = dict(dim=[batch, heads, longest, depth],
                stride=[longest * heads * depth, depth, heads * depth, 1],
                data_type=cudnn.data_type.HALF)
    tensors = []
    for name, array in zip(("q", "k", "v"), packed):
        tensor = g.graph.tensor(name=name, **form)
        tensor.set_ragged_offset(g.input(offsets.copy(), f"{name}_offsets"))
        g.arrays[tensor] = array
        tensors.append(tensor)
    length = [g.input(np.array(lengths, np.int32).reshape(batch, 1, 1, 1), n) for n in ("sq", "sk")]
    o, _ = g.graph.sdpa(q=tensors[0], k=tensors[1], v=tensors[2], generate_stats=False,
                        attn_scale=float(scale), use_padding_mask=True, seq_len_q=length[0],
                        seq_len_kv=length[1], use_causal_mask=causal)
    o.set_output(True).set_data_type(cudnn.data_type.HALF)
    o.set_dim(form["dim"]).set_stride(form["stride"])
    o.set_ragged_offset(g.input(offsets.copy(), "o_offsets"))
    g.arrays[o] = result
    g.run()
    for b, n in enumerate(lengths):
        part = slice(begin[b], begin[b + 1])
        q, k, v = (np.moveaxis(t[part], 0, 1)[None].astype(np.float64) for t in packed)
        mask = distance(n, n) >= 0 if causal else None
        expected = np.moveaxis(reference.attention(q, k, v, scale, mask)[0][0], 0, 1)
        expect(result[part], expected, f"o of sequence {b}")


@cases(dict(option="bias"), dict(option="bottom_right"), dict(option="window"),
       dict(option="dropout"))
def attention_backward_with(option):
    """Gradients with the same options; with dropout, for the mask that the forward graph returns."""
    queries, keys = 24, 40 if option == "bottom_right" else 24
    q, k, v, scale = data(2, 2, 2, queries, keys, 32)
    do = numbers(q.shape, np.float16, 4)
    bias = numbers((1, 2, queries, keys), np.float16, 5) if option == "bias" else None
    behind = distance(queries, keys)
    mask = {"bottom_right": behind >= queries - keys,
            "window": (behind >= 0) & (behind < 7)}.get(option, np.ones_like(behind, bool))
    keep = 0.75
    weights = np.ones((2, 2, queries, keys))

    def options(g):
        seed, offset = (np.full((1, 1, 1, 1), n, np.int64) for n in (5, 9))
        return {"bias": lambda: dict(bias=g.input(bias, "bias")),
                "bottom_right": lambda: dict(use_causal_mask_bottom_right=True),
                "window": lambda: dict(diagonal_band_left_bound=7, diagonal_band_right_bound=0),
                "dropout": lambda: dict(dropout=(1 - keep, g.input(seed, "seed"),
                                                 g.input(offset, "offset")))}[option]()

    forward = Graph(np.float16)
    extra = {}
    if option == "dropout":
        dump = forward.graph.tensor(name="mask", dim=list(weights.shape), data_type=cudnn.data_type.FLOAT,
                                    stride=[2 * queries * keys, queries * keys, keys, 1])
        forward.output("mask", dump)
        extra["rng_dump"] = dump
    attend(forward, q, k, v, scale, stats=True, **options(forward), **extra)
    made = forward.run()
    if option == "dropout":
        weights = (made["mask"] != 0) / keep
    expected = reference.attention_gradients(
        *wide(q, k, v, do), scale, mask, bias.astype(np.float64) if bias is not None else None, weights)

    g = Graph(np.float16)
    arguments = options(g)
    if option == "bias":
        dbias = g.graph.tensor(name="dbias", dim=list(bias.shape), data_type=cudnn.data_type.HALF,
                               stride=[2 * queries * keys, queries * keys, keys, 1])
        arguments["dBias"] = g.output("dbias", dbias)
    results = g.graph.sdpa_backward(
        q=g.input(q, "q"), k=g.input(k, "k"), v=g.input(v, "v"), o=g.input(made["o"], "o"),
        dO=g.input(do, "do"), stats=g.input(made["stats"], "stats"), attn_scale=float(scale),
        **arguments)
    for name, tensor, model in zip(("dq", "dk", "dv"), results, (q, k, v)):
        g.output(name, tensor, np.float16, model.shape)
    got = g.run()
    for name, value in zip(("dq", "dk", "dv"), expected):
        expect(got[name], value, name, roundings=8)
    if option == "bias":
        expect(got["dbias"], expected[3].sum(0, keepdims=True), "dbias", roundings=8)
