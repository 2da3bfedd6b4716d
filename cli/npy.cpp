#include "npy.hpp"

#include <fmt/format.h>

#include <array>
#include <ashlar/error.hpp>
#include <cstring>

#include "files.hpp"
#include "npy_header.hpp"

namespace ashlar::cli {

namespace {

constexpr std::array<unsigned char, 6> kMagic = {0x93, 'N', 'U', 'M', 'P', 'Y'};
constexpr std::size_t kPreamble = 8;                    // magic and two bytes of version
constexpr std::size_t kMaxHeader = 64 << 10;            // np.save's own stay below 200 bytes
constexpr std::size_t kAlignment = 64;                  // of the data, as the format asks
constexpr std::size_t kMaxFile = std::size_t{1} << 36;  // bytes; far above what memory allows

struct Type {
  std::string_view name;
  std::int64_t size;
};
constexpr std::array kTypes = {Type{"f8", 8}, Type{"f4", 4}, Type{"f2", 2}, Type{"i8", 8},
                               Type{"i4", 4}, Type{"i1", 1}, Type{"u4", 4}, Type{"u2", 2},
                               Type{"u1", 1}, Type{"b1", 1}, Type{"c8", 8}, Type{"c16", 16}};

[[noreturn]] void reject(const std::string& sentence) { throw Error(ErrorCode::parse, sentence); }

unsigned byte_at(std::span<const std::byte> bytes, std::size_t index) {
  return std::to_integer<unsigned>(bytes[index]);
}

// "<f4" -> "f4".
std::string type_of(const std::string& descr) {
  if (descr.size() < 2) reject(fmt::format("the .npy element type '{}' is not known", descr));
  if (descr[0] == '>')
    reject(
        fmt::format("the .npy element type '{}' is big endian; only little endian is read", descr));
  std::string type =
      descr.substr(std::string_view("<|=").find(descr[0]) == std::string_view::npos ? 0 : 1);
  if (npy_element_size(type) == 0) {
    std::string known;
    for (const Type& row : kTypes)
      known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
    reject(fmt::format("the .npy element type '{}' is not read; expected one of {}", type, known));
  }
  return type;
}

std::int64_t checked_bytes(const std::vector<std::int64_t>& shape, std::int64_t element_size) {
  std::int64_t bytes = element_size;
  for (const std::int64_t extent : shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes))
      reject("the .npy shape has more elements than 63 bits can count");
  return bytes;
}

// `data` holds the first axis fastest; the result holds the last axis fastest.
std::vector<std::byte> row_major_from_fortran(std::span<const std::byte> data,
                                              const std::vector<std::int64_t>& shape,
                                              std::int64_t element_size) {
  std::vector<std::byte> result(data.size());
  std::vector<std::int64_t> strides(shape.size(), element_size);
  for (std::size_t axis = 1; axis < shape.size(); ++axis)
    strides[axis] = strides[axis - 1] * shape[axis - 1];
  std::vector<std::int64_t> index(shape.size(), 0);
  std::int64_t from = 0;
  for (std::size_t to = 0; to < result.size(); to += static_cast<std::size_t>(element_size)) {
    std::memcpy(result.data() + to, data.data() + from, static_cast<std::size_t>(element_size));
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < shape[axis]) break;
      from -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
  return result;
}

}  // namespace

std::int64_t npy_element_size(std::string_view type) {
  for (const Type& row : kTypes)
    if (row.name == type) return row.size;
  return 0;
}

NpyArray parse_npy(std::span<const std::byte> bytes) {
  if (bytes.size() < kPreamble + 2 || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    reject("the file is not a .npy file: it does not begin with the .npy signature");
  const unsigned version = byte_at(bytes, 6);
  if (version < 1 || version > 3)
    reject(fmt::format("the .npy format version is {}, expected 1 to 3", version));

  const std::size_t length_bytes = version == 1 ? 2 : 4;
  if (bytes.size() < kPreamble + length_bytes) reject("the .npy file ends inside its header");
  std::size_t header_length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i)
    header_length |= std::size_t{byte_at(bytes, kPreamble + i)} << (8 * i);
  if (header_length > kMaxHeader)
    reject(fmt::format("the .npy header claims {} bytes, more than the {} accepted", header_length,
                       kMaxHeader));
  const std::size_t data_start = kPreamble + length_bytes + header_length;
  if (bytes.size() < data_start) reject("the .npy file ends inside its header");

  const NpyHeader header = parse_npy_header(
      {reinterpret_cast<const char*>(bytes.data()) + kPreamble + length_bytes, header_length});
  NpyArray array{.type = type_of(header.descr), .shape = header.shape, .data = {}};
  const std::int64_t element_size = npy_element_size(array.type);
  const std::int64_t expected = checked_bytes(array.shape, element_size);
  const std::span<const std::byte> data = bytes.subspan(data_start);
  if (std::cmp_not_equal(data.size(), expected))
    reject(fmt::format("the .npy file holds {} bytes of data, its header calls for {}", data.size(),
                       expected));
  if (header.fortran_order && array.shape.size() > 1)
    array.data = row_major_from_fortran(data, array.shape, element_size);
  else
    array.data.assign(data.begin(), data.end());
  return array;
}

std::vector<std::byte> encode_npy(const NpyArray& array) {
  const char order = npy_element_size(array.type) == 1 ? '|' : '<';
  std::string header = format_npy_header({order + array.type, false, array.shape});
  const std::size_t fixed = kPreamble + 2;
  header.append(kAlignment - 1 - (fixed + header.size()) % kAlignment, ' ');
  header += '\n';

  std::vector<std::byte> bytes(fixed + header.size() + array.data.size());
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  bytes[6] = std::byte{1};
  bytes[8] = static_cast<std::byte>(header.size() & 0xff);
  bytes[9] = static_cast<std::byte>(header.size() >> 8);
  std::memcpy(bytes.data() + fixed, header.data(), header.size());
  if (!array.data.empty())
    std::memcpy(bytes.data() + fixed + header.size(), array.data.data(), array.data.size());
  return bytes;
}

NpyArray read_npy(const std::string& path) {
  const std::string text = read_file(path, kMaxFile);
  try {
    return parse_npy(std::as_bytes(std::span(text)));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
}

void write_npy(const std::string& path, const NpyArray& array) {
  const std::vector<std::byte> bytes = encode_npy(array);
  write_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace ashlar::cli
