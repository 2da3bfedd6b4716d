// Visits the attributes of any operation: visit(name, value) for each, in the order of ops.hpp.
#pragma once

#include <ashlar/ops.hpp>

namespace ashlar {

template <class Visitor>
void visit_attributes(Op& op, Visitor&& visitor) {
  std::visit(
      [&](auto& alternative) {
        std::decay_t<decltype(alternative)>::attributes(alternative, visitor);
      },
      op);
}

template <class Visitor>
void visit_attributes(const Op& op, Visitor&& visitor) {
  std::visit(
      [&](const auto& alternative) {
        std::decay_t<decltype(alternative)>::attributes(alternative, visitor);
      },
      op);
}

bool same_attributes(const Op& a, const Op& b);

}  // namespace ashlar
