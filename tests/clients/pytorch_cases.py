"""The cases in which PyTorch calls cuDNN: each builds a step that returns outputs and gradients.

A case is built for a Setting: its inputs come from its own seed, rounded to the tested type, so that
every library and the float64 reference get the same inputs.
"""

import contextlib
import dataclasses
import math
import zlib
from typing import Callable

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import pytorch_models

TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
CASES = {}


@dataclasses.dataclass
class Case:
    make: Callable  # Setting -> a function that runs one step and returns named tensors
    dtype: str
    length: int  # terms accumulated for one output element, over all stages of the case
    stages: int = 1  # number of intermediate roundings to `rounded`
    rounded: str = ""  # by default the case's type, or tf32
    gain: float = 1.0  # amplification of a rounding error of the first layers in the result
    tf32: bool = False
    benchmark: bool = False


@dataclasses.dataclass
class Setting:
    """How a case is run: in its own type or, for the reference, in float64 without cuDNN."""

    device: str
    reference: bool
    case: Case
    generator: torch.Generator

    @classmethod
    def of(cls, name, device, reference):
        generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        return cls(device, reference, CASES[name], generator)

    def place(self, tensor):
        """Rounded to the case's type, on the device."""
        tensor = tensor.to(TYPES[self.case.dtype])
        return tensor.to(self.device, torch.float64 if self.reference else None)

    def numbers(self, *shape, grad=True, channels_last=False, scale=1.0):
        tensor = self.place(scale * (2 * torch.rand(*shape, generator=self.generator) - 1))
        if channels_last:
            tensor = tensor.contiguous(memory_format={4: torch.channels_last,
                                                      5: torch.channels_last_3d}[tensor.dim()])
        return tensor.requires_grad_(grad)

    def module(self, make):
        """A module with parameters from the case's seed."""
        torch.manual_seed(self.generator.initial_seed())
        module = make().to(TYPES[self.case.dtype])
        return module.to(self.device, torch.float64 if self.reference else None)

    @property
    def attention_backend(self):
        on_gpu = self.device.startswith("cuda") and not self.reference
        return SDPBackend.CUDNN_ATTENTION if on_gpu else SDPBackend.MATH

    def global_modes(self):
        torch.backends.cudnn.enabled = not self.reference
        torch.backends.cudnn.allow_tf32 = self.case.tf32
        torch.backends.cudnn.benchmark = self.case.benchmark
        torch.backends.cuda.matmul.allow_tf32 = False


def add(name, dtype, length, make, **options):
    CASES[name] = Case(make, dtype, max(1, int(length)), **options)


def with_gradients(forward, named_inputs, dy_of=None):
    """A step: forward, then gradients of the sum of output times a fixed dy."""
    def step():
        y = forward()
        dy = dy_of(y)
        gradients = torch.autograd.grad(y, list(named_inputs.values()), dy)
        return {"y": y.detach(), **dict(zip((f"d{n}" for n in named_inputs), gradients))}
    return step


def fixed_dy(setting):
    """The same dy for every step of a case, created at the first one."""
    held = []
    def dy_of(y):
        if not held:
            values = 2 * torch.rand(y.shape, generator=setting.generator) - 1
            like = setting.place(values)
            held.append(torch.empty_like(y).copy_(like))
        return held[0]
    return dy_of


# ------------------------------------------------------------------- convolution

def add_convolution(label, dtype, x, w, channels_last=False, transposed=False, stride=1, padding=0,
                    dilation=1, groups=1, output_padding=0, **options):
    rank = len(x) - 2
    output = [((i - 1) * stride - 2 * padding + dilation * (f - 1) + output_padding + 1) if transposed
              else (i + 2 * padding - dilation * (f - 1) - 1) // stride + 1
              for i, f in zip(x[2:], w[2:])]
    taps = math.prod(w[2:])
    channels = (w[0] if transposed else w[1] * groups) // groups
    filters = (w[1] * groups if transposed else w[0]) // groups
    pixels = x[2:] if transposed else output
    length = max(channels * taps, filters * taps, x[0] * math.prod(pixels))
    parameters = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
    if transposed:
        parameters["output_padding"] = output_padding
    function = getattr(F, f"conv{'_transpose' if transposed else ''}{rank}d")

    def make(setting):
        data = setting.numbers(*x, channels_last=channels_last)
        filters_ = setting.numbers(*w, channels_last=channels_last)
        bias = setting.numbers(w[1] * groups if transposed else w[0])
        return with_gradients(lambda: function(data, filters_, bias, **parameters),
                              dict(x=data, w=filters_, b=bias), fixed_dy(setting))

    kind = f"conv{'_transpose' if transposed else ''}{rank}d"
    layout = "_channels_last" if channels_last else ""
    precision = "_tf32" if options.get("tf32") else ""
    add(f"{kind}_{label}_{dtype}{precision}{layout}", dtype, length, make, **options)


