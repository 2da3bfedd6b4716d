"""CTC loss, the spatial transformer, patches and tensor transforms."""

import torch
import torch.nn.functional as F

from golden_case import Case, gradients, leaf


def label_tensor(sequences, flat):
    if flat:
        return torch.tensor([label for labels in sequences for label in labels])
    longest = max(1, max(len(labels) for labels in sequences))
    return torch.tensor([labels + [0] * (longest - len(labels)) for labels in sequences])


def ctc(name, times, classes, sequences, lengths, blank=0, probabilities=False, flat=False,
        zero_infinity=False, skip=False, dtype="f64", with_gradient=True):
    """`sequences` are the labels, `lengths` the time steps of each."""
    case = Case(name, dtype)
    batch = len(sequences)
    x = case.random(times, batch, classes)
    if probabilities:
        x = torch.softmax(x, -1)
    x = leaf(x)
    log_probabilities = torch.log(x) if probabilities else torch.log_softmax(x, -1)
    inner = leaf(log_probabilities)
    label_lengths = torch.tensor([len(labels) for labels in sequences])
    input_lengths = torch.tensor(lengths)
    labels = label_tensor(sequences, flat)
    loss = F.ctc_loss(inner, labels, input_lengths, label_lengths, blank, "none", zero_infinity)
    case.input("x", x)
    case.input("labels", labels, "i32")
    case.input("label_lengths", label_lengths, "i32")
    case.input("input_lengths", input_lengths, "i64")
    case.output("loss", loss, "f64" if dtype == "f64" else "f32")
    operands = {key: key for key in ("x", "labels", "label_lengths", "input_lengths")}
    attributes = dict(input="probabilities" if probabilities else "logits", blank=blank,
                      zero_infinity=zero_infinity)
    results = {"loss": "loss"}
    if with_gradient:
        # PyTorch's gradient is softmax - p(class at t | labels): that of the logits. With respect to
        # probabilities the first part does not belong to it, and the second is divided by them.
        gradient = gradients([loss.sum()], [torch.tensor(1.0, dtype=torch.float64)], [inner])[0]
        if probabilities:
            passing = x - gradient
            # Classes no path passes through are certain of it; the difference is not.
            passing[passing.abs() < 1e-15] = 0.0
            gradient = -passing / x
        valid = torch.arange(times)[:, None, None] < input_lengths[None, :, None]
        if zero_infinity:
            valid = valid & (loss > 0)[None, :, None]
        gradient = torch.where(valid, gradient, torch.zeros_like(gradient))
        if skip:
            previous = case.input("previous", case.random(*x.shape))
            past = torch.arange(times)[:, None, None] >= input_lengths[None, :, None]
            gradient = torch.where(past, previous, gradient)
            operands["previous"] = "previous"
            attributes["padding"] = "skip"
        case.output("gradient", gradient)
        results["gradient"] = "gradient"
    case.node("ctc_loss", operands, results, **attributes)
    return case


def affine_grid(name, size, align_corners):
    case = Case(name)
    spatial = len(size)
    theta = leaf(case.random(2, spatial, spatial + 1))
    grid = F.affine_grid(theta, (2, 1, *size), align_corners)
    dgrid = case.random(*grid.shape)
    case.input("theta", theta)
    case.input("dgrid", dgrid)
    case.output("grid", grid)
    case.output("dtheta", gradients([grid], [dgrid], [theta])[0])
    attributes = dict(size=list(size), align_corners=align_corners)
    case.node("grid_generator_forward", {"theta": "theta"}, {"grid": "grid"}, **attributes)
    case.node("grid_generator_backward", {"dgrid": "dgrid"}, {"dtheta": "dtheta"}, **attributes)
    return case


def grid_sample(name, x_dims, out, mode, padding, align_corners, layout=None):
    case = Case(name)
    spatial = len(out)
    x = leaf(case.random(*x_dims))
    # Away from the borders of cells, where the gradient jumps.
    grid = leaf(case.random(x_dims[0], *out, spatial, low=-1.75, high=1.75) + 0.00371)
    y = F.grid_sample(x, grid, mode, padding, align_corners)
    dy = case.random(*y.shape)
    dx, dgrid = gradients([y], [dy], [x, grid])
    where = {"layout": layout} if layout else {}
    case.input("x", x, **where)
    case.input("grid", grid)
    case.input("dy", dy, **where)
    case.output("y", y, **where)
    case.output("dx", dx, **where)
    case.output("dgrid", dgrid)
    attributes = dict(mode=mode, padding=padding, align_corners=align_corners)
    case.node("grid_sample_forward", {"x": "x", "grid": "grid"}, {"y": "y"}, **attributes)
    case.node("grid_sample_backward", {"x": "x", "grid": "grid", "dy": "dy"},
              {"dx": "dx", "dgrid": "dgrid"}, **attributes)
    return case


