#include "cuda/engines/sm80/tensor_product.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>

#include "cuda/engines/blended_epilogue.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::size_t kMostVariants = 1024;

std::int64_t at(const Dims& values, int axis, std::int64_t missing) {
  return values.empty() ? missing : values[axis];
}

// Extents, digits and coordinates of a convolution; the operands are put together below.
class Convolution {
 public:
  Convolution(const Region& region, const ConvAttributes& op, const Dims& x, const Dims& w,
              const Dims& y)
      : region_(region),
        op_(op),
        x_(x),
        w_(w),
        y_(y),
        spatial_(w.rank() - 2),
        channels_(w[1]),
        groups_(w[1] == 0 ? 1 : std::max<std::int64_t>(x[1] / w[1], 1)),
        filters_(w[0] / groups_) {}

  // Rows are pixels of y, columns are filters.
  TensorProduct forward() {
    TensorProduct product = start(1);
    const PointwiseProgram& from = input_program(region_, ConvForward::x);
    product.digits = {std::vector<Numbers>{{groups_}}, pixels(y_), {{filters_}}, {}};
    const int channel = add_taps(product, Group::k, taps(), channels_, fast_axis(from) == 1);
    product.a = operand(from, ConvForward::x);
    product.a.coordinates = {digit(Group::m, 0),
                             sum(digit(Group::batch, 0, channels_), digit(Group::k, channel))};
    for (int axis = 0; axis < spatial_; ++axis)
      product.a.coordinates.push_back(sum(digit(Group::m, 1 + axis, stride(axis)),
                                          tap_offset(axis, tap(Group::k, channel, axis))));
    product.b = operand(input_program(region_, ConvForward::w), ConvForward::w);
    product.b.coordinates = filter(Group::n, Group::k, channel);
    product.d.coordinates = output_pixels(Group::m, Group::n);
    return product;
  }

  // Rows are filters, columns are weights of a filter, terms are pixels of y.
  TensorProduct backward_filter() {
    TensorProduct product = start(1);
    product.digits = {std::vector<Numbers>{{groups_}}, {{filters_}}, {}, pixels(y_)};
    const int channel =
        add_taps(product, Group::n, taps(), channels_, fast_axis(product.d.program) == 1);
    product.a = operand(input_program(region_, ConvBackwardFilter::dy), ConvBackwardFilter::dy);
    product.a.coordinates = output_pixels(Group::k, Group::m);
    product.b = operand(input_program(region_, ConvBackwardFilter::x), ConvBackwardFilter::x);
    product.b.coordinates = {digit(Group::k, 0),
                             sum(digit(Group::batch, 0, channels_), digit(Group::n, channel))};
    for (int axis = 0; axis < spatial_; ++axis)
      product.b.coordinates.push_back(sum(digit(Group::k, 1 + axis, stride(axis)),
                                          tap_offset(axis, tap(Group::n, channel, axis))));
    product.d.coordinates = filter(Group::m, Group::n, channel);
    return product;
  }

  // Windows that lie side by side and cover x: patches.
  bool has_patches() const {
    bool result = true;
    for (int axis = 0; axis < spatial_; ++axis)
      result = result && dilation(axis) == 1 && padding(axis) == 0 &&
               w_[2 + axis] == stride(axis) && x_[2 + axis] == y_[2 + axis] * stride(axis);
    return result;
  }
  // Every pixel of x is of one window: rows are pixels of y, columns are weights of a filter.
  TensorProduct patch_gradient() {
    TensorProduct product = start(1);
    product.digits = {std::vector<Numbers>{{groups_}}, pixels(y_), {}, {{filters_}}};
    const int channel =
        add_taps(product, Group::n, taps(), channels_, fast_axis(product.d.program) == 1);
    product.a = operand(input_program(region_, ConvBackwardData::dy), ConvBackwardData::dy);
    product.a.coordinates = output_pixels(Group::m, Group::k);
    product.b = operand(input_program(region_, ConvBackwardData::w), ConvBackwardData::w);
    product.b.coordinates = filter(Group::k, Group::n, channel);
    product.d.coordinates = {digit(Group::m, 0),
                             sum(digit(Group::batch, 0, channels_), digit(Group::n, channel))};
    for (int axis = 0; axis < spatial_; ++axis)
      product.d.coordinates.push_back(sum(digit(Group::m, 1 + axis, stride(axis)),
                                          tap_offset(axis, tap(Group::n, channel, axis))));
    return product;
  }

