// The engines of the CPU, most specialised first; the reference engine, which supports every
// operation, is last.
#pragma once

#include "plan/engine.hpp"

namespace ashlar::cpu {

EngineTable engine_table();

}  // namespace ashlar::cpu
