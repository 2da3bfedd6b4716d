"""One golden case: a graph in Ashlar's JSON form, its inputs, and what PyTorch says comes out."""

import json
import math
import pathlib
import zlib

import torch

MAX_BYTES = 30_000


class Case:
    """Collects tensors and nodes; `write` puts them into one file."""

    def __init__(self, name, dtype="f64"):
        self.name = name
        self.dtype = dtype
        self.tensors, self.nodes, self.inputs, self.outputs = [], [], {}, {}
        self._random = torch.Generator().manual_seed(zlib.crc32(name.encode()))

    def random(self, *dims, low=-2.0, high=2.0, grid=64):
        """Seeded values on a grid of 1/grid: short in decimal and exact in the small types."""
        steps = int((high - low) * grid)
        integers = torch.randint(0, steps + 1, dims, generator=self._random)
        return low + integers.double() / grid

    def distinct(self, *dims):
        """Seeded values no two of which are equal, for operations that pick one element."""
        count = math.prod(dims)
        order = torch.randperm(count, generator=self._random)
        return (order.double() / 16 - count / 32).reshape(dims)

    def input(self, name, value, dtype=None, kind="input", **extra):
        self.tensors.append({"name": name, "kind": kind, "dtype": dtype or self.dtype,
                             "dims": list(value.shape), **extra})
        self.inputs[name] = value
        return value

    def scalar(self, name, value, rank, dtype=None):
        self.input(name, torch.full([1] * rank, value, dtype=torch.float64), dtype, kind="scalar")

    def output(self, name, value, dtype=None, **extra):
        self.tensors.append({"name": name, "kind": "output", "dtype": dtype or self.dtype,
                             "dims": list(value.shape), **extra})
        self.outputs[name] = value.detach()

    def node(self, op, inputs, outputs, **attributes):
        self.nodes.append({"name": f"{op}_{len(self.nodes)}", "op": op, "inputs": inputs,
                           "outputs": outputs, "attributes": attributes})

    def write(self, folder):
        graph = {"format": "ashlar-graph", "version": 1, "name": self.name,
                 "tensors": self.tensors, "nodes": self.nodes}
        parts = [f'"graph": {json.dumps(graph)}']
        for key, tensors in (("inputs", self.inputs), ("outputs", self.outputs)):
            lines = [f'  "{name}": [{numbers(value)}]' for name, value in tensors.items()]
            parts.append(f'"{key}": {{\n' + ",\n".join(lines) + "\n}")
        text = "{" + ",\n".join(parts) + "}\n"
        if len(text) > MAX_BYTES:
            raise ValueError(f"{self.name}: {len(text)} bytes, expected at most {MAX_BYTES}")
        pathlib.Path(folder, f"{self.name}.json").write_text(text)
        return len(text)


def numbers(tensor):
    """Row-major, each in the shortest form that reads back as the same double."""
    return ", ".join(number(value) for value in tensor.detach().double().flatten().tolist())


def number(value):
    if math.isnan(value):
        return '"nan"'
    if math.isinf(value):
        return '"inf"' if value > 0 else '"-inf"'
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def gradients(outputs, seeds, inputs):
    """What flows back to `inputs` when `seeds` flow into `outputs`."""
    return torch.autograd.grad(outputs, inputs, seeds)


def leaf(tensor):
    return tensor.detach().clone().requires_grad_(True)
