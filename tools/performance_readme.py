"""The ten lines of figures in README.md: one row per kind of work, from the records of each device."""

BEGIN, END = "<!-- figures: written by tools/performance_page.py -->", "<!-- end of figures -->"

# Kind of work, suite of the CPU, suite of the H200; None: no suite of that device covers it.
ROWS = (
    ("ResNet-50 convolutions, channels last (f32; bf16)", "resnet50_nhwc", "conv_bf16"),
    ("Convolutions in f32 (NCHW; tf32)", "resnet50_nchw", "conv_f32"),
    ("Depthwise convolutions", "depthwise", "depthwise"),
    ("Matmul (f32; bf16)", "matmul_f32", "matmul_bf16"),
    ("Matmul and convolution in 8 bits (int8; fp8)", "int8", "matmul_fp8"),
    ("Layer and RMS norm", "norms", "norms"),
    ("Softmax", None, "softmax"),
    ("Pooling", "pooling", "pooling"),
    ("Attention over a prompt", "attention_prefill", None),
    ("Transposes and copies", "movement", "movement"),
)


def cell(device, entries, suite, key):
    found = next((entry for entry in entries if entry.page() == suite and entry.record), None)
    speed = found.result.get(key.SPEED) if found else None
    if speed is None:
        return "not measured"
    share = found.result.get(key.SHARE)
    roofline = f", {share:.0%} of the roofline" if share is not None else ""
    return f"[{speed:.2f}x](docs/performance/{device.name}/{suite}.md){roofline}"


def lines(parts, key):
    """`parts`: device, entries and folder of results, CPU first; `key`: the names of JSON keys."""
    devices = [(device, entries) for device, entries, _ in parts]
    yield BEGIN
    yield "| Geometric mean of a suite | " + " | ".join(
        f"{device.title} vs {device.peer}" for device, _ in devices) + " |"
    yield "|---|" + "---|" * len(devices)
    for title, *suites in ROWS:
        cells = [cell(device, entries, suite, key) for (device, entries), suite in zip(devices, suites)]
        yield f"| {title} | " + " | ".join(cells) + " |"
    yield END


def replaced(text, parts, key):
    """`text` with the lines between the two marks written again; as it is without marks."""
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        return text
    return text[:begin] + "\n".join(lines(parts, key)) + text[end + len(END):]
