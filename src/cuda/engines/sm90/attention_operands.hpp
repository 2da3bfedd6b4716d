// Operands [batch, heads, rows, columns] of fused attention on Hopper: TMA maps and arguments.
#pragma once

#include <string>

#include "cuda/launch/arguments.hpp"

namespace ashlar::cuda {

inline constexpr int kAttentionColumn = 3;  // axis

// Boxes of `columns` columns, whose rows are one swizzle period, and `rows` rows of one head.
TensorMapForm attention_map(const View& view, std::int64_t columns, std::int64_t rows);
// Null, or why TMA cannot load the operand.
const char* attention_refusal(const View& view);

// Adds the pointer `name`, a multiple of `multiple` bytes, and NAME_strides [batch, head, row];
// zeros where the view is absent.
void add_attention_rows(Arguments& arguments, const std::string& name, const View& view,
                        int multiple);

}  // namespace ashlar::cuda
