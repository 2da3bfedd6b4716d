// The schema table: one row per operation.
#include "graph/schema.hpp"

#include <algorithm>
#include <array>

#include "base/fail.hpp"
#include "graph/ops/infer.hpp"

namespace ashlar {

namespace {

// A list of operands as text: "x scale? parts*" where ? marks an optional one and * any number.
template <std::size_t Size>
struct SlotText {
  char letters[Size]{};
  consteval SlotText(const char (&text)[Size]) { std::copy_n(text, Size, letters); }
  consteval std::size_t count() const {
    return static_cast<std::size_t>(std::count(letters, letters + Size, ' ')) + 1;
  }
};

template <SlotText text>
consteval auto parse_slots() {
  std::array<Slot, text.count()> slots;
  const std::string_view all(text.letters);
  std::size_t begin = 0;
  for (Slot& slot : slots) {
    std::string_view word = all.substr(begin, all.find(' ', begin) - begin);
    begin += word.size() + 1;
    if (word.back() == '?') slot.need = Slot::Need::optional;
    if (word.back() == '*') slot.need = Slot::Need::variadic;
    if (slot.need != Slot::Need::required) word.remove_suffix(1);
    slot.name = word;
  }
  return slots;
}
template <SlotText text>
constexpr auto kSlots = parse_slots<text>();

// clang-format off
constexpr std::array kTable = {
    OpSchema{"conv_forward", "convolution",
             kSlots<"x w z?">,
             kSlots<"y">,
             infer_conv_forward},
    OpSchema{"conv_backward_data", "convolution",
             kSlots<"dy w z?">,
             kSlots<"dx">,
             infer_conv_backward_data},
    OpSchema{"conv_backward_filter", "convolution",
             kSlots<"x dy z?">,
             kSlots<"dw">,
             infer_conv_backward_filter},
    OpSchema{"causal_conv_forward", "causal_convolution",
             kSlots<"x w bias? initial_state?">,
             kSlots<"y final_state?">,
             infer_causal_conv_forward},
    OpSchema{"causal_conv_backward", "causal_convolution",
             kSlots<"x w dy bias? initial_state?">,
             kSlots<"dx dw? dbias? dinitial_state?">,
             infer_causal_conv_backward},
    OpSchema{"im2col", "im2col",
             kSlots<"x">,
             kSlots<"y">,
             infer_im2col},
    OpSchema{"matmul", "matmul",
             kSlots<"a b m_override? n_override? k_override?">,
             kSlots<"c">,
             infer_matmul},
    OpSchema{"moe_grouped_matmul", "mixture",
             kSlots<"token weight first_token_offset token_index? token_ks?">,
             kSlots<"output">,
             infer_moe_grouped_matmul},
    OpSchema{"moe_grouped_matmul_backward", "mixture",
             kSlots<"doutput token weight? first_token_offset token_index? token_ks?">,
             kSlots<"dweight dtoken?">,
             infer_moe_grouped_matmul_backward},
    OpSchema{"pointwise", "pointwise",
             kSlots<"x b? predicate?">,
             kSlots<"y">,
             infer_pointwise},
    OpSchema{"reduction", "reduction",
             kSlots<"x">,
             kSlots<"y index?">,
             infer_reduction},
    OpSchema{"resample_forward", "resample",
             kSlots<"x">,
             kSlots<"y index?">,
             infer_resample_forward},
    OpSchema{"resample_backward", "resample",
             kSlots<"dy x? index?">,
             kSlots<"dx">,
             infer_resample_backward},
    OpSchema{"grid_generator_forward", "spatial_transformer",
             kSlots<"theta">,
             kSlots<"grid">,
             infer_grid_generator_forward},
    OpSchema{"grid_generator_backward", "spatial_transformer",
             kSlots<"dgrid">,
             kSlots<"dtheta">,
             infer_grid_generator_backward},
    OpSchema{"grid_sample_forward", "spatial_transformer",
             kSlots<"x grid">,
             kSlots<"y">,
             infer_grid_sample_forward},
    OpSchema{"grid_sample_backward", "spatial_transformer",
             kSlots<"x grid dy">,
             kSlots<"dx dgrid?">,
             infer_grid_sample_backward},
    OpSchema{"norm_forward", "norm",
             kSlots<"x scale? bias? epsilon_tensor? mean? inv_variance? running_mean? "
                    "running_var? momentum_tensor?">,
             kSlots<"y out_mean? out_inv_variance? next_running_mean? next_running_var?">,
             infer_norm_forward},
    OpSchema{"norm_backward", "norm",
             kSlots<"x dy scale? mean? inv_variance? epsilon_tensor?">,
             kSlots<"dx dscale? dbias?">,
             infer_norm_backward},
    OpSchema{"gen_stats", "batch_norm_parts",
             kSlots<"x">,
             kSlots<"sum sq_sum">,
             infer_gen_stats},
    OpSchema{"bn_finalize", "batch_norm_parts",
             kSlots<"sum? sq_sum? scale bias running_mean? running_var? epsilon_tensor? "
                    "momentum_tensor? count_tensor?">,
             kSlots<"eq_scale eq_bias saved_mean? saved_inv_variance? next_running_mean? "
                    "next_running_var?">,
             infer_bn_finalize},
    OpSchema{"bn_backward_weights", "batch_norm_parts",
             kSlots<"x dy mean inv_variance scale">,
             kSlots<"dscale dbias eq_dy_scale? eq_x_scale? eq_bias?">,
             infer_bn_backward_weights},
    OpSchema{"lrn_forward", "local_norm",
             kSlots<"x">,
             kSlots<"y">,
             infer_lrn_forward},
    OpSchema{"lrn_backward", "local_norm",
             kSlots<"x dy">,
             kSlots<"dx">,
             infer_lrn_backward},
    OpSchema{"divisive_norm_forward", "local_norm",
             kSlots<"x means?">,
             kSlots<"y">,
             infer_divisive_norm_forward},
    OpSchema{"divisive_norm_backward", "local_norm",
             kSlots<"x dy means?">,
             kSlots<"dx dmeans?">,
             infer_divisive_norm_backward},
    OpSchema{"softmax_forward", "softmax",
             kSlots<"x">,
             kSlots<"y stats?">,
             infer_softmax_forward},
    OpSchema{"softmax_backward", "softmax",
             kSlots<"y dy">,
             kSlots<"dx">,
             infer_softmax_backward},
    OpSchema{"attention_forward", "attention",
             kSlots<"q k v bias? seq_len_q? seq_len_kv? dropout_seed? dropout_offset? "
                    "dropout_mask? scale_tensor? page_table_k? page_table_v? sink? block_mask? "
                    "score_input0? score_input1? score_input2? score_input3? descale_q? "
                    "descale_k? descale_v? descale_s? scale_s? scale_o?">,
             kSlots<"o stats? max? sum_exp? rng_dump? amax_s? amax_o?">,
             infer_attention_forward},
    OpSchema{"attention_backward", "attention",
             kSlots<"q k v o d_o stats bias? seq_len_q? seq_len_kv? dropout_seed? "
                    "dropout_offset? dropout_mask? scale_tensor? page_table_k? page_table_v? "
                    "sink? block_mask? score_input0? score_input1? score_input2? score_input3? "
                    "descale_q? descale_k? descale_v? descale_o? descale_do? descale_s? "
                    "descale_dp? scale_s? scale_dq? scale_dk? scale_dv? scale_dp?">,
             kSlots<"dq dk dv dbias? dsink? rng_dump? amax_dq? amax_dk? amax_dv? amax_dp?">,
             infer_attention_backward},
    OpSchema{"multi_head_attention_forward", "multi_head_attention",
             kSlots<"q k v weights? residual? seq_len_q? seq_len_kv? window_low? window_high? "
                    "dropout_seed? dropout_offset? post_dropout_seed? post_dropout_offset?">,
             kSlots<"o">,
             infer_multi_head_attention_forward},
    OpSchema{"multi_head_attention_backward_data", "multi_head_attention",
             kSlots<"q k v weights? d_o seq_len_q? seq_len_kv? window_low? window_high? "
                    "dropout_seed? dropout_offset? post_dropout_seed? post_dropout_offset?">,
             kSlots<"dq dk dv">,
             infer_multi_head_attention_backward_data},
    OpSchema{"multi_head_attention_backward_weights", "multi_head_attention",
             kSlots<"q k v weights d_o seq_len_q? seq_len_kv? window_low? window_high? "
                    "dropout_seed? dropout_offset? post_dropout_seed? post_dropout_offset? "
                    "previous?">,
             kSlots<"dweights">,
             infer_multi_head_attention_backward_weights},
    OpSchema{"paged_cache_load", "cache",
             kSlots<"container page_table sequence?">,
             kSlots<"y">,
             infer_paged_cache_load},
    OpSchema{"expand_band_matrix", "cache",
             kSlots<"x kv_token_offset?">,
             kSlots<"y">,
             infer_expand_band_matrix},
    OpSchema{"contract_band_matrix", "cache",
             kSlots<"x kv_token_offset?">,
             kSlots<"y">,
             infer_contract_band_matrix},
    OpSchema{"rnn_forward", "recurrent",
             kSlots<"x weights hx? cx? seq_lengths? dropout_seed? dropout_offset?">,
             kSlots<"y hy? cy? reserve?">,
             infer_rnn_forward},
    OpSchema{"rnn_backward_data", "recurrent",
             kSlots<"dy weights reserve hx? cx? dhy? dcy? seq_lengths? dropout_seed? "
                    "dropout_offset?">,
             kSlots<"dx dhx? dcx? dgates?">,
             infer_rnn_backward_data},
    OpSchema{"rnn_backward_weights", "recurrent",
             kSlots<"x reserve dgates hx? seq_lengths? dropout_seed? dropout_offset? previous?">,
             kSlots<"dweights">,
             infer_rnn_backward_weights},
    OpSchema{"ctc_loss", "ctc",
             kSlots<"x labels label_lengths input_lengths previous?">,
             kSlots<"loss gradient?">,
             infer_ctc_loss},
    OpSchema{"rng", "rng",
             kSlots<"seed_tensor? offset_tensor?">,
             kSlots<"y">,
             infer_rng},
    OpSchema{"dropout_forward", "dropout",
             kSlots<"x seed_tensor? offset_tensor?">,
             kSlots<"y mask? next_offset?">,
             infer_dropout_forward},
    OpSchema{"dropout_backward", "dropout",
             kSlots<"dy mask? seed_tensor? offset_tensor?">,
             kSlots<"dx">,
             infer_dropout_backward},
    OpSchema{"block_scale_quantize", "block_scale",
             kSlots<"x">,
             kSlots<"y scale">,
             infer_block_scale_quantize},
    OpSchema{"block_scale_dequantize", "block_scale",
             kSlots<"x scale zero_point?">,
             kSlots<"y">,
             infer_block_scale_dequantize},
    OpSchema{"reshape", "data_movement",
             kSlots<"x">,
             kSlots<"y">,
             infer_reshape},
    OpSchema{"transpose", "data_movement",
             kSlots<"x">,
             kSlots<"y">,
             infer_transpose},
    OpSchema{"slice", "data_movement",
             kSlots<"x">,
             kSlots<"y">,
             infer_slice},
    OpSchema{"concat", "data_movement",
             kSlots<"x*">,
             kSlots<"y">,
             infer_concat},
    OpSchema{"tensor_transform", "tensor_transform",
             kSlots<"x z?">,
             kSlots<"y">,
             infer_tensor_transform},
};
// clang-format on
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
