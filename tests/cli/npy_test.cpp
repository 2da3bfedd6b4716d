// The .npy reader and writer, alone and through `ashlar run`.
#include "npy.hpp"

#include <gmock/gmock.h>

#include <ashlar/error.hpp>
#include <cstring>

#include "cli/process.hpp"

namespace ashlar::cli_test {

namespace {

using cli::NpyArray;
using cli::parse_npy;
using testing::HasSubstr;

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

std::string file_text(int version, const std::string& header, const std::string& data) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(version);
  text += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    text += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return text + header + data;
}

std::string message_of(const std::string& text) {
  try {
    parse_npy(bytes_of(text));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::parse);
    return error.what();
  }
  return "accepted";
}

std::string header(const std::string& descr, const std::string& shape,
                   const std::string& fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n";
}

TEST(Npy, ReadsEveryFormatVersion) {
  for (const int version : {1, 2, 3}) {
    const NpyArray array =
        parse_npy(bytes_of(file_text(version, header("|u1", "(2, 3)"), "abcdef")));
    EXPECT_EQ(array.type, "u1");
    EXPECT_THAT(array.shape, testing::ElementsAre(2, 3));
    EXPECT_EQ(array.data, bytes_of("abcdef"));
  }
}

TEST(Npy, RewritesFortranOrder) {
  const NpyArray array =
      parse_npy(bytes_of(file_text(1, header("|i1", "(2, 3)", "True"), "adbecf")));
  EXPECT_EQ(array.data, bytes_of("abcdef"));
  const NpyArray cube =
      parse_npy(bytes_of(file_text(1, header("|i1", "(2, 2, 2)", "True"), "aecgbfdh")));
  EXPECT_EQ(cube.data, bytes_of("abcdefgh"));
}

TEST(Npy, ReadsScalarsVectorsAndEmptyArrays) {
  EXPECT_TRUE(parse_npy(bytes_of(file_text(1, header("<f4", "()"), "wxyz"))).shape.empty());
  EXPECT_THAT(parse_npy(bytes_of(file_text(1, header("<f2", "(1,)"), "wx"))).shape,
              testing::ElementsAre(1));
  EXPECT_THAT(parse_npy(bytes_of(file_text(1, header("<f8", "(3, 0)"), ""))).shape,
              testing::ElementsAre(3, 0));
}

TEST(Npy, WritesWhatItReads) {
  for (const char* type : {"f8", "f4", "f2", "i8", "i4", "i1", "u2", "u1", "b1"}) {
    for (const std::vector<std::int64_t>& shape :
         {std::vector<std::int64_t>{}, {5}, {2, 3}, {0, 4}, {1, 2, 3, 1}}) {
      std::int64_t count = cli::npy_element_size(type);
      for (const std::int64_t extent : shape) count *= extent;
      NpyArray array{type, shape, std::vector<std::byte>(static_cast<std::size_t>(count))};
      for (std::size_t i = 0; i < array.data.size(); ++i)
        array.data[i] = static_cast<std::byte>(i * 7);
      const std::vector<std::byte> encoded = encode_npy(array);
      EXPECT_EQ((encoded.size() - array.data.size()) % 64, 0u);
      const NpyArray again = parse_npy(encoded);
      EXPECT_EQ(again.type, array.type);
      EXPECT_EQ(again.shape, array.shape);
      EXPECT_EQ(again.data, array.data);
    }
  }
}

TEST(Npy, RefusesDamage) {
  const std::string good = file_text(1, header("<f4", "(2,)"), "abcdefgh");
  EXPECT_EQ(message_of(good), "accepted");
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_NE(message_of(good.substr(0, length)), "accepted");
  EXPECT_THAT(message_of(good + "x"), HasSubstr("holds 9 bytes"));
  EXPECT_THAT(message_of("PK\x03\x04 a zip file"), HasSubstr("signature"));
  EXPECT_THAT(message_of(file_text(9, header("<f4", "()"), "abcd")), HasSubstr("version is 9"));
  std::string long_header = file_text(2, "", "");
  std::memcpy(long_header.data() + 8, "\xff\xff\xff\xff", 4);
  EXPECT_THAT(message_of(long_header), HasSubstr("claims 4294967295 bytes"));
}

