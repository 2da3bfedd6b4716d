"""Graphs of nvidia-cudnn-frontend with numpy arrays for their tensors, and the list of cases."""

import cudnn
import numpy as np

TYPES = {np.dtype(np.float32): cudnn.data_type.FLOAT, np.dtype(np.float16): cudnn.data_type.HALF,
         np.dtype(np.float64): cudnn.data_type.DOUBLE, np.dtype(np.int32): cudnn.data_type.INT32,
         np.dtype(np.int64): cudnn.data_type.INT64, np.dtype(np.int8): cudnn.data_type.INT8}
NUMPY = {value: key for key, value in TYPES.items()}
CASES = []


def case(function):
    CASES.append((function.__name__, function))
    return function


def cases(*variants):
    """A case for each of these keyword dictionaries, named by its values."""
    def register(function):
        for variant in variants:
            label = ",".join(f"{k}={v}" for k, v in variant.items())
            CASES.append((f"{function.__name__}[{label}]",
                          lambda function=function, variant=variant: function(**variant)))
        return function
    return register


def numbers(shape, dtype=np.float32, seed=1, low=-1, high=1, channels_last=False):
    values = np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)
    if channels_last:
        last = np.ascontiguousarray(np.moveaxis(values, 1, -1))
        values = np.moveaxis(last, -1, 1)
    return values


def wide(*arrays):
    return [a.astype(np.float64) for a in arrays]


class Graph:
    """A graph of the package, with numpy arrays for its tensors."""

    handle = None

    def __init__(self, dtype=np.float32):
        if Graph.handle is None:
            Graph.handle = cudnn.create_handle()
        self.graph = cudnn.pygraph(
            handle=Graph.handle, io_data_type=TYPES[np.dtype(dtype)],
            intermediate_data_type=cudnn.data_type.FLOAT, compute_data_type=cudnn.data_type.FLOAT)
        self.arrays = {}
        self.results = {}

    def input(self, array, name):
        tensor = self.graph.tensor(name=name, dim=list(array.shape), data_type=TYPES[array.dtype],
                                   stride=[s // array.itemsize for s in array.strides])
        self.arrays[tensor] = array
        return tensor

    def scalar(self, value, name, rank=4):
        """A pass-by-value scalar."""
        array = np.full([1] * rank, value, np.float32)
        tensor = self.graph.tensor(name=name, dim=list(array.shape), stride=[1] * rank,
                                   data_type=cudnn.data_type.FLOAT, is_pass_by_value=True)
        self.arrays[tensor] = array
        return tensor

    def output(self, name, tensor, dtype=None, shape=None, channels_last=False):
        tensor.set_output(True)
        if dtype is not None:
            tensor.set_data_type(TYPES[np.dtype(dtype)])
        if shape is not None:
            model = numbers(shape, channels_last=channels_last)
            tensor.set_dim(list(shape)).set_stride([s // model.itemsize for s in model.strides])
        self.results[name] = tensor
        return tensor

    def build(self):
        self.graph.validate()
        self.graph.build_operation_graph()
        self.graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        self.graph.check_support()
        self.graph.build_plans()

    def allocate(self):
        """Memory for the outputs, by name, filled with a value that no result has."""
        views = {}
        for name, tensor in self.results.items():
            shape, strides = tensor.get_dim(), tensor.get_stride()
            dtype = NUMPY[tensor.get_data_type()]
            room = np.full(1 + sum((n - 1) * s for n, s in zip(shape, strides)), 77, dtype)
            views[name] = np.lib.stride_tricks.as_strided(
                room, shape, [s * dtype.itemsize for s in strides])
            self.arrays[tensor] = views[name]
        return views

    def pointers(self):
        return {tensor: array.ctypes.data for tensor, array in self.arrays.items()}

    def run(self):
        self.build()
        views = self.allocate()
        workspace = np.empty(max(1, self.graph.get_workspace_size()), np.uint8)
        self.graph.execute(self.pointers(), workspace.ctypes.data, handle=Graph.handle)
        return views


def expect(got, expected, what, roundings=2.0, compute_roundings=64.0):
    """At most `roundings` steps of the result's own type and some of the 32-bit arithmetic, at the
    magnitude of the largest expected value."""
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, expected {expected.shape}"
    known = np.isfinite(expected)
    assert np.array_equal(np.isfinite(got), known), f"{what}: not finite at other places"
    size = max(1e-3, np.abs(expected[known]).max(initial=0))
    bound = size * (roundings * np.finfo(got.dtype).eps +
                    compute_roundings * np.finfo(np.float32).eps)
    worst = np.abs(got.astype(np.float64) - expected)[known].max(initial=0)
    assert worst <= bound, f"{what}: off by {worst:.3g}, allowed are {bound:.3g}"
