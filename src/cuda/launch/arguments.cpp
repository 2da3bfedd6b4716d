#include "cuda/launch/arguments.hpp"

#include <algorithm>
#include <bit>

#include "base/element.hpp"
#include "base/fail.hpp"

namespace ashlar::cuda {

std::string Arguments::add(Word word) {
  words_.push_back(std::move(word));
  return "args." + words_.back().name;
}

std::string Arguments::number(const std::string& name, std::int64_t value) {
  return add({.kind = Word::Kind::number, .name = name, .value = value});
}

std::string Arguments::numbers(const std::string& name, std::span<const std::int64_t> values) {
  const std::size_t count = std::max<std::size_t>(values.size(), 1);
  for (std::size_t i = 0; i < count; ++i)
    add({.kind = Word::Kind::number,
         .name = name,
         .value = i < values.size() ? values[i] : 0,
         .array = i == 0 ? static_cast<int>(count) : 0});
  return "args." + name;
}

std::string Arguments::real(const std::string& name, double value) {
  return add({.kind = Word::Kind::real, .name = name, .value = std::bit_cast<std::int64_t>(value)});
}

std::string Arguments::never_changes(const std::string& name, TensorId tensor) {
  return add({.kind = Word::Kind::never_changes, .name = name, .tensor = tensor});
}

std::string Arguments::pointer(const std::string& name, const View& view, int multiple) {
  const int bits = bit_width(view.dtype);
  return add({.kind = Word::Kind::pointer,
              .name = name,
              .value = bits % 8 == 0 ? view.offset * (bits / 8) : 0,
              .tensor = view.tensor,
              .dtype = view.dtype,
              .multiple = multiple});
}

std::string Arguments::scratch(const std::string& name, int reservation) {
  return add({.kind = Word::Kind::scratch, .name = name, .value = reservation});
}

std::string Arguments::host_scalar(const std::string& name, TensorId tensor, DType dtype) {
  return add({.kind = Word::Kind::scalar, .name = name, .tensor = tensor, .dtype = dtype});
}

std::string Arguments::host_integer(const std::string& name, TensorId tensor, DType dtype) {
  return add({.kind = Word::Kind::integer, .name = name, .tensor = tensor, .dtype = dtype});
}

std::string Arguments::tensor_map(const std::string& name, const View& view, TensorMapForm form) {
  return add_map({.kind = Word::Kind::map_of_tensor,
                  .name = name,
                  .value = view.offset * (bit_width(view.dtype) / 8),
                  .tensor = view.tensor,
                  .multiple = kVectorBytes},
                 std::move(form));
}

std::string Arguments::tensor_map_of_scratch(const std::string& name, int reservation,
                                             TensorMapForm form) {
  return add_map({.kind = Word::Kind::map_of_scratch, .name = name, .value = reservation},
                 std::move(form));
}

std::string Arguments::add_map(Word word, TensorMapForm form) {
  constexpr std::size_t kWordsOf64Bytes = 8;
  while (words_.size() % kWordsOf64Bytes != 0)
    add({.kind = Word::Kind::number, .name = fmt::format("unused{}", words_.size())});
  word.array = 1;
  const std::string text = add(std::move(word));
  for (int i = 1; i < kTensorMapWords; ++i) add({.kind = Word::Kind::number, .array = 0});
  maps_.push_back(std::move(form));
  return text;
}

std::string Arguments::struct_text() const {
  std::string text = "struct Args {\n";
  for (const Word& word : words_) {
    const char* type = "int64 ";
    if (word.kind == Word::Kind::pointer || word.kind == Word::Kind::scratch) type = "void* ";
    if (word.kind == Word::Kind::scalar || word.kind == Word::Kind::real) type = "double ";
    if (word.array == 0) continue;
    if (word.kind == Word::Kind::map_of_tensor || word.kind == Word::Kind::map_of_scratch) {
      text += fmt::format("  TensorMap {};\n", word.name);
      continue;
    }
    const std::string array = word.array > 0 ? fmt::format("[{}]", word.array) : "";
    text += fmt::format("  {}{}{};\n", type, word.name, array);
  }
  return text + "};\n";
}

ArgumentFiller::ArgumentFiller(const Arguments& arguments) {
  using Kind = Arguments::Word::Kind;
  if (arguments.words_.size() > kMaxArgumentWords)
    fail(ErrorCode::internal, "cuda: a kernel has {} argument words, at most {} are supported",
         arguments.words_.size(), kMaxArgumentWords);
  for (const Arguments::Word& word : arguments.words_) {
    const auto position = static_cast<std::uint32_t>(numbers_.size());
    if (word.kind == Kind::never_changes)
      of_constants_.emplace_back(position, word.tensor);
    else if (word.kind != Kind::number && word.kind != Kind::real)
      patches_.push_back({position, word.kind, word.dtype,
                          static_cast<std::uint64_t>(word.multiple - 1), word.tensor, word.value});
    numbers_.push_back(static_cast<std::uint64_t>(word.value));
  }
  constexpr std::size_t kWordsOf64Bytes = 8;
  if (!arguments.maps_.empty())  // sizeof(Args) is a multiple of its alignment
    while (numbers_.size() % kWordsOf64Bytes != 0) numbers_.push_back(0);
  auto form = arguments.maps_.begin();
  for (const Patch& patch : patches_) {
    if (patch.kind != Kind::map_of_tensor && patch.kind != Kind::map_of_scratch) continue;
    const TensorMapWords map = encode(*form++);
    std::copy(map.words.begin(), map.words.end(), numbers_.begin() + patch.position);
  }
}

void ArgumentFiller::keep_constants(const KernelContext& constants) {
  for (const auto& [position, tensor] : of_constants_)
    numbers_[position] = constants.pointer(tensor) ? 1 : 0;
}

bool ArgumentFiller::fill(const KernelContext& context, const ScratchLayout& scratch_layout,
                          Arguments::Words& words) const {
  using Kind = Arguments::Word::Kind;
  std::copy(numbers_.begin(), numbers_.end(), words.begin());
  std::uint64_t beyond = 0;  // misaligned address bits
  for (const Patch& patch : patches_) {
    std::uint64_t& word = words[patch.position];
    switch (patch.kind) {
      case Kind::pointer:
        word = reinterpret_cast<std::uint64_t>(context.pointer(patch.tensor)) +
               static_cast<std::uint64_t>(patch.value);
        beyond |= word & patch.zeros;
        break;
      case Kind::scratch:
        word = reinterpret_cast<std::uint64_t>(
            context.scratch<std::byte>(scratch_layout, static_cast<int>(patch.value)));
        break;
      case Kind::scalar:
        word = std::bit_cast<std::uint64_t>(
            load_element(patch.dtype, context.pointer(patch.tensor), 0));
        break;
      case Kind::integer: {
        const void* data = context.pointer(patch.tensor);
        word = patch.dtype == i64 ? *static_cast<const std::uint64_t*>(data)
                                  : static_cast<std::uint64_t>(static_cast<std::int64_t>(
                                        load_element(patch.dtype, data, 0)));
        break;
      }
      case Kind::map_of_tensor: {
        const std::uint64_t address =
            reinterpret_cast<std::uint64_t>(context.pointer(patch.tensor)) +
            static_cast<std::uint64_t>(patch.value);
        beyond |= address & patch.zeros;
        if ((address & patch.zeros) == 0) replace_address(&word, address);
        break;
      }
      case Kind::map_of_scratch:
        replace_address(&word, reinterpret_cast<std::uint64_t>(context.scratch<std::byte>(
                                   scratch_layout, static_cast<int>(patch.value))));
        break;
      case Kind::number:
      case Kind::real:
      case Kind::never_changes: break;
    }
  }
  return beyond == 0;
}

}  // namespace ashlar::cuda