TEST(Npy, RefusesHostileHeaders) {
  const auto refusal = [](const std::string& text) {
    return message_of(file_text(1, text, "abcd"));
  };
  EXPECT_THAT(refusal(header(">f4", "()")), HasSubstr("big endian"));
  EXPECT_THAT(refusal(header("<c32", "()")), HasSubstr("not read"));
  EXPECT_THAT(refusal(header("|O", "()")), HasSubstr("not read"));
  EXPECT_THAT(refusal(header("", "()")), HasSubstr("not known"));
  EXPECT_THAT(refusal("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}"),
              HasSubstr("records"));
  EXPECT_THAT(refusal(header("<f4", "(4611686018427387904, 4)")), HasSubstr("63 bits"));
  EXPECT_THAT(refusal(header("<f4", "(99999999999999999999,)")), HasSubstr("63 bits"));
  EXPECT_THAT(refusal(header("<f4", "(-1,)")), HasSubstr("no extent"));
  EXPECT_THAT(refusal(header("<f4", "(1, 1, 1, 1, 1, 1, 1, 1, 1)")), HasSubstr("more than 8 axes"));
  EXPECT_THAT(refusal(header("<f4", "()", "Maybe")), HasSubstr("True nor False"));
  EXPECT_THAT(refusal("{'descr': '<f4', 'descr': '<f4'}"), HasSubstr("twice"));
  EXPECT_THAT(refusal("{'descr': '<f4', 'colour': 'red'}"), HasSubstr("unknown key 'colour'"));
  EXPECT_THAT(refusal("{'descr': '<f4', 'shape': ()}"), HasSubstr("lacks the key 'fortran_order'"));
  EXPECT_THAT(refusal("{'descr': '<f4"), HasSubstr("without an end"));
  EXPECT_THAT(refusal(header("<f4", "()") + "garbage"), HasSubstr("after its dictionary"));
  EXPECT_THAT(refusal(""), HasSubstr("expected {"));
}

std::string copy_graph() {
  const std::string path = scratch_folder("npy") + "/copy.json";
  write_text(path, R"({"format": "ashlar-graph", "version": 1, "name": "copy", "tensors": [
    {"name": "h", "kind": "input", "dtype": "f16", "dims": [2, 3, 2, 2], "layout": "channels_last"},
    {"name": "m", "kind": "input", "dtype": "bool", "dims": [3, 3]},
    {"name": "l", "kind": "input", "dtype": "i64", "dims": [2, 2]},
    {"name": "q", "kind": "input", "dtype": "bf16", "dims": [4, 2]},
    {"name": "h2", "kind": "output"}, {"name": "m2", "kind": "output"},
    {"name": "l2", "kind": "output"}, {"name": "q2", "kind": "output"}],
    "nodes": [
    {"op": "pointwise", "inputs": {"x": "h"}, "outputs": {"y": "h2"},
     "attributes": {"mode": "identity"}},
    {"op": "pointwise", "inputs": {"x": "m"}, "outputs": {"y": "m2"},
     "attributes": {"mode": "identity"}},
    {"op": "transpose", "inputs": {"x": "l"}, "outputs": {"y": "l2"},
     "attributes": {"permutation": [1, 0]}},
    {"op": "slice", "inputs": {"x": "q"}, "outputs": {"y": "q2"},
     "attributes": {"start": [1, 0], "limit": [3, 2]}}]})");
  return path;
}

std::string npy_file(const std::string& name, const NpyArray& array) {
  const std::string path = scratch_folder("npy") + "/" + name + ".npy";
  write_npy(path, array);
  return path;
}

TEST(NpyThroughRun, EveryKindOfElementRoundTrips) {
  NpyArray h{"f2", {2, 3, 2, 2}, std::vector<std::byte>(48)};
  for (std::size_t i = 0; i < 24; ++i)
    h.data[2 * i + 1] = static_cast<std::byte>(0x30 + i);  // finite halves
  const NpyArray m{"b1", {3, 3}, bytes_of(std::string("\1\0\1\1\0\0\0\1\1", 9))};
  const NpyArray l{"i8",
                   {2, 2},
                   bytes_of(std::string("abcdef\0\0"
                                        "ABCDEF\0\0"
                                        "uvwxyz\0\0+-*/=<\0\0",
                                        32))};
  const NpyArray q{"u2", {4, 2}, bytes_of("0?1?2?3?4?5?6?7?")};
  const std::string out = scratch_folder("npy_out");
  const Outcome run = ashlar({"run", copy_graph(), "--input", "h=" + npy_file("h", h), "--input",
                              "m=" + npy_file("m", m), "--input", "l=" + npy_file("l", l),
                              "--input", "q=" + npy_file("q", q), "--save", out, "--check"});
  ASSERT_EQ(run.exit_code, 0) << run.errors << run.output;
  EXPECT_THAT(run.output, HasSubstr("raw bits: NumPy has no bf16"));
  EXPECT_EQ(cli::read_npy(out + "/h2.npy").data, h.data);
  EXPECT_EQ(cli::read_npy(out + "/m2.npy").data, m.data);
  EXPECT_EQ(cli::read_npy(out + "/l2.npy").data, bytes_of(std::string("abcdef\0\0uvwxyz\0\0"
                                                                      "ABCDEF\0\0+-*/=<\0\0",
                                                                      32)));
  EXPECT_EQ(cli::read_npy(out + "/q2.npy").data, bytes_of("2?3?4?5?"));
}

