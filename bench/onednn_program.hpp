// A sequence of oneDNN primitives on the memory of a graph's bound tensors.
#pragma once

#include <ashlar/graph.hpp>
#include <functional>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "peer.hpp"

namespace ashlar::bench {

using Descriptor = dnnl::memory::desc;

dnnl::memory::dims dnnl_dims(const Dims& dims);
Descriptor descriptor_of(const Tensor& tensor);

class Program : public Peer {
 public:
  // Constants are reordered while building. With `free_reorders` the other inputs are too, and
  // outputs are reordered in finish().
  Program(const PeerProblem& problem, bool free_reorders);

  void start() override;
  void run() override;
  void finish() override;
  const void* output(TensorId tensor) const override;
  const std::string& description() const override { return description_; }
  bool reference() const { return reference_; }  // a step runs oneDNN's "ref" implementation

  // --- building
  const dnnl::engine& engine() const { return engine_; }
  // The memory of a bound tensor, viewed through another descriptor of the same layout.
  dnnl::memory bound(TensorId tensor, const Descriptor& as);
  dnnl::memory scratch(const Descriptor& descriptor) { return {descriptor, engine_}; }
  bool constant(TensorId tensor) const { return constants_.contains(tensor); }

  // Appends a primitive and reorders for operands whose layout differs from the primitive's.
  struct Operand {
    int argument;
    dnnl::memory memory;
    Descriptor wanted;
    bool constant = false;
  };
  // `addend`, if given, is the initial content of the first output, to which the primitive adds.
  // In place it costs nothing, like a residual that is dead afterwards; into another layout it is a
  // timed reorder.
  void add(const dnnl::primitive_desc_base& descriptor, const dnnl::primitive& primitive,
           const std::vector<Operand>& inputs, const std::vector<Operand>& outputs,
           const dnnl::memory& addend = {});
  void add_reorder(const dnnl::memory& from, const dnnl::memory& to);
  void add_call(const std::string& name, std::function<void()> call);
  void reorder_now(const dnnl::memory& from, const dnnl::memory& to);
  void note(const std::string& text);  // into the description

 private:
  struct Step {
    dnnl::primitive primitive;
    std::unordered_map<int, dnnl::memory> arguments;
    std::function<void()> call;  // instead of a primitive
  };
  void execute(const std::vector<Step>& steps);
  Step reorder_step(const dnnl::memory& from, const dnnl::memory& to);

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  const bool free_reorders_;
  std::map<TensorId, void*> inputs_;
  std::set<TensorId> constants_;
  std::map<TensorId, dnnl::memory> outputs_;
  std::vector<Step> beforehand_;  // not timed
  std::vector<Step> steps_;
  std::vector<Step> afterwards_;  // not timed
  std::string description_;
  bool reference_ = false;
};

}  // namespace ashlar::bench
