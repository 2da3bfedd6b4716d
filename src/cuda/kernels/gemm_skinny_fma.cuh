// Skinny GEMM: a step by f32 FMA, for operands that tensor cores would round.

static const bool kReorders = false;
static const int kOwnRows = kKMajor ? kPackets : kElements;

__device__ inline uint4 permute_like_weights(uint4 unit) { return unit; }
__device__ inline uint4 pack_unit(const R (&elements)[kUnit]) {
  return make_uint4(__float_as_uint(elements[0]), __float_as_uint(elements[1]),
                    __float_as_uint(elements[2]), __float_as_uint(elements[3]));
}

struct Accumulators {
  // Over the lane's own part of K. Its row i is row 8 i + g of the warp (K-major), or
  // kElements g + i (N-major).
  float acc[kOwnRows][kM];

  __device__ Accumulators() {
#pragma unroll
    for (int i = 0; i < kOwnRows; ++i) fill(0.f, acc[i]);
  }

  // x(u, m): unit u of the lane's part of K of row m.
  template <bool kAligned, class X>
  __device__ void add(const Args& args, const Coord& coord, const Words (&packets)[kPackets],
                      const X& x, const Scales&) {
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      // elements[row][k] of the unit, for K-major and N-major packets alike.
      R elements[kOwnRows][kUnit];
      if constexpr (kKMajor) {
#pragma unroll
        for (int p = 0; p < kPackets; ++p)
          elements_of<kAligned>(args, coord, packets[p], p, u * kUnit, elements[p]);
      } else {
#pragma unroll
        for (int p = 0; p < kPackets; ++p) {
          R across[kElements];
          elements_of<kAligned>(args, coord, packets[p], p, 0, across);
#pragma unroll
          for (int i = 0; i < kElements; ++i) elements[i][p] = across[i];
        }
      }
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        const uint4 unit = x(u, m);
#pragma unroll
        for (int i = 0; i < kOwnRows; ++i) {
          acc[i][m] = fmaf(elements[i][0], __uint_as_float(unit.x), acc[i][m]);
          acc[i][m] = fmaf(elements[i][1], __uint_as_float(unit.y), acc[i][m]);
          acc[i][m] = fmaf(elements[i][2], __uint_as_float(unit.z), acc[i][m]);
          acc[i][m] = fmaf(elements[i][3], __uint_as_float(unit.w), acc[i][m]);
        }
      }
    }
  }

  __device__ void finish() {}
  // Reduces over the four lanes of a row and calls use(row of the warp, row of x, sum) once each.
  template <class Use>
  __device__ void visit(const Use& use) const {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < kOwnRows; ++i)
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        float sum = acc[i][m];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        if ((i * kM + m) % 4 == t) use(kKMajor ? 8 * i + g : kElements * g + i, m, sum);
      }
  }
};
