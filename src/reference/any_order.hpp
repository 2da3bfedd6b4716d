// Products whose result depends on the order of multiplication.
#pragma once

#include "reference/uncertainty.hpp"

namespace ashlar::reference {

// Detects them: the large factors alone may overflow, or the small ones underflow.
class AnyOrder {
 public:
  void add(double factor) {
    const double size = std::fabs(factor);
    zero_ = zero_ || size == 0.0;
    infinite_ = infinite_ || std::isinf(size);
    if (size > 1.0 && !std::isinf(size)) large_ *= size;
    if (size < 1.0 && size > 0.0) small_ *= size;
  }
  double result(double product) const { return product; }
  template <Arithmetic A>
  Approx<A> result(Approx<A> product) const {
    const bool overflows = !infinite_ && large_ > Rounding<A>::largest && (small_ < 1.0 || zero_);
    const bool vanishes = !zero_ && small_ < Rounding<A>::tiny && (large_ > 1.0 || infinite_);
    return unknown_unless(!overflows && !vanishes, product);
  }

 private:
  double large_ = 1.0, small_ = 1.0;  // products of the magnitudes above and below 1
  bool zero_ = false, infinite_ = false;
};

}  // namespace ashlar::reference