  // Rows are pixels of x, of one residue modulo the stride per variant; columns are channels.
  TensorProduct backward_data() {
    if (has_patches()) return patch_gradient();
    std::size_t variants = 1;
    for (int axis = 0; axis < spatial_; ++axis) variants *= static_cast<std::size_t>(stride(axis));
    TensorProduct product = start(variants);
    const PointwiseProgram& from = input_program(region_, ConvBackwardData::dy);
    // By variant and axis.
    std::vector<std::vector<Residue>> residues(static_cast<std::size_t>(spatial_));
    std::vector<Numbers> counts, rows = {same(x_[0])};
    for (int axis = 0; axis < spatial_; ++axis) {
      Numbers count, extent;
      for (std::size_t variant = 0; variant < variants; ++variant) {
        const Residue residue = residue_of(axis, phase_of(variant, axis));
        residues[static_cast<std::size_t>(axis)].push_back(residue);
        count.push_back(residue.taps);
        extent.push_back(residue.pixels);
      }
      counts.push_back(count);
      rows.push_back(extent);
    }
    product.digits = {std::vector<Numbers>{same(groups_)}, rows, {same(channels_)}, {}};
    const int channel = add_taps(product, Group::k, counts, filters_, fast_axis(from) == 1);
    product.a = operand(from, ConvBackwardData::dy);
    product.b = operand(input_program(region_, ConvBackwardData::w), ConvBackwardData::w);
    product.a.coordinates = {digit(Group::m, 0),
                             sum(digit(Group::batch, 0, filters_), digit(Group::k, channel))};
    product.b.coordinates = {product.a.coordinates[1], digit(Group::n, 0)};
    product.d.coordinates = {digit(Group::m, 0),
                             sum(digit(Group::batch, 0, channels_), digit(Group::n, 0))};
    for (int axis = 0; axis < spatial_; ++axis) {
      Coordinate out = digit(Group::m, 1 + axis), weight, pixel = digit(Group::m, 1 + axis);
      DigitTerm earlier{Group::k, tap(Group::k, channel, axis).digit, {}}, step = earlier;
      pixel.base.clear();
      pixel.terms[0].factor = same(stride(axis));
      out.base.clear();
      for (std::size_t variant = 0; variant < variants; ++variant) {
        const Residue& residue = residues[static_cast<std::size_t>(axis)][variant];
        out.base.push_back(residue.out);
        earlier.factor.push_back(-residue.out_step);
        const std::int64_t last = w_[2 + axis] - 1;
        weight.base.push_back(flips() ? last - residue.tap : residue.tap);
        step.factor.push_back(flips() ? -residue.tap_step : residue.tap_step);
        pixel.base.push_back(phase_of(variant, axis));
      }
      out.terms.push_back(earlier);
      weight.terms.push_back(step);
      product.a.coordinates.push_back(out);
      product.b.coordinates.push_back(weight);
      product.d.coordinates.push_back(pixel);
    }
    return product;
  }

