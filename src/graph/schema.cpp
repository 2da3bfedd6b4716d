#include "graph/schema.hpp"

#include <array>

#include "base/fail.hpp"
#include "graph/ops/infer.hpp"

namespace ashlar {

namespace {

constexpr auto kOptional = Slot::Need::optional;
constexpr auto kVariadic = Slot::Need::variadic;

constexpr Slot kConvForwardIn[] = {{"x"}, {"w"}, {"z", kOptional}};
constexpr Slot kConvBackwardDataIn[] = {{"dy"}, {"w"}, {"z", kOptional}};
constexpr Slot kConvBackwardFilterIn[] = {{"x"}, {"dy"}, {"z", kOptional}};
constexpr Slot kMatmulIn[] = {
    {"a"}, {"b"}, {"m_override", kOptional}, {"n_override", kOptional}, {"k_override", kOptional}};
constexpr Slot kPointwiseIn[] = {{"x"}, {"b", kOptional}, {"predicate", kOptional}};
constexpr Slot kResampleBackwardIn[] = {{"dy"}, {"x", kOptional}, {"index", kOptional}};
constexpr Slot kResampleForwardOut[] = {{"y"}, {"index", kOptional}};
constexpr Slot kNormForwardIn[] = {{"x"},
                                   {"scale", kOptional},
                                   {"bias", kOptional},
                                   {"epsilon_tensor", kOptional},
                                   {"mean", kOptional},
                                   {"inv_variance", kOptional},
                                   {"running_mean", kOptional},
                                   {"running_var", kOptional}};
constexpr Slot kNormForwardOut[] = {{"y"},
                                    {"out_mean", kOptional},
                                    {"out_inv_variance", kOptional},
                                    {"next_running_mean", kOptional},
                                    {"next_running_var", kOptional}};
constexpr Slot kNormBackwardIn[] = {{"x"},
                                    {"dy"},
                                    {"scale", kOptional},
                                    {"mean", kOptional},
                                    {"inv_variance", kOptional},
                                    {"epsilon_tensor", kOptional}};
constexpr Slot kNormBackwardOut[] = {{"dx"}, {"dscale", kOptional}, {"dbias", kOptional}};
constexpr Slot kSoftmaxForwardOut[] = {{"y"}, {"stats", kOptional}};
constexpr Slot kSoftmaxBackwardIn[] = {{"y"}, {"dy"}};
constexpr Slot kAttentionForwardIn[] = {{"q"},
                                        {"k"},
                                        {"v"},
                                        {"bias", kOptional},
                                        {"seq_len_q", kOptional},
                                        {"seq_len_kv", kOptional},
                                        {"dropout_seed", kOptional},
                                        {"dropout_offset", kOptional},
                                        {"dropout_mask", kOptional},
                                        {"scale_tensor", kOptional}};
constexpr Slot kAttentionForwardOut[] = {{"o"}, {"stats", kOptional}};
constexpr Slot kAttentionBackwardIn[] = {{"q"},
                                         {"k"},
                                         {"v"},
                                         {"o"},
                                         {"d_o"},
                                         {"stats"},
                                         {"bias", kOptional},
                                         {"seq_len_q", kOptional},
                                         {"seq_len_kv", kOptional},
                                         {"dropout_seed", kOptional},
                                         {"dropout_offset", kOptional},
                                         {"dropout_mask", kOptional},
                                         {"scale_tensor", kOptional}};
constexpr Slot kAttentionBackwardOut[] = {{"dq"}, {"dk"}, {"dv"}, {"dbias", kOptional}};
constexpr Slot kRngIn[] = {{"seed_tensor", kOptional}, {"offset_tensor", kOptional}};
constexpr Slot kConcatIn[] = {{"x", kVariadic}};
constexpr Slot kX[] = {{"x"}};
constexpr Slot kY[] = {{"y"}};
constexpr Slot kC[] = {{"c"}};
constexpr Slot kDx[] = {{"dx"}};
constexpr Slot kDw[] = {{"dw"}};

constexpr std::array kTable = {
    OpSchema{"conv_forward", "convolution", kConvForwardIn, kY, infer_conv_forward},
    OpSchema{"conv_backward_data", "convolution", kConvBackwardDataIn, kDx,
             infer_conv_backward_data},
    OpSchema{"conv_backward_filter", "convolution", kConvBackwardFilterIn, kDw,
             infer_conv_backward_filter},
    OpSchema{"matmul", "matmul", kMatmulIn, kC, infer_matmul},
    OpSchema{"pointwise", "pointwise", kPointwiseIn, kY, infer_pointwise},
    OpSchema{"reduction", "reduction", kX, kY, infer_reduction},
    OpSchema{"resample_forward", "resample", kX, kResampleForwardOut, infer_resample_forward},
    OpSchema{"resample_backward", "resample", kResampleBackwardIn, kDx, infer_resample_backward},
    OpSchema{"norm_forward", "norm", kNormForwardIn, kNormForwardOut, infer_norm_forward},
    OpSchema{"norm_backward", "norm", kNormBackwardIn, kNormBackwardOut, infer_norm_backward},
    OpSchema{"softmax_forward", "softmax", kX, kSoftmaxForwardOut, infer_softmax_forward},
    OpSchema{"softmax_backward", "softmax", kSoftmaxBackwardIn, kDx, infer_softmax_backward},
    OpSchema{"attention_forward", "attention", kAttentionForwardIn, kAttentionForwardOut,
             infer_attention_forward},
    OpSchema{"attention_backward", "attention", kAttentionBackwardIn, kAttentionBackwardOut,
             infer_attention_backward},
    OpSchema{"rng", "rng", kRngIn, kY, infer_rng},
    OpSchema{"reshape", "data_movement", kX, kY, infer_reshape},
    OpSchema{"transpose", "data_movement", kX, kY, infer_transpose},
    OpSchema{"slice", "data_movement", kX, kY, infer_slice},
    OpSchema{"concat", "data_movement", kConcatIn, kY, infer_concat},
};
static_assert(kTable.size() == std::variant_size_v<Op>, "one row per alternative of Op");

template <std::size_t... I>
Op op_by_index(std::size_t index, std::index_sequence<I...>) {
  Op op;
  ((index == I ? (op.emplace<I>(), 0) : 0), ...);
  return op;
}

}  // namespace

std::span<const OpSchema> schema_table() { return kTable; }

const OpSchema& schema_of(const Op& op) { return kTable[op.index()]; }

const OpSchema* find_schema(std::string_view name) {
  for (const OpSchema& row : kTable)
    if (row.name == name) return &row;
  return nullptr;
}

std::string known_operations() {
  std::string known;
  for (const OpSchema& row : kTable) known += (known.empty() ? "" : ", ") + std::string(row.name);
  return known;
}

Op default_op(std::string_view name) {
  const OpSchema* row = find_schema(name);
  if (!row)
    fail(ErrorCode::parse, "operation: got '{}', expected one of: {}", name, known_operations());
  return op_by_index(static_cast<std::size_t>(row - kTable.data()),
                     std::make_index_sequence<std::variant_size_v<Op>>{});
}

}  // namespace ashlar
