// Emulated tensor cores: mma.sync of a warp, wgmma of a warpgroup, ldmatrix and stmatrix. The lanes
// of a warp rendezvous; the last lane to arrive computes for all.
#include <algorithm>
#include <cstring>

#include "mma_types.hpp"
#include "running.hpp"

namespace emulated {

namespace {

constexpr std::size_t kMaxN = 256, kMaxK = 32, kRows = 16;

template <class T>
using Lanes = std::array<const T*, kLanes>;

// Gathers every lane's T; true for the lane that computes.
template <class T>
bool warp_sync_with(WarpOp purpose, const T& own, Lanes<T>& of_all) {
  const unsigned long long* met = warp_sync_all(purpose, &own);
  if (met == nullptr) return false;
  for (std::size_t lane = 0; lane < of_all.size(); ++lane)
    of_all[lane] = reinterpret_cast<const T*>(met[lane]);
  return true;
}

bool is_integer(MmaType number) { return number == MmaType::s8 || number == MmaType::u8; }

// --- register fragments

// Register `word` of a lane's A holds `count` elements of row a_row() from a_column() on. B is the
// same with columns as rows, without the upper eight rows.
struct Fragment {
  unsigned group, in_group;
  explicit Fragment(std::size_t lane)
      : group(static_cast<unsigned>(lane) / 4), in_group(static_cast<unsigned>(lane) % 4) {}
  unsigned a_row(unsigned word) const { return group + 8 * (word & 1); }
  unsigned a_column(unsigned word, unsigned count) const {
    return count * in_group + 4 * count * (word >> 1);
  }
  unsigned b_row(unsigned word, unsigned count) const {
    return count * in_group + 4 * count * word;
  }
  unsigned b_column() const { return group; }
  // Row and column of accumulator i of four, within 8 columns.
  unsigned d_row(unsigned i) const { return group + 8 * (i >> 1); }
  unsigned d_column(unsigned i) const { return 2 * in_group + (i & 1); }
};

// 16 rows of A and up to kMaxN columns of B, decoded.
template <class T>
struct Operands {
  std::array<std::array<T, kMaxK>, kRows> a;
  std::array<std::array<T, kMaxN>, kMaxK> b;
};

// D += A B.
#define EMULATED_FAST __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
template <class T>
using Sums = std::array<std::array<T, kMaxN>, kRows>;
template <int kColumns, class T>
[[gnu::always_inline]] inline void multiply_columns(const Operands<T>& x, int n, int k,
                                                    Sums<T>& sums) {
  for (int first = 0; first < n; first += kColumns)
    for (std::size_t row = 0; row < kRows; ++row) {
      T part[kColumns];
      std::memcpy(part, &sums[row][static_cast<std::size_t>(first)], sizeof part);
      for (int i = 0; i < k; ++i) {
        const T a = x.a[row][static_cast<std::size_t>(i)];
        const T* b = &x.b[static_cast<std::size_t>(i)][static_cast<std::size_t>(first)];
        for (int column = 0; column < kColumns; ++column) part[column] += a * b[column];
      }
      std::memcpy(&sums[row][static_cast<std::size_t>(first)], part, sizeof part);
    }
}
template <class T>
[[gnu::always_inline]] inline void multiply_any(const Operands<T>& x, int n, int k, Sums<T>& sums) {
  if (n % 32 == 0)
    multiply_columns<32>(x, n, k, sums);
  else
    multiply_columns<8>(x, n, k, sums);
}
EMULATED_FAST void multiply(const Operands<float>& x, int n, int k, Sums<float>& sums) {
  multiply_any(x, n, k, sums);
}
EMULATED_FAST void multiply(const Operands<unsigned>& x, int n, int k, Sums<unsigned>& sums) {
  multiply_any(x, n, k, sums);
}
void multiply(const Operands<double>& x, int n, int k, Sums<double>& sums) {
  multiply_any(x, n, k, sums);
}

// --- matrices in shared memory

constexpr unsigned kLineBytes = 128;
SharedLines* lines_read = nullptr;  // read by the wgmma in progress

// A decoded wgmma matrix descriptor.
struct Matrix {
  unsigned start, leading, stride;
  int swizzle;  // 0: none, else rows of 16 << swizzle bytes
  bool is_mn_major;

