// The whole C++ API.
#pragma once

#include <ashlar/version.h>

#include <ashlar/bundle.hpp>
#include <ashlar/check.hpp>
#include <ashlar/composites.hpp>
#include <ashlar/device.hpp>
#include <ashlar/dims.hpp>
#include <ashlar/dtype.hpp>
#include <ashlar/error.hpp>
#include <ashlar/gradients.hpp>
#include <ashlar/graph.hpp>
#include <ashlar/inspect.hpp>
#include <ashlar/installation.hpp>
#include <ashlar/memory.hpp>
#include <ashlar/operations.hpp>
#include <ashlar/ops.hpp>
#include <ashlar/plan.hpp>
#include <ashlar/tune.hpp>
