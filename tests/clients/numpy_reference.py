"""Numpy references in float64 for the graphs of the client tests."""

import itertools
import math

import numpy as np


def _taps(image, filters, padding, stride, dilation, output):
    """For every tap of a filter: the tap, and the slice of the padded image that it multiplies."""
    padded = np.pad(image, [(0, 0), (0, 0)] + [(p, p) for p in padding])
    for tap in itertools.product(*(range(n) for n in filters)):
        begin = [t * d for t, d in zip(tap, dilation)]
        window = tuple(slice(b, b + (o - 1) * s + 1, s) for b, o, s in zip(begin, output, stride))
        yield tap, window, padded


def convolution(x, w, padding, stride, dilation):
    """x [N, C, ...], w [K, C / groups, ...]: cross-correlation."""
    groups = x.shape[1] // w.shape[1]
    output = [(i + 2 * p - d * (f - 1) - 1) // s + 1 for i, f, p, s, d in
              zip(x.shape[2:], w.shape[2:], padding, stride, dilation)]
    y = np.zeros([x.shape[0], w.shape[0], *output])
    for tap, window, padded in _taps(x, w.shape[2:], padding, stride, dilation, output):
        for channels, filters in _groups(x.shape[1], w.shape[0], groups):
            part = padded[(slice(None), channels, *window)]
            y[:, filters] += np.einsum("nc...,kc->nk...", part, w[(filters, slice(None), *tap)])
    return y


def convolution_gradients(x, w, dy, padding, stride, dilation):
    """The gradients with respect to x and w."""
    groups = x.shape[1] // w.shape[1]
    dx = np.zeros([*x.shape[:2], *(i + 2 * p for i, p in zip(x.shape[2:], padding))])
    dw = np.zeros(w.shape)
    for tap, window, padded in _taps(x, w.shape[2:], padding, stride, dilation, dy.shape[2:]):
        for channels, filters in _groups(x.shape[1], w.shape[0], groups):
            place = (slice(None), channels, *window)
            weights = w[(filters, slice(None), *tap)]
            dx[place] += np.einsum("nk...,kc->nc...", dy[:, filters], weights)
            summed = (0, *range(2, dy.ndim))
            dw[(filters, slice(None), *tap)] += np.tensordot(dy[:, filters], padded[place],
                                                             (summed, summed))
    inside = tuple(slice(p, p + i) for p, i in zip(padding, x.shape[2:]))
    return dx[(slice(None), slice(None), *inside)], dw


def _groups(channels, filters, groups):
    c, k = channels // groups, filters // groups
    return [(slice(g * c, (g + 1) * c), slice(g * k, (g + 1) * k)) for g in range(groups)]


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def normalize(x, axes, epsilon, centered=True):
    """The normalised x, with its mean and inverse standard deviation."""
    mean = x.mean(axes, keepdims=True) if centered else np.zeros_like(x.mean(axes, keepdims=True))
    inverse = 1 / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + epsilon)
    return (x - mean) * inverse, mean, inverse


def normalize_gradients(x, dy, scale, axes, mean, inverse, others, centered=True):
    """dx, dscale, dbias; `axes` are the normalised axes, `others` those on which the scale has extent 1."""
    normal = (x - mean) * inverse
    inner = dy * scale
    dx = inner - normal * (inner * normal).mean(axes, keepdims=True)
    if centered:
        dx = dx - inner.mean(axes, keepdims=True)
    return dx * inverse, (dy * normal).sum(others, keepdims=True), dy.sum(others, keepdims=True)


def attention(q, k, v, scale, mask=None, bias=None):
    """[B, H, S, D] each; the mask is true where a key is seen. Output, stats, probabilities."""
    repeat = q.shape[1] // k.shape[1]
    k, v = (np.repeat(t, repeat, 1) for t in (k, v))
    scores = np.einsum("bhqd,bhkd->bhqk", q, k) * scale
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        stats = top + np.log(total)
    probabilities = weights / np.where(total == 0, 1, total)
    return np.einsum("bhqk,bhkd->bhqd", probabilities, v), stats, probabilities


def attention_gradients(q, k, v, do, scale, mask=None, bias=None, weights=1.0):
    """dq, dk, dv, and the gradient of the scores after scale and bias. The weights multiply the
    probabilities (dropout)."""
    _, _, p = attention(q, k, v, scale, mask, bias)
    heads, groups = q.shape[1], k.shape[1]
    kr, vr = (np.repeat(t, heads // groups, 1) for t in (k, v))
    o = np.einsum("bhqk,bhkd->bhqd", p * weights, vr)
    dp = np.einsum("bhqd,bhkd->bhqk", do, vr) * weights
    ds = p * (dp - (do * o).sum(-1, keepdims=True))
    dq = np.einsum("bhqk,bhkd->bhqd", ds, kr) * scale
    dk = np.einsum("bhqk,bhqd->bhkd", ds, q) * scale
    dv = np.einsum("bhqk,bhqd->bhkd", p * weights, do)
    gather = lambda t: t.reshape(t.shape[0], groups, heads // groups, *t.shape[2:]).sum(2)
    return dq, gather(dk), gather(dv), ds