TEST(NpyThroughRun, FourBitAndComplexElementsRoundTrip) {
  const std::string path = scratch_folder("npy") + "/narrow.json";
  write_text(path, R"({"format": "ashlar-graph", "version": 1, "name": "narrow", "tensors": [
    {"name": "s", "kind": "input", "dtype": "i4", "dims": [3, 3]},
    {"name": "e", "kind": "input", "dtype": "e2m1", "dims": [5], "strides": [3]},
    {"name": "w", "kind": "input", "dtype": "u32", "dims": [2]},
    {"name": "c", "kind": "input", "dtype": "complex_f32", "dims": [1, 1]},
    {"name": "one", "kind": "input", "dtype": "complex_f32", "dims": [1, 1]},
    {"name": "s2", "kind": "output"}, {"name": "e2", "kind": "output"},
    {"name": "w2", "kind": "output"}, {"name": "c2", "kind": "output"}],
    "nodes": [
    {"op": "transpose", "inputs": {"x": "s"}, "outputs": {"y": "s2"},
     "attributes": {"permutation": [1, 0]}},
    {"op": "slice", "inputs": {"x": "e"}, "outputs": {"y": "e2"},
     "attributes": {"start": [1], "limit": [4]}},
    {"op": "reshape", "inputs": {"x": "w"}, "outputs": {"y": "w2"}, "attributes": {"dims": [2, 1]}},
    {"op": "matmul", "inputs": {"a": "c", "b": "one"}, "outputs": {"c": "c2"}}]})");
  const NpyArray s{"i1", {3, 3}, bytes_of(std::string("\xF8\xFF\0\1\2\3\4\6\7", 9))};
  const NpyArray e{"u1", {5}, bytes_of(std::string("\0\7\x0F\3\1", 5))};
  const NpyArray w{"u4", {2}, bytes_of("\xFF\xFE\xFD\xFC\1\2\3\4")};
  const NpyArray c{"c8", {1, 1}, bytes_of(std::string("\0\0\x40\x40\0\0\0\xC0", 8))};
  const NpyArray one{"c8", {1, 1}, bytes_of(std::string("\0\0\x80\x3F\0\0\0\0", 8))};
  const std::string out = scratch_folder("npy_out");
  const Outcome run =
      ashlar({"run", path, "--input", "s=" + npy_file("s", s), "--input", "e=" + npy_file("e", e),
              "--input", "w=" + npy_file("w", w), "--input", "c=" + npy_file("c", c), "--input",
              "one=" + npy_file("one", one), "--save", out, "--check"});
  ASSERT_EQ(run.exit_code, 0) << run.errors << run.output;
  EXPECT_EQ(cli::read_npy(out + "/s2.npy").data,
            bytes_of(std::string("\xF8\1\4\xFF\2\6\0\3\7", 9)));
  EXPECT_EQ(cli::read_npy(out + "/e2.npy").data, bytes_of("\7\x0F\3"));
  EXPECT_EQ(cli::read_npy(out + "/w2.npy").data, w.data);
  EXPECT_EQ(cli::read_npy(out + "/c2.npy").data, c.data);
  EXPECT_EQ(cli::read_npy(out + "/c2.npy").type, "c8");

  const NpyArray wide{"i1", {3, 3}, bytes_of(std::string("\x08\0\0\0\0\0\0\0\0", 9))};
  const Outcome refused = ashlar({"run", path, "--input", "s=" + npy_file("wide", wide)});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("values must be -8 to 7, got 8"));
}

TEST(NpyThroughRun, WrongFilesAreRefused) {
  const NpyArray wrong_type{"f4", {2, 3, 2, 2}, std::vector<std::byte>(96)};
  const NpyArray wrong_shape{"f2", {2, 3, 4}, std::vector<std::byte>(48)};
  const auto refusal = [](const std::string& input) {
    const Outcome run = ashlar({"run", copy_graph(), "--input", input});
    EXPECT_EQ(run.exit_code, 2) << run.output;
    return run.errors;
  };
  EXPECT_THAT(refusal("h=" + npy_file("wrong_type", wrong_type)), HasSubstr("must be f2, got f4"));
  EXPECT_THAT(refusal("h=" + npy_file("wrong_shape", wrong_shape)),
              HasSubstr("shape is [2, 3, 4]"));
  EXPECT_THAT(refusal("h=/nowhere.npy"), HasSubstr("No such file"));
  EXPECT_THAT(refusal("h2=/nowhere.npy"), HasSubstr("no input of that name"));
  EXPECT_THAT(refusal("z=/nowhere.npy"), HasSubstr("no input of that name"));
  EXPECT_THAT(refusal("h"), HasSubstr("expected NAME=FILE.npy"));
  EXPECT_THAT(refusal("h=" + copy_graph()), HasSubstr("signature"));
}

TEST(NpyThroughRun, AFullDiskIsReported) {
  EXPECT_THROW(
      {
        try {
          cli::write_npy("/dev/full", {"u1", {100000}, std::vector<std::byte>(100000)});
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::io);
          EXPECT_THAT(error.what(), HasSubstr("No space left"));
          throw;
        }
      },
      Error);
}

}  // namespace

}  // namespace ashlar::cli_test
