// Scans along one axis: y[i] combines the elements from the start of the scan to i.
#include "reference/any_order.hpp"
#include "reference/evaluate.hpp"
#include "reference/softmax.hpp"
#include "reference/uncertainty.hpp"

namespace ashlar::reference {

namespace {

// The error bound of every prefix holds for every order of the operations: an implementation may
// combine partial results of segments.
template <class Scalar>
class Prefix {
 public:
  explicit Prefix(ScanMode mode) : mode_(mode) {}

  // `seen(j)` loads element j < count of the scan.
  template <class Seen>
  void add(Scalar value, std::int64_t count, const Seen& seen) {
    switch (mode_) {
      case ScanMode::add: return sum_.add(value);
      case ScanMode::mul:
        factors_.add(nominal(value));
        product_ = product_ * value;
        return;
      case ScanMode::min: least_ = minimum(least_, value); return;
      case ScanMode::max: largest_ = maximum(largest_, value); return;
      case ScanMode::logsumexp: {
        const double before = nominal(largest_);
        largest_ = maximum(largest_, value);
        if (nominal(largest_) != before &&
            !std::isnan(before)) {  // the weights are relative to the largest element
          ++maxima_;
          sum_ = {};
          for (std::int64_t j = 0; j < count; ++j) sum_.add(softmax_weight(seen(j), largest_));
        }
        sum_.add(softmax_weight(value, largest_));
      }
    }
  }

  Scalar result() const {
    switch (mode_) {
      case ScanMode::add: return sum_.total();
      case ScanMode::mul: return factors_.result(product_);
      case ScanMode::min: return least_;
      case ScanMode::max: return largest_;
      case ScanMode::logsumexp: break;
    }
    if (!std::isfinite(nominal(largest_))) return largest_;
    // Combining (maximum, sum) pairs of segments rescales a sum once per level of the tree and once
    // per change of the maximum. The largest element of a block may be that of all prefixes.
    constexpr double kUnitsPerRescaling = kFunctionUnits + 1.0, kLevels = 16.0, kOfShift = 4.0;
    const Scalar sum = sum_.total();
    const Scalar rescaled = allow_units(sum, kUnitsPerRescaling * (kLevels + maxima_), sum);
    return allow_units(allow_units(largest_ + log(rescaled), kOfShift, largest_), kOfShift,
                       Scalar(1.0));
  }

 private:
  ScanMode mode_;
  Accumulator<Scalar> sum_;
  AnyOrder factors_;
  Scalar product_ = Scalar(1.0), least_ = Scalar(kInfinity), largest_ = Scalar(-kInfinity);
  double maxima_ = 0.0;  // how often the maximum changed
};

// What an exclusive scan begins with. Integers: the extreme value that an infinity is stored as.
template <class View>
typename View::Scalar neutral_element(ScanMode mode, const View& y) {
  const bool floating = is_floating(y.dtype());
  switch (mode) {
    case ScanMode::add: return 0.0;
    case ScanMode::mul: return 1.0;
    case ScanMode::min: return floating ? kInfinity : largest_value(y.dtype());
    case ScanMode::max:
    case ScanMode::logsumexp: break;
  }
  return floating ? -kInfinity : lowest_value(y.dtype());
}

}  // namespace

template <class Operands>
void evaluate(const Scan& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(Scan::x);
  const auto y = operands.output(Scan::y);
  const int axis = static_cast<int>(op.axis < 0 ? op.axis + x.dims().rank() : op.axis);
  const std::int64_t extent = x.dims()[axis];
  Dims lines = x.dims();
  lines[axis] = 1;
  for_each(lines, [&](const Index& line) {
    const auto at = [&](std::int64_t i) {
      Index index = line;
      index[axis] = op.reverse ? extent - 1 - i : i;
      return index;
    };
    const auto seen = [&](std::int64_t i) { return x.load(at(i)); };
    Prefix<Scalar> prefix(op.mode);
    for (std::int64_t i = 0; i < extent; ++i) {
      if (op.exclusive) y.store(at(i), i == 0 ? neutral_element(op.mode, y) : prefix.result());
      prefix.add(seen(i), i, seen);
      if (!op.exclusive) y.store(at(i), prefix.result());
    }
  });
}

ASHLAR_REFERENCE(Scan);

}  // namespace ashlar::reference