  Matrix(unsigned long long bits, bool mn_major)
      : start(static_cast<unsigned>(bits & 0x3fff) << 4),
        leading(static_cast<unsigned>(bits >> 16 & 0x3fff) << 4),
        stride(static_cast<unsigned>(bits >> 32 & 0x3fff) << 4),
        swizzle(static_cast<int>((4 - (bits >> 62)) & 3)),
        is_mn_major(mn_major) {
    if ((bits >> 49 & 7) != 0)
      stop("wgmma: matrix descriptors with a base offset are not emulated");
    if ((bits >> 14 & 3) != 0 || (bits >> 30 & 3) != 0 || (bits >> 46 & 7) != 0 ||
        (bits >> 52 & 0x3ff) != 0)
      stop("wgmma: a matrix descriptor has reserved bits set");
  }
  // The 16 bytes at column `at` * 16 bytes of row `row`; rows are along M or N, or along K if
  // MN-major.
  const unsigned char* piece(unsigned row, unsigned at) const {
    const unsigned row_bytes = 16u << swizzle, pieces = 1u << swizzle;
    unsigned address = start + row % 8 * row_bytes;
    if (!is_mn_major)
      address += row / 8 * stride + at * (swizzle == 0 ? leading : 16);
    else if (swizzle == 0)
      address += row / 8 * leading + at * stride;
    else
      address += row / 8 * stride + at % pieces * 16 + at / pieces * leading;
    address ^= (address >> 7 & (pieces - 1)) << 4;
    lines_read->set(address / kLineBytes);
    return shared_bytes_at(address, 16);
  }
};

// Calls put(index along MN, index along K, value) for the elements of a matrix from `first` on.
template <class T, class Put>
void read_matrix(const Matrix& matrix, MmaType number, unsigned first, unsigned count, bool negates,
                 const Put& put) {
  const unsigned bytes = bytes_of(number), of_piece = 16 / bytes, k = 32 / bytes;
  std::array<T, 16> values;
  const unsigned rows = matrix.is_mn_major ? k : count,
                 pieces = matrix.is_mn_major ? count / of_piece : 2;
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned piece = 0; piece < pieces; ++piece) {
      const unsigned char* from = matrix.is_mn_major ? matrix.piece(row, first / of_piece + piece)
                                                     : matrix.piece(first + row, piece);
      decode(number, from, of_piece, values.data());
      for (unsigned i = 0; i < of_piece; ++i) {
        const T value = negates ? -values[i] : values[i];
        if (matrix.is_mn_major)
          put(piece * of_piece + i, row, value);
        else
          put(row, piece * of_piece + i, value);
      }
    }
}

// --- wgmma

bool are_equal(const WarpgroupMma& x, const WarpgroupMma& y) {
  return x.a == y.a && x.b == y.b && x.n == y.n && x.a_matrix == y.a_matrix &&
         x.b_matrix == y.b_matrix && (x.a_registers == nullptr) == (y.a_registers == nullptr) &&
         x.a_is_mn_major == y.a_is_mn_major && x.b_is_mn_major == y.b_is_mn_major &&
         x.keeps == y.keeps && x.negates_a == y.negates_a && x.negates_b == y.negates_b;
}

void check(const WarpgroupMma& x) {
  const bool is_small = bytes_of(x.a) == 1;
  const bool is_pair =
      x.a == x.b || (is_small && bytes_of(x.b) == 1 && is_integer(x.a) == is_integer(x.b));
  if (!is_pair || x.a == MmaType::f64) stop("wgmma: unsupported operand types");
  if (x.n < 8 || x.n > 256 || x.n % 8 != 0 || (is_integer(x.a) && x.n > 32 && x.n % 16 != 0))
    stop("wgmma: unsupported N");
  if ((x.a_is_mn_major || x.b_is_mn_major) && bytes_of(x.a) != 2)
    stop("wgmma: MN-major operands must be 16-bit types");
  if (is_integer(x.a) && (x.negates_a || x.negates_b))
    stop("wgmma: integer operands cannot be negated");
}

// A NaN, of floats.
constexpr std::uint32_t kInFlight = 0x7fedbeef;

void stop_in_flight() {
  stop("wgmma: accumulators were changed before wgmma.wait_group, while they are in flight");
}

// The results of earlier wgmma in flight into the same registers, or else the registers themselves;
// the pattern replaces these.
AccumulatorsInFlight& fly(Thread& thread, void* registers, unsigned count) {
  for (AccumulatorsInFlight& one : thread.in_flight) {
    if (one.registers != registers) continue;
    if (one.results.size() != count) stop("wgmma: accumulators in flight overlap");
    return one;
  }
  AccumulatorsInFlight& one = thread.in_flight.emplace_back();
  one.registers = registers;
  one.results.resize(count);
  std::memcpy(one.results.data(), registers, count * sizeof(std::uint32_t));
  auto* words = static_cast<std::uint32_t*>(registers);
  std::fill(words, words + count, kInFlight);
  return one;
}
// Writes the results of complete groups to their registers.
void land(Thread& thread, long long complete) {
  const auto lands = [&](AccumulatorsInFlight& one) {
    if (one.group >= complete) return false;
    auto* words = static_cast<std::uint32_t*>(one.registers);
    if (!std::all_of(words, words + one.results.size(),
                     [](std::uint32_t word) { return word == kInFlight; }))
      stop_in_flight();
    std::memcpy(one.registers, one.results.data(), one.results.size() * sizeof(std::uint32_t));
    return true;
  };
  std::erase_if(thread.in_flight, lands);
  std::erase_if(thread.operands_in_flight, [&](const OperandInFlight& one) {
    if (one.group >= complete) return false;
    if (!std::equal(one.values.begin(), one.values.end(), one.registers))
      stop("wgmma: registers of A were changed before wgmma.wait_group, while they are read");
    return true;
  });
}

template <class T, class Sum>
void multiply_rows(const Lanes<WarpgroupMma>& lanes, unsigned warp) {
  static Operands<T> x;
  static Sums<T> sums;
  const WarpgroupMma& first = *lanes[0];
  const unsigned n = static_cast<unsigned>(first.n), k = 32 / bytes_of(first.a);
  const int first_thread = now.current / kLanes * kLanes;
  if (first.a_registers != nullptr) {
    const unsigned count = 4 / bytes_of(first.a);
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      const Fragment at(lane);
      Thread& thread = thread_at(first_thread + static_cast<int>(lane));
      const unsigned* const a = lanes[lane]->a_registers;
      thread.operands_in_flight.push_back(
          {.registers = a, .values = {a[0], a[1], a[2], a[3]}, .group = thread.wgmma_groups});
      for (unsigned word = 0; word < 4; ++word) {
        T* to = &x.a[at.a_row(word)][at.a_column(word, count)];
        decode(first.a, &lanes[lane]->a_registers[word], count, to);
        if (first.negates_a)
          for (unsigned i = 0; i < count; ++i) to[i] = -to[i];
      }
    }
  } else {
    read_matrix<T>(Matrix(first.a_matrix, first.a_is_mn_major), first.a, 16 * warp, kRows,
                   first.negates_a,
                   [](unsigned row, unsigned column, T value) { x.a[row][column] = value; });
  }
  read_matrix<T>(Matrix(first.b_matrix, first.b_is_mn_major), first.b, 0, n, first.negates_b,
                 [](unsigned column, unsigned row, T value) { x.b[row][column] = value; });
  const auto exchange = [&](auto&& with) {
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      const Fragment at(lane);
      Thread& thread = thread_at(first_thread + static_cast<int>(lane));
      AccumulatorsInFlight& accumulators = fly(thread, lanes[lane]->d, n / 2);
      accumulators.group = thread.wgmma_groups;
      auto* d = reinterpret_cast<Sum*>(accumulators.results.data());
      for (unsigned i = 0; i < n / 2; ++i)
        with(d[i], sums[at.d_row(i % 4)][i / 4 * 8 + at.d_column(i % 4)]);
    }
  };
  if (first.keeps)
    exchange([](Sum d, T& sum) { sum = static_cast<T>(d); });
  else
    for (auto& row : sums) row.fill(T{});
  multiply(x, first.n, static_cast<int>(k), sums);
  exchange([](Sum& d, T sum) { d = static_cast<Sum>(sum); });
}

