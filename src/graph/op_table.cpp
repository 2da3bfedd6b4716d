// The table of operations: their definitions, with operands from the structs.
#include <algorithm>
#include <array>

#include "base/fail.hpp"
#include "graph/op_traits.hpp"

namespace ashlar {

namespace {

// Words of the text of ASHLAR_INPUTS or ASHLAR_OUTPUTS: "x, w, ASHLAR_OPTIONAL(z)".
consteval bool is_word(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '_';
}

// Calls visit(slot) for every operand.
template <class Visit>
consteval void for_each_slot(std::string_view text, const Visit& visit) {
  Slot::Need need = Slot::Need::required;
  while (!text.empty()) {
    std::size_t length = 0;
    while (length < text.size() && is_word(text[length])) ++length;
    const std::string_view word = text.substr(0, length);
    const char next = length < text.size() ? text[length] : ',';
    if (next == '(')
      need = word == "ASHLAR_OPTIONAL" ? Slot::Need::optional : Slot::Need::variadic;
    else if (length > 0)
      visit(Slot{word, need});
    if (next == ')') need = Slot::Need::required;
    text.remove_prefix(std::min(length + 1, text.size()));
  }
}

consteval std::size_t count_slots(std::string_view text) {
  std::size_t count = 0;
  for_each_slot(text, [&](const Slot&) { ++count; });
  return count;
}

template <std::size_t kCount>
consteval std::array<Slot, kCount> parse_slots(std::string_view text) {
  std::array<Slot, kCount> slots{};
  std::size_t next = 0;
  for_each_slot(text, [&](const Slot& slot) { slots[next++] = slot; });
  return slots;
}

template <class OpType>
constexpr auto kInputs = parse_slots<count_slots(OpType::kInputSlots)>(OpType::kInputSlots);
template <class OpType>
constexpr auto kOutputs = parse_slots<count_slots(OpType::kOutputSlots)>(OpType::kOutputSlots);

template <class OpType>
OpTraits complete_traits() {
  OpTraits traits = define_traits<OpType>();
  traits.inputs = kInputs<OpType>;
  traits.outputs = kOutputs<OpType>;
  return traits;
}

constexpr auto kAllOps = std::make_index_sequence<std::variant_size_v<Op>>{};

template <std::size_t... I>
std::array<OpTraits, sizeof...(I)> make_table(std::index_sequence<I...>) {
  return {complete_traits<std::variant_alternative_t<I, Op>>()...};
}

const auto& table() {
  static const auto rows = make_table(kAllOps);
  return rows;
}

template <std::size_t... I>
Op op_by_index(std::size_t index, std::index_sequence<I...>) {
  Op op;
  ((index == I ? (op.emplace<I>(), 0) : 0), ...);
  return op;
}

}  // namespace

std::span<const OpTraits> op_table() { return table(); }

const OpTraits& traits_of(const Op& op) { return table()[op.index()]; }

const OpTraits* find_traits(std::string_view name) {
  for (const OpTraits& row : table())
    if (row.name == name) return &row;
  return nullptr;
}

std::string known_operations() {
  std::string known;
  for (const OpTraits& row : table()) known += (known.empty() ? "" : ", ") + std::string(row.name);
  return known;
}

Op default_op(std::string_view name) {
  const OpTraits* row = find_traits(name);
  if (!row)
    fail(ErrorCode::parse, "operation: got '{}', expected one of: {}", name, known_operations());
  return op_by_index(static_cast<std::size_t>(row - table().data()), kAllOps);
}

}  // namespace ashlar
