// What one operation tells the generic engine: a file of kernels/generic, what that file is given
// by name, and how many units of work there are.
//
// The file defines `__device__ inline void unit(const Args& args, int64 n)`, unit n of the pass
// kPass. It finds, for an input `x` and an output `y` of the operation (names as in ops.hpp):
//   R, Index              registers (float or double) and positions (int64)
//   kHas_x, kRank_x       1 or 0; axes. args.x_dims[axis] are its extents
//   R in_x(args, at)      the element, after what was fused before the operation. On an axis of
//                         extent 1 every coordinate means 0. Absent: 0
//   int64 integer_x(args, at)  the same of an integer tensor, with all its bits
//   put_y(args, at, value)     output 0: through what was fused behind the operation; the others:
//                         of any number type, to memory. Absent: nothing
#pragma once

#include <string>
#include <vector>

#include "cuda/launch/kernel_design.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

class GenericKernel {
 public:
  struct Pass {
    std::int64_t units = 0;
    int input = 0;           // a variadic operation: the one input of this pass
    std::int64_t begin = 0;  // args.begin: what the operation likes
  };

  GenericKernel(const Graph& graph, const Region& region) : graph_(graph), region_(region) {}

  const Graph& graph() const { return graph_; }
  const Region& region() const { return region_; }
  const Anchor& anchor() const { return *region_.anchor; }
  bool has_in(int slot) const { return has(anchor().inputs, slot); }
  bool has_out(int slot) const { return has(anchor().outputs, slot); }
  const View& in(int slot) const { return anchor().inputs[static_cast<std::size_t>(slot)]; }
  const View& out(int slot) const { return anchor().outputs[static_cast<std::size_t>(slot)]; }

  // kernels/generic/<name>.cuh
  void file(const std::string& name) { file_ = "generic/" + name + ".cuh"; }
  // Facts of the text: `static const int kName`.
  void constant(const std::string& name, std::int64_t value);
  // Facts of a launch: args.name.
  void number(const std::string& name, std::int64_t value) { arguments_.number(name, value); }
  void real(const std::string& name, double value) { arguments_.real(name, value); }
  void numbers(const std::string& name, const Dims& values) { arguments_.numbers(name, values); }
  // One per axis; `missing` where the attribute was left empty.
  void per_axis(const std::string& name, const Dims& values, int axes, std::int64_t missing);
  // Memory between passes: void* args.name.
  void scratch(const std::string& name, std::int64_t bytes);
  // One launch, after those before it.
  void pass(std::int64_t units) { passes_.push_back({units}); }
  void pass(Pass pass) { passes_.push_back(pass); }

  std::int64_t scratch_bytes() const { return scratch_.total_bytes(); }
  KernelDesign design(const DeviceProps& device) const;

 private:
  static bool has(const std::vector<View>& views, int slot) {
    return static_cast<std::size_t>(slot) < views.size() &&
           views[static_cast<std::size_t>(slot)].present();
  }
  LaunchDesign launch(int number, const DeviceProps& device) const;

  const Graph& graph_;
  const Region& region_;
  std::string file_, constants_;
  Arguments arguments_;
  ScratchBook scratch_;
  std::vector<Pass> passes_;
};

}  // namespace ashlar::cuda
