// min, max and amax with argument index: the first of equals, or the first NaN. All three maximise
// a merit: -x, x or |x|.
#include <cmath>

#include "cpu/engines/build.hpp"
#include "cpu/engines/reduction_shape.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

namespace {

template <class T>
class IndexedReductionKernel final : public Kernel {
 public:
  IndexedReductionKernel(const Region& region, bool split)
      : IndexedReductionKernel(region.anchor_as<Reduction>()->mode, ReductionShape(region), split) {
  }

  void run(const KernelContext& context) const override {
    const auto x = x_.bind(context);
    const auto y = y_.bind(context);
    const auto index = index_.bind(context);
    const std::int64_t width = space_.max_width();
    if (splits_ == 1) {
      parallel_for(space_.items(), grain_, [&](std::int64_t begin, std::int64_t end, int) {
        alignas(64) T merits[kStripeLength], places[kStripeLength];
        for (std::int64_t item = begin; item < end; ++item) {
          search(x, item, 0, merits, places);
          finish(y, index, item, merits, places);
        }
      });
      return;
    }
    T* merits = context.scratch<T>(scratch_layout_, merits_);
    T* places = context.scratch<T>(scratch_layout_, places_);
    parallel_for(space_.items() * splits_, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t chunk = begin; chunk < end; ++chunk)
        search(x, chunk / splits_, chunk % splits_, merits + chunk * width, places + chunk * width);
    });
    for (std::int64_t item = 0; item < space_.items(); ++item) {
      T* best = merits + item * splits_ * width;
      T* where = places + item * splits_ * width;
      Coords origin;
      const std::int64_t boxes = space_.origin(item, origin);
      for (std::int64_t split = 1; split < splits_; ++split)
        for (std::int64_t i = 0; i < boxes; ++i)
          challenge(best[split * width + i], where[split * width + i], best[i], where[i]);
      finish(y, index, item, best, where);
    }
  }

 private:
  IndexedReductionKernel(ReductionMode mode, const ReductionShape& shape, bool split)
      : mode_(mode),
        ops_(row_ops<T>()),
        space_(shape.space, shape.boxes, shape.axis),
        splits_(split ? space_.splits() : 1),
        grain_(items_per_thread(space_.rows() * kRowLength)),
        steps_(Dims::filled(shape.space.rank(), 0)),
        x_(shape.x, shape.axis),
        y_(shape.epilogue, shape.space, shape.axis),
        index_(shape.index, shape.space, shape.axis) {
    std::int64_t step = 1;
    for (int a = shape.space.rank() - 1; a >= 0; --a) {
      if (shape.boxes[a] != 1 || shape.space[a] == 1) continue;
      steps_[a] = step;
      step *= shape.space[a];
    }
    if (splits_ == 1) return;
    const std::int64_t bytes =
        space_.items() * splits_ * space_.max_width() * static_cast<std::int64_t>(sizeof(T));
    merits_ = scratch_layout_.add("merits", bytes);
    places_ = scratch_layout_.add("positions", bytes);
  }

  // Row-major position among the reduced axes.
  T place_of(const Coords& coords) const {
    std::int64_t place = 0;
    for (int a = 0; a < steps_.rank(); ++a)
      place += coords[static_cast<std::size_t>(a)] * steps_[a];
    return static_cast<T>(place);
  }

  // A negative position means no element.
  static void challenge(T merit, T place, T& best, T& where) {
    if (place < 0) return;
    const bool equal = merit == best || (std::isnan(merit) && std::isnan(best));
    const bool better = merit > best || (std::isnan(merit) && !std::isnan(best));
    if (where >= 0 && !better && !(equal && place < where)) return;
    best = merit;
    where = place;
  }

  // Turns a row of x into merits.
  void to_merits(T* row, std::int64_t n, T* buffer) const {
    static constexpr T kMinusOne = -1;
    if (mode_ == ReductionMode::min) ops_.multiply(row, {&kMinusOne, false}, n, row);
    if (mode_ != ReductionMode::amax) return;
    std::fill(buffer, buffer + n, T{0});
    ops_.fold_into(Fold::maximum, Premap::absolute, row, n, buffer);
    std::copy(buffer, buffer + n, row);
  }

  void search(const typename RowProgram<T>::Bound& x, std::int64_t item, std::int64_t split,
              T* merits, T* places) const {
    alignas(64) T row[kRowLength], buffer[kRowLength];
    const auto axis = static_cast<std::size_t>(space_.axis());
    const std::int64_t width = space_.max_width();
    std::fill(merits, merits + width, -std::numeric_limits<T>::infinity());
    std::fill(places, places + width, T{-1});
    space_.for_rows(item, split, splits_, [&](const Coords& coords, std::int64_t count) {
      x.load(coords.data(), count, row);
      to_merits(row, count, buffer);
      if (space_.columns()) {
        // Rows of a stripe are visited in ascending position.
        ops_.argmax_into(row, place_of(coords), count, merits, places);
        return;
      }
      const T merit = ops_.fold(Fold::maximum, Premap::identity, row, count);
      if (places[0] >= 0 && merit < merits[0]) return;
      const T* found = std::find_if(row, row + count, [&](T v) {
        return v == merit || (std::isnan(v) && std::isnan(merit));
      });
      Coords winner = coords;
      winner[axis] += found - row;
      challenge(merit, place_of(winner), merits[0], places[0]);
    });
  }

  void finish(const typename Operand<T>::Bound& y, const typename Operand<T>::Bound& index,
              std::int64_t item, T* merits, const T* places) const {
    static constexpr T kMinusOne = -1;
    Coords coords;
    const std::int64_t width = space_.origin(item, coords);
    if (mode_ == ReductionMode::min) ops_.multiply(merits, {&kMinusOne, false}, width, merits);
    if (mode_ == ReductionMode::amax && space_.rows() == 0) std::fill(merits, merits + width, T{0});
    y.store(coords, width, merits);
    index.store(coords, width, places);
  }

  ReductionMode mode_;
  const RowOps<T>& ops_;
  BoxSpace space_;
  std::int64_t splits_, grain_;
  Dims steps_;  // row-major step of each reduced axis; 0 on the others
  int merits_ = -1, places_ = -1;
  RowProgram<T> x_;
  Operand<T> y_, index_;
};

}  // namespace

std::unique_ptr<Kernel> build_reduction_with_index(const Region& region, bool split) {
  constexpr std::int64_t kExactInFloat = 1 << 24;
  const ReductionShape shape(region);
  const BoxSpace space(shape.space, shape.boxes, shape.axis);
  if (region.precision() == f64 || space.box_size() > kExactInFloat)
    return std::make_unique<IndexedReductionKernel<double>>(region, split);
  return std::make_unique<IndexedReductionKernel<float>>(region, split);
}

}  // namespace ashlar::cpu
