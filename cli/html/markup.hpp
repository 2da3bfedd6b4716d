// Text that goes into a page. Names come from graphs of other people: nothing reaches a page
// unescaped.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ashlar::cli::html {

// For element contents and quoted attributes, in HTML and XML. Characters that XML does not have
// become U+FFFD.
std::string escaped(std::string_view text);

std::size_t character_count(std::string_view utf8);
// At most `most` characters, the middle replaced by an ellipsis.
std::string shortened(std::string_view utf8, std::size_t most);

}  // namespace ashlar::cli::html
