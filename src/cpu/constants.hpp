// Constant operands (CompileOptions::constants): detection, and memory for their packed form.
#pragma once

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <memory>
#include <new>

#include "plan/kernel.hpp"
#include "plan/pointwise_program.hpp"

namespace ashlar::cpu {

// Whether all tensors that an operand's program loads are constant (see Kernel::keep_constants).
inline bool is_constant(const PointwiseProgram& operand, const KernelContext& constants) {
  using Step = PointwiseProgram::Step;
  return !operand.empty() &&
         std::all_of(operand.steps.begin(), operand.steps.end(), [&](const Step& step) {
           return step.kind != Step::Kind::load || constants.pointer(step.view.tensor) != nullptr;
         });
}

// Memory for an operand that a kernel packs once, at build time; page-aligned, empty until
// allocated.
template <class T>
class PrepackedBuffer {
 public:
  void allocate(std::int64_t elements) {
    const std::size_t bytes = static_cast<std::size_t>(elements) * sizeof(T);
    memory_.reset(static_cast<T*>(::operator new(bytes, kAlignment)));
#if defined(__linux__)
    // The operand is streamed in every run: huge pages save TLB misses.
    madvise(memory_.get(), bytes, MADV_HUGEPAGE);
#endif
  }
  T* data() const { return memory_.get(); }

 private:
  static constexpr std::align_val_t kAlignment{4096};  // a page: madvise() needs page alignment
  struct Free {
    void operator()(T* memory) const { ::operator delete(memory, kAlignment); }
  };
  std::unique_ptr<T, Free> memory_;
};

}  // namespace ashlar::cpu
