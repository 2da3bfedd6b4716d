// Batch norm in training as one cooperative launch, persistent in shared memory: a group of
// kGroupBlocks CTAs reads a chunk of kTaken channels, keeps up to kHeld packets per thread in
// shared memory, merges its partial sums through global memory and a group barrier, and normalises
// from shared memory. Packets that do not fit are read again in reverse order, because the end is
// still in L2.
// kColumns: memory is a matrix of rows with kSpread columns per channel (1: NHWC; otherwise the
// pixels of an image), and a thread owns the same kVector columns of all its rows. Otherwise a
// packet is kVector pixels of one channel and counts as one row.
// The file of a direction (forward, backward) follows with gather, finish and apply.
#include "lib/chunks.cuh"
#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/grid_barrier.cuh"
#include "lib/moments.cuh"
#include "lib/pointwise.cuh"
#include "lib/ptx_cp_async.cuh"
#include "lib/ptx_shared.cuh"
#include "lib/rows.cuh"

static const int kWarps = kThreads / kLanes;
static const int kAcross = kColumns ? kTaken * kSpread / kVector : 1;  // threads along a row
static const int kDown = kThreads / kAcross;                           // rows per step of the CTA
static const int kWide = kColumns ? kVector : 1;                       // accumulators per thread
static const int kPerSum = kVector / kWide;

// The packets of one thread. The CTAs of a group interleave rows, so that together they stream
// through one contiguous window of memory.
struct PacketRange {
  static const int kStep = kDown * kGroupBlocks;
  Index column;  // first column; the channel where packets are pixels
  Index first, packets;

  __device__ PacketRange(const Args& args, Index chunk) {
    const int row = threadIdx.x / kAcross, lane = threadIdx.x - row * kAcross;
    const Index rows = (Index)args.rows;
    column = chunk * (kTaken * kSpread) + lane * kVector;
    first = (Index)(blockIdx.x % kGroupBlocks) * kDown + row;
    packets = row < kDown && first < rows ? (rows - first + kStep - 1) / kStep : 0;
  }
  __device__ void locate(const Args& args, Index i, Index (&at)[kRank]) const {
    const Index row = first + i * kStep;
    if constexpr (kColumns) {
      locate_row(args, row, at);
      at[kRank - 1] = column;
    } else {
      at[0] = divide(row, args.magic_line_packets, args.line_packets);
      at[1] = column;
      at[2] = (row - at[0] * (Index)args.line_packets) * kVector;
    }
  }
  // Channel of accumulator k.
  __device__ Index channel(int k) const { return (column + k) / kSpread; }
};

// body(Constant<count>, at, values) for a packet: as one vector, or element by element where
// pointers are not aligned.
template <bool kAligned, class Body>
__device__ inline void on_packet(const Index (&at)[kRank], R (&values)[kVector], const Body& body) {
  if constexpr (kAligned) {
    body(Constant<kVector>(), at, values);
  } else {
    Index place[kRank];
    copy(at, place);
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      R one[1] = {values[v]};
      body(Constant<1>(), place, one);
      values[v] = one[0];
      ++place[kRank - 1];
    }
  }
}

// --- persistent packets: packet i of this thread starts `base` bytes into shared memory, elements
// of type D

template <class D>
__device__ inline auto* persistent_piece(int base, int i, int piece) {
  typedef typename Vector<kVector, typename D::Word>::Piece Piece;
  return (Piece*)(shared_memory() + base) + (piece * kHeld + i) * kThreads + threadIdx.x;
}
template <class D>
__device__ inline void save_packet(D d, int base, int i, const R (&values)[kVector]) {
  const auto u = narrow_vector(d, values);
#pragma unroll
  for (int piece = 0; piece < u.kPieces; ++piece)
    *persistent_piece<D>(base, i, piece) = u.pieces[piece];
}
template <class D>
__device__ inline void load_packet(D d, int base, int i, R (&values)[kVector]) {
  Vector<kVector, typename D::Word> u;
#pragma unroll
  for (int piece = 0; piece < u.kPieces; ++piece)
    u.pieces[piece] = *persistent_piece<D>(base, i, piece);
  widen_vector(d, u, values);
}

