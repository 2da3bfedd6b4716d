// Operands that never change (CompileOptions::constants).
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

// Whether everything an operand is made of is known to `constants` (see Kernel::keep_constants).
inline bool is_constant(const PointwiseProgram& operand, const KernelContext& constants) {
  using Step = PointwiseProgram::Step;
  return !operand.empty() &&
         std::all_of(operand.steps.begin(), operand.steps.end(), [&](const Step& step) {
           return step.kind != Step::Kind::load || constants.pointer(step.view.tensor) != nullptr;
         });
}

// Memory a kernel keeps such an operand in, aligned for vectors; empty until allocated.
template <class T>
class PrepackedBuffer {
 public:
  void allocate(std::int64_t elements) {
    const std::size_t bytes = static_cast<std::size_t>(elements) * sizeof(T);
    memory_.reset(static_cast<T*>(::operator new(bytes, kAlignment)));
#if defined(__linux__)
    // Read front to back in every run: fewer, larger pages where the system has them.
    madvise(memory_.get(), bytes, MADV_HUGEPAGE);
#endif
  }
  T* data() const { return memory_.get(); }

 private:
  static constexpr std::align_val_t kAlignment{4096};  // a page: whole ones may be advised
  struct Free {
    void operator()(T* memory) const { ::operator delete(memory, kAlignment); }
  };
  std::unique_ptr<T, Free> memory_;
};

}  // namespace ashlar::cpu
