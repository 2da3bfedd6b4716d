// Random graphs: split batch norm and local norms.
#include "random/graph_maker.hpp"

namespace ashlar::random_graphs {

namespace {

Dims channel_dims(const Dims& x) {
  Dims dims = Dims::filled(x.rank(), 1);
  dims[1] = x[1];
  return dims;
}

}  // namespace

void GraphMaker::add_statistics() {
  const auto local_attributes = [&] {
    LocalNormAttributes attributes;
    attributes.window = 1 + below(6);
    attributes.alpha = 0.25 * static_cast<double>(1 + below(4));
    attributes.beta = 0.25 * static_cast<double>(1 + below(5));
    attributes.k = 0.5 * static_cast<double>(1 + below(4));
    return attributes;
  };
  switch (below(8)) {
    case 0: {
      const auto r = graph_.apply(GenStats{}, {{GenStats::x, floating_value(2, 5)}},
                                  {GenStats::sum, GenStats::sq_sum}, spec());
      for (const Value& value : r.all()) keep(value);
      // The rest of batch norm, on consistent sums.
      const Value sum = r[GenStats::sum];
      if (!chance(0.5) || !is_floating(sum.dtype())) return;
      const Dims channels = sum.dims();
      const Value scale = like(channels, f32), bias = like(channels, f32);
      const auto finalized =
          graph_.apply(BnFinalize{.epsilon = 0.5, .count = 1 + below(50)},
                       {{BnFinalize::sum, sum},
                        {BnFinalize::sq_sum, r[GenStats::sq_sum]},
                        {BnFinalize::scale, scale},
                        {BnFinalize::bias, bias}},
                       {BnFinalize::eq_scale, BnFinalize::eq_bias, BnFinalize::saved_mean});
      return keep(finalized[BnFinalize::eq_bias]);
    }
    case 1: {
      using Bn = BnFinalize;
      const Dims channels = channel_dims(dims(2 + static_cast<int>(below(3))));
      const Value scale = like(channels, floating()), bias = like(channels, f32);
      const auto r = graph_.apply(
          Bn{.epsilon = 0x1p-6, .momentum = 0.5, .count = 2 + below(40)},
          {{Bn::sum, graph_.input(name("sum"), channels, f32)},
           {Bn::sq_sum, graph_.input(name("squares"), channels, f32)},
           {Bn::scale, scale},
           {Bn::bias, bias},
           {Bn::running_mean, graph_.input(name("m"), channels, f32)},
           {Bn::running_var, graph_.input(name("v"), channels, f32)},
           {Bn::momentum_tensor,
            chance(0.5) ? graph_.scalar(name("momentum"), f32, channels.rank()) : Value()}},
          {Bn::eq_scale, Bn::eq_bias, Bn::saved_mean, Bn::saved_inv_variance, Bn::next_running_mean,
           Bn::next_running_var},
          spec());
      for (const Value& value : r.all()) keep(value);
      return;
    }
    case 2: {
      using Bn = BnBackwardWeights;
      const Value x = floating_value(2, 5);
      const Dims extents = x.dims(), channels = channel_dims(extents);
      const Value dy = like(extents, floating()), scale = like(channels, f32);
      const auto r = graph_.apply(
          Bn{},
          {{Bn::x, x},
           {Bn::dy, dy},
           {Bn::mean, graph_.input(name("m"), channels, f32)},
           {Bn::inv_variance, graph_.input(name("v"), channels, f32)},
           {Bn::scale, scale}},
          {Bn::dscale, Bn::dbias, Bn::eq_dy_scale, Bn::eq_x_scale, Bn::eq_bias}, spec());
      for (const Value& value : r.all()) keep(value);
      return;
    }
    case 3:
      return keep(graph_.apply(LrnForward{local_attributes()},
                               {{LrnForward::x, floating_value(2, 5)}}, {LrnForward::y}, spec()));
    case 4: {
      const Value x = floating_value(2, 4);
      const Value dy = like(Dims(x.dims()), floating());
      return keep(graph_.apply(LrnBackward{local_attributes()},
                               {{LrnBackward::x, x}, {LrnBackward::dy, dy}}, {LrnBackward::dx},
                               spec()));
    }
    case 5: {
      using Op = DivisiveNormForward;
      const Value x = floating_value(3, 5);
      const Value means = chance(0.5) ? like(Dims(x.dims()), f32) : Value();
      return keep(
          graph_.apply(Op{local_attributes()}, {{Op::x, x}, {Op::means, means}}, {Op::y}, spec()));
    }
    case 6: {
      using Op = DivisiveNormBackward;
      const Value x = floating_value(3, 4);
      const Dims extents = x.dims();
      const Value dy = like(extents, floating()), means = like(extents, f32);
      const auto r =
          graph_.apply(Op{local_attributes()}, {{Op::x, x}, {Op::dy, dy}, {Op::means, means}},
                       {Op::dx, Op::dmeans}, spec());
      for (const Value& value : r.all()) keep(value);
      return;
    }
    default: {
      constexpr std::array kModes = {ReductionMode::min, ReductionMode::max, ReductionMode::amax};
      const Value x = arithmetic_value(1, 5);
      Dims axes;
      for (int axis = 0; axis < x.dims().rank(); ++axis)
        if (chance(0.5)) axes.push_back(axis);
      const auto r =
          graph_.apply(Reduction{.mode = one_of(kModes), .axes = axes}, {{Reduction::x, x}},
                       {Reduction::y, {Reduction::index, chance(0.5) ? i32 : i64}}, spec());
      for (const Value& value : r.all()) keep(value);
    }
  }
}

}  // namespace ashlar::random_graphs
