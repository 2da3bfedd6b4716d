// Base of the int8 GEMM kernels: operands as bytes, B packed in every run or ahead of time.
#pragma once

#include "cpu/constants.hpp"
#include "cpu/gemm/byte_operand.hpp"
#include "cpu/gemm/int8_rows.hpp"

namespace ashlar::cpu {

// Problem describes the GEMM: ByteOperands `a` (rows) and `b` (columns), `columns`, `shape`,
// `result` and memory(blocks).
template <class Problem>
class Int8GemmKernel : public Kernel {
 public:
  void keep_constants(const KernelContext& constants) override {
    if (!is_constant(b_program_, constants) || panels_.bytes() == 0) return;
    std::vector<std::uint8_t> made(static_cast<std::size_t>(problem_.b.materialised_bytes()));
    prepacked_.allocate(panels_.bytes());
    panels_.pack_all(problem_.columns, problem_.b.bytes(constants, made.data()), prepacked_.data());
    reserve_scratch();
  }

 protected:
  // `b_slot`: the anchor's input slot of B.
  Int8GemmKernel(const Region& region, const Config& config, int b_slot, Problem problem)
      : problem_(std::move(problem)),
        b_program_(region.prologues[static_cast<std::size_t>(b_slot)]),
        blocks_(Int8GemmBlocks::from_knobs(config)),
        memory_(problem_.memory(blocks_)),
        panels_(problem_.shape) {
    reserve_scratch();
  }

  const std::uint8_t* a_bytes(const KernelContext& context) const {
    return problem_.a.bytes(context,
                            context.scratch<std::uint8_t>(scratch_layout_, materialised_a_));
  }
  void multiply(const KernelContext& context, const Int8Rows& rows, const Int8Sink& sink) const {
    const bool prepacked = prepacked_.data() != nullptr;
    auto* materialised_b = context.scratch<std::uint8_t>(scratch_layout_, materialised_b_);
    const Int8GemmWork work{
        problem_.shape,
        blocks_,
        memory_,
        panels_,
        problem_.result,
        prepacked ? nullptr : &problem_.columns,
        prepacked ? nullptr : problem_.b.bytes(context, materialised_b),
        prepacked ? prepacked_.data() : context.scratch<std::byte>(scratch_layout_, packed_),
        context.scratch<std::byte>(scratch_layout_, cells_)};
    int8_gemm(work, rows, sink);
  }

  const Problem problem_;

 private:
  void reserve_scratch() {
    scratch_layout_ = {};
    const bool prepacked = prepacked_.data() != nullptr;
    materialised_a_ = scratch_layout_.add("bytes of a", problem_.a.materialised_bytes());
    materialised_b_ =
        scratch_layout_.add("bytes of b", prepacked ? 0 : problem_.b.materialised_bytes());
    packed_ = scratch_layout_.add("panels", prepacked ? 0 : panels_.bytes());
    cells_ = scratch_layout_.add(
        "cells", memory_.thread_bytes() * blocks_.thread_rows * blocks_.thread_columns);
  }

  PointwiseProgram b_program_;
  Int8GemmBlocks blocks_;
  Int8GemmScratch memory_;
  Int8Panels panels_;
  PrepackedBuffer<std::byte> prepacked_;
  int materialised_a_ = 0, materialised_b_ = 0, packed_ = 0, cells_ = 0;
};

}  // namespace ashlar::cpu
