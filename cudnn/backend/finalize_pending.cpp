// Stand-ins for what is written elsewhere.
#include "backend/finalize.hpp"

namespace ashlar::cudnn {

#define ASHLAR_PENDING(name) \
  __attribute__((weak)) FinishedRef name(const Record&) { return nothing_made(); }
ASHLAR_PENDING(finalize_operation_graph)
ASHLAR_PENDING(finalize_execution_plan)
#undef ASHLAR_PENDING

}  // namespace ashlar::cudnn