def add_convolutions():
    for dtype in ("f32", "f16", "bf16", "f64"):
        for last in (False, True):
            add_convolution("3x3", dtype, (8, 64, 28, 28), (96, 64, 3, 3), last, padding=1)
    add_convolution("3x3", "f32", (8, 64, 28, 28), (96, 64, 3, 3), padding=1, tf32=True)
    add_convolution("3x3", "f32", (8, 64, 28, 28), (96, 64, 3, 3), True, padding=1, tf32=True)
    add_convolution("1x1", "f16", (16, 128, 14, 14), (256, 128, 1, 1), True)
    add_convolution("1x1", "f32", (16, 128, 14, 14), (256, 128, 1, 1))
    add_convolution("7x7_stride2", "f32", (4, 3, 64, 64), (64, 3, 7, 7), stride=2, padding=3)
    add_convolution("7x7_stride2", "f16", (4, 3, 64, 64), (64, 3, 7, 7), True, stride=2, padding=3)
    add_convolution("dilated", "f32", (4, 32, 28, 28), (48, 32, 3, 3), padding=2, dilation=2)
    add_convolution("dilated", "bf16", (4, 32, 28, 28), (48, 32, 3, 3), True, padding=2, dilation=2)
    add_convolution("groups", "f32", (4, 64, 20, 20), (64, 16, 3, 3), padding=1, groups=4)
    add_convolution("groups", "f16", (4, 64, 20, 20), (64, 16, 3, 3), True, padding=1, groups=4)
    for dtype, last in (("f32", False), ("f16", True), ("bf16", True)):
        add_convolution("depthwise", dtype, (8, 96, 28, 28), (96, 1, 3, 3), last, padding=1, groups=96)
    add_convolution("odd", "f32", (3, 7, 13, 11), (5, 7, 2, 3), stride=2, padding=1)
    add_convolution("odd", "f16", (3, 7, 13, 11), (5, 7, 3, 3), stride=2, padding=1)
    add_convolution("benchmark", "f16", (8, 64, 28, 28), (64, 64, 3, 3), True, padding=1,
                    benchmark=True)
    for dtype in ("f32", "f16", "bf16"):
        add_convolution("k5", dtype, (8, 32, 200), (48, 32, 5), padding=2)
    for dtype, last in (("f32", False), ("f16", True), ("bf16", False)):
        add_convolution("3x3x3", dtype, (2, 16, 8, 16, 16), (32, 16, 3, 3, 3), last, padding=1)
    add_convolution("k4", "f32", (4, 24, 50), (24, 16, 4), transposed=True, stride=2, padding=1)
    for dtype, last in (("f32", False), ("f16", True), ("bf16", False), ("f64", False)):
        add_convolution("4x4", dtype, (4, 32, 14, 14), (32, 24, 4, 4), last, transposed=True,
                        stride=2, padding=1)
    add_convolution("3x3_groups", "f32", (4, 32, 14, 14), (32, 8, 3, 3), transposed=True, stride=2,
                    padding=1, output_padding=1, groups=2)
    add_convolution("3x3x3", "f32", (2, 16, 6, 8, 8), (16, 8, 3, 3, 3), transposed=True, stride=2,
                    padding=1)


# ------------------------------------------------------------------- batch norm

def add_batch_norm(label, dtype, shape, training, channels_last=False):
    def make(setting):
        x = setting.numbers(*shape, channels_last=channels_last)
        # The parameters of a half-precision batch norm are 32-bit.
        kind = torch.float64 if setting.reference or dtype == "f64" else torch.float32
        row = lambda: (0.5 + torch.rand(shape[1], generator=setting.generator)).to(
            setting.device, kind)
        weight, bias = row().requires_grad_(), row().requires_grad_()
        mean, variance = row(), row()
        dy_of = fixed_dy(setting)

        def step():
            running = [mean.clone(), variance.clone()]
            y = F.batch_norm(x, *running, weight, bias, training, 0.1, 1e-5)
            dx, dw, db = torch.autograd.grad(y, [x, weight, bias], dy_of(y))
            return dict(y=y.detach(), dx=dx, dw=dw, db=db, mean=running[0], variance=running[1])
        return step

    layout = "_channels_last" if channels_last else ""
    mode = "train" if training else "eval"
    add(f"batch_norm_{label}_{mode}_{dtype}{layout}", dtype, shape[0] * math.prod(shape[2:]), make)