// cp.async pipeline, one commit group per kUnroll packets. The packets of the next chunk are loaded
// while the previous chunk is stored. The number of outstanding groups stays constant: after each
// wait the thread commits an empty group.
static const int kBatches = (kHeld + kUnroll - 1) / kUnroll;
template <class Fetch>
__device__ inline void fetch_batch(const PacketRange& share, int first, const Fetch& fetch) {
#pragma unroll
  for (int p = 0; p < kUnroll; ++p)
    if ((Index)(first + p) < share.packets) fetch(first + p);
  cp_async_commit_group();
}
// store(i) for every persistent packet, then fetch(i) of the next chunk into its slot.
template <class Store, class Fetch>
__device__ inline void exchange_batches(const PacketRange& share, bool fetches, const Store& store,
                                        const Fetch& fetch) {
  for (int first = 0; first < kHeld; first += kUnroll) {
    if ((Index)(first + kUnroll) <= share.packets) {
#pragma unroll
      for (int p = 0; p < kUnroll; ++p) store(first + p);
    } else {
      for (int i = first; (Index)i < share.packets; ++i) store(i);
    }
    if (fetches) fetch_batch(share, first, fetch);
  }
}

// --- reduction over the CTAs of a group

// Elements of one channel that CTA `member` of a group owns.
__device__ inline R elements_of(const Args& args, int member) {
  const Index rows = (Index)args.rows, full = rows / PacketRange::kStep;
  const Index rest = rows - full * PacketRange::kStep, before = (Index)member * kDown;
  const Index last = rest > before ? min(rest - before, (Index)kDown) : 0;
  return (R)((full * kDown + last) * (kColumns ? kSpread : kVector));
}
__device__ inline void set_sums(Moments<R>& sums, R first, R second, R count) {
  sums = {count, first, second};
}
__device__ inline void set_sums(Pair<R>& sums, R first, R second, R) { sums = {first, second}; }
__device__ inline Pair<R> as_pair(const Moments<R>& sums) { return {sums.mean, sums.squares}; }
__device__ inline Pair<R> as_pair(const Pair<R>& sums) { return sums; }

// Reduces over the threads of a CTA; one thread calls emit(k, sums) for channel k of the chunk.
template <class Sums, class Emit>
__device__ inline void merge_block(Sums (&sums)[kWide], const Emit& emit) {
  const int thread = threadIdx.x, warp = thread / kLanes, lane = thread % kLanes;
  if constexpr (!kColumns) {
    sums[0] = merge_team<kThreads, kThreads>(sums[0]);
    if (thread == 0) emit(0, sums[0]);
  } else {
    merge_rows_of<kThreads, kWide % 2 == 0 ? 2 : 1>(sums, kAcross);
    if constexpr (kSpread == 1) {
      if (thread >= kAcross) return;
#pragma unroll
      for (int k = 0; k < kWide; ++k) emit(thread * kVector + k, sums[k]);
    } else {
      __shared__ Sums columns[kTaken * kSpread];
      if (thread < kAcross) {
#pragma unroll
        for (int k = 0; k < kWide; ++k) columns[thread * kVector + k] = sums[k];
      }
      __syncthreads();
      for (int k = warp; k < kTaken; k += kWarps) {
        Sums total;
        set_sums(total, 0, 0, 0);
        for (int column = lane; column < kSpread; column += kLanes)
          merge(total, columns[k * kSpread + column]);
        total = merge_warp(total);
        if (lane == 0) emit(k, total);
      }
    }
  }
}

__device__ inline uint32* counter_of(const Args& args, int group) {
  return (uint32*)args.counters + group * kLanes;
}

