// Position of a block's scale: its own index, or the 128 x 4 tiled layout of block-scaled formats,
// in which (r, c) is at 16 (r % 32) + 4 (r / 32) + c of its tile.
template <int kRank>
__device__ inline void scale_position(const int64* scale_dims, Index (&block)[kRank]) {
  if constexpr (kTiled) {
    const Index r = block[kRowAxis], c = block[kColumnAxis];
    const Index tile = r / 128 * (scale_dims[kColumnAxis] / 4) + c / 4;
    const Index position = tile * 512 + 16 * (r % 32) + 4 * (r % 128 / 32) + c % 4;
    block[kRank - 2] = position / scale_dims[kRank - 1];
    block[kRank - 1] = position % scale_dims[kRank - 1];
  }
}
