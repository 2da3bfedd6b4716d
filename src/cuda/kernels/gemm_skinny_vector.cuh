// The products of a step one by one, in f32: for operands that matrix units would round.

static const bool kReorders = false;
static const int kOwnRows = kAlong ? kPackets : kElements;

__device__ inline uint4 in_order_of_weights(uint4 unit) { return unit; }
__device__ inline uint4 unit_of(const R (&numbers)[kUnit]) {
  return make_uint4(__float_as_uint(numbers[0]), __float_as_uint(numbers[1]),
                    __float_as_uint(numbers[2]), __float_as_uint(numbers[3]));
}

struct Products {
  // Of the lane's own depths alone. Its row i is row 8 i + g of the warp, or kElements g + i.
  float sums[kOwnRows][kFew];

  __device__ Products() {
#pragma unroll
    for (int i = 0; i < kOwnRows; ++i) fill(0.f, sums[i]);
  }

  // x(u, m): unit u of the lane's depths of row m.
  template <bool kAligned, class X>
  __device__ void add(const Args& args, const Place& place, const Words (&packets)[kPackets],
                      const X& x, const Scales&) {
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      // Of the unit's depths, whichever way packets lie: numbers[row][depth].
      R numbers[kOwnRows][kUnit];
      if constexpr (kAlong) {
#pragma unroll
        for (int p = 0; p < kPackets; ++p)
          numbers_of<kAligned>(args, place, packets[p], p, u * kUnit, numbers[p]);
      } else {
#pragma unroll
        for (int p = 0; p < kPackets; ++p) {
          R across[kElements];
          numbers_of<kAligned>(args, place, packets[p], p, 0, across);
#pragma unroll
          for (int i = 0; i < kElements; ++i) numbers[i][p] = across[i];
        }
      }
#pragma unroll
      for (int m = 0; m < kFew; ++m) {
        const uint4 unit = x(u, m);
#pragma unroll
        for (int i = 0; i < kOwnRows; ++i) {
          sums[i][m] = fmaf(numbers[i][0], __uint_as_float(unit.x), sums[i][m]);
          sums[i][m] = fmaf(numbers[i][1], __uint_as_float(unit.y), sums[i][m]);
          sums[i][m] = fmaf(numbers[i][2], __uint_as_float(unit.z), sums[i][m]);
          sums[i][m] = fmaf(numbers[i][3], __uint_as_float(unit.w), sums[i][m]);
        }
      }
    }
  }

  __device__ void finish() {}
  // Visits each sum: use(row of the warp, row of x, sum).
  template <class Use>
  __device__ void visit(const Use& use) const {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < kOwnRows; ++i)
#pragma unroll
      for (int m = 0; m < kFew; ++m) {
        float sum = sums[i][m];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        if ((i * kFew + m) % 4 == t) use(kAlong ? 8 * i + g : kElements * g + i, m, sum);
      }
  }
};
