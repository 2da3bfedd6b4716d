// The table of all GPU engines.
#pragma once

#include "plan/engine.hpp"

namespace ashlar::cuda {

EngineTable engine_table();

}  // namespace ashlar::cuda
