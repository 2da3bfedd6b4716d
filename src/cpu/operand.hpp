// Rows of an operand whose extents divide those of the engine's iteration space: a full tensor, a
// parameter per channel, a statistic per group.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "cpu/kernels/row_ops.hpp"
#include "cpu/row_program.hpp"
#include "plan/region.hpp"

namespace ashlar::cpu {

using Coords = std::array<std::int64_t, kMaxRank>;

template <class T>
class Operand {
 public:
  Operand() = default;  // absent
  // `space` and `axis` are those of the engine. An empty program makes an absent operand.
  Operand(const PointwiseProgram& program, const Dims& space, int axis,
          StoreTo store_to = StoreTo::caches) {
    if (program.empty()) return;
    present_ = true;
    program_ = RowProgram<T>(program, axis, nullptr, 1, store_to);
    rank_ = space.rank();
    for (int a = 0; a < rank_; ++a)
      ratio_[static_cast<std::size_t>(a)] =
          std::max<std::int64_t>(space[a] / std::max<std::int64_t>(program.space[a], 1), 1);
    per_element_ = ratio_[static_cast<std::size_t>(axis)] == 1;
  }
  bool present() const { return present_; }

  class Bound {
   public:
    bool present() const { return operand_->present_; }
    // `count` elements from `coords` on. `absent` replaces an absent operand.
    RowArg<T> load(const Coords& coords, std::int64_t count, T* buffer, const T* absent) const {
      if (!operand_->present_) return {absent, false};
      bound_.load(own(coords).data(), operand_->per_element_ ? count : 1, buffer);
      return {buffer, operand_->per_element_};
    }
    // The same, without a copy if memory already holds the values as T.
    RowArg<T> view(const Coords& coords, std::int64_t count, T* buffer, const T* absent) const {
      if (!operand_->present_) return {absent, false};
      return {bound_.view(own(coords).data(), operand_->per_element_ ? count : 1, buffer),
              operand_->per_element_};
    }
    // See RowProgram::Bound::place.
    typename RowProgram<T>::Bound::Place place(const Coords& coords) const {
      if (!operand_->present_ || !operand_->per_element_) return {};
      return bound_.place(own(coords).data());
    }
    void store(const Coords& coords, std::int64_t count, const T* values) const {
      if (!operand_->present_) return;
      bound_.store(own(coords).data(), operand_->per_element_ ? count : 1, values);
    }

   private:
    friend class Operand;
    Coords own(const Coords& coords) const {
      Coords result;
      for (std::size_t a = 0; a < static_cast<std::size_t>(operand_->rank_); ++a)
        result[a] = operand_->ratio_[a] == 1 ? coords[a] : coords[a] / operand_->ratio_[a];
      return result;
    }
    const Operand* operand_ = nullptr;
    typename RowProgram<T>::Bound bound_;
  };
  Bound bind(const KernelContext& context) const {
    Bound bound;
    bound.operand_ = this;
    if (present_) bound.bound_ = program_.bind(context);
    return bound;
  }

 private:
  bool present_ = false;
  bool per_element_ = true;
  int rank_ = 0;
  Coords ratio_{};
  RowProgram<T> program_;
};

// Loads a one-element operand; returns `absent` if it is not present.
template <class T>
T load_one(const RowProgram<T>& program, bool present, const KernelContext& context, T absent) {
  if (!present) return absent;
  const Coords origin{};
  T value;
  program.bind(context).load(origin.data(), 1, &value);
  return value;
}

// A one-element operand, or the attribute that replaces it.
template <class T>
class Single {
 public:
  Single(const PointwiseProgram& program, double attribute)
      : present_(!program.empty()), attribute_(static_cast<T>(attribute)) {
    if (present_) program_ = RowProgram<T>(program, program.space.rank() - 1);
  }
  T load(const KernelContext& context) const {
    return load_one(program_, present_, context, attribute_);
  }

 private:
  bool present_;
  T attribute_;
  RowProgram<T> program_;
};

inline PointwiseProgram output_program(const std::vector<View>& outputs, int slot) {
  const auto index = static_cast<std::size_t>(slot);
  return index < outputs.size() && outputs[index].present() ? plain_store(outputs[index])
                                                            : PointwiseProgram{};
}

inline const PointwiseProgram& input_program(const Region& region, int slot) {
  static const PointwiseProgram kAbsent;
  const auto index = static_cast<std::size_t>(slot);
  return index < region.prologues.size() ? region.prologues[index] : kAbsent;
}

}  // namespace ashlar::cpu
