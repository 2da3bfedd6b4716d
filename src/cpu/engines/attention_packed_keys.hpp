// All keys transposed and all values widened, tile by tile, before any query meets them.
#pragma once

#include "base/checked.hpp"
#include "cpu/engines/attention_problem.hpp"

namespace ashlar::cpu {

template <class T>
class PackedKeys {
 public:
  PackedKeys(const AttentionShape& shape, ScratchBook& book)
      : shape_(shape),
        d_(padded_to_panel<T>(shape.head_dim)),
        dv_(padded_to_panel<T>(shape.value_dim)) {
    const auto add = [&](const char* name, std::int64_t heads, std::int64_t width) {
      const std::int64_t tiles = checked_mul(checked_mul(shape.batch, shape.key_tiles()), heads);
      return book.add(name, checked_mul(checked_mul(tiles, width * kKeyTile),
                                        static_cast<std::int64_t>(sizeof(T))));
    };
    k_ = add("packed k", shape.k_heads, shape.head_dim);
    v_ = add("packed v", shape.v_heads, dv_);
  }

  class Bound {
   public:
    Bound(const PackedKeys& owner, const KernelContext& context, const ScratchBook& book)
        : owner_(&owner),
          shape_(&owner.shape_),
          k_(context.scratch<T>(book, owner.k_)),
          v_(context.scratch<T>(book, owner.v_)) {}

    // [D x keys], and [keys x dv], in panels.
    TilePanels<T> k_tile(std::int64_t b, std::int64_t head, std::int64_t tile) const {
      return {k_data(b, head, tile), shape_->head_dim * width(), width()};
    }
    TilePanels<T> v_tile(std::int64_t b, std::int64_t head, std::int64_t tile) const {
      return {v_data(b, head, tile), kKeyTile * width(), width()};
    }

    // `staging_of(thread)` is memory for a tile of keys or values on their way. Tiles past the
    // lengths are left alone: no query sees them.
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
        T* staging = staging_of(thread);
        load_rows<T>(problem.k, b, head, tile * kKeyTile, rows, length, shape_->head_dim,
                     owner_->d_, staging);
        std::fill(staging + rows * owner_->d_, staging + kKeyTile * owner_->d_, T{0});
        transpose_to_panels(staging, owner_->d_, kKeyTile, shape_->head_dim, width(),
                            k_data(b, head, tile));
      });
      for_tiles(shape_->v_heads, [&](int thread, std::int64_t b, std::int64_t head,
                                     std::int64_t tile, std::int64_t rows, std::int64_t length) {
        const std::int64_t dv = owner_->dv_;
        T* staging = staging_of(thread);
        load_rows<T>(problem.v, b, head, tile * kKeyTile, rows, length, shape_->value_dim, dv,
                     staging);
        std::fill(staging + rows * dv, staging + kKeyTile * dv, T{0});
        copy_to_panels(staging, kKeyTile, dv, width(), v_data(b, head, tile));
      });
    }

   private:
    std::int64_t width() const { return owner_->product_.columns(); }
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
  TileMultiplier<T> product_;
  std::int64_t d_, dv_;  // head dims padded to panels
  int k_, v_;
};

}  // namespace ashlar::cpu