// --- mma.sync

template <class T, class Sum>
void multiply_small(const Lanes<WarpMma>& lanes) {
  static Operands<T> x;
  static Sums<T> sums;
  const WarpMma& first = *lanes[0];
  const unsigned bytes = bytes_of(first.a), count = bytes < 4 ? 4 / bytes : 1;
  const auto k = static_cast<unsigned>(first.k);
  const unsigned a_rows = static_cast<unsigned>(first.m) / 8;
  // A register is 4 bytes, or 8 for f64.
  const unsigned word_bytes = bytes * count, a_words = a_rows * k / 4 / count,
                 b_words = k / 4 / count, d_count = 2 * a_rows;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    const Fragment at(lane);
    const auto* a = static_cast<const unsigned char*>(lanes[lane]->a_registers);
    const auto* b = static_cast<const unsigned char*>(lanes[lane]->b_registers);
    for (unsigned word = 0; word < a_words; ++word) {
      const unsigned place = a_rows == 2 ? word : 2 * word;
      decode(first.a, a + word * word_bytes, count,
             &x.a[at.a_row(place)][at.a_column(place, count)]);
    }
    for (unsigned word = 0; word < b_words; ++word) {
      std::array<T, 4> values;
      decode(first.b, b + word * word_bytes, count, values.data());
      for (unsigned i = 0; i < count; ++i)
        x.b[at.b_row(word, count) + i][at.b_column()] = values[i];
    }
    const auto* c = static_cast<const Sum*>(lanes[lane]->c);
    for (unsigned i = 0; i < d_count; ++i) sums[at.d_row(i)][at.d_column(i)] = static_cast<T>(c[i]);
  }
  multiply(x, 8, first.k, sums);
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    const Fragment at(lane);
    auto* d = static_cast<Sum*>(lanes[lane]->d);
    for (unsigned i = 0; i < d_count; ++i)
      d[i] = static_cast<Sum>(sums[at.d_row(i)][at.d_column(i)]);
  }
}

