#include "cuda/engines/sm90/residual_prefetch.hpp"

#include <algorithm>

#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

namespace {

using Step = PointwiseProgram::Step;

constexpr int kLineBits = 128 * 8;

}  // namespace

std::string print_residual_prefetch(const PointwiseProgram& epilogue, int tile_columns,
                                    const Graph& graph, Arguments& arguments) {
  std::string places, calls;
  int widest = 0, count = 0;
  for (const Step& step : epilogue.steps) {
    if (!is_full_size_load(step, epilogue, graph)) continue;
    View view = step.view;
    view.dims = epilogue.space;
    const std::string place = fmt::format("residual_address{}", count++);
    places += print_address(view, graph, place, arguments);
    calls += fmt::format("  prefetch_to_l2({}(args, at));\n", place);
    widest = std::max(widest, bit_width(view.dtype));
  }
  const int columns = widest == 0 ? tile_columns : kLineBits / widest;
  const int lines = widest == 0 ? 0 : (tile_columns + columns - 1) / columns;
  std::string text = constant("kResidualLines", lines) + constant("kResidualLineColumns", columns);
  if (lines > 0)
    text += fmt::format(
        "{}__device__ inline void prefetch_residual_lines(const Args& args, const Index (&at)[{}]) "
        "{{\n{}}}\n",
        places, std::max(epilogue.space.rank(), 1), calls);
  return text;
}

std::optional<View> residual_view(const PointwiseProgram& epilogue, int vector,
                                  const Graph& graph) {
  const int width = bit_width(epilogue.stores.at(0).view.dtype);
  if (vector * width != 128) return {};
  std::optional<View> result;
  for (const Step& step : epilogue.steps) {
    if (!is_full_size_load(step, epilogue, graph)) continue;
    if (result || bit_width(step.view.dtype) != width) return {};
    result = step.view;
    result->dims = epilogue.space;
  }
  return result;
}

}  // namespace ashlar::cuda