 private:
  // Of x's pixels phase, phase + stride, ...: the taps that meet them are tap, tap + tap_step, ...;
  // tap j of pixel i reads output i + out - j * out_step.
  struct Residue {
    std::int64_t pixels, taps, tap, tap_step, out, out_step;
  };
  Residue residue_of(int axis, std::int64_t phase) const {
    const std::int64_t extent = x_[2 + axis], by = stride(axis), reach = dilation(axis);
    Residue result{.pixels = std::max<std::int64_t>((extent - phase + by - 1) / by, 0),
                   .taps = 0,
                   .tap = 0,
                   .tap_step = by / std::gcd(by, reach),
                   .out = 0,
                   .out_step = reach / std::gcd(by, reach)};
    const std::int64_t first = phase + padding(axis);
    while (result.tap < result.tap_step && (first - result.tap * reach) % by != 0) ++result.tap;
    if (result.tap == result.tap_step)
      return {.pixels = result.pixels, .taps = 0, .tap = 0, .tap_step = 1, .out = 0, .out_step = 0};
    result.taps = std::max<std::int64_t>(
        (w_[2 + axis] - result.tap + result.tap_step - 1) / result.tap_step, 0);
    result.out = (first - result.tap * reach) / by;
    return result;
  }
  std::int64_t phase_of(std::size_t variant, int axis) const {
    auto rest = static_cast<std::int64_t>(variant);
    for (int other = spatial_ - 1; other > axis; --other) rest /= stride(other);
    return rest % stride(axis);
  }

  std::int64_t stride(int axis) const { return at(op_.stride, axis, 1); }
  std::int64_t dilation(int axis) const { return at(op_.dilation, axis, 1); }
  std::int64_t padding(int axis) const { return at(op_.padding, axis, 0); }
  bool flips() const { return op_.mode == ConvMode::convolution; }
  Numbers same(std::int64_t value) const { return Numbers(variants_, value); }

  TensorProduct start(std::size_t variants) {
    variants_ = variants;
    TensorProduct product;
    product.variants = variants;
    product.d.program = blended_epilogue(region_);
    product.d.dtype = region_.anchor->outputs[0].dtype;
    return product;
  }
  ProductOperand operand(const PointwiseProgram& program, int slot) const {
    return {program, {}, region_.anchor->inputs[static_cast<std::size_t>(slot)].dtype, slot};
  }
  std::vector<Numbers> pixels(const Dims& dims) const {
    std::vector<Numbers> result = {same(dims[0])};
    for (int axis = 0; axis < spatial_; ++axis) result.push_back(same(dims[2 + axis]));
    return result;
  }
  std::vector<Numbers> taps() const {
    std::vector<Numbers> result;
    for (int axis = 0; axis < spatial_; ++axis) result.push_back(same(w_[2 + axis]));
    return result;
  }
  // The digits of taps and a channel, whichever lie together last. Returns the channel's number.
  int add_taps(TensorProduct& product, Group group, const std::vector<Numbers>& taps,
               std::int64_t channels, bool channels_last) const {
    std::vector<Numbers>& digits = product.digits[static_cast<std::size_t>(group)];
    digits = taps;
    digits.insert(channels_last ? digits.end() : digits.begin(), same(channels));
    return channels_last ? spatial_ : 0;
  }
  DigitTerm tap(Group group, int channel, int axis) const {
    return {group, channel == 0 ? 1 + axis : axis, same(1)};
  }

  Coordinate digit(Group group, int number, std::int64_t factor = 1) const {
    return {same(0), {{group, number, same(factor)}}};
  }
  static Coordinate sum(Coordinate a, const Coordinate& b) {
    for (std::size_t i = 0; i < a.base.size(); ++i) a.base[i] += b.base[i];
    a.terms.insert(a.terms.end(), b.terms.begin(), b.terms.end());
    return a;
  }
  // How far from where an output's window begins the weight of this digit meets x.
  Coordinate tap_offset(int axis, DigitTerm term) const {
    const std::int64_t reach = dilation(axis), last = (w_[2 + axis] - 1) * reach;
    term.factor = same(flips() ? -reach : reach);
    return {same((flips() ? last : 0) - padding(axis)), {term}};
  }
  std::vector<Coordinate> filter(Group filters, Group weights, int channel) const {
    std::vector<Coordinate> result = {sum(digit(Group::batch, 0, filters_), digit(filters, 0)),
                                      digit(weights, channel)};
    for (int axis = 0; axis < spatial_; ++axis)
      result.push_back({same(0), {tap(weights, channel, axis)}});
    return result;
  }
  std::vector<Coordinate> output_pixels(Group pixels, Group filters) const {
    std::vector<Coordinate> result = {digit(pixels, 0),
                                      sum(digit(Group::batch, 0, filters_), digit(filters, 0))};
    for (int axis = 0; axis < spatial_; ++axis) result.push_back(digit(pixels, 1 + axis));
    return result;
  }

