#include "backend/translate/translation.hpp"

namespace ashlar::cudnn {

namespace {

RngDistribution distribution_of(std::int64_t distribution) {
  switch (distribution) {
    case CUDNN_RNG_DISTRIBUTION_BERNOULLI: return RngDistribution::bernoulli;
    case CUDNN_RNG_DISTRIBUTION_UNIFORM: return RngDistribution::uniform;
    case CUDNN_RNG_DISTRIBUTION_NORMAL: return RngDistribution::normal;
    default:
      fail(CUDNN_STATUS_BAD_PARAM, "CUDNN_ATTR_RNG_DISTRIBUTION: got {}, expected 0 to 2",
           distribution);
  }
}

constexpr auto kY = CUDNN_ATTR_OPERATION_RNG_YDESC;

// The dims of a virtual result in a graph with overridden shapes: those of its co-operand.
std::optional<Dims> dims_by_use(const Translation& translation, const TensorFacts& y) {
  if (!y.has_inferred_dims) return std::nullopt;
  for (const Record* reader : translation.readers_of(y.uid))
    for (const NamedTensor& other : operands_of(*reader))
      if (uid_of(*other.tensor) != y.uid)
        if (const auto dims = translation.known_dims(uid_of(*other.tensor));
            dims && dims->rank() == y.dims.rank())
          return dims;
  return y.dims;
}

}  // namespace

void translate_rng(Translation& translation, const Record& operation) {
  const Record& descriptor = operation.record(CUDNN_ATTR_OPERATION_RNG_DESC);
  Rng op;
  op.distribution = distribution_of(descriptor.integer(CUDNN_ATTR_RNG_DISTRIBUTION));
  // Clients may leave the parameters of other distributions at values that are not valid.
  switch (op.distribution) {
    case RngDistribution::bernoulli:
      op.probability = descriptor.number(CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY);
      break;
    case RngDistribution::uniform:
      op.minimum = descriptor.number(CUDNN_ATTR_RNG_UNIFORM_DIST_MINIMUM);
      op.maximum = descriptor.number(CUDNN_ATTR_RNG_UNIFORM_DIST_MAXIMUM);
      break;
    case RngDistribution::normal:
      op.mean = descriptor.number(CUDNN_ATTR_RNG_NORMAL_DIST_MEAN);
      op.standard_deviation = descriptor.number(CUDNN_ATTR_RNG_NORMAL_DIST_STANDARD_DEVIATION);
      break;
  }
  // The seed is an immediate value or a tensor.
  constexpr auto kSeed = CUDNN_ATTR_OPERATION_RNG_SEED;
  TensorId seed = kNoTensor;
  if (!operation.records(kSeed).empty())
    seed = translation.operand(operation, kSeed);
  else
    op.seed = operation.integer_or(kSeed, 0);
  const TensorId offset =
      translation.operand_or_none(operation, CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC);
  const auto dims = dims_by_use(translation, translation.facts(operation, kY));
  translation.add(op, {seed, offset}, {translation.result(operation, kY, dims)});
}

}  // namespace ashlar::cudnn
