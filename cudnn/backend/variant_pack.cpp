#include "backend/variant_pack.hpp"

#include <algorithm>

#include "backend/attribute_table.hpp"
#include "backend/checks/operand.hpp"
#include "backend/finalize.hpp"

namespace ashlar::cudnn {

namespace {

void require_unique(cudnnBackendAttributeName_t name, std::vector<std::int64_t> uids) {
  std::ranges::sort(uids);
  const auto twice = std::ranges::adjacent_find(uids);
  if (twice != uids.end())
    fail(CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES, "{}: got {} twice, expected unique uids",
         attribute_name(name), *twice);
}

// Clients pass a void pointer to a std::vector<std::vector<int64_t>>, so both must use the same C++
// runtime.
std::vector<std::vector<std::int64_t>> lists(const Record& pack, cudnnBackendAttributeName_t name) {
  const auto pointers = pack.pointers(name);
  if (pointers.empty() || pointers.front() == nullptr) return {};
  return *static_cast<const std::vector<std::vector<std::int64_t>>*>(pointers.front());
}

void check_overrides(const VariantPack& pack) {
  const auto count = static_cast<std::int64_t>(pack.override_uids.size());
  require_unique(CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS, pack.override_uids);
  require_count(pack.override_shapes.size(), CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES, count,
                "CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS");
  require_count(pack.override_strides.size(), CUDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES, count,
                "CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS");
  for (std::size_t i = 0; i < pack.override_uids.size(); ++i) {
    const ExtentsView shape = pack.override_shapes[i], strides = pack.override_strides[i];
    if (shape.empty() || shape.size() > CUDNN_DIM_MAX || shape.size() != strides.size())
      fail(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
           "CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES (tensor {}): got shape {} and strides {}, "
           "expected 1 to {} of each",
           pack.override_uids[i], text_of(shape), text_of(strides), CUDNN_DIM_MAX);
    const bool is_bad = std::ranges::any_of(shape, [](std::int64_t e) { return e < 1; }) ||
                        std::ranges::any_of(strides, [](std::int64_t s) { return s < 0; });
    if (is_bad)
      fail(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
           "CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES (tensor {}): got shape {} and strides {}, "
           "expected extents of at least 1 and strides of at least 0",
           pack.override_uids[i], text_of(shape), text_of(strides));
  }
}

}  // namespace

FinishedRef finalize_variant_pack(const Record& record) {
  auto pack = std::make_shared<VariantPack>();
  const auto uids = record.integers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = record.pointers(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  const auto workspace = record.pointers(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  const auto override_uids = record.integers(CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS);
  pack->uids.assign(uids.begin(), uids.end());
  pack->pointers.assign(pointers.begin(), pointers.end());
  pack->workspace = workspace.empty() ? nullptr : workspace.front();
  pack->override_uids.assign(override_uids.begin(), override_uids.end());
  pack->override_shapes = lists(record, CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES);
  pack->override_strides = lists(record, CUDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES);
  require_count(pointers.size(), CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                static_cast<std::int64_t>(uids.size()), "CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS");
  require_unique(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, pack->uids);
  check_overrides(*pack);
  return pack;
}

}  // namespace ashlar::cudnn