  const Region& region_;
  const ConvAttributes& op_;
  const Dims &x_, &w_, &y_;
  int spatial_;
  std::int64_t channels_, groups_, filters_;  // of one group
  std::size_t variants_ = 1;
};

TensorProduct matrix_product(const Region& region, const Matmul& op) {
  const Anchor& anchor = *region.anchor;
  const Dims& c = anchor.outputs[Matmul::c].dims;
  const int rank = c.rank();
  TensorProduct product;
  for (int axis = 0; axis < rank - 2; ++axis) product.digits[0].push_back({c[axis]});
  const Dims& a = anchor.inputs[Matmul::a].dims;
  product.digits[1] = {{c[rank - 2]}};
  product.digits[2] = {{c[rank - 1]}};
  product.digits[3] = {{a[a.rank() - 1]}};
  const auto operand = [&](const PointwiseProgram& program, const Dims& dims, Group row,
                           Group column, DType dtype, int slot) {
    ProductOperand result{program, {}, dtype, slot};
    const int absent = rank - dims.rank();  // leading axes
    for (int axis = 0; axis < dims.rank() - 2; ++axis) {
      Coordinate coordinate{{0}, {}};
      if (dims[axis] > 1) coordinate.terms.push_back({Group::batch, axis + absent, {1}});
      result.coordinates.push_back(coordinate);
    }
    result.coordinates.push_back({{0}, {{row, 0, {1}}}});
    result.coordinates.push_back({{0}, {{column, 0, {1}}}});
    return result;
  };
  product.a = operand(input_program(region, Matmul::a), a, Group::m, Group::k,
                      anchor.inputs[Matmul::a].dtype, Matmul::a);
  product.b = operand(input_program(region, Matmul::b), anchor.inputs[Matmul::b].dims, Group::k,
                      Group::n, anchor.inputs[Matmul::b].dtype, Matmul::b);
  product.d = operand(region.epilogue, c, Group::m, Group::n, anchor.outputs[Matmul::c].dtype, -1);
  const auto length = [&](int slot) {
    const PointwiseProgram& program = input_program(region, slot);
    return program.empty() ? View{} : program.steps[0].view;
  };
  product.m_override = length(Matmul::m_override);
  product.n_override = length(Matmul::n_override);
  product.k_override = length(Matmul::k_override);
  product.row_axis = rank - 2;
  product.column_axis = rank - 1;
  product.padding_value = op.padding_value;
  return product;
}

// Whether columns run along D's last axis.
bool columns_come_last(const TensorProduct& product) {
  for (const DigitTerm& term : product.d.coordinates.back().terms) {
    if (term.group == Group::m && product.extent(Group::m) > 1) return false;
    if (term.group == Group::n) return true;
  }
  return true;
}

}  // namespace

std::int64_t TensorProduct::extent(Group group, std::size_t variant) const {
  std::int64_t result = 1;
  for (const Numbers& digit : of(group)) result *= digit[variant];
  return result;
}

std::int64_t TensorProduct::results() const {
  std::int64_t result = 0;
  for (std::size_t variant = 0; variant < variants; ++variant)
    result += extent(Group::m, variant) * extent(Group::n, variant) * extent(Group::batch, variant);
  return result;
}

double TensorProduct::multiply_adds() const {
  double result = 0;
  for (std::size_t variant = 0; variant < variants; ++variant) {
    double one = 1;
    for (const Group group : {Group::batch, Group::m, Group::n, Group::k})
      one *= static_cast<double>(extent(group, variant));
    result += one;
  }
  return result;
}

