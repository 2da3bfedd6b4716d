// What one operation tells the generic engine: a file of kernels/generic, what that file is given
// by name, and how many units of work there are.
//
// The file defines `__device__ inline void unit(const Args& args, int64 n)`, unit n of the pass
// args.pass; the whole block calls it where the pass has teams. It finds, for an input `x` and an
// output `y` of the operation (names as in ops.hpp):
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
    bool team = false;       // all threads of a block work on one unit at a time
  };

  explicit GenericKernel(const Region& region) : region_(region) {}

  const Region& region() const { return region_; }
  const Anchor& anchor() const { return *region_.anchor; }
  bool has_in(int slot) const { return has(anchor().inputs, slot); }
  bool has_out(int slot) const { return has(anchor().outputs, slot); }
  const View& in(int slot) const { return anchor().inputs[static_cast<std::size_t>(slot)]; }
  const View& out(int slot) const { return anchor().outputs[static_cast<std::size_t>(slot)]; }

  std::int64_t register_bytes() const { return region_.precision() == f64 ? 8 : 4; }  // of R

  // kernels/generic/<name>.cuh; several files stand one after the other.
  void file(const std::string& name) { files_.push_back("generic/" + name + ".cuh"); }
  // Operands that the file knows and the operation has not.
  void without_input(const std::string& name) { missing_inputs_.push_back(name); }
  void without_output(const std::string& name) { missing_outputs_.push_back(name); }
  // Facts of the text: `static const int kName`.
  void constant(const std::string& name, std::int64_t value);
  // typedef of an element type, as `name`.
  void element_type(const std::string& name, DType dtype);
  // Lines of the head, which know R.
  void text(const std::string& lines) { constants_ += lines; }
  // Facts of a launch: args.name.
  void number(const std::string& name, std::int64_t value) { arguments_.number(name, value); }
  void real(const std::string& name, double value) { arguments_.real(name, value); }
  void numbers(const std::string& name, const Dims& values) { arguments_.numbers(name, values); }
  // One per axis; `missing` where the attribute was left empty.
  void per_axis(const std::string& name, const Dims& values, int axes, std::int64_t missing);
  // Memory between passes: void* args.name.
  void scratch(const std::string& name, std::int64_t bytes);
  // The same of memory that someone else has booked.
  void reserved(const std::string& name, int reservation) { arguments_.scratch(name, reservation); }
  // One launch, after those before it.
  void pass(std::int64_t units) { passes_.push_back({units}); }
  // A unit per element of an output; none where it is absent.
  void pass_over_output(int slot) { pass(has_out(slot) ? element_count(out(slot).dims) : 0); }
  void pass(Pass pass) { passes_.push_back(pass); }
  // One pass instead of those so far, by a file that stands in for generic/entry.cuh.
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
