// The CPU backend: runs plans on the host.
#pragma once

#include "plan/backend.hpp"

namespace ashlar::cpu {

std::unique_ptr<Backend> make_backend();

}  // namespace ashlar::cpu
