// Compiles the functions of fmt once for the library. All other files only declare them:
// header-only fmt costs several seconds per file. Taking an address emits a definition; the symbols
// are weak, so a program may link fmt as well.
#define FMT_HEADER_ONLY 1
#include <fmt/format.h>

#include <locale>

template auto fmt::detail::thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto fmt::detail::locale_ref::get<std::locale>() const -> std::locale;
template auto fmt::detail::decimal_point_impl<char>(locale_ref) -> char;
template auto fmt::detail::dragonbox::to_decimal<float>(float) noexcept -> decimal_fp<float>;
template auto fmt::detail::dragonbox::to_decimal<double>(double) noexcept -> decimal_fp<double>;

namespace ashlar {

struct FmtFunctions {
  std::string (*vformat)(fmt::string_view, fmt::format_args);
  void (*vprint)(fmt::string_view, fmt::format_args);
  void (*vprint_to)(std::FILE*, fmt::string_view, fmt::format_args);
  void (*throw_format_error)(const char*);
  bool (*is_printable)(std::uint32_t);
  void (*assert_fail)(const char*, int, const char*);
  void (*vformat_to)(fmt::detail::buffer<char>&, fmt::string_view, fmt::format_args,
                     fmt::detail::locale_ref);
};

extern const FmtFunctions kFmtFunctions;
const FmtFunctions kFmtFunctions = {
    fmt::vformat,
    fmt::vprint,
    fmt::vprint,
    fmt::detail::throw_format_error,
    fmt::detail::is_printable,
    fmt::detail::assert_fail,
    fmt::detail::vformat_to<char>,
};

}  // namespace ashlar
