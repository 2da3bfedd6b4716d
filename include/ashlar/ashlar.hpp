// The C++ API: includes all headers needed to build, compile, run and check a graph.
#pragma once

#include <ashlar/check.hpp>
#include <ashlar/device.hpp>
#include <ashlar/dims.hpp>
#include <ashlar/dtype.hpp>
#include <ashlar/error.hpp>
#include <ashlar/graph.hpp>
#include <ashlar/ops.hpp>
#include <ashlar/plan.hpp>