void TensorProduct::transpose() {
  std::swap(a, b);
  std::swap(digits[static_cast<std::size_t>(Group::m)], digits[static_cast<std::size_t>(Group::n)]);
  for (ProductOperand* operand : {&a, &b, &d})
    for (Coordinate& coordinate : operand->coordinates)
      for (DigitTerm& term : coordinate.terms)
        if (term.group == Group::m || term.group == Group::n)
          term.group = term.group == Group::m ? Group::n : Group::m;
}

int fast_axis(const PointwiseProgram& program) {
  const View* largest = nullptr;
  std::int64_t most = 0;
  const auto look = [&](const View& view) {
    std::int64_t elements = 1;
    for (int axis = 0; axis < program.space.rank(); ++axis)
      if (view.strides[axis] != 0) elements *= program.space[axis];
    if (largest == nullptr || elements > most) {
      largest = &view;
      most = elements;
    }
  };
  for (const auto& store : program.stores) look(store.view);
  if (program.stores.empty())
    for (const auto& step : program.steps)
      if (step.kind == PointwiseProgram::Step::Kind::load) look(step.view);
  int result = program.space.rank() - 1;
  if (largest == nullptr) return result;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int axis = program.space.rank() - 1; axis >= 0; --axis) {
    const std::int64_t stride = std::abs(largest->strides[axis]);
    if (stride == 0 || program.space[axis] == 1 || stride >= least) continue;
    least = stride;
    result = axis;
  }
  return result;
}

void move_axis_last(ProductOperand& operand, int axis) {
  move_axis_last(operand.program, axis);
  const auto at = operand.coordinates.begin() + axis;
  std::rotate(at, at + 1, operand.coordinates.end());
}

void TensorProduct::move_result_axis_last(int axis) {
  const int last = d.program.space.rank() - 1;
  move_axis_last(d, axis);
  const auto moved = [&](const Dims& dims) {
    Dims result;
    for (int i = 0; i <= last; ++i)
      if (i != axis) result.push_back(dims[i]);
    result.push_back(dims[axis]);
    return result;
  };
  for (View* view : {&m_override, &n_override, &k_override})
    if (view->present()) {
      view->dims = moved(view->dims);
      view->strides = moved(view->strides);
    }
  for (int* number : {&row_axis, &column_axis})
    *number = *number == axis ? last : *number - (*number > axis ? 1 : 0);
}

Support is_tensor_product(const Region& region) {
  if (!region.anchor_as<Matmul>() && !region.anchor_as<ConvForward>() &&
      !region.anchor_as<ConvBackwardData>() && !region.anchor_as<ConvBackwardFilter>())
    return Support::other_operation("no matrix product and no convolution");
  if (const auto* op = region.anchor_as<ConvBackwardData>()) {
    std::size_t variants = 1;  // at most
    for (const std::int64_t stride : op->stride) variants *= static_cast<std::size_t>(stride);
    if (variants > kMostVariants) return Support::no("{} residues of the strides", variants);
  }
  return Support::yes();
}

TensorProduct tensor_product(const Region& region) {
  TensorProduct product;
  const auto& inputs = region.anchor->inputs;
  const Dims& result = region.anchor->outputs[0].dims;
  if (const auto* op = region.anchor_as<Matmul>())
    product = matrix_product(region, *op);
  else if (const auto* forward = region.anchor_as<ConvForward>())
    product = Convolution(region, *forward, inputs[ConvForward::x].dims,
                          inputs[ConvForward::w].dims, result)
                  .forward();
  else if (const auto* data = region.anchor_as<ConvBackwardData>())
    product = Convolution(region, *data, result, inputs[ConvBackwardData::w].dims,
                          inputs[ConvBackwardData::dy].dims)
                  .backward_data();
  else
    product =
        Convolution(region, *region.anchor_as<ConvBackwardFilter>(),
                    inputs[ConvBackwardFilter::x].dims, result, inputs[ConvBackwardFilter::dy].dims)
            .backward_filter();
  product.move_result_axis_last(fast_axis(product.d.program));
  if (!columns_come_last(product)) product.transpose();
  return product;
}

}  // namespace ashlar::cuda
