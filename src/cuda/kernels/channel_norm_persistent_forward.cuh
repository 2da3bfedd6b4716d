// Persistent batch norm, forward: y = (x - mean) * (inv_variance * scale) + bias.

template <bool kAligned> struct Forward {
  typedef Moments<R> Sums;
  static const int kChunk = kAligned ? kUnroll : 1;
  static const bool kIsAsync = kAsync && kAligned;
  struct Parameters {
    R scale[kWide], bias[kWide];
    __device__ Parameters(const Args& args, const PacketRange& share) {
#pragma unroll
      for (int k = 0; k < kWide; ++k) {
        scale[k] = scale_of(args, 0, share.channel(k));
        bias[k] = bias_of(args, 0, share.channel(k));
      }
    }
  };

  __device__ static void load(const Args& args, const Index (&at)[kRank], R (&x)[kVector]) {
    on_packet<kAligned>(at, x, [&](auto count, const Index (&place)[kRank], auto& to) {
      x_of<decltype(count)::value>(args, place, to);
    });
  }
  __device__ static void prefetch(const Args& args, const Index (&at)[kRank]) {
    R nothing[kVector];
    x_ahead<kVector>(args, at, nothing);
  }

  __device__ static void fetch(const Args& args, const PacketRange& share, int i) {
    Index at[kRank];
    share.locate(args, i, at);
    cp_async<16>(persistent_piece<PersistentX>(0, i, 0), x_address(args, at));
  }

  __device__ static void gather(const Args& args, const PacketRange& share, Sums (&sums)[kWide]) {
    in_filled_chunks<kChunk>(share.packets, [&](auto chunk, Index i, int valid) {
      constexpr int kPackets = decltype(chunk)::value;
      R x[kPackets][kVector];
      if constexpr (kIsAsync) cp_async_wait_group<kBatches - 1>();
#pragma unroll
      for (int p = 0; p < kPackets; ++p) {
        const Index packet = i + min(p, valid - 1);
        if constexpr (kIsAsync) {
          load_packet(PersistentX(), 0, (int)packet, x[p]);
        } else {
          Index at[kRank];
          share.locate(args, packet, at);
          load(args, at, x[p]);
        }
      }
      add_packets(x, sums, valid);
      if constexpr (kIsAsync) {
        cp_async_commit_group();
        return;
      }
#pragma unroll
      for (int p = 0; p < kPackets; ++p)
        if (p < valid && i + p < kHeld) save_packet(PersistentX(), 0, (int)(i + p), x[p]);
    });
  }

  __device__ static Pair<R> finish(const Args& args, Index channel, const Sums& total, bool keeps) {
    const R count = (R)args.pixels, variance = total.squares / count;
    const R inv_variance = (R)1 / sqrt(variance + epsilon_of(args, 0, 0));
    if (keeps) store_statistics(args, 0, channel, total.mean, variance, inv_variance, count);
    return {total.mean, inv_variance};
  }

  __device__ static void apply(const Args& args, const PacketRange& share,
                               const Parameters& parameters, const Pair<R> (&numbers)[kTaken],
                               const PacketRange& next, bool has_next) {
    R mean[kWide], factor[kWide];
#pragma unroll
    for (int k = 0; k < kWide; ++k) {
      const Pair<R> statistics = numbers[share.channel(k) % kTaken];
      mean[k] = statistics.first;
      factor[k] = statistics.second * parameters.scale[k];
    }
    const R(&bias)[kWide] = parameters.bias;
    const auto store = [&](Index i, R (&x)[kVector]) {
      Index at[kRank];
      share.locate(args, i, at);
#pragma unroll
      for (int v = 0; v < kVector; ++v)
        x[v] = (x[v] - mean[v / kPerSum]) * factor[v / kPerSum] + bias[v / kPerSum];
      on_packet<kAligned>(at, x, [&](auto count, const Index (&place)[kRank], auto& y) {
        epilogue<decltype(count)::value>(args, place, y);
      });
    };
    const auto store_persistent = [&](int i) {
      R x[kVector];
      load_packet(PersistentX(), 0, i, x);
      store((Index)i, x);
    };
    if constexpr (kIsAsync) {
      exchange_batches(share, has_next, store_persistent, [&](int i) { fetch(args, next, i); });
      return;
    }
    const Index persistent_packets = min(share.packets, (Index)kHeld);
    if constexpr (!kAllPersistent)
      in_chunks<kChunk>(share.packets - persistent_packets, [&](auto chunk, Index i) {
        constexpr int kPackets = decltype(chunk)::value;
        R x[kPackets][kVector];
#pragma unroll
        for (int p = 0; p < kPackets; ++p) {
          Index at[kRank];
          share.locate(args, share.packets - 1 - i - p, at);
          load(args, at, x[p]);
        }
#pragma unroll
        for (int p = 0; p < kPackets; ++p) store(share.packets - 1 - i - p, x[p]);
      });
    in_chunks<kChunk>(persistent_packets, [&](auto chunk, Index i) {
      constexpr int kPackets = decltype(chunk)::value;
#pragma unroll
      for (int p = 0; p < kPackets; ++p) store_persistent((int)(i + p));
    });
  }
};

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    channel_normalise_persistent(const __grid_constant__ Args args) {
  run_group<Forward<true>>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    channel_normalise_persistent_elements(const __grid_constant__ Args args) {
  run_group<Forward<false>>(args);
}
