// Dispatches the RNN cell kernels to the best SIMD target.
#include "cpu/kernels/rnn_cell.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/rnn_cell.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/rnn_cell-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
RnnCells<float> RnnCellsF32(RnnMode mode) { return CellsFor<float>(mode); }
RnnCells<double> RnnCellsF64(RnnMode mode) { return CellsFor<double>(mode); }
}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(RnnCellsF32);
HWY_EXPORT(RnnCellsF64);

template <>
RnnCells<float> rnn_cells<float>(RnnMode mode) {
  return HWY_DYNAMIC_DISPATCH(RnnCellsF32)(mode);
}
template <>
RnnCells<double> rnn_cells<double>(RnnMode mode) {
  return HWY_DYNAMIC_DISPATCH(RnnCellsF64)(mode);
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
