// Routing of a mixture of experts: rows sorted by expert, with the source and destination of each.
#pragma once

#include <algorithm>
#include <ashlar/ops.hpp>

#include "cpu/integer_operand.hpp"

namespace ashlar::cpu {

// Positions [start[e], start[e + 1]) are the rows of expert e that have a valid source and
// destination. dropped[0..drops) lists the other rows.
struct RoutedRows {
  std::int64_t* start;
  std::int64_t* source;       // row of the token tensor
  std::int64_t* destination;  // row of the output
  std::int64_t* dropped;
  std::int64_t drops;
};

class MoeRouting {
 public:
  MoeRouting() = default;
  // Op names the operand slots; `experts` and `output_rows` come from the operands.
  template <class Op>
  MoeRouting(const Op& op, const Region& region, std::int64_t experts, std::int64_t output_rows,
             ScratchLayout& scratch_layout)
      : mode_(op.mode),
        top_k_(op.top_k),
        tokens_(region.anchor->inputs[Op::token].dims[1]),
        rows_(tokens_),
        groups_(region.anchor->inputs[Op::first_token_offset].dims[0]),
        experts_(experts),
        output_rows_(output_rows),
        offsets_(input_program(region, Op::first_token_offset)),
        index_(input_program(region, Op::token_index)),
        rank_(input_program(region, Op::token_ks)) {
    if (mode_ == MoeMode::gather) rows_ = region.anchor->inputs[Op::token_index].dims[1];
    tables_ = scratch_layout.add("routing", scratch_bytes(rows_, experts_));
  }
  // Two row tables, and the start offset and cursor of every expert.
  static std::int64_t scratch_bytes(std::int64_t rows, std::int64_t experts) {
    return (2 * rows + 2 * experts + 1) * static_cast<std::int64_t>(sizeof(std::int64_t));
  }

  RoutedRows route(const KernelContext& context, const ScratchLayout& scratch_layout) const {
    auto* memory = context.scratch<std::int64_t>(scratch_layout, tables_);
    RoutedRows routed{.start = memory + 2 * rows_,
                      .source = memory,
                      .destination = memory + rows_,
                      .dropped = nullptr,
                      .drops = 0};
    std::int64_t* cursor = routed.start + experts_ + 1;
    std::fill_n(routed.start, experts_ + 1, 0);
    for_each_row(context,
                 [&](std::int64_t expert, std::int64_t, std::int64_t from, std::int64_t to) {
                   routed.start[expert + 1] += from >= 0 && to >= 0;
                 });
    for (std::int64_t e = 0; e < experts_; ++e) {
      cursor[e] = routed.start[e];
      routed.start[e + 1] += routed.start[e];
    }
    // Sources fill the table from the front; dropped rows follow them.
    routed.dropped = routed.source + routed.start[experts_];
    for (std::int64_t row = 0, first = first_row(context); row < first; ++row)
      routed.dropped[routed.drops++] = row;
    for_each_row(context,
                 [&](std::int64_t expert, std::int64_t row, std::int64_t from, std::int64_t to) {
                   if (from < 0 || to < 0) {
                     routed.dropped[routed.drops++] = row;
                     return;
                   }
                   const std::int64_t position = cursor[expert]++;
                   routed.source[position] = from;
                   routed.destination[position] = to;
                 });
    return routed;
  }

 private:
  // Offsets, indices and ranks are untrusted data: offsets are forced to be monotonic and in [0,
  // rows].
  std::int64_t offset(const KernelContext& context, std::int64_t group, std::int64_t least) const {
    return std::clamp(offsets_.load(context, {group, 0, 0}, 0), least, rows_);
  }
  // Rows before it belong to no expert.
  std::int64_t first_row(const KernelContext& context) const {
    return groups_ > 0 ? offset(context, 0, 0) : rows_;
  }
  // Calls body(expert, row, source, destination) for every row of every group; -1: invalid.
  template <class Body>
  void for_each_row(const KernelContext& context, const Body& body) const {
    std::int64_t row = first_row(context);
    for (std::int64_t g = 0; g < groups_; ++g) {
      const std::int64_t end = g + 1 < groups_ ? offset(context, g + 1, row) : rows_;
      for (; row < end; ++row)
        body(g % experts_, row, source(context, row), destination(context, row));
    }
  }
  std::int64_t source(const KernelContext& context, std::int64_t row) const {
    if (mode_ != MoeMode::gather) return row;
    const std::int64_t token = index_.load(context, {0, row, 0}, 0);
    return token >= 0 && token < tokens_ ? token : -1;
  }
  std::int64_t destination(const KernelContext& context, std::int64_t row) const {
    if (mode_ != MoeMode::scatter) return row;
    const std::int64_t token = index_.load(context, {0, row, 0}, 0);
    const std::int64_t rank = rank_.load(context, {0, row, 0}, 0);
    if (token < 0 || rank < 0 || rank >= top_k_ || rank >= output_rows_) return -1;
    // past the end; written so that it cannot overflow
    if (token > (output_rows_ - 1 - rank) / top_k_) return -1;
    return token * top_k_ + rank;
  }

  MoeMode mode_ = MoeMode::none;
  std::int64_t top_k_ = 1, tokens_ = 0, rows_ = 0, groups_ = 0, experts_ = 0, output_rows_ = 0;
  IntegerOperand offsets_, index_, rank_;
  int tables_ = -1;
};

// Inverted index: the positions that add to row t are list[start[t]] to list[start[t + 1] - 1].
class RowContributions {
 public:
  RowContributions() = default;
  RowContributions(std::int64_t positions, std::int64_t rows, ScratchLayout& scratch_layout)
      : rows_(rows), tables_(scratch_layout.add("sums", scratch_bytes(positions, rows))) {}
  static std::int64_t scratch_bytes(std::int64_t positions, std::int64_t rows) {
    return (positions + rows + 2) * static_cast<std::int64_t>(sizeof(std::int64_t));
  }

  struct Lists {
    std::int64_t* start;
    std::int64_t* list;
  };
  Lists sort(const std::int64_t* row_of, std::int64_t positions, const KernelContext& context,
             const ScratchLayout& scratch_layout) const {
    auto* counts = context.scratch<std::int64_t>(scratch_layout, tables_);
    std::int64_t* list = counts + rows_ + 2;
    // counts[t + 2] counts row t; filling the list advances counts[t + 1] to the end of row t.
    std::fill_n(counts, rows_ + 2, 0);
    for (std::int64_t i = 0; i < positions; ++i) ++counts[row_of[i] + 2];
    for (std::int64_t t = 0; t < rows_; ++t) counts[t + 2] += counts[t + 1];
    for (std::int64_t i = 0; i < positions; ++i) list[counts[row_of[i] + 1]++] = i;
    return {counts, list};
  }

 private:
  std::int64_t rows_ = 0;
  int tables_ = -1;
};

}  // namespace ashlar::cpu