// Reduces over the CTAs of a group. finish(channel, sums, keeps) returns the two coefficients of a
// channel and, if `keeps`, stores the channel's results. The coefficients end up in `numbers`
// (shared memory). `turn` counts the chunks of this group; `arrivals` is the next target of the
// group barrier.
template <class Sums, class Finish>
__device__ inline void merge_group(const Args& args, Index chunk, uint32 turn, uint32& arrivals,
                                   Sums (&sums)[kWide], Pair<R> (&numbers)[kTaken],
                                   const Finish& finish) {
  const Index first = chunk * kTaken;
  if constexpr (kGroupBlocks == 1) {
    merge_block(sums, [&](int k, const Sums& total) {
      numbers[k] = finish(first + k, total, true);
    });
  } else {
    const int member = blockIdx.x % kGroupBlocks, group = blockIdx.x / kGroupBlocks;
    const int warp = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
    uint32* counter = counter_of(args, group);
    // Double-buffered by chunk: one CTA may be a chunk ahead of another that still reads.
    const int groups = gridDim.x / kGroupBlocks;
    Pair<R>* partial =
        (Pair<R>*)args.partial + (Index)((turn & 1) * groups + group) * (kTaken * kGroupBlocks);
    merge_block(sums, [&](int k, const Sums& total) {
      partial[k * kGroupBlocks + member] = as_pair(total);
    });
    grid_sync(counter, arrivals += kGroupBlocks);
    const auto total_of = [&](int k) {
      Sums total, other;
      set_sums(total, 0, 0, 0);
#pragma unroll 4
      for (int m = lane; m < kGroupBlocks; m += kLanes) {
        const Pair<R>* from = partial + k * kGroupBlocks + m;
        set_sums(other, load_fresh(&from->first), load_fresh(&from->second), elements_of(args, m));
        merge(total, other);
      }
      return merge_warp(total);
    };
    if constexpr (!kDistributedReduce) {
      for (int k = warp; k < kTaken; k += kWarps) {
        const Sums total = total_of(k);
        if (lane == 0) numbers[k] = finish(first + k, total, member == 0);
      }
    } else {
      // One CTA finishes each channel and publishes the coefficients to the group.
      Pair<R>* finished = (Pair<R>*)args.finished + (Index)group * kTaken;
      for (int k = member * kWarps + warp; k < kTaken; k += kGroupBlocks * kWarps) {
        const Sums total = total_of(k);
        if (lane == 0) finished[k] = finish(first + k, total, true);
      }
      grid_sync(counter, arrivals += kGroupBlocks);
      for (int k = threadIdx.x; k < kTaken; k += kThreads)
        numbers[k] = {load_fresh(&finished[k].first), load_fresh(&finished[k].second)};
    }
  }
  __syncthreads();
}

// Loops over the chunks of this CTA's group. The loads of the next chunk are in flight during the
// group reduction.
template <class Direction>
__device__ inline void run_group(const Args& args) {
  __shared__ Pair<R> numbers[kTaken];
  const Index groups = gridDim.x / kGroupBlocks, chunks = (Index)args.chunks;
  uint32 turn = 0, arrivals = 0;
  if constexpr (kStaggers) {
    // Staggers the groups: half of them start after the others have read their first chunk, so that
    // one half reads while the other half reduces and stores.
    const int group = blockIdx.x / kGroupBlocks, half = ((int)groups + 1) / 2;
    if (group >= half) await_blocks(counter_of(args, group - half), kGroupBlocks);
  }
  if constexpr (Direction::kIsAsync) {
    const PacketRange share(args, blockIdx.x / kGroupBlocks);
    for (int first = 0; first < kHeld; first += kUnroll)
      fetch_batch(share, first, [&](int i) { Direction::fetch(args, share, i); });
  }
  for (Index chunk = blockIdx.x / kGroupBlocks; chunk < chunks; chunk += groups, ++turn) {
    const PacketRange share(args, chunk);
    typename Direction::Sums sums[kWide];
#pragma unroll
    for (int k = 0; k < kWide; ++k) set_sums(sums[k], 0, 0, 0);
    Direction::gather(args, share, sums);
    if (kAhead > 0 && chunk + groups < chunks) {
      const PacketRange next(args, chunk + groups);
      Index at[kRank];
      for (Index i = 0; i < min(next.packets, (Index)kAhead); ++i) {
        next.locate(args, i, at);
        Direction::prefetch(args, at);
      }
    }
    const typename Direction::Parameters parameters(args, share);  // loaded before the barrier, to
                                                                   // hide the latency
    merge_group(args, chunk, turn, arrivals, sums, numbers,
                [&](Index channel, const typename Direction::Sums& total, bool keeps) {
                  return Direction::finish(args, channel, total, keeps);
                });
    const bool is_last = chunk + groups >= chunks;
    const PacketRange next(args, is_last ? chunk : chunk + groups);
    Direction::apply(args, share, parameters, numbers, next, !is_last);
  }
}

// Resets the counters of the group barrier; runs as a launch of its own before the cooperative one.
extern "C" __global__ void __launch_bounds__(kThreads)
    channel_reset_counters(const __grid_constant__ Args args) {
  const Index group = (Index)blockIdx.x * kThreads + threadIdx.x;
  if (group < (Index)args.groups_at_once) *counter_of(args, (int)group) = 0;
}
