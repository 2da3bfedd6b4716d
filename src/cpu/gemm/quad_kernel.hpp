// What kernels of 8-bit products share: the operands as bytes, B packed in every run or kept.
#pragma once

#include "cpu/constants.hpp"
#include "cpu/gemm/byte_operand.hpp"
#include "cpu/gemm/quad_rows.hpp"

namespace ashlar::cpu {

// Problem: the product as kernels see it. It has ByteOperands `a` (rows) and `b` (columns), the
// `columns`, `shape` and `result` of the product, and memory(blocks).
template <class Problem>
class QuadKernel : public Kernel {
 public:
  void keep_constants(const KernelContext& constants) override {
    if (!is_constant(b_program_, constants) || panels_.bytes() == 0) return;
    std::vector<std::uint8_t> made(static_cast<std::size_t>(problem_.b.made_bytes()));
    kept_.allocate(panels_.bytes());
    panels_.pack_all(problem_.columns, problem_.b.bytes(constants, made.data()), kept_.data());
    book();
  }

 protected:
  // `b_slot`: the anchor's input that is B.
  QuadKernel(const Region& region, const Config& config, int b_slot, Problem problem)
      : problem_(std::move(problem)),
        b_program_(region.prologues[static_cast<std::size_t>(b_slot)]),
        blocks_(QuadBlocks::from_knobs(config)),
        memory_(problem_.memory(blocks_)),
        panels_(problem_.shape) {
    book();
  }

  const std::uint8_t* a_bytes(const KernelContext& context) const {
    return problem_.a.bytes(context, context.scratch<std::uint8_t>(scratch_book_, made_a_));
  }
  void multiply(const KernelContext& context, const QuadRows& rows, const QuadSink& sink) const {
    const bool kept = kept_.data() != nullptr;
    auto* made_b = context.scratch<std::uint8_t>(scratch_book_, made_b_);
    const QuadWork work{problem_.shape,
                        blocks_,
                        memory_,
                        panels_,
                        problem_.result,
                        kept ? nullptr : &problem_.columns,
                        kept ? nullptr : problem_.b.bytes(context, made_b),
                        kept ? kept_.data() : context.scratch<std::byte>(scratch_book_, packed_),
                        context.scratch<std::byte>(scratch_book_, cells_)};
    quad_gemm(work, rows, sink);
  }

  const Problem problem_;

 private:
  void book() {
    scratch_book_ = {};
    const bool kept = kept_.data() != nullptr;
    made_a_ = scratch_book_.add("bytes of a", problem_.a.made_bytes());
    made_b_ = scratch_book_.add("bytes of b", kept ? 0 : problem_.b.made_bytes());
    packed_ = scratch_book_.add("panels", kept ? 0 : panels_.bytes());
    cells_ =
        scratch_book_.add("cells", memory_.cell_bytes() * blocks_.row_cells * blocks_.column_cells);
  }

  PointwiseProgram b_program_;
  QuadBlocks blocks_;
  QuadMemory memory_;
  QuadPanels panels_;
  KeptMemory<std::byte> kept_;
  int made_a_ = 0, made_b_ = 0, packed_ = 0, cells_ = 0;
};

}  // namespace ashlar::cpu
