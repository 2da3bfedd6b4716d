// The chunks of a scan on threads: totals of a group of chunks, their scan, then the chunks
// themselves, which are still in L2.
#pragma once

#include <cmath>

#include "cpu/engines/scan_shape.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

class ScanChunks {
 public:
  ScanChunks(const ScanShape& shape, ScanMode mode, ScratchLayout& layout)
      : mode_(mode),
        items_(shape.items),
        length_(shape.length),
        chunk_(shape.chunk),
        chunks_(shape.chunks),
        width_(shape.width()),
        grain_(items_per_thread(shape.length * shape.width())) {
    if (chunks_ <= 1) return;
    const auto bytes = static_cast<std::int64_t>(sizeof(double)) * chunks_ * width_;
    totals_ = layout.add("totals", bytes);
    carries_ = layout.add("carries", bytes);
    total_shifts_ = layout.add("total shifts", bytes);
    carry_shifts_ = layout.add("carry shifts", bytes);
  }

  // scan(coords, width, begin, end, carry, total, store) scans the elements [begin, end) of `width`
  // lines behind the state `carry`, stores results if `store`, and sets `total` (neutral before) to
  // the state of these elements alone. `totals_first`: it does so only behind a neutral carry.
  template <class Body>
  void run(const KernelContext& context, const ScratchLayout& layout, bool totals_first,
           const Body& scan) const {
    if (chunks_ == 0) return;
    if (chunks_ == 1) {
      parallel_for(items_.count(), grain_, [&](std::int64_t begin, std::int64_t end, int) {
        double folds[2][kScanStripe], shifts[2][kScanStripe];
        for (std::int64_t item = begin; item < end; ++item) {
          Coords coords{};
          const std::int64_t width = items_.locate(item, coords);
          const ScanState carry{folds[0], shifts[0]}, total{folds[1], shifts[1]};
          begin_scan(mode_, width, carry);
          begin_scan(mode_, width, total);
          scan(coords, width, 0, length_, carry, total, true);
        }
      });
      return;
    }
    const std::int64_t threads = thread_count();
    if (items_.count() >= threads) return run_items(totals_first, scan);
    double* const totals = context.scratch<double>(layout, totals_);
    double* const carries = context.scratch<double>(layout, carries_);
    double* const total_shifts = context.scratch<double>(layout, total_shifts_);
    double* const carry_shifts = context.scratch<double>(layout, carry_shifts_);
    const auto total_of = [&](std::int64_t c) {
      return ScanState{totals + c * width_, total_shifts + c * width_};
    };
    const auto carry_of = [&](std::int64_t c) {
      return ScanState{carries + c * width_, carry_shifts + c * width_};
    };
    constexpr std::int64_t kChunksPerThread = 8;
    const std::int64_t group = threads == 1 ? 1 : kChunksPerThread * threads;
    for (std::int64_t item = 0; item < items_.count(); ++item) {
      Coords coords{};
      const std::int64_t width = items_.locate(item, coords);
      const auto run_chunk = [&](std::int64_t c, const ScanState& carry, bool store) {
        begin_scan(mode_, width, total_of(c));
        scan(coords, width, c * chunk_, std::min(length_, (c + 1) * chunk_), carry, total_of(c),
             store);
      };
      begin_scan(mode_, width, carry_of(0));
      const auto end_chunk = [&](std::int64_t c) {
        if (c + 1 < chunks_) join(width, carry_of(c), total_of(c), carry_of(c + 1));
      };
      for (std::int64_t first = 0; first < chunks_; first += group) {
        const std::int64_t count = std::min(group, chunks_ - first);
        if (count == 1 && !totals_first) {
          run_chunk(first, carry_of(first), true);
          end_chunk(first);
          continue;
        }
        parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end, int) {
          double fold[kScanStripe], shift[kScanStripe];
          const ScanState nothing{fold, shift};
          begin_scan(mode_, width, nothing);
          for (std::int64_t c = first + begin; c < first + end; ++c) run_chunk(c, nothing, false);
        });
        for (std::int64_t c = first; c < first + count; ++c) end_chunk(c);
        parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end, int) {
          for (std::int64_t c = first + begin; c < first + end; ++c)
            run_chunk(c, carry_of(c), true);
        });
      }
    }
  }

 private:
  // The chunks of an item one after another, with the same results.
  template <class Body>
  void run_items(bool totals_first, const Body& scan) const {
    parallel_for(items_.count(), grain_, [&](std::int64_t begin, std::int64_t end, int) {
      double folds[4][kScanStripe], shifts[4][kScanStripe];
      const ScanState nothing{folds[0], shifts[0]}, carry{folds[1], shifts[1]},
          total{folds[2], shifts[2]}, unused{folds[3], shifts[3]};
      for (std::int64_t item = begin; item < end; ++item) {
        Coords coords{};
        const std::int64_t width = items_.locate(item, coords);
        begin_scan(mode_, width, nothing);
        begin_scan(mode_, width, carry);
        for (std::int64_t c = 0; c < chunks_; ++c) {
          const std::int64_t first = c * chunk_, last = std::min(length_, (c + 1) * chunk_);
          begin_scan(mode_, width, total);
          begin_scan(mode_, width, unused);
          if (totals_first) scan(coords, width, first, last, nothing, total, false);
          scan(coords, width, first, last, carry, totals_first ? unused : total, true);
          join(width, carry, total, carry);
        }
      }
    });
  }

  void join(std::int64_t width, const ScanState& a, const ScanState& b,
            const ScanState& result) const {
    for (std::int64_t i = 0; i < width; ++i) {
      switch (mode_) {
        case ScanMode::add: result.fold[i] = a.fold[i] + b.fold[i]; break;
        case ScanMode::mul: result.fold[i] = a.fold[i] * b.fold[i]; break;
        case ScanMode::min: result.fold[i] = combine(Fold::minimum, a.fold[i], b.fold[i]); break;
        case ScanMode::max: result.fold[i] = combine(Fold::maximum, a.fold[i], b.fold[i]); break;
        case ScanMode::logsumexp: {
          const double shift = combine(Fold::maximum, a.shift[i], b.shift[i]);
          const double by = std::isfinite(shift) ? shift : 0.0;
          result.fold[i] =
              a.fold[i] * std::exp(a.shift[i] - by) + b.fold[i] * std::exp(b.shift[i] - by);
          result.shift[i] = shift;
        }
      }
    }
  }

  ScanMode mode_;
  RowLoop items_;
  std::int64_t length_, chunk_, chunks_, width_, grain_;
  int totals_ = -1, carries_ = -1, total_shifts_ = -1, carry_shifts_ = -1;
};

}  // namespace ashlar::cpu