void check(const WarpMma& x) {
  const unsigned bytes = bytes_of(x.a);
  const bool is_pair =
      x.a == x.b || (bytes == 1 && bytes_of(x.b) == 1 && is_integer(x.a) == is_integer(x.b));
  const int bytes_of_k = x.k * static_cast<int>(bytes);
  const bool is_double =
      x.a == MmaType::f64 &&
      ((x.m == 8 && x.k == 4) || (x.m == 16 && (x.k == 4 || x.k == 8 || x.k == 16)));
  const bool is_other = x.a != MmaType::f64 && x.m == 16 && (bytes_of_k == 16 || bytes_of_k == 32);
  if (!is_pair || x.n != 8 || !(is_double || is_other))
    stop("mma.sync: unsupported types or shape");
}

// --- ldmatrix and stmatrix: 8 x 8 matrices of 16-bit elements

struct MatrixRows {
  const void* row;
  unsigned* loaded;
  const unsigned* stored;
  int count;
  bool transposed;
};

// Calls exchange(lane, matrix, half, element) for all elements.
template <class Exchange>
void for_elements(const Lanes<MatrixRows>& lanes, const Exchange& exchange) {
  const MatrixRows& first = *lanes[0];
  for (unsigned matrix = 0; matrix < static_cast<unsigned>(first.count); ++matrix)
    for (unsigned lane = 0; lane < kLanes; ++lane)
      for (unsigned half = 0; half < 2; ++half) {
        const unsigned group = lane / 4, pair = lane % 4 * 2 + half;
        const unsigned row = first.transposed ? pair : group,
                       column = first.transposed ? group : pair;
        const auto* from = static_cast<const std::uint16_t*>(lanes[8 * matrix + row]->row);
        exchange(*lanes[lane], matrix, half, from + column);
      }
}
void check(const Lanes<MatrixRows>& lanes) {
  const MatrixRows& first = *lanes[0];
  if (first.count != 1 && first.count != 2 && first.count != 4)
    stop("ldmatrix/stmatrix: the number of matrices is not 1, 2 or 4");
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    if (lanes[lane]->count != first.count || lanes[lane]->transposed != first.transposed)
      stop("ldmatrix/stmatrix: the lanes of a warp disagree on the operation");
    if (lane >= 8 * static_cast<std::size_t>(first.count)) continue;
    const unsigned address = shared_address(lanes[lane]->row);
    if (address % 16 != 0) stop("ldmatrix/stmatrix: a row address is not a multiple of 16");
    shared_bytes_at(address, 16);
  }
}

}  // namespace

