#include "markup.hpp"

namespace ashlar::cli::html {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD", kEllipsis = "\xE2\x80\xA6";

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

// Bytes of the valid UTF-8 character that begins at `at`; 0 where none does.
std::size_t length_at(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if (!is_continuation(text[at + i])) return 0;
  return length;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string safe;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = length_at(text, at);
    const char c = text[at];
    if (length > 1)
      safe += text.substr(at, length);
    else if (length == 0 || (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') ||
             c == 0x7F)
      safe += kReplacement;
    else if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '"')
      safe += "&quot;";
    else if (c == '\'')
      safe += "&#39;";
    else
      safe += c;
    at += length == 0 ? 1 : length;
  }
  return safe;
}

std::size_t character_count(std::string_view utf8) {
  std::size_t count = 0;
  for (const char byte : utf8) count += is_continuation(byte) ? 0 : 1;
  return count;
}

std::string shortened(std::string_view utf8, std::size_t most) {
  const std::size_t count = character_count(utf8);
  if (count <= most) return std::string(utf8);
  const std::size_t head = most / 2, tail = most - head - 1;
  std::string text;
  std::size_t index = 0;  // of the character that a byte belongs to, from 1 on
  bool has_ellipsis = false;
  for (const char byte : utf8) {
    index += is_continuation(byte) ? 0 : 1;
    if (index <= head || index > count - tail) {
      text += byte;
    } else if (!has_ellipsis) {
      text += kEllipsis;
      has_ellipsis = true;
    }
  }
  return text;
}

}  // namespace ashlar::cli::html
