// The shim: CUDA C++ for the host compiler, included before a kernel's text.
#pragma once

#include "language.hpp"
#include "math.hpp"
#include "tensor_cores.hpp"
#include "warp.hpp"