def add_batch_norms():
    for training in (True, False):
        for dtype, last in (("f32", False), ("f16", False), ("f16", True), ("bf16", True)):
            add_batch_norm("2d", dtype, (16, 64, 28, 28), training, last)
    add_batch_norm("1d", "f32", (64, 48), True)
    add_batch_norm("3d", "f32", (2, 16, 6, 10, 10), True)


# ------------------------------------------------------------------- recurrent networks

def add_rnn(label, kind, dtype, packed=False, steps=12, batch=8, inputs=48, hidden=64, layers=1,
            **options):
    def make(setting):
        module = setting.module(lambda: getattr(nn, kind)(inputs, hidden, layers, dropout=0.0,
                                                          **options))
        module.flatten_parameters()
        x = setting.numbers(steps, batch, inputs)
        lengths = [steps - n for n in range(batch)]
        dy_of = fixed_dy(setting)

        def step():
            if packed:
                y, state = module(nn.utils.rnn.pack_padded_sequence(x, lengths))
                y, _ = nn.utils.rnn.pad_packed_sequence(y, total_length=steps)
            else:
                y, state = module(x)
            states = state if isinstance(state, tuple) else (state,)
            names = [n for n, _ in module.named_parameters()]
            gradients = torch.autograd.grad(y, [x, *module.parameters()], dy_of(y))
            return {"y": y.detach(), **{f"state{i}": s.detach() for i, s in enumerate(states)},
                    "dx": gradients[0], **dict(zip((f"d{n}" for n in names), gradients[1:]))}
        return step

    add(f"{kind.lower()}_{label}_{dtype}", dtype, (inputs + hidden) * steps * layers, make,
        stages=steps * layers)


def add_rnns():
    for kind in ("LSTM", "GRU", "RNN"):
        add_rnn("plain", kind, "f32")
        add_rnn("plain", kind, "f16")
        add_rnn("2_layers_bidirectional", kind, "f32", layers=2, bidirectional=True)
        add_rnn("packed", kind, "f32", packed=True)
    add_rnn("relu", "RNN", "f32", nonlinearity="relu")
    add_rnn("projection", "LSTM", "f32", proj_size=32)
    add_rnn("packed_2_layers_bidirectional", "LSTM", "f16", packed=True, layers=2,
            bidirectional=True)
    add_rnn("plain", "LSTM", "bf16")
    add_rnn("plain", "LSTM", "f64")
    add_rnn("no_bias", "GRU", "f32", bias=False)


# ------------------------------------------------------------------- CTC, spatial transformer

def make_ctc(setting):
    steps, batch, classes, labels = 50, 8, 30, 12
    logits = setting.numbers(steps, batch, classes, scale=3)
    lengths = torch.full((batch,), steps, dtype=torch.int32)
    label_lengths = torch.tensor([labels - n for n in range(batch)], dtype=torch.int32)
    targets = torch.randint(1, classes, (int(label_lengths.sum()),), generator=setting.generator,
                            dtype=torch.int32)

    def step():
        # cuDNN has CTC for 32-bit labels on the host; the native one needs 64-bit.
        kind = torch.int64 if setting.reference else torch.int32
        loss = F.ctc_loss(F.log_softmax(logits, 2), targets.to(kind), lengths.to(kind),
                          label_lengths.to(kind), reduction="none")
        (gradient,) = torch.autograd.grad(loss.sum(), [logits])
        return dict(loss=loss.detach(), dlogits=gradient)
    return step


def make_grid_sample(setting):
    x = setting.numbers(4, 16, 20, 24)
    grid = setting.numbers(4, 18, 15, 2, scale=1.1)
    forward = lambda: F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros",
                                    align_corners=True)
    return with_gradients(forward, dict(x=x, grid=grid), fixed_dy(setting))


