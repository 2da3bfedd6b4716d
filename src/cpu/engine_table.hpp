// The engines of the CPU, most special first, the one that runs everything last.
#pragma once

#include "plan/engine.hpp"

namespace ashlar::cpu {

EngineTable engine_table();

}  // namespace ashlar::cpu
