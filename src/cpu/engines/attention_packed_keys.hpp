// Packs all keys (transposed) and all values into panels up front, tile by tile.
#pragma once

#include "base/checked.hpp"
#include "cpu/engines/attention_problem.hpp"
#include "cpu/gemm/gemm.hpp"

namespace ashlar::cpu {

template <class T>
class PackedKeys {
 public:
  PackedKeys(const AttentionShape& shape, ScratchLayout& scratch_layout)
      : shape_(shape),
        d_(padded_to_panel<T>(shape.head_dim)),
        dv_(padded_to_panel<T>(shape.value_dim)) {
    const auto add = [&](const char* name, std::int64_t heads, std::int64_t width) {
      const std::int64_t tiles = checked_mul(checked_mul(shape.batch, shape.key_tiles()), heads);
      return scratch_layout.add(name, checked_mul(checked_mul(tiles, width * kKeyTile),
                                                  static_cast<std::int64_t>(sizeof(T))));
    };
    k_ = add("packed k", shape.k_heads, shape.head_dim);
    v_ = add("packed v", shape.v_heads, dv_);
  }

  class Bound {
   public:
    Bound(const PackedKeys& owner, const KernelContext& context,
          const ScratchLayout& scratch_layout)
        : owner_(&owner),
          shape_(&owner.shape_),
          k_(context.scratch<T>(scratch_layout, owner.k_)),
          v_(context.scratch<T>(scratch_layout, owner.v_)) {}

    // [head_dim x keys] and [keys x dv], in panels.
    TilePanels<T> k_tile(std::int64_t b, std::int64_t head, std::int64_t tile) const {
      return {k_data(b, head, tile), shape_->head_dim * width(), width()};
    }
    TilePanels<T> v_tile(std::int64_t b, std::int64_t head, std::int64_t tile) const {
      return {v_data(b, head, tile), kKeyTile * width(), width()};
    }

    // `staging_of(thread)`: staging buffer for a tile of keys or values. Tiles past the sequence
    // lengths are skipped: no query attends to them.
    template <class Problem, class Staging>
    void pack(const Problem& problem, std::int64_t threads, const Staging& staging_of) const {
      const auto for_tiles = [&](std::int64_t heads, auto&& body) {
        const std::int64_t tiles = shape_->key_tiles(), count = shape_->batch * heads * tiles;
        parallel_for(count, (count + threads - 1) / threads,
                     [&](std::int64_t begin, std::int64_t end, int thread) {
                       for (std::int64_t i = begin; i < end; ++i) {
                         const std::int64_t tile = i % tiles, head = i / tiles % heads,
                                            b = i / tiles / heads,
                                            length = problem.mask.batch(b).keys;
                         if (tile * kKeyTile < length)
                           body(thread, b, head, tile,
                                std::min(kKeyTile, shape_->keys - tile * kKeyTile), length);
                       }
                     });
      };
      for_tiles(shape_->k_heads, [&](int thread, std::int64_t b, std::int64_t head,
                                     std::int64_t tile, std::int64_t rows, std::int64_t length) {
        const auto [data, row] =
            whole_tile(problem.k, b, head, tile, rows, length, shape_->head_dim, owner_->d_,
                       shape_->head_dim, staging_of(thread));
        transpose_to_panels(data, row, kKeyTile, shape_->head_dim, width(), k_data(b, head, tile));
      });
      for_tiles(shape_->v_heads, [&](int thread, std::int64_t b, std::int64_t head,
                                     std::int64_t tile, std::int64_t rows, std::int64_t length) {
        const std::int64_t panels = divide_up(shape_->value_dim, width());
        const auto [data, row] =
            whole_tile(problem.v, b, head, tile, rows, length, shape_->value_dim, owner_->dv_,
                       panels * width(), staging_of(thread));
        attention_tile_ops<T>().to_panels(data, row, kKeyTile, panels, width(),
                                          v_data(b, head, tile));
      });
    }

   private:
    // kKeyTile rows with `width` readable elements: in place, or zero-padded in `staging`.
    template <class Rows>
    std::pair<const T*, std::int64_t> whole_tile(const Rows& keys, std::int64_t b,
                                                 std::int64_t head, std::int64_t tile,
                                                 std::int64_t rows, std::int64_t length,
                                                 std::int64_t dim, std::int64_t padded,
                                                 std::int64_t width, T* staging) const {
      const std::int64_t first = tile * kKeyTile;
      if (width == dim && first + kKeyTile <= std::min(first + rows, length)) {
        const auto in_place = keys.in_place({b, head, first, 0});
        if (in_place.first != nullptr) return in_place;
      }
      load_rows<T>(keys, b, head, first, rows, length, dim, padded, staging);
      std::fill(staging + rows * padded, staging + kKeyTile * padded, T{0});
      return {staging, padded};
    }
    std::int64_t width() const { return owner_->gemm_.columns(); }
    std::int64_t position(std::int64_t b, std::int64_t heads, std::int64_t head,
                          std::int64_t tile) const {
      return (b * heads + head) * shape_->key_tiles() + tile;
    }
    T* k_data(std::int64_t b, std::int64_t head, std::int64_t tile) const {
      return k_ + position(b, shape_->k_heads, head, tile) * shape_->head_dim * kKeyTile;
    }
    T* v_data(std::int64_t b, std::int64_t head, std::int64_t tile) const {
      return v_ + position(b, shape_->v_heads, head, tile) * owner_->dv_ * kKeyTile;
    }
    const PackedKeys* owner_;
    const AttentionShape* shape_;
    T *k_, *v_;
  };

 private:
  AttentionShape shape_;
  TileGemm<T> gemm_;
  std::int64_t d_, dv_;  // head dims padded to whole panels
  int k_, v_;
};

}  // namespace ashlar::cpu
