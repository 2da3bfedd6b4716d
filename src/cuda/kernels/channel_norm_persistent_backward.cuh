// Persistent batch norm, backward (formulas: channel_norm_backward.cuh): reduces dy and dy * x_hat,
// then computes dx.

template <bool kAligned> struct Backward {
  typedef Pair<R> Sums;
  static const int kChunk = kAligned ? kUnroll : 1;
  static const bool kIsAsync = kAsync && kAligned;
  static const int kDyBase = kHeld * kThreads * kVector * (int)sizeof(PersistentX::Word);

  struct Parameters {
    R mean[kWide], inv_variance[kWide], scale[kWide];
    __device__ Parameters(const Args& args, const PacketRange& share) {
#pragma unroll
      for (int k = 0; k < kWide; ++k) {
        given_statistics(args, 0, share.channel(k), mean[k], inv_variance[k]);
        scale[k] = scale_of(args, 0, share.channel(k));
      }
    }
  };

  __device__ static void load_x(const Args& args, const Index (&at)[kRank], R (&x)[kVector]) {
    on_packet<kAligned>(at, x, [&](auto count, const Index (&place)[kRank], auto& to) {
      x_of<decltype(count)::value>(args, place, to);
    });
  }
  __device__ static void prefetch(const Args& args, const Index (&at)[kRank]) {
    R nothing[kVector];
    x_ahead<kVector>(args, at, nothing);
    dy_ahead<kVector>(args, at, nothing);
  }

  __device__ static void fetch(const Args& args, const PacketRange& share, int i) {
    Index at[kRank];
    share.locate(args, i, at);
    cp_async<16>(persistent_piece<PersistentX>(0, i, 0), x_address(args, at));
    cp_async<16>(persistent_piece<PersistentDy>(kDyBase, i, 0), dy_address(args, at));
  }

  __device__ static void gather(const Args& args, const PacketRange& share, Sums (&sums)[kWide]) {
    if (share.packets == 0) return;
    R mean[kWide], inv_variance[kWide];
#pragma unroll
    for (int k = 0; k < kWide; ++k)
      given_statistics(args, 0, share.channel(k), mean[k], inv_variance[k]);
    in_filled_chunks<kChunk>(share.packets, [&](auto chunk, Index i, int valid) {
      constexpr int kPackets = decltype(chunk)::value;
      R x[kPackets][kVector], dy[kPackets][kVector];
      if constexpr (kIsAsync) cp_async_wait_group<kBatches - 1>();
#pragma unroll
      for (int p = 0; p < kPackets; ++p) {
        const Index packet = i + min(p, valid - 1);
        if constexpr (kIsAsync) {
          load_packet(PersistentX(), 0, (int)packet, x[p]);
          load_packet(PersistentDy(), kDyBase, (int)packet, dy[p]);
        } else {
          Index at[kRank];
          share.locate(args, packet, at);
          load_x(args, at, x[p]);
          // dy_of also stores dy where dy is an output of the region.
          on_packet<kAligned>(at, dy[p], [&](auto count, const Index (&place)[kRank], auto& to) {
            dy_of<decltype(count)::value>(args, place, to);
          });
        }
      }
#pragma unroll
      for (int k = 0; k < kWide; ++k) {
        Sums chunk_sums = {0, 0};
#pragma unroll
        for (int p = 0; p < kPackets; ++p)
#pragma unroll
          for (int v = k; v < k + kPerSum; ++v) {
            chunk_sums.first += p < valid ? dy[p][v] : (R)0;
            chunk_sums.second += p < valid ? dy[p][v] * (x[p][v] - mean[k]) : (R)0;
          }
        merge(sums[k], chunk_sums);
      }
      if constexpr (kIsAsync) {
        cp_async_commit_group();
        return;
      }
#pragma unroll
      for (int p = 0; p < kPackets; ++p)
        if (p < valid && i + p < kHeld) {
          save_packet(PersistentX(), 0, (int)(i + p), x[p]);
          save_packet(PersistentDy(), kDyBase, (int)(i + p), dy[p]);
        }
    });
#pragma unroll
    for (int k = 0; k < kWide; ++k) sums[k].second *= inv_variance[k];
  }

  __device__ static Pair<R> finish(const Args& args, Index channel, const Sums& total, bool keeps) {
    if (keeps) store_parameter_gradients(args, channel, total.first, total.second);
    const R share = scale_of(args, 0, channel) / (R)args.pixels;
    return {total.first * share, total.second * share};
  }

  // dx as an affine function of dy and x with four coefficients per channel.
  __device__ static void apply(const Args& args, const PacketRange& share,
                               const Parameters& parameters, const Pair<R> (&numbers)[kTaken],
                               const PacketRange& next, bool has_next) {
    R of_dy[kWide], of_x[kWide], constant[kWide];
#pragma unroll
    for (int k = 0; k < kWide; ++k) {
      const Pair<R> means = numbers[share.channel(k) % kTaken];  // means of g and g * x_hat
      const R inv_variance = parameters.inv_variance[k];
      of_dy[k] = inv_variance * parameters.scale[k];
      of_x[k] = -inv_variance * inv_variance * means.second;
      constant[k] = -inv_variance * means.first;
    }
    const R(&mean)[kWide] = parameters.mean;
    const auto store = [&](Index i, R (&x)[kVector], const R (&dy)[kVector]) {
      Index at[kRank];
      share.locate(args, i, at);
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        const int k = v / kPerSum;
        x[v] = of_dy[k] * dy[v] + (of_x[k] * (x[v] - mean[k]) + constant[k]);
      }
      on_packet<kAligned>(at, x, [&](auto count, const Index (&place)[kRank], auto& dx) {
        epilogue<decltype(count)::value>(args, place, dx);
      });
    };
    const auto store_persistent = [&](int i) {
      R x[kVector], dy[kVector];
      load_packet(PersistentX(), 0, i, x);
      load_packet(PersistentDy(), kDyBase, i, dy);
      store((Index)i, x, dy);
    };
    if constexpr (kIsAsync) {
      exchange_batches(share, has_next, store_persistent, [&](int i) { fetch(args, next, i); });
      return;
    }
    const Index persistent_packets = min(share.packets, (Index)kHeld);
    if constexpr (!kAllPersistent)
      in_chunks<kChunk>(share.packets - persistent_packets, [&](auto chunk, Index i) {
        constexpr int kPackets = decltype(chunk)::value;
        R x[kPackets][kVector], dy[kPackets][kVector];
#pragma unroll
        for (int p = 0; p < kPackets; ++p) {
          Index at[kRank];
          share.locate(args, share.packets - 1 - i - p, at);
          load_x(args, at, x[p]);
          on_packet<kAligned>(at, dy[p], [&](auto count, const Index (&place)[kRank], auto& to) {
            read_dy<decltype(count)::value>(args, place, to);
          });
        }
#pragma unroll
        for (int p = 0; p < kPackets; ++p) store(share.packets - 1 - i - p, x[p], dy[p]);
      });
    in_chunks<kChunk>(persistent_packets, [&](auto chunk, Index i) {
      constexpr int kPackets = decltype(chunk)::value;
#pragma unroll
      for (int p = 0; p < kPackets; ++p) store_persistent((int)(i + p));
    });
  }
};

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    channel_gradient_persistent(const __grid_constant__ Args args) {
  run_group<Backward<true>>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    channel_gradient_persistent_elements(const __grid_constant__ Args args) {
  run_group<Backward<false>>(args);
}
