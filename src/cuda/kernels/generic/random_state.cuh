// Random stream of an operation. Seed and offset come from one-element tensors where given, else
// from attributes.
typedef RandomStream<SeedKeys> SeedStream;
__device__ inline SeedStream stream_of(const Args& args) {
  SeedStream stream = {{(uint64)args.seed}, (uint64)args.offset};
  if (kHas_seed_tensor)
    stream.keys.seed = (uint64)integer_seed_tensor(args, Origin<kRank_seed_tensor>().at);
  if (kHas_offset_tensor)
    stream.offset = (uint64)integer_offset_tensor(args, Origin<kRank_offset_tensor>().at);
  return stream;
}
