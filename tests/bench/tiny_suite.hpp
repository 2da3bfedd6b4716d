// A suite small enough to run in a test.
#pragma once

#include <string>

namespace ashlar::bench_test {

inline const std::string kTinySuite = R"({
  "format": "ashlar-suite",
  "version": 1,
  "title": "Small things",
  "target": {"speed": 1.5, "worst": 0.5, "share": 0.25, "naive": 2, "overhead": 0.08},
  "limit": "The <call> & its \"overhead\".",
  "graphs": {
    "matmul": {
      "tensors": [
        {"name": "a", "kind": "input", "dtype": "$dtype", "dims": ["$m", "$k"]},
        {"name": "b", "kind": "input", "dtype": "$dtype", "dims": ["$k", 16]},
        {"name": "c", "kind": "output", "dtype": "$dtype"}],
      "nodes": [{"op": "matmul", "inputs": {"a": "a", "b": "b"}, "outputs": {"c": "c"}}],
      "constants": ["b"]
    },
    "fused": {
      "tensors": [
        {"name": "a", "kind": "input", "dtype": "$dtype", "dims": ["$m", "$k"]},
        {"name": "b", "kind": "input", "dtype": "$dtype", "dims": ["$k", 16]},
        {"name": "bias", "kind": "input", "dtype": "$dtype", "dims": [1, 16]},
        {"name": "y", "kind": "output", "dtype": "$dtype"}],
      "nodes": [
        {"op": "matmul", "inputs": {"a": "a", "b": "b"}, "outputs": {"c": "c"}},
        {"op": "pointwise", "inputs": {"x": "c", "b": "bias"}, "outputs": {"y": "s"},
         "attributes": {"mode": "add"}},
        {"op": "pointwise", "inputs": {"x": "s"}, "outputs": {"y": "y"},
         "attributes": {"mode": "relu_fwd"}}],
      "constants": ["b"]
    },
    "softmax": {
      "tensors": [
        {"name": "x", "kind": "input", "dtype": "f32", "dims": ["$m", 32]},
        {"name": "y", "kind": "output"}],
      "nodes": [{"op": "softmax_forward", "inputs": {"x": "x"}, "outputs": {"y": "y"}}]
    },
    "gradient": {
      "tensors": [
        {"name": "y", "kind": "input", "dtype": "f32", "dims": ["$m", 32]},
        {"name": "dy", "kind": "input", "dtype": "f32", "dims": ["$m", 32]},
        {"name": "dx", "kind": "output"}],
      "nodes": [
        {"op": "softmax_backward", "inputs": {"y": "y", "dy": "dy"}, "outputs": {"dx": "dx"}}],
      "ranges": {"dy": [2, 3]}
    }
  },
  "defaults": {"graph": "matmul", "dtype": "f32", "k": 24},
  "each": {"m": [8, 40]},
  "cases": [
    {"name": "matmul"},
    {"name": "half", "m": 8, "dtype": "f16"},
    {"name": "fused", "graph": "fused", "alone": "matmul"},
    {"name": "gradient", "m": 8, "graph": "gradient", "prepare": "softmax", "naive": {"m": 4}}
  ]
})";

inline const std::string kTinyGpuSuite = R"({
  "format": "ashlar-suite",
  "version": 1,
  "title": "Small things",
  "limit": "The launch.",
  "graphs": {
    "fused": {
      "tensors": [
        {"name": "x", "kind": "input", "dtype": "bf16", "dims": [8, 64]},
        {"name": "b", "kind": "input", "dtype": "bf16", "dims": [1, 64]},
        {"name": "y", "kind": "output", "dtype": "bf16"}],
      "nodes": [
        {"op": "pointwise", "inputs": {"x": "x", "b": "b"}, "outputs": {"y": "s"},
         "attributes": {"mode": "add"}},
        {"op": "pointwise", "inputs": {"x": "s"}, "outputs": {"y": "y"},
         "attributes": {"mode": "relu_fwd"}}]
    },
    "add": {
      "tensors": [
        {"name": "x", "kind": "input", "dtype": "bf16", "dims": [8, 64]},
        {"name": "b", "kind": "input", "dtype": "bf16", "dims": [1, 64]},
        {"name": "s", "kind": "output", "dtype": "bf16"}],
      "nodes": [
        {"op": "pointwise", "inputs": {"x": "x", "b": "b"}, "outputs": {"y": "s"},
         "attributes": {"mode": "add"}}]
    },
    "relu": {
      "tensors": [
        {"name": "s", "kind": "input", "dtype": "bf16", "dims": [8, 64]},
        {"name": "y", "kind": "output", "dtype": "bf16"}],
      "nodes": [
        {"op": "pointwise", "inputs": {"x": "s"}, "outputs": {"y": "y"},
         "attributes": {"mode": "relu_fwd"}}]
    }
  },
  "cases": [
    {"name": "whole", "graph": "fused", "apart": ["add", "relu"], "back_to_back": true,
     "quick": true},
    {"name": "prepared", "graph": "relu", "prepare": "add"}
  ]
})";

}  // namespace ashlar::bench_test
