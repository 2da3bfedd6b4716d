#include "cuda/engines/gemm_tails.hpp"

#include <algorithm>
#include <array>

#include "cuda/engines/generic/tail_passes.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kTailThreads = 512;  // per CTA of tail_reduce

const char* fold_name(ReductionMode fold) {
  return fold == ReductionMode::max   ? "FoldMax"
         : fold == ReductionMode::min ? "FoldMin"
                                      : "FoldAdd";
}

// A struct member as an enumerator, which needs no storage.
std::string fact(const char* name, std::int64_t value) {
  return fmt::format("  enum {{ {} = {} }};\n", name, value);
}
std::string member(const char* type, const char* name, const std::string& value) {
  return fmt::format(
      "  template <class A>\n"
      "  __device__ static {0} {1}(const A& args) {{ return ({0}){2}; }}\n",
      type, name, value);
}

// The begin of a Tail<number>, which derives from its fold.
std::string tail_text(std::size_t number, ReductionMode fold) {
  return fmt::format("template <>\nstruct Tail<{}> : {} {{\n", number, fold_name(fold)) +
         fact("kNumber", static_cast<std::int64_t>(number)) +
         member("float*", "partials", fmt::format("args.tail{}", number));
}
std::string sizes_text(std::size_t number) {
  return member("int64", "elements", fmt::format("args.tail{}_elements", number)) +
         member("int64", "parts", fmt::format("args.tail{}_parts", number));
}

// Elements per CTA: the remaining threads share the parts. 8 are a 32-byte sector.
std::int64_t elements_across(std::int64_t elements, std::int64_t parts) {
  constexpr std::int64_t kManyParts = 128;
  return elements == 1 ? 1 : parts >= kManyParts ? 8 : 32;
}

}  // namespace

Support has_no_tails(const Region& region) {
  if (region.reductions.empty()) return Support::yes();
  return Support::no("tail reductions are not supported");
}

// A single row or column counts as reduced.
bool GemmTails::find_over(const Dims& full, const Dims& result, const std::vector<TailAxis>& axes,
                          Over& over, bool& keeps_batches) {
  std::array<int, 3> folded{}, kept{};  // axes, by TailAxis
  for (int axis = 0; axis < full.rank(); ++axis) {
    if (full[axis] == 1) continue;
    const auto which = static_cast<std::size_t>(axes[static_cast<std::size_t>(axis)]);
    ++(result[axis] == 1 ? folded : kept)[which];
  }
  for (std::size_t which = 0; which < folded.size(); ++which)
    if (folded[which] > 0 && kept[which] > 0) return false;
  const auto keeps = [&](TailAxis axis) { return kept[static_cast<std::size_t>(axis)] > 0; };
  keeps_batches = keeps(TailAxis::batch);
  if (keeps(TailAxis::row) && keeps(TailAxis::column)) return false;
  over = keeps(TailAxis::column) ? rows : keeps(TailAxis::row) ? columns : all;
  return over != all || !keeps_batches;
}

Support GemmTails::supports(const Region& region, const std::vector<TailAxis>& axes) {
  if (region.reductions.empty()) return Support::yes();
  if (region.epilogue.stores.empty()) return Support::no("only reductions are stored");
  if (region.precision() != f32) return Support::no("tail reductions compute in f64");
  for (const TailReduction& reduction : region.reductions) {
    Over over{};
    bool keeps_batches = false;
    if (!find_over(region.epilogue.space, reduction.finish.space, axes, over, keeps_batches))
      return Support::no("a tail reduction covers neither all rows nor all columns nor everything");
    if (reduction.finish.precision() != f32 ||
        reduction.finish.stores[0].view.ragged_offset != kNoTensor)
      return Support::no("a tail reduction computes in f64 or stores to a ragged tensor");
  }
  return Support::yes();
}

GemmTails::GemmTails(const Region& region, const std::vector<TailAxis>& axes,
                     const TailParts& parts) {
  const Dims& full = region.epilogue.space;
  std::int64_t batches = 1, row_count = 1, column_count = 1;
  for (int axis = 0; axis < full.rank(); ++axis) switch (axes[static_cast<std::size_t>(axis)]) {
      case TailAxis::row: row_count *= full[axis]; break;
      case TailAxis::column: column_count *= full[axis]; break;
      case TailAxis::batch: batches *= full[axis]; break;
    }
  std::array<int, 3> slots{};
  for (const TailReduction& reduction : region.reductions) {
    Tail tail{.fold = reduction.fold, .finish = reduction.finish};
    bool keeps_batches = false;
    find_over(full, reduction.finish.space, axes, tail.over, keeps_batches);
    tail.slot = slots[tail.over]++;
    tail.elements = element_count(reduction.finish.space);
    if (tail.over == rows) {
      tail.parts = parts.rows * (keeps_batches ? 1 : batches);
      tail.batch = keeps_batches ? column_count : parts.rows * tail.elements;
    } else if (tail.over == columns) {
      // Rows are numbered through all batches.
      tail.parts = parts.columns * (keeps_batches ? 1 : batches);
      tail.batch = keeps_batches ? 0 : parts.columns * tail.elements - row_count;
    } else {
      tail.parts = parts.warps;
    }
    tails_.push_back(std::move(tail));
  }
}

