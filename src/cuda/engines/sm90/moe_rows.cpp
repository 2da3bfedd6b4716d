#include "cuda/engines/sm90/moe_rows.hpp"

#include <fmt/format.h>

#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

std::string print_routing(const MoeRows& rows, const Graph& graph, Arguments& arguments) {
  std::string text = constant("kGather", rows.gathers()) + constant("kScatter", rows.scatters());
  arguments.numbers("token_dims", Dims{1, rows.tokens, rows.token_columns});
  arguments.numbers("token_index_dims", Dims{1, rows.rows, 1});
  arguments.numbers("first_token_offset_dims", Dims{rows.groups, 1, 1});
  arguments.number("experts", rows.experts);
  arguments.number("top_k", rows.top_k);
  arguments.number("output_rows", rows.outputs);
  const auto add = [&](const View& view, const std::string& name) {
    if (view.present())
      text += print_integer_load(view, graph, "integer_" + name, arguments);
    else
      text += fmt::format(
          "__device__ inline int64 integer_{}(const Args&, const Index (&)[3]) {{ return 0; }}\n",
          name);
  };
  add(rows.first_token_offset, "first_token_offset");
  add(rows.token_index, "token_index");
  add(rows.token_ks, "token_ks");
  return text;
}

}  // namespace ashlar::cuda
