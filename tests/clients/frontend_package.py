"""Features of nvidia-cudnn-frontend around its graphs: versions, serialisation, stream capture, errors."""

import ctypes
import sys

import cudnn
import numpy as np

from frontend_graph import Graph, case, expect, numbers


@case
def version():
    assert cudnn.backend_version() == 91900, cudnn.backend_version()


@case
def serialised_plan():
    """A serialised and restored graph with its plan computes the same results."""
    a, b = numbers((1, 6, 8), seed=1), numbers((1, 8, 5), seed=2)

    def make():
        g = Graph()
        tensors = [g.input(a, "a"), g.input(b, "b")]
        tensors.append(g.output("c", g.graph.matmul(*tensors)))
        for uid, tensor in enumerate(tensors, 1):
            tensor.set_uid(uid)
        return g

    first = make()
    expected = first.run()["c"]
    again = cudnn.pygraph(handle=Graph.handle)
    again.deserialize(Graph.handle, first.graph.serialize())
    c = np.zeros(expected.shape, np.float32)
    workspace = np.empty(max(1, again.get_workspace_size()), np.uint8)
    again.execute({1: a.ctypes.data, 2: b.ctypes.data, 3: c.ctypes.data}, workspace.ctypes.data,
                  handle=Graph.handle)
    assert np.array_equal(c, expected)


@case
def captured_execution():
    """Work of a captured stream runs at every launch of the graph, not before; pass-by-value scalars
    keep the values of the capture."""
    runtime = ctypes.CDLL("libcudart.so.13")
    stream, graph, launchable = (ctypes.c_void_p() for _ in range(3))
    succeed = lambda status: status == 0 or sys.exit(f"the runtime returned {status}")
    succeed(runtime.cudaStreamCreate(ctypes.byref(stream)))
    handle = cudnn.create_handle()
    cudnn.set_stream(handle=handle, stream=stream.value)
    x = numbers((2, 3, 4, 5))
    g = Graph()
    factor = g.scalar(3.0, "factor")
    g.output("y", g.graph.mul(g.input(x, "x"), factor))
    g.build()
    y = g.allocate()["y"]
    workspace = np.empty(max(1, g.graph.get_workspace_size()), np.uint8)
    succeed(runtime.cudaStreamBeginCapture(stream, 2))
    g.graph.execute(g.pointers(), workspace.ctypes.data, handle=handle)
    succeed(runtime.cudaStreamEndCapture(stream, ctypes.byref(graph)))
    assert (y == 77).all(), "done during the capture"
    g.arrays[factor][:] = 5
    succeed(runtime.cudaGraphInstantiate(ctypes.byref(launchable), graph, ctypes.c_ulonglong(0)))
    for change in (0, 1):
        x += np.float32(change)
        succeed(runtime.cudaGraphLaunch(launchable, stream))
        expect(y, 3.0 * x.astype(np.float64), "y")
    succeed(runtime.cudaGraphExecDestroy(launchable))
    succeed(runtime.cudaGraphDestroy(graph))
    cudnn.destroy_handle(handle)
    succeed(runtime.cudaStreamDestroy(stream))


@case
def contradiction_is_explained():
    """Inconsistent shapes: the package raises an exception with our library's message."""
    g = Graph()
    c = g.graph.matmul(g.input(numbers((1, 4, 8)), "a"), g.input(numbers((1, 9, 5)), "b"))
    g.output("c", c, np.float32, (1, 4, 5))
    try:
        g.build()
    except Exception as error:  # which class it is depends on the package's release
        assert str(error), "an error without words"
        return
    raise AssertionError("a matmul of 4x8 by 9x5 was accepted")
