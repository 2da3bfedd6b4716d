"""A Python program that uses the C API through ctypes: runs y = relu(x + b).

    program.py LIBRARY
"""

import ctypes
import json
import sys

GRAPH = {
    "format": "ashlar-graph", "version": 1, "name": "g",
    "tensors": [
        {"name": "x", "kind": "input", "dtype": "f32", "dims": [2, 3]},
        {"name": "b", "kind": "input", "dtype": "f32", "dims": [1, 3]},
        {"name": "y", "kind": "output", "dtype": "f32"},
    ],
    "nodes": [
        {"name": "add", "op": "pointwise", "inputs": {"x": "x", "b": "b"}, "outputs": {"y": "sum"},
         "attributes": {"mode": "add"}},
        {"name": "relu", "op": "pointwise", "inputs": {"x": "sum"}, "outputs": {"y": "y"},
         "attributes": {"mode": "relu_fwd"}},
    ],
}


def main():
    library = ctypes.CDLL(sys.argv[1])
    library.ashlar_last_error.restype = ctypes.c_char_p
    library.ashlar_version.restype = ctypes.c_char_p

    def call(function, *arguments):
        status = getattr(library, function)(*arguments)
        if status != 0:
            sys.exit(f"{function}: status {status}: {library.ashlar_last_error().decode()}")

    text = json.dumps(GRAPH).encode()
    graph, plan, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int64()
    call("ashlar_graph_from_json", text, ctypes.c_size_t(len(text)), ctypes.byref(graph))
    call("ashlar_compile", graph, None, ctypes.byref(plan))
    call("ashlar_plan_workspace_size", plan, ctypes.byref(size))
    memory = ctypes.create_string_buffer(size.value + 64)
    workspace = ctypes.c_void_p((ctypes.addressof(memory) + 63) // 64 * 64)
    x, b, y = (ctypes.c_float * 6)(1, -2, 3, -4, 5, -6), (ctypes.c_float * 3)(1, 1, -4), (ctypes.c_float * 6)()
    pointers = (ctypes.c_void_p * 3)(*map(ctypes.addressof, (x, b, y)))
    call("ashlar_plan_run", plan, pointers, 3, workspace, None)
    if list(y) != [2, 0, 0, 0, 6, 0]:
        sys.exit(f"wrong values: {list(y)}")
    if library.ashlar_graph_from_json(b"{", ctypes.c_size_t(1), ctypes.byref(ctypes.c_void_p())) == 0:
        sys.exit("malformed JSON was accepted")
    library.ashlar_plan_destroy(plan)
    library.ashlar_graph_destroy(graph)
    print(f"ashlar {library.ashlar_version().decode()}: ok")


if __name__ == "__main__":
    main()
