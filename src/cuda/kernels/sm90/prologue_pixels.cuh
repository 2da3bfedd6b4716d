// Prologue of a convolution: producer warps compute the pixels with a pointwise program over the
// image. Pixels outside of the image are zero, whatever the program yields for zero. Requires
// sm90/load_im2col.cuh, sm90/prologue_pieces.cuh and the generated header, which defines
//   of_pixels::hold<kCount>(args, at, held)  loads the program's operands
//   of_pixels::values<kCount>(args, at, held, values)  the program, over (image, spatial...,
//                                           channel), or, with kPixelRows, over (pixel, channel)
//   kProgramRank                            rank of that space
//   kVectorPixels                           vector length: contiguous channels per call
//   PixelMath                               element type of the wgmma operand
// and args.images, .image_d, .image_h, .image_w, .channels (of all groups).

static const int kLineBytes = kBlockK * kElementBytes;
static const int kLinePieces = kLineBytes / 16;

// Clamped input coordinate of a tap along an axis; clears `inside` where it is outside of the
// image.
__device__ inline Index seen_at(int at, int64 extent, bool& inside) {
  inside = inside && at >= 0 && at < (int)extent;
  return (Index)max(min(at, (int)extent - 1), 0);
}

// kPieceElements channels from `channel` on of the input pixel under a tap. The loads of several
// pieces are issued before any is used, and unconditionally: out-of-bounds ones are clamped.
struct PixelPiece {
  static const int kStep = kVectorPixels < kPieceElements ? kVectorPixels : kPieceElements;
  Index at[kProgramRank];
  bool inside;
  of_pixels::Held<kStep> held[kPieceElements / kStep];

  __device__ void load(const Args& args, int phase, int number, int64 tap, int channel) {
    inside = true;
    if constexpr (kPixelRows) {
      at[0] = seen_at(number, phase_word(args, phase, kPixels), inside);
    } else {
      const Pixel pixel = pixel_of(args, phase, number);
      const auto see = [&](int of_axis, int64 step, int lower, int shift, int64 extent) {
        return seen_at(of_axis * (int)step + (int)phase_word(args, phase, lower) +
                           (int)(tap >> shift & 0xffff),
                       extent, inside);
      };
      at[0] = seen_at(pixel.image, args.images, inside);
      at[kProgramRank - 2] = see(pixel.w, args.step_w, kLowerW, 16, args.image_w);
      if constexpr (kProgramRank > 3)
        at[kProgramRank - 3] = see(pixel.h, args.step_h, kLowerH, 32, args.image_h);
      if constexpr (kProgramRank > 4) at[1] = see(pixel.d, args.step_d, kLowerD, 48, args.image_d);
    }
#pragma unroll
    for (int i = 0; i < kPieceElements / kStep; ++i) {
      place(args, channel + i * kStep);
      of_pixels::hold<kStep>(args, at, held[i]);
    }
  }

  // Channels from `end` on are zero.
  __device__ uint4 make(const Args& args, int channel, int end) {
    R values[kPieceElements];
#pragma unroll
    for (int first = 0; first < kPieceElements; first += kStep) {
      R some[kStep];
      place(args, channel + first);
      of_pixels::values<kStep>(args, at, held[first / kStep], some);
      const bool is_there = inside && channel + first < end;
#pragma unroll
      for (int i = 0; i < kStep; ++i) values[first + i] = is_there ? some[i] : (R)0;
    }
    return narrow_piece<PixelMath>(values);
  }

 private:
  __device__ void place(const Args& args, int channel) {
    at[kProgramRank - 1] = (Index)min(channel, (int)args.channels - kStep);
  }
};

// Computes the pixels of one tap, in place of load_pixel_tile. By a producer warpgroup.
template <class A>
struct ProducerPrologue {
  __device__ ProducerPrologue(const A&, uint8*, int) {}

  template <class Ready>
  __device__ void stage(const A& args, const WorkTile& work, int block, uint8* a, uint8* b,
                        Ready ready) {
    const int kLines = 128 / kLinePieces, kRows = kSwap ? kTileN : kTileM;
    const int thread = threadIdx.x % 128, piece = thread % kLinePieces, line = thread / kLinePieces;
    const int64 taps = phase_word(args, work.phase, kTaps);
    const int above = divide(block, phase_word(args, work.phase, kMagicTaps), taps);
    const int64 tap =
        args.taps[phase_word(args, work.phase, kFirstTap) + block - above * (int)taps];
    const int first = kSwap ? work.n : work.m, begin = work.group * (int)args.depth;
    const int channel = begin + above * kBlockK + piece * kPieceElements;
    uint8* to = kSwap ? b : a;
    fill_pieces<kRows / kLines, PixelPiece>(
        [&](int i, PixelPiece& loaded) {
          loaded.load(args, work.phase, first + line + kLines * i, tap, channel);
        },
        [&](PixelPiece& loaded) { return loaded.make(args, channel, begin + (int)args.depth); },
        [&](int i, uint4 words) { *piece_at<kLineBytes>(to, line + kLines * i, piece) = words; },
        ready);
  }
};

// Computes one block of channels of the halo window, once for all taps, in place of load_window.
template <class Ready>
__device__ inline void compute_window(const Args& args, const WorkTile& work, int number, uint8* to,
                                      Ready ready) {
  const Window window = window_of(args, work, number);
  const int kProducerThreads = kComputingWarps * 32, kPieces = kWindowRows * kLinePieces;
  const int kChunk = 4, thread = threadIdx.x % 128, begin = work.group * (int)args.depth;
#pragma unroll 1
  for (int first = thread; first < kPieces; first += kChunk * kProducerThreads) {
    const auto piece_of = [&](int i) { return min(first + i * kProducerThreads, kPieces - 1); };
    const auto channel_of = [&](int i) {
      return begin + window.block * kBlockK + piece_of(i) % kLinePieces * kPieceElements;
    };
    PixelPiece loaded[kChunk];
#pragma unroll
    for (int i = 0; i < kChunk; ++i)
      loaded[i].load(args, work.phase, work.m + piece_of(i) / kLinePieces, window.tap,
                     channel_of(i));
    uint4 pieces[kChunk];
#pragma unroll
    for (int i = 0; i < kChunk; ++i)
      pieces[i] = loaded[i].make(args, channel_of(i), begin + (int)args.depth);
    if (first == thread) ready();
#pragma unroll
    for (int i = 0; i < kChunk; ++i) {
      const int piece = first + i * kProducerThreads;
      if (piece < kPieces)
        *piece_at<kLineBytes>(to, piece / kLinePieces, piece % kLinePieces) = pieces[i];
    }
  }
}
