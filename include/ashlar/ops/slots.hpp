// How an operation names its operands. In the struct of an operation,
//   ASHLAR_INPUTS(x, w, ASHLAR_OPTIONAL(bias, z));
//   ASHLAR_OUTPUTS(y);
// declare the enumerations In { x, w, bias, z } and Out { y }, which number the operands, and keep
// their names as text, from which JSON, messages and bindings take them.
#pragma once

#include <string_view>

#define ASHLAR_INPUTS(...) \
  enum In { __VA_ARGS__ }; \
  static constexpr std::string_view kInputSlots = #__VA_ARGS__
#define ASHLAR_OUTPUTS(...) \
  enum Out { __VA_ARGS__ }; \
  static constexpr std::string_view kOutputSlots = #__VA_ARGS__
// Operands that may be absent.
#define ASHLAR_OPTIONAL(...) __VA_ARGS__
// The only input, of which there may be any number: slots 0, 1, and so on.
#define ASHLAR_VARIADIC(name) name
