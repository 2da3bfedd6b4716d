// Pointwise programs over [N, C, spatial...]: queries, axis permutation, and printing of accessors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/text/program_text.hpp"
#include "plan/region.hpp"

namespace ashlar::cuda {

// Attributes of the anchor if it is a convolution in any direction, else null.
const ConvAttributes* conv_attributes(const Region& region);

// Whether a step reads the coordinates of its element.
bool reads_coordinates(const PointwiseProgram& program);
// Whether the region touches ragged or complex tensors or random numbers, which these engines do
// not support.
bool touches_unsupported(const Region& region);

// The program with its axes permuted to `order`; axes that are not listed must have extent 1, and
// listed axes that do not exist get extent 1.
PointwiseProgram reordered(const PointwiseProgram& program, const std::vector<int>& order);
// Merges `axis` and the next axis of all programs if the strides of every program allow it.
bool join_axes(const std::vector<PointwiseProgram*>& programs, int axis);

// Whether more views of programs over [N, C, spatial...] are contiguous along C (NHWC) than along a
// spatial axis.
bool channels_are_contiguous(const std::vector<const PointwiseProgram*>& programs);

// Whether most of the bits that the program loads per element are contiguous along `axis`;
// broadcast views do not count.
bool reads_along(const PointwiseProgram& program, int axis);

PointwiseProgram without_stores(PointwiseProgram program);
// Elements per vector access along the last axis: 16 bytes of the narrowest element, at most
// `most`, whole bytes for sub-byte types, a divisor of the extent.
int packet_length(const std::vector<const PointwiseProgram*>& programs, int most);

// Rewrites text of print_program to streaming stores, for results that are not read again soon.
std::string with_streaming_stores(std::string text);
// Rewrites text of print_program to loads that bypass L1, for data that is read once.
std::string with_streaming_loads(std::string text);
// Rewrites text of print_program to prefetches in place of loads.
std::string with_prefetches(std::string text);

// Prints accessors of one value per [outer, channel]:
//   R NAME(const Args& args, Index outer, Index channel), `absent` where the program is empty
//   void NAME(const Args& args, Index outer, Index channel, R value)
std::string print_reader(const PointwiseProgram& program, const Graph& graph,
                         const std::string& name, const std::string& absent, Arguments& arguments);
std::string print_writer(const View& view, const Graph& graph, const std::string& name,
                         Arguments& arguments);

// An expression for the element offset of `at` in a view; strides become arguments prefixed by
// `name`.
std::string print_address(const View& view, const std::string& name, Arguments& arguments);

// Prints a function that loads or stores kCount integers (kernels/pooling.cuh) from `at` on,
// elements of `view` at `pointer`, as int registers:
//   template <int kCount>
//   void NAME(const Args& args, const Index (&at)[rank], int (&values)[kCount])
enum class Access : std::uint8_t { load, store };
std::string print_integers(Access access, const View& view, const std::string& pointer,
                           const std::string& name, Arguments& arguments);

inline const PointwiseProgram& input_program(const Region& region, int slot) {
  static const PointwiseProgram kAbsent;
  const auto index = static_cast<std::size_t>(slot);
  return index < region.prologues.size() ? region.prologues[index] : kAbsent;
}
inline View output_view(const Region& region, int slot) {
  const auto index = static_cast<std::size_t>(slot);
  return index < region.anchor->outputs.size() ? region.anchor->outputs[index] : View{};
}

}  // namespace ashlar::cuda
