// Routing of a mixture of experts for kernels/generic/moe_routing.cuh: which expert a row belongs
// to, where it is read and where it is written.
#pragma once

#include "cuda/launch/arguments.hpp"
#include "plan/region.hpp"

namespace ashlar::cuda {

struct MoeRows {
  MoeMode mode = MoeMode::none;
  std::int64_t top_k = 1, experts = 1, groups = 1;
  std::int64_t tokens = 1, rows = 1, outputs = 1;
  std::int64_t token_columns = 1;
  View first_token_offset, token_index, token_ks;  // where present

  bool gathers() const { return mode == MoeMode::gather; }
  bool scatters() const { return mode == MoeMode::scatter; }
};

// For both operations: their slots have the same names.
template <class Op>
MoeRows moe_rows(const Op& op, const Region& region, std::int64_t experts, std::int64_t outputs) {
  const auto view = [&](int slot) {
    const auto i = static_cast<std::size_t>(slot);
    const bool is_there = i < region.anchor->inputs.size() && region.anchor->inputs[i].present();
    return is_there ? region.prologues[i].steps.at(0).view : View{};
  };
  const Dims& token = region.anchor->inputs[Op::token].dims;
  MoeRows rows{.mode = op.mode,
               .top_k = op.top_k,
               .experts = experts,
               .groups = region.anchor->inputs[Op::first_token_offset].dims[0],
               .tokens = token[1],
               .rows = token[1],
               .outputs = outputs,
               .token_columns = token[2],
               .first_token_offset = view(Op::first_token_offset),
               .token_index = view(Op::token_index),
               .token_ks = view(Op::token_ks)};
  if (rows.gathers()) rows.rows = region.anchor->inputs[Op::token_index].dims[1];
  return rows;
}

std::string print_routing(const MoeRows& rows, const Graph& graph, Arguments& arguments);

}  // namespace ashlar::cuda
