#include "calibration.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "calibration.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#ifndef ASHLAR_NO_OPENMP
#include <omp.h>
#endif

HWY_BEFORE_NAMESPACE();
namespace ashlar::bench {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Independent FMA chains: two FMA ports times a latency of 4 cycles need at least 8.
constexpr std::int64_t kChains = 12;

// Every chain converges to addend / (1 - factor): no overflow, no subnormals.
float MultiplyAdd(std::int64_t rounds) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.99F), addend = hn::Set(d, 0.01F);
  auto c0 = hn::Iota(d, 0), c1 = hn::Iota(d, 1), c2 = hn::Iota(d, 2), c3 = hn::Iota(d, 3),
       c4 = hn::Iota(d, 4), c5 = hn::Iota(d, 5), c6 = hn::Iota(d, 6), c7 = hn::Iota(d, 7),
       c8 = hn::Iota(d, 8), c9 = hn::Iota(d, 9), c10 = hn::Iota(d, 10), c11 = hn::Iota(d, 11);
  for (std::int64_t round = 0; round < rounds; ++round) {
    c0 = hn::MulAdd(c0, factor, addend);
    c1 = hn::MulAdd(c1, factor, addend);
    c2 = hn::MulAdd(c2, factor, addend);
    c3 = hn::MulAdd(c3, factor, addend);
    c4 = hn::MulAdd(c4, factor, addend);
    c5 = hn::MulAdd(c5, factor, addend);
    c6 = hn::MulAdd(c6, factor, addend);
    c7 = hn::MulAdd(c7, factor, addend);
    c8 = hn::MulAdd(c8, factor, addend);
    c9 = hn::MulAdd(c9, factor, addend);
    c10 = hn::MulAdd(c10, factor, addend);
    c11 = hn::MulAdd(c11, factor, addend);
  }
  c0 =
      hn::Add(hn::Add(hn::Add(c0, c1), hn::Add(c2, c3)), hn::Add(hn::Add(c4, c5), hn::Add(c6, c7)));
  c0 = hn::Add(hn::Add(c0, c8), hn::Add(hn::Add(c9, c10), c11));
  return hn::GetLane(hn::SumOfLanes(d, c0));
}

std::int64_t FloatsPerRound() {
  return kChains * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>()));
}

// `from`, `to` and `bytes` are multiples of 256. `past_cache`: non-temporal stores.
void Copy(const std::byte* HWY_RESTRICT from, std::byte* HWY_RESTRICT to, std::int64_t bytes,
          bool past_cache) {
  const hn::ScalableTag<std::uint8_t> d;
  const auto* source = reinterpret_cast<const std::uint8_t*>(from);
  auto* target = reinterpret_cast<std::uint8_t*>(to);
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  if (past_cache) {
    for (std::int64_t i = 0; i < bytes; i += step)
      hn::Stream(hn::Load(d, source + i), d, target + i);
    hwy::FlushStream();
  } else {
    for (std::int64_t i = 0; i < bytes; i += step)
      hn::Store(hn::Load(d, source + i), d, target + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ashlar::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <algorithm>
#include <ashlar/device.hpp>
#include <cstring>
#include <limits>
#include <new>

#include "clock.hpp"

namespace ashlar::bench {

namespace {

HWY_EXPORT(MultiplyAdd);
HWY_EXPORT(FloatsPerRound);
HWY_EXPORT(Copy);

constexpr int kTries = 3;
constexpr std::int64_t kRounds = 25000;       // about 0.05 ms
constexpr std::int64_t kBlock = 256;          // bytes; every vector length divides it
constexpr std::int64_t kMinHalf = 64 << 10;   // bytes
constexpr std::int64_t kMaxHalf = 64 << 20;   // bytes
constexpr std::int64_t kMinSample = 4 << 20;  // bytes moved per try
constexpr std::align_val_t kAlignment{4096};

// body(thread, threads) on every thread of the team.
template <class Body>
void on_all_threads(const Body& body) {
#ifdef ASHLAR_NO_OPENMP
  body(0, 1);
#else
#pragma omp parallel
  body(omp_get_thread_num(), omp_get_num_threads());
#endif
}

// Amount per second, best of kTries: a preempted thread spoils a loop this short, and the roofline
// is what the undisturbed machine reaches.
template <class Run>
double best_of_tries(double amount, const Run& run) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTries; ++i) {
    const Clock::time_point start = Clock::now();
    run();
    least = std::min(least, seconds_since(start));
  }
  return amount / least;
}

int team_size() {
#ifdef ASHLAR_NO_OPENMP
  return 1;
#else
  return omp_get_max_threads();
#endif
}

}  // namespace

double multiply_add_rate() {
  const double operations =
      2.0 * static_cast<double>(kRounds * HWY_DYNAMIC_DISPATCH(FloatsPerRound)() * team_size());
  return best_of_tries(operations, [] {
    on_all_threads([](int, int) {
      // The volatile keeps the compiler from dropping the loop.
      [[maybe_unused]] const volatile float result = HWY_DYNAMIC_DISPATCH(MultiplyAdd)(kRounds);
    });
  });
}

double int8_ops_per_f32_op() {
#if defined(__x86_64__) || defined(__i386__)
  if (__builtin_cpu_supports("avx512vnni")) return 4;
#endif
  return 0;
}

void CopyCalibration::Free::operator()(std::byte* memory) const {
  ::operator delete(memory, kAlignment);
}

CopyCalibration::Buffer CopyCalibration::allocate(std::int64_t bytes) {
  return Buffer(
      static_cast<std::byte*>(::operator new(static_cast<std::size_t>(bytes), kAlignment)));
}

CopyCalibration::CopyCalibration(double bytes)
    : half_(std::clamp(static_cast<std::int64_t>(bytes / 2) / kBlock * kBlock, kMinHalf, kMaxHalf)),
      past_cache_(2 * half_ > Device::cpu().props().l3_bytes),
      repeats_(std::max<std::int64_t>(1, kMinSample / (2 * half_))),
      from_(allocate(half_)),
      to_(allocate(half_)) {
  std::memset(from_.get(), 1, static_cast<std::size_t>(half_));
  std::memset(to_.get(), 2, static_cast<std::size_t>(half_));
}

double CopyCalibration::rate() const {
  return best_of_tries(2.0 * static_cast<double>(half_ * repeats_), [&] {
    on_all_threads([&](int thread, int threads) {
      const std::int64_t blocks = half_ / kBlock;
      const std::int64_t begin = blocks * thread / threads * kBlock,
                         end = blocks * (thread + 1) / threads * kBlock;
      for (std::int64_t repeat = 0; repeat < repeats_; ++repeat) HWY_DYNAMIC_DISPATCH(Copy)
      (from_.get() + begin, to_.get() + begin, end - begin, past_cache_);
    });
  });
}

}  // namespace ashlar::bench

#endif  // HWY_ONCE