def make_affine_grid(setting):
    theta = setting.numbers(4, 2, 3)
    forward = lambda: F.affine_grid(theta, [4, 3, 18, 15], align_corners=True)
    return with_gradients(forward, dict(theta=theta), fixed_dy(setting))


def add_others():
    # Logarithms near -150 have an absolute error of that many roundings, which exp() makes relative.
    add("ctc_loss_f32", "f32", 50 * 25, make_ctc, stages=150**2)
    for dtype in ("f32", "f64"):
        # A coordinate is rounded at the size of the image, 24 pixels.
        add(f"grid_sample_{dtype}", dtype, 64, make_grid_sample, stages=24**2)
        add(f"affine_grid_{dtype}", dtype, 18 * 15, make_affine_grid)


# ------------------------------------------------------------------- attention

def add_attention(label, dtype, batch=2, heads=8, groups=8, queries=128, keys=128, depth=64,
                  causal=False, biased=False):
    def make(setting):
        q = setting.numbers(batch, heads, queries, depth)
        k, v = (setting.numbers(batch, groups, keys, depth) for _ in range(2))
        bias = setting.numbers(batch, heads, queries, keys, grad=False) if biased else None

        def forward():
            with sdpa_kernel(setting.attention_backend):
                return F.scaled_dot_product_attention(q, k, v, bias, is_causal=causal,
                                                      enable_gqa=groups != heads)
        return with_gradients(forward, dict(q=q, k=k, v=v), fixed_dy(setting))

    add(f"attention_{label}_{dtype}", dtype, max(keys, queries) + depth, make, stages=4)


def add_attentions():
    for dtype in ("f16", "bf16"):
        add_attention("plain", dtype)
        add_attention("causal", dtype, causal=True)
        add_attention("gqa", dtype, groups=2, causal=True)
        add_attention("bias", dtype, biased=True)
    add_attention("cross", "f16", queries=64, keys=192)
    add_attention("depth_128", "bf16", heads=4, groups=4, depth=128, causal=True)
    add_attention("odd_lengths", "f16", queries=77, keys=77)


# ------------------------------------------------------------------- networks

def training_step(setting, model, forward, loss_of, autocast):
    """Outputs, loss and some gradients of a step. The reference is 64-bit throughout."""
    chosen = [p for _, p in model.named_parameters()]
    chosen = {n: p for n, p in model.named_parameters()
              if p is chosen[0] or p is chosen[-1] or p is chosen[len(chosen) // 2]}

    def step():
        mixed = torch.autocast(setting.device.split(":")[0], autocast) \
            if autocast and not setting.reference else contextlib.nullcontext()
        with mixed:
            y = forward()
            loss = loss_of(y)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        named = dict(zip((n for n, _ in model.named_parameters()), gradients))
        norm = torch.stack([g.double().norm() for g in gradients]).norm()
        return {"y": y.detach(), "loss": loss.detach(), "gradient_norm": norm,
                **{f"d{n}": named[n] for n in chosen}}
    return step


def add_resnet(label, autocast=None, channels_last=False):
    def make(setting):
        model = setting.module(pytorch_models.ResNet50)
        x = setting.numbers(8, 3, 96, 96, grad=False, channels_last=channels_last)
        if channels_last:
            model = model.to(memory_format=torch.channels_last)
        labels = torch.randint(0, 1000, (8,), generator=setting.generator).to(setting.device)
        return training_step(setting, model, lambda: model(x),
                             lambda y: F.cross_entropy(y, labels), autocast)
    add(f"resnet50_training_step_{label}", "f32", 53 * 2048, make, stages=53 * 4,
        rounded="bf16" if autocast else "f32", gain=1 if autocast else 60)


def make_gpt(setting):
    model = setting.module(pytorch_models.Gpt)
    tokens = torch.randint(0, 1024, (4, 257), generator=setting.generator).to(setting.device)

    def forward():
        with sdpa_kernel(setting.attention_backend):
            return model(tokens[:, :-1])
    return training_step(setting, model, forward,
                         lambda y: F.cross_entropy(y.flatten(0, 1), tokens[:, 1:].flatten()),
                         torch.bfloat16)


def add_networks():
    add_resnet("f32")
    add_resnet("bf16_channels_last", torch.bfloat16, True)
    add("gpt_training_step_bf16", "f32", 4 * 1024, make_gpt, stages=4 * 12, rounded="bf16")


add_convolutions()
add_batch_norms()
add_rnns()
add_others()
add_attentions()
add_networks()
