#include "graph/ops/infer.hpp"

namespace ashlar {

void infer_paged_cache_load(NodeContext& node) { node.reject("operation", "paged_cache_load", "one that is finished"); }
void infer_expand_band_matrix(NodeContext& node) { node.reject("operation", "expand_band_matrix", "one that is finished"); }
void infer_contract_band_matrix(NodeContext& node) { node.reject("operation", "contract_band_matrix", "one that is finished"); }

}  // namespace ashlar
