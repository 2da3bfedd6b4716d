// What a kernel is given at each launch: one struct of 8-byte words, printed into the kernel's text
// and filled here. Built with the kernel; a run puts in pointers and scalars only.
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

inline constexpr int kMaxArgumentWords = 500;  // the driver takes 4 KiB
inline constexpr int kAnyAddress = 1;
inline constexpr int kVectorBytes = 16;  // of the longest load or store of a thread

class Arguments {
 public:
  struct alignas(64) Words : std::array<std::uint64_t, kMaxArgumentWords> {};

  // Each returns the text by which kernels name the argument: "args.x0".
  std::string number(const std::string& name, std::int64_t value);
  // An array of them: "args.stride", of which a kernel reads args.stride[2]. Never empty.
  std::string numbers(const std::string& name, std::span<const std::int64_t> values);
  std::string real(const std::string& name, double value);
  // 1 where the tensor is an input that never changes (CompileOptions::constants), else 0.
  std::string never_changes(const std::string& name, TensorId tensor);
  // The first element of a view, at an address that the kernel wants to be a multiple of so many
  // bytes (kAnyAddress: it loads and stores elements one by one). Views of types narrower than a
  // byte start at their tensor, and their offset is the kernel's business.
  std::string pointer(const std::string& name, const View& view, int multiple = kVectorBytes);
  std::string scratch(const std::string& name, int reservation);
  // A number the host holds, read at each run: a tensor of kind scalar or constant.
  std::string host_scalar(const std::string& name, TensorId tensor, DType dtype);
  // The same for one whose 64 bits all count: a seed, an offset.
  std::string host_integer(const std::string& name, TensorId tensor, DType dtype);

  // A tensor, or scratch, as the copy engine sees it: a TensorMap of lib/ptx_tma.cuh.
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
      map_of_tensor,  // the first of its words; those that follow are numbers inside an array
      map_of_scratch
    } kind = Kind::number;
    std::string name = {};
    std::int64_t value = 0;  // number; real: its bits; pointer: byte offset; scratch: reservation
    TensorId tensor = kNoTensor;
    DType dtype = f32;
    int multiple = kAnyAddress;  // pointer, map_of_tensor: bytes that must divide the address
    int array = -1;              // words of the array that begins here, 0 inside one; -1: no array
  };
  std::string add(Word word);
  std::string add_map(Word word, TensorMapForm form);
  std::vector<Word> words_;
  std::vector<TensorMapForm> maps_;  // in the order of their words
};

// What a run does with them: numbers are copied, the other words put in.
class ArgumentFiller {
 public:
  // Throws Error(internal) past kMaxArgumentWords.
  explicit ArgumentFiller(const Arguments& arguments);
  void keep_constants(const KernelContext& constants);
  // Whether all addresses are multiples of what the kernel wants; words of tensor maps are worth
  // nothing where they are not.
  bool fill(const KernelContext& context, const ScratchLayout& scratch_layout,
            Arguments::Words& words) const;

 private:
  struct Patch {
    std::uint32_t position;
    Arguments::Word::Kind kind;
    DType dtype;
    std::uint64_t zeros;  // bits of the address that the kernel wants to be 0
    TensorId tensor;
    std::int64_t value;
  };
  std::vector<std::uint64_t> numbers_;
  std::vector<Patch> patches_;
  std::vector<std::pair<std::uint32_t, TensorId>> of_constants_;  // positions of never_changes
};

}  // namespace ashlar::cuda
