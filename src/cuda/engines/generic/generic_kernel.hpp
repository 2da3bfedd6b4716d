// Describes one operation to the generic engine: a file of kernels/generic, its constants and
// arguments, and the number of units of work per pass.
//
// The file defines `__device__ inline void unit(const Args& args, int64 n)`, unit n of pass
// args.pass; all threads of the CTA call it in block passes. For an input `x` and an output `y` of
// the operation (names as in ops.hpp) it finds:
//   R, Index              registers (float or double) and indices (int64)
//   kHas_x, kRank_x       1 or 0; axes. args.x_dims[axis] are its extents
//   R in_x(args, at)      the element, after the fused prologue. On an axis of
//                         extent 1 every coordinate means 0. Absent: 0
//   int64 integer_x(args, at)  the same of an integer tensor, with all its bits
//   put_y(args, at, value)     output 0: through the fused epilogue; the others:
//                         a store of any arithmetic type. Absent: nothing
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
    int input = 0;           // variadic operations: the input of this pass
    std::int64_t begin = 0;  // args.begin: free for the operation to use
    bool team = false;       // block pass: all threads of a CTA work on one unit
  };

  explicit GenericKernel(const Region& region) : region_(region) {}

  const Region& region() const { return region_; }
  const Anchor& anchor() const { return *region_.anchor; }
  bool has_in(int slot) const { return has(anchor().inputs, slot); }
  bool has_out(int slot) const { return has(anchor().outputs, slot); }
  const View& in(int slot) const { return anchor().inputs[static_cast<std::size_t>(slot)]; }
  const View& out(int slot) const { return anchor().outputs[static_cast<std::size_t>(slot)]; }

  std::int64_t register_bytes() const { return region_.precision() == f64 ? 8 : 4; }  // sizeof(R)

  // Appends kernels/generic/<name>.cuh to the text.
  void file(const std::string& name) { files_.push_back("generic/" + name + ".cuh"); }
  // Operands that the file uses and the operation does not have.
  void without_input(const std::string& name) { missing_inputs_.push_back(name); }
  void without_output(const std::string& name) { missing_outputs_.push_back(name); }
  // Compile-time constant: `static const int kName`.
  void constant(const std::string& name, std::int64_t value);
  // typedef of an element type, as `name`.
  void element_type(const std::string& name, DType dtype);
  // Further lines of the head, after R is defined.
  void text(const std::string& lines) { constants_ += lines; }
  // Launch arguments: args.name.
  void number(const std::string& name, std::int64_t value) { arguments_.number(name, value); }
  void real(const std::string& name, double value) { arguments_.real(name, value); }
  void numbers(const std::string& name, const Dims& values) { arguments_.numbers(name, values); }
  // One value per axis; `missing` where the attribute is empty.
  void per_axis(const std::string& name, const Dims& values, int axes, std::int64_t missing);
  // Workspace between passes: void* args.name.
  void scratch(const std::string& name, std::int64_t bytes);
  // The same for a workspace reservation of the caller.
  void reserved(const std::string& name, int reservation) { arguments_.scratch(name, reservation); }
  // Adds a pass: one launch, ordered after the previous ones.
  void pass(std::int64_t units) { passes_.push_back({units}); }
  // One unit per element of an output; no pass where it is absent.
  void pass_over_output(int slot) { pass(has_out(slot) ? element_count(out(slot).dims) : 0); }
  void pass(Pass pass) { passes_.push_back(pass); }
  // Replaces all passes by one with its own entry file instead of generic/entry.cuh.
  void end_with(const std::string& entry, Pass pass) {
    entry_ = "generic/" + entry + ".cuh";
    passes_ = {pass};
  }
  void block_pass(std::int64_t units) { passes_.push_back({.units = units, .team = true}); }

  std::int64_t scratch_bytes() const { return scratch_.total_bytes(); }
  KernelDesign design(const Graph& graph, const DeviceProps& device) const;

 private:
  static bool has(const std::vector<View>& views, int slot) {
    return static_cast<std::size_t>(slot) < views.size() &&
           views[static_cast<std::size_t>(slot)].present();
  }
  LaunchDesign launch(int number, const Graph& graph, const DeviceProps& device) const;

  const Region& region_;
  std::vector<std::string> files_, missing_inputs_, missing_outputs_;
  std::string constants_;  // and other lines of the head
  Arguments arguments_;
  ScratchLayout scratch_;
  std::vector<Pass> passes_;
  std::string entry_ = "generic/entry.cuh";
};

}  // namespace ashlar::cuda
