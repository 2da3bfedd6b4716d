// Programs over [N, C, spatial...] with their axes in the order in which memory is walked fastest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/text/program_text.hpp"
#include "plan/region.hpp"

namespace ashlar::cuda {

// Of the convolution or gradient that is the anchor; null for others.
const ConvAttributes* conv_attributes(const Region& region);

// Whether a step reads the coordinates of its element.
bool reads_coordinates(const PointwiseProgram& program);
// Whether the region reads or writes something that these engines do not address: ragged or complex
// tensors, random numbers.
bool touches_unsupported(const Region& region);

// The program with the axes `order` of its own, in that order; those left out have extent 1.
PointwiseProgram reordered(const PointwiseProgram& program, const std::vector<int>& order);
// Joins `axis` and the next one of programs over the same space, where all of them allow it.
bool join_axes(const std::vector<PointwiseProgram*>& programs, int axis);

// Of programs over [N, C, spatial...]: whether memory has the channels of a pixel next to each
// other, rather than pixels of a channel.
bool channels_are_contiguous(const std::vector<const PointwiseProgram*>& programs);

// Whether most bits of what the program reads for every element lie together along `axis`; what is
// read again along another one does not count.
bool reads_along(const PointwiseProgram& program, int axis);

PointwiseProgram without_stores(PointwiseProgram program);
// Elements per access along the last axis: 16 bytes of the narrowest element, at most `most`, whole
// bytes of bits, dividing the extent.
int packet_length(const std::vector<const PointwiseProgram*>& programs, int most);

// The text of print_program with stores of what is not read again soon: caches keep what is.
std::string with_streaming_stores(std::string text);
// The text of print_program with loads of what is read once: L1 keeps no copy.
std::string with_streaming_loads(std::string text);
// The text of print_program with prefetches in place of loads.
std::string with_prefetches(std::string text);

// A number per [outer, channel], read or written one at a time:
//   R NAME(const Args& args, Index outer, Index channel), `absent` where the program is empty
//   void NAME(const Args& args, Index outer, Index channel, R value)
std::string print_reader(const PointwiseProgram& program, const Graph& graph,
                         const std::string& name, const std::string& absent, Arguments& arguments);
std::string print_writer(const View& view, const Graph& graph, const std::string& name,
                         Arguments& arguments);

// Where the element at `at` lies in a view, as a number of elements; its strides become arguments
// that begin with `name`.
std::string print_address(const View& view, const std::string& name, Arguments& arguments);

// kCount integers (kernels/pooling.cuh) from `at` on, elements of `view` at `pointer`, in registers
// of type int:
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
