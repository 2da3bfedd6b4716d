#include "npy_header.hpp"

#include <fmt/format.h>

#include <ashlar/dims.hpp>
#include <ashlar/error.hpp>
#include <limits>

namespace ashlar::cli {

namespace {

// Reads the dictionary that np.save writes: keys and values are string, True/False and a tuple of
// integers. Nothing else of Python is understood.
class HeaderScanner {
 public:
  explicit HeaderScanner(std::string_view text) : text_(text) {}

  NpyHeader scan() {
    NpyHeader header;
    bool has_descr = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        mark(key, has_descr);
        header.descr = string();
      } else if (key == "fortran_order") {
        mark(key, has_order);
        header.fortran_order = boolean();
      } else if (key == "shape") {
        mark(key, has_shape);
        header.shape = tuple();
      } else {
        reject(fmt::format("has the unknown key '{}'", printable(key)));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) reject("has text after its dictionary");
    if (!has_descr) reject("lacks the key 'descr'");
    if (!has_order) reject("lacks the key 'fortran_order'");
    if (!has_shape) reject("lacks the key 'shape'");
    return header;
  }

 private:
  [[noreturn]] static void reject(const std::string& what) {
    throw Error(ErrorCode::parse, "the .npy header " + what);
  }

  static std::string printable(std::string_view text) {
    std::string result;
    for (const char c : text.substr(0, 40)) result += c >= ' ' && c <= '~' ? c : '?';
    return result;
  }

  static void mark(const std::string& key, bool& seen) {
    if (seen) reject(fmt::format("gives '{}' twice", key));
    seen = true;
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t'))
      ++at_;
  }

  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (accept(c)) return;
    const std::string got = at_ < text_.size() ? printable(text_.substr(at_, 1)) : "its end";
    reject(fmt::format("has {} at position {}, expected {}", got, at_, c));
  }

  std::string string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"')
      reject(fmt::format("has no string at position {} (records are not read)", at_));
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) reject("has a string without an end");
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }

  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}}) {
      const std::string_view spelled = word;
      if (text_.substr(at_, spelled.size()) != spelled) continue;
      at_ += spelled.size();
      return value;
    }
    reject(fmt::format("has neither True nor False at position {}", at_));
  }

  std::int64_t number() {
    skip_space();
    const std::size_t start = at_;
    std::int64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      const int digit = text_[at_++] - '0';
      if (value > (std::numeric_limits<std::int64_t>::max() - digit) / 10)
        reject("has an extent that does not fit into 63 bits");
      value = value * 10 + digit;
    }
    if (at_ == start) reject(fmt::format("has no extent at position {}", at_));
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // written by Python 2
    return value;
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!accept(')')) {
      if (values.size() == static_cast<std::size_t>(kMaxRank))
        reject(fmt::format("has more than {} axes", kMaxRank));
      values.push_back(number());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text) { return HeaderScanner(text).scan(); }

std::string format_npy_header(const NpyHeader& header) {
  std::string shape;
  for (const std::int64_t extent : header.shape) shape += fmt::format("{}, ", extent);
  if (header.shape.size() > 1) shape.resize(shape.size() - 2);
  if (header.shape.size() == 1) shape.pop_back();  // (3,): a tuple of one keeps its comma
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': ({}), }}", header.descr,
                     header.fortran_order ? "True" : "False", shape);
}

}  // namespace ashlar::cli