std::int64_t GemmTails::scratch_bytes() const {
  std::int64_t bytes = 0;
  for (const Tail& tail : tails_) bytes += tail.bytes();
  return bytes;
}

void GemmTails::scratch_layout(ScratchLayout& scratch_layout) {
  for (std::size_t i = 0; i < tails_.size(); ++i)
    tails_[i].reservation = scratch_layout.add(fmt::format("reduction {}", i), tails_[i].bytes());
}

void GemmTails::add_arguments(Arguments& arguments) const {
  for (std::size_t i = 0; i < tails_.size(); ++i) {
    arguments.scratch(fmt::format("tail{}", i), tails_[i].reservation);
    arguments.number(fmt::format("tail{}_elements", i), tails_[i].elements);
    arguments.number(fmt::format("tail{}_parts", i), tails_[i].parts);
    arguments.number(fmt::format("tail{}_batch", i), tails_[i].batch);
  }
}

std::string GemmTails::text() const {
  if (empty()) return {};
  const auto count = [&](Over over) {
    return std::count_if(tails_.begin(), tails_.end(),
                         [&](const Tail& tail) { return tail.over == over; });
  };
  std::string result = constant("kTails", static_cast<std::int64_t>(tails_.size())) +
                       constant("kTailsOverRows", count(rows)) +
                       constant("kTailsOverColumns", count(columns)) +
                       constant("kTailsOverAll", count(all));
  for (std::size_t i = 0; i < tails_.size(); ++i) {
    const Tail& tail = tails_[i];
    result += tail_text(i, tail.fold) + fact("kOver", tail.over) + fact("kSlot", tail.slot) +
              sizes_text(i) + member("int64", "batch", fmt::format("args.tail{}_batch", i)) +
              "};\n";
  }
  return result;
}

void GemmTails::add_files(std::vector<std::string_view>& files, std::string_view place) const {
  if (empty()) return;
  files.emplace_back("lib/gemm_tails.cuh");
  files.emplace_back(place);
}

LaunchDesign GemmTails::sum(const Graph& graph) const {
  LaunchDesign launch;
  Arguments& arguments = launch.arguments;
  add_arguments(arguments);
  std::vector<PointwiseProgram> programs;
  std::string printed;
  for (std::size_t i = 0; i < tails_.size(); ++i) {
    PointwiseProgram program = tails_[i].finish;
    Dims space = program.space;
    merge_axes({&program}, {&space});
    arguments.numbers(fmt::format("tail{}_dims", i), program.space);
    printed += print_program(program, graph, fmt::format("finish{}", i), arguments);
    programs.push_back(std::move(program));
  }
  std::string text;
  std::int64_t blocks = 1;
  for (std::size_t i = 0; i < tails_.size(); ++i) {
    const Tail& tail = tails_[i];
    const std::int64_t across = elements_across(tail.elements, tail.parts);
    blocks = std::max(blocks, ceil_div(tail.elements, across));
    text += tail_text(i, tail.fold) + fact("kAcross", across) + sizes_text(i) +
            fmt::format(
                "  __device__ static void finish(const Args& args, int64 element, float value) {{\n"
                "    Index at[{0}];\n"
                "    unflatten(element, args.tail{1}_dims, at);\n"
                "    R acc[1] = {{value}};\n"
                "    finish{1}<1>(args, at, acc);\n  }}\n}};\n",
                std::max(programs[i].space.rank(), 1), i);
  }
  const std::string head = "typedef float R;\ntypedef int64 Index;\n" +
                           constant("kTails", static_cast<std::int64_t>(tails_.size())) +
                           constant("kThreads", kTailThreads) + arguments.struct_text() + printed +
                           text;
  launch.source = {"tail_reduce", assemble("tail_reduce.cuh", head)};
  launch.function = "tail_reduce";
  launch.threads = kTailThreads;
  launch.grid.x = static_cast<unsigned>(blocks);
  launch.grid.y = static_cast<unsigned>(tails_.size());
  launch.is_dependent_launch = true;
  return launch;
}

std::function<KernelDesign()> GemmTails::unaligned(const Graph& graph, const Region& region,
                                                   const DeviceProps& device) const {
  return [tails = *this, &graph, &region, device] {
    std::vector<TailPass> passes;
    for (std::size_t i = 0; i < tails.tails_.size(); ++i) {
      const Tail& tail = tails.tails_[i];
      passes.push_back({tail_text(i, tail.fold), tail.finish.space, tail.parts, tail.reservation});
    }
    KernelDesign design = generic_with_tails(graph, region, passes, device);
    design.launches.push_back(tails.sum(graph));
    return design;
  };
}

}  // namespace ashlar::cuda