void multiply_warpgroup(const WarpgroupMma& product) {
  check(product);
  const int warp = now.current / kLanes % 4;
  if (now.threads % 128 != 0 && now.current / 128 == now.threads / 128)
    stop("wgmma: the warpgroup has fewer than four warps");
  Lanes<WarpgroupMma> lanes;
  if (!warp_sync_with(WarpOp::product, product, lanes)) return;
  for (const WarpgroupMma* other : lanes)
    if (!are_equal(product, *other)) stop("the lanes of a warp multiply different matrices");
  std::vector<SharedLines>& groups = warp_of(now.current).wgmma_groups;
  if (groups.empty()) groups.emplace_back();
  lines_read = &groups.back();
  if (is_integer(product.a))
    multiply_rows<unsigned, int>(lanes, static_cast<unsigned>(warp));
  else
    multiply_rows<float, float>(lanes, static_cast<unsigned>(warp));
}

// Recorded by lane 0: the lanes of a warp issue wgmma in lockstep.
void wgmma_commit_group() {
  now.commits_wgmma = true;
  ++thread_at(now.current).wgmma_groups;
  std::vector<SharedLines>& groups = warp_of(now.current).wgmma_groups;
  if (now.current % kLanes != 0) return;
  if (groups.empty()) groups.emplace_back();
  groups.emplace_back();
}

void wgmma_wait_group(int pending) {
  Thread& thread = thread_at(now.current);
  land(thread, thread.wgmma_groups - pending);
  std::vector<SharedLines>& groups = warp_of(now.current).wgmma_groups;
  if (now.current % kLanes != 0 || groups.empty()) return;
  const auto committed = static_cast<int>(groups.size()) - 1;
  if (committed > pending) groups.erase(groups.begin(), groups.begin() + (committed - pending));
}

bool is_read_by_wgmma(const Block& block, unsigned address, unsigned bytes) {
  if (!now.commits_wgmma) return false;
  const auto warps = static_cast<std::size_t>((now.threads + kLanes - 1) / kLanes);
  for (std::size_t warp = 0; warp < warps; ++warp)
    for (const SharedLines& group : block.warps[warp].wgmma_groups)
      for (unsigned line = address / kLineBytes; line * kLineBytes < address + bytes; ++line)
        if (group.test(line)) return true;
  return false;
}

void multiply_warp(const WarpMma& product) {
  check(product);
  Lanes<WarpMma> lanes;
  if (!warp_sync_with(WarpOp::product, product, lanes)) return;
  for (const WarpMma* other : lanes)
    if (other->a != product.a || other->b != product.b || other->m != product.m ||
        other->k != product.k)
      stop("the lanes of a warp multiply different matrices");
  if (is_integer(product.a))
    multiply_small<unsigned, int>(lanes);
  else if (product.a == MmaType::f64)
    multiply_small<double, double>(lanes);
  else
    multiply_small<float, float>(lanes);
}

void load_matrix(unsigned* registers, const void* row, int count, bool transposed) {
  const MatrixRows own{row, registers, nullptr, count, transposed};
  Lanes<MatrixRows> lanes;
  if (!warp_sync_with(WarpOp::load, own, lanes)) return;
  check(lanes);
  if (!transposed) {  // whole registers
    for (unsigned matrix = 0; matrix < static_cast<unsigned>(count); ++matrix)
      for (unsigned lane = 0; lane < kLanes; ++lane)
        std::memcpy(&lanes[lane]->loaded[matrix],
                    static_cast<const char*>(lanes[8 * matrix + lane / 4]->row) + lane % 4 * 4, 4);
    return;
  }
  for_elements(lanes, [](const MatrixRows& lane, unsigned matrix, unsigned half,
                         const std::uint16_t* element) {
    const unsigned shift = 16 * half;
    lane.loaded[matrix] = (lane.loaded[matrix] & ~(0xffffu << shift)) | unsigned{*element} << shift;
  });
}

void store_matrix(void* row, const unsigned* registers, int count, bool transposed) {
  const MatrixRows own{row, nullptr, registers, count, transposed};
  Lanes<MatrixRows> lanes;
  if (!warp_sync_with(WarpOp::store, own, lanes)) return;
  check(lanes);
  for_elements(lanes, [](const MatrixRows& lane, unsigned matrix, unsigned half,
                         const std::uint16_t* element) {
    *const_cast<std::uint16_t*>(element) =
        static_cast<std::uint16_t>(lane.stored[matrix] >> 16 * half);
  });
}

}  // namespace emulated
