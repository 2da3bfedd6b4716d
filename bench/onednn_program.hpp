// oneDNN primitives in a row, on the memory of a graph's bound tensors.
#pragma once

#include <ashlar/graph.hpp>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "onednn_peer.hpp"

namespace ashlar::bench {

using Descriptor = dnnl::memory::desc;

dnnl::memory::dims dnnl_dims(const Dims& dims);
Descriptor descriptor_of(const Tensor& tensor);

class Program : public Peer {
 public:
  Program(const Graph& graph, std::span<void* const> pointers);

  void run() override;
  const void* output(TensorId tensor) const override;
  const std::string& description() const override { return description_; }
  bool reference() const override { return reference_; }

  // --- building
  const dnnl::engine& engine() const { return engine_; }
  // The memory of a bound tensor, seen through another descriptor of the same layout.
  dnnl::memory bound(TensorId tensor, const Descriptor& as);
  dnnl::memory scratch(const Descriptor& descriptor) { return {descriptor, engine_}; }

  // One primitive; operands whose layout is not what the primitive wants pass through a reorder.
  struct Operand {
    int argument;
    dnnl::memory memory;
    Descriptor wanted;
  };
  void add(const dnnl::primitive_desc_base& descriptor, const dnnl::primitive& primitive,
           const std::vector<Operand>& inputs, const std::vector<Operand>& outputs);
  void add_reorder(dnnl::memory from, dnnl::memory to);

 private:
  struct Step {
    dnnl::primitive primitive;
    std::unordered_map<int, dnnl::memory> arguments;
  };

  const Graph& graph_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::map<TensorId, void*> inputs_;
  std::map<TensorId, dnnl::memory> outputs_;
  std::vector<Step> steps_;
  std::string description_;
  bool reference_ = false;
};

}  // namespace ashlar::bench
