// The processor as a place where plans run.
#pragma once

#include "plan/backend.hpp"

namespace ashlar::cpu {

std::unique_ptr<Backend> make_backend();

}  // namespace ashlar::cpu
