// Operand tiles computed by threads with a pointwise program. Requires sm90/prologue_pieces.cuh and
// the generated header, which defines for operand A (and likewise B)
//   operand_a<kCount>(args, at, values)  the program, over (batch, row, k), or, with
//                                       kAlongRowsA, over (batch, k, row)
//   kVectorA                            vector length: contiguous elements per call
//   MathA                               element type of the wgmma operand
// and args.depth (K). Stages get the layout that TMA would write: 128-byte lines with swizzled
// 16-byte pieces, zeros from k = `end` on.

// kCount elements along the last axis of the program, whose extent is a multiple of kVector; zeros
// from `end` on and on lines from `line_end` on. Loads are unconditional, so that many are in
// flight: out-of-bounds ones are clamped.
template <class Operand, int kCount, int kVector>
__device__ inline void load_along(const Args& args, int batch, int line, int line_end, int at,
                                  int end, int extent, R (&values)[kCount]) {
#pragma unroll
  for (int first = 0; first < kCount; first += kVector) {
    R some[kVector];
    const Index where[3] = {(Index)batch, (Index)max(min(line, line_end - 1), 0),
                            (Index)min(at + first, extent - kVector)};
    Operand::load(args, where, some);
    const int left = line < line_end ? end - at - first : 0;
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      values[first + i] = (kHasKLengths ? i : 0) < left ? some[i] : (R)0;
  }
}

// K-major: kRows lines from `row` on, 128 bytes of K each. By 128 threads.
template <class Operand, int kRows, class Ready>
__device__ inline void compute_lines(const Args& args, uint8* to, int batch, int row, int row_end,
                                     int depth, int end, Ready ready) {
  const int thread = threadIdx.x % 128, piece = thread % 8, line = thread / 8;
  const int at = depth + piece * kPieceElements;
  fill_pieces<kRows / 16>(
      [&](int i) {
        R values[kPieceElements];
        const int kStep = Operand::kVector < kPieceElements ? Operand::kVector : kPieceElements;
        load_along<Operand, kPieceElements, kStep>(args, batch, row + line + 16 * i, row_end, at,
                                                  end, (int)args.depth, values);
        return narrow_piece<typename Operand::Math>(values);
      },
      [&](int i, uint4 words) { *piece_at(to, line + 16 * i, piece) = words; }, ready);
}

// M- or N-major: boxes of 128 bytes of rows, one line per k.
template <class Operand, int kRows, class Ready>
__device__ inline void compute_boxes(const Args& args, uint8* to, int batch, int row, int row_end,
                                     int depth, int end, Ready ready) {
  const int thread = threadIdx.x % 128, piece = thread % 8, line = thread / 8;
  const int kSteps = kBlockK / 16, kBox = 128 / kElementBytes;
  fill_pieces<kRows / kBox * kSteps>(
      [&](int i) {
        R values[kPieceElements];
        const int d = depth + line + 16 * (i % kSteps);
        const int at = row + i / kSteps * kBox + piece * kPieceElements;
        const int kStep = Operand::kVector < kPieceElements ? Operand::kVector : kPieceElements;
        load_along<Operand, kPieceElements, kStep>(args, batch, d, end, at, row_end, row_end,
                                                  values);
        return narrow_piece<typename Operand::Math>(values);
      },
      [&](int i, uint4 words) {
        *piece_at(to + i / kSteps * kBlockK * 128, line + 16 * (i % kSteps), piece) = words;
      },
      ready);
}

// K-major lines from memory that is contiguous along rows: a thread transposes kTransposed rows of
// a piece at a time. Eight lanes store four pieces of two rows that are 4 apart: no bank conflicts.
template <class Operand, int kRows, class Ready>
__device__ inline void compute_transposed(const Args& args, uint8* to, int batch, int row,
                                          int row_end, int depth, int end, Ready ready) {
  const int kTransposed = Operand::kVector < 4 ? Operand::kVector : 4;
  const int thread = threadIdx.x % 128, piece = thread % 4 + thread / 8 % 2 * 4;
  const int line = (thread / 16 * 2 + thread / 4 % 2) * kTransposed, kLines = 16 * kTransposed;
  ready();
#pragma unroll 1
  for (int first = line; first < kRows; first += kLines) {
    R values[kPieceElements][kTransposed];
#pragma unroll
    for (int k = 0; k < kPieceElements; ++k) {
      const int d = depth + piece * kPieceElements + k;
      load_along<Operand, kTransposed, kTransposed>(args, batch, d, end, row + first, row_end,
                                                    row_end, values[k]);
    }
#pragma unroll
    for (int r = 0; r < kTransposed; ++r) {
      R line_of[kPieceElements];
#pragma unroll
      for (int k = 0; k < kPieceElements; ++k) line_of[k] = values[k][r];
      *piece_at(to, first + r, piece) = narrow_piece<typename Operand::Math>(line_of);
    }
  }
}

template <class Operand, bool kTranspose, int kRows, class Ready>
__device__ inline void compute_tile(const Args& args, uint8* to, int batch, int row, int row_end,
                                    int depth, int end, Ready ready) {
  if constexpr (kTranspose)
    compute_boxes<Operand, kRows>(args, to, batch, row, row_end, depth, end, ready);
  else if constexpr (Operand::kAlongRows)
    compute_transposed<Operand, kRows>(args, to, batch, row, row_end, depth, end, ready);
  else
    compute_lines<Operand, kRows>(args, to, batch, row, row_end, depth, end, ready);
}

struct OperandA {
  typedef MathA Math;
  static const int kVector = kVectorA;
  static const bool kAlongRows = kAlongRowsA;
  template <int kCount>
  static __device__ void load(const Args& args, const Index (&at)[3], R (&values)[kCount]) {
    operand_a<kCount>(args, at, values);
  }
};
struct OperandB {
  typedef MathB Math;
  static const int kVector = kVectorB;
  static const bool kAlongRows = kAlongRowsB;
  template <int kCount>
  static __device__ void load(const Args& args, const Index (&at)[3], R (&values)[kCount]) {
    operand_b<kCount>(args, at, values);
  }
};
