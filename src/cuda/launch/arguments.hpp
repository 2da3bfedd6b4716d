// Kernel arguments: one struct of 8-byte words, printed into the kernel's text and filled on the
// host. It is built with the kernel; a run only patches pointers and scalars.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda/launch/tensor_map.hpp"
#include "plan/kernel.hpp"

namespace ashlar::cuda {

inline constexpr int kMaxArgumentWords = 500;  // kernel parameters are limited to 4 KiB
inline constexpr int kAnyAddress = 1;
inline constexpr int kVectorBytes = 16;  // of the widest vector load or store

class Arguments {
 public:
  struct alignas(64) Words : std::array<std::uint64_t, kMaxArgumentWords> {};

  // Each returns the expression by which kernel text names the argument: "args.x0".
  std::string number(const std::string& name, std::int64_t value);
  // An array: "args.stride", read as args.stride[2]. Never empty.
  std::string numbers(const std::string& name, std::span<const std::int64_t> values);
  std::string real(const std::string& name, double value);
  // 1 where the tensor is a constant input (CompileOptions::constants), else 0.
  std::string never_changes(const std::string& name, TensorId tensor);
  // Pointer to the first element of a view, whose address must be a multiple of `multiple` bytes
  // (kAnyAddress: the kernel accesses single elements). For sub-byte types the pointer is the
  // tensor's, and the kernel applies the view's offset.
  std::string pointer(const std::string& name, const View& view, int multiple = kVectorBytes);
  std::string scratch(const std::string& name, int reservation);
  // A host scalar, read at each run: a tensor of kind scalar or constant.
  std::string host_scalar(const std::string& name, TensorId tensor, DType dtype);
  // The same for 64-bit integers such as a seed or an offset.
  std::string host_integer(const std::string& name, TensorId tensor, DType dtype);

  // A TMA descriptor (TensorMap of lib/ptx_tma.cuh) of a tensor or of workspace.
  std::string tensor_map(const std::string& name, const View& view, TensorMapForm form);
  std::string tensor_map_of_scratch(const std::string& name, int reservation, TensorMapForm form);

  // "struct Args { ... };"
  std::string struct_text() const;
  std::size_t bytes() const { return words_.size() * sizeof(std::uint64_t); }

 private:
  friend class ArgumentFiller;
  struct Word {
    enum class Kind : std::uint8_t {
      number,
      real,
      never_changes,
      pointer,
      scratch,
      scalar,
      integer,
      map_of_tensor,  // first word of a TMA descriptor; the rest are numbers inside an array
      map_of_scratch
    } kind = Kind::number;
    std::string name = {};
    std::int64_t value = 0;  // number; real: its bits; pointer: byte offset; scratch: reservation
    TensorId tensor = kNoTensor;
    DType dtype = f32;
    int multiple = kAnyAddress;  // pointer, map_of_tensor: required alignment in bytes
    int array = -1;              // words of the array that starts here, 0 inside one; -1: not an
                                 // array
  };
  std::string add(Word word);
  std::string add_map(Word word, TensorMapForm form);
  std::vector<Word> words_;
  std::vector<TensorMapForm> maps_;  // in word order
};

// Fills the argument struct of a run: copies constant words and patches the others.
class ArgumentFiller {
 public:
  // Throws Error(internal) past kMaxArgumentWords.
  explicit ArgumentFiller(const Arguments& arguments);
  void keep_constants(const KernelContext& constants);
  // Whether all addresses have the required alignment; if not, the words of TMA descriptors are
  // invalid.
  bool fill(const KernelContext& context, const ScratchLayout& scratch_layout,
            Arguments::Words& words) const;

 private:
  struct Patch {
    std::uint32_t position;
    Arguments::Word::Kind kind;
    DType dtype;
    std::uint64_t zeros;  // alignment mask: address bits that must be 0
    TensorId tensor;
    std::int64_t value;
  };
  std::vector<std::uint64_t> numbers_;
  std::vector<Patch> patches_;
  std::vector<std::pair<std::uint32_t, TensorId>> of_constants_;  // word indices of never_changes
};

}  // namespace ashlar::cuda