def im2col(name, dims, window, layout=None, **attributes):
    case = Case(name)
    x = case.input("x", case.random(*dims), **({"layout": layout} if layout else {}))
    case.output("y", F.unfold(x, window, **attributes))
    case.node("im2col", {"x": "x"}, {"y": "y"}, window=list(window),
              **{key: list(value) for key, value in attributes.items()})
    return case


def tensor_transform(name, dims, pads, fold):
    """Padding and folding, blended; then back."""
    case = Case(name)
    x = case.input("x", case.random(*dims))
    before, after = pads
    padded = F.pad(x, [v for pair in zip(before[::-1], after[::-1]) for v in pair])
    by_channel = F.pixel_unshuffle(padded, fold)  # the places of a block next to each other
    folded = by_channel.unflatten(1, (-1, fold * fold)).transpose(1, 2).flatten(1, 2)
    z = case.input("z", case.random(*folded.shape))
    case.output("folded", folded)
    case.output("blended", 0.75 * folded - 1.5 * z)
    case.output("back", F.pixel_shuffle(by_channel, fold)[tuple(
        slice(b, extent + b) for b, extent in zip(before, dims))])
    attributes = dict(pad_before=before, pad_after=after, fold=[fold, fold])
    case.node("tensor_transform", {"x": "x"}, {"y": "folded"}, **attributes)
    case.node("tensor_transform", {"x": "x", "z": "z"}, {"y": "blended"}, alpha=0.75, beta=-1.5,
              **attributes)
    case.node("tensor_transform", {"x": "folded"}, {"y": "back"}, unfold=True, **attributes)
    return case


def cases():
    labels = [[1, 2, 3], [2, 2], [], [4]]
    yield ctc("ctc_logits", 7, 5, labels, [7, 5, 3, 1])
    yield ctc("ctc_flat_labels", 7, 5, labels, [7, 5, 3, 1], flat=True)
    yield ctc("ctc_probabilities", 6, 5, labels, [6, 4, 3, 2], probabilities=True)
    yield ctc("ctc_repeated", 9, 3, [[1, 1, 1, 1], [1, 1, 2, 2], [2, 1, 2, 1]], [9, 8, 9])
    yield ctc("ctc_last_blank", 6, 4, [[0, 1, 2], [0, 0]], [6, 4], blank=3)
    yield ctc("ctc_skip", 6, 4, [[1, 3], [2]], [4, 3], skip=True)
    yield ctc("ctc_impossible", 4, 4, [[1, 1, 1], [1, 2]], [4, 4], with_gradient=False)
    yield ctc("ctc_zero_infinity", 5, 4, [[1, 1, 1], [1, 2], [3, 2, 1]], [4, 5, 2],
              zero_infinity=True)
    yield ctc("ctc_long", 40, 4, [[1 + i % 3 for i in range(19)]], [40])
    yield ctc("ctc_f32", 8, 5, [[1, 2, 2], [4]], [8, 6], dtype="f32")
    for align in (False, True):
        kind = "corners" if align else "edges"
        yield affine_grid(f"affine_grid_2d_{kind}", (3, 4), align)
        yield affine_grid(f"affine_grid_3d_{kind}", (2, 3, 4), align)
        for mode in ("bilinear", "nearest"):
            for padding in ("zeros", "border", "reflection"):
                suffix = f"{mode}_{padding}_{kind}"
                yield grid_sample(f"grid_sample_2d_{suffix}", (2, 3, 4, 5), (5, 4), mode, padding,
                                  align, "channels_last" if align else None)
                yield grid_sample(f"grid_sample_3d_{suffix}", (1, 2, 3, 4, 3), (2, 4, 3), mode,
                                  padding, align)
    yield affine_grid("affine_grid_2d_one", (1, 3), False)
    yield affine_grid("affine_grid_2d_one_corners", (1, 3), True)
    yield im2col("im2col", (2, 3, 5, 6), (2, 3))
    yield im2col("im2col_padded", (1, 2, 6, 5), (3, 2), padding=(2, 1), stride=(2, 1),
                 dilation=(1, 2), layout="channels_last")
    yield tensor_transform("tensor_transform_fold", (2, 2, 5, 6), ([0, 0, 1, 0], [0, 0, 0, 2]), 2)
    yield tensor_transform("tensor_transform_fold_pad_all", (1, 2, 4, 3),
                           ([1, 1, 2, 0], [0, 2, 0, 3]), 3)
