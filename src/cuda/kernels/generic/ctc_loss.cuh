// Connectionist temporal classification in log space: one CTA per sequence.
//
// Labels alternate with blanks: state s of 2 L + 1 is the blank for even s, label (s - 1) / 2 for
// odd s. With e[t, s] the log probability of state s at time t:
//   before[t, s] = log sum over the predecessors s' of s of exp(before + e)[t - 1, s']
//   after[t, s]  = log sum over the successors s' of s of exp(after + e)[t + 1, s']
// The successors of s are s, s + 1 and, between different labels, s + 2. The loss is -log p with
//   log p = log(exp(before + e)[T - 1, S - 1] + exp(before + e)[T - 1, S - 2])
// and exp(before + e + after - log p) is the probability of passing through s at time t.
#include "lib/reduce.cuh"

static const bool kFlat = kRank_labels == 1;  // the labels of all sequences are concatenated

// log(exp(a) + exp(b) + exp(c)); -inf is an absent term.
__device__ __noinline__ R log_sum(R a, R b, R c) {
  const R largest = Max::apply(Max::apply(a, b), c);
  if (largest == -(R)infinity()) return largest;
  return largest + log(exp(a - largest) + exp(b - largest) + exp(c - largest));
}
__device__ inline int64 within(int64 length, int64 most) {
  return length < 0 ? 0 : length > most ? most : length;
}

struct Sequence {
  const Args& args;
  int64 n, first_label, labels, times, states;
  R *largest, *sums;   // of x[t, n]: its softmax
  R *before, *after;   // [t, s]

  __device__ Sequence(const Args& all, int64 number) : args(all), n(number), first_label(0) {
    const int64 room = args.labels_dims[kFlat ? 0 : 1];
    if (kFlat)
      for (int64 other = 0; other < n; ++other)
        first_label += within(integer_label_lengths(args, {other}), room - first_label);
    labels = within(integer_label_lengths(args, {n}), room - first_label);
    times = within(integer_input_lengths(args, {n}), args.x_dims[0]);
    states = 2 * labels + 1;
    const int64 all_times = args.x_dims[0];
    largest = (R*)args.softmax + 2 * all_times * n;
    sums = largest + all_times;
    const int64 states_before = kFlat ? 2 * first_label + n : (2 * room + 1) * n;
    before = (R*)args.paths + 2 * all_times * states_before;
    after = before + times * states;
  }

  __device__ R load(int64 t, int64 c) const { return in_x(args, {t, n, c}); }
  __device__ int64 label(int64 i) const {
    Index at[kRank_labels];
    at[0] = n;
    at[kRank_labels - 1] = kFlat ? first_label + i : i;
    return integer_labels(args, at);
  }
  __device__ bool has_labels_outside() const {
    for (int64 i = 0; i < labels; ++i)
      if (label(i) < 0 || label(i) >= args.x_dims[2]) return true;
    return false;
  }
  __device__ __noinline__ int64 state_class(int64 s) const {
    return s % 2 == 0 ? args.blank : label((s - 1) / 2);
  }
  __device__ bool may_skip_to(int64 s) const {
    return s % 2 == 1 && s >= 3 && state_class(s) != state_class(s - 2);
  }

  // One warp per time step: maximum and sum of exponentials of the logits.
  __device__ void find_sums() const {
    const int warps = kThreads / kLanes, lane = threadIdx.x % kLanes;
    for (int64 t = threadIdx.x / kLanes; t < times; t += warps) {
      R top = -(R)infinity(), sum = 0;
      for (int64 c = lane; c < args.x_dims[2]; c += kLanes) top = Max::apply(top, load(t, c));
      top = warp_reduce<Max>(top);
      for (int64 c = lane; c < args.x_dims[2]; c += kLanes) sum += exp(load(t, c) - top);
      sum = warp_reduce<Sum>(sum);
      if (lane != 0) continue;
      largest[t] = top;
      sums[t] = sum;
    }
  }
  // e[t, s]
  __device__ __noinline__ R emission(int64 t, int64 s) const {
    const R x = load(t, state_class(s));
    return kLogits ? x - largest[t] - log(sums[t]) : log(x);
  }
  // (paths + e)[t, s]; -inf where the state does not exist.
  __device__ R with_emission(const R* paths, int64 t, int64 s, bool allowed = true) const {
    if (!allowed || s < 0 || s >= states) return -(R)infinity();
    return paths[t * states + s] + emission(t, s);
  }
  // One thread per state, sequential over time steps.
  __device__ void find_before() const {
    for (int64 t = 0; t < times; ++t) {
      for (int64 s = threadIdx.x; s < states; s += kThreads)
        before[t * states + s] = t == 0 ? (s <= 1 ? (R)0 : -(R)infinity())
                                        : log_sum(with_emission(before, t - 1, s),
                                                  with_emission(before, t - 1, s - 1),
                                                  with_emission(before, t - 1, s - 2,
                                                                may_skip_to(s)));
      __syncthreads();
    }
  }
  __device__ void find_after() const {
    for (int64 t = times - 1; t >= 0; --t) {
      for (int64 s = threadIdx.x; s < states; s += kThreads)
        after[t * states + s] =
            t == times - 1 ? (s >= states - 2 ? (R)0 : -(R)infinity())
                           : log_sum(with_emission(after, t + 1, s),
                                     with_emission(after, t + 1, s + 1),
                                     with_emission(after, t + 1, s + 2,
                                                   s + 2 < states && may_skip_to(s + 2)));
      __syncthreads();
    }
  }
  __device__ R log_probability() const {
    if (times == 0) return labels == 0 ? (R)0 : -(R)infinity();  // nothing to align
    return log_sum(with_emission(before, times - 1, states - 1),
                   with_emission(before, times - 1, states - 2), -(R)infinity());
  }

  // Gradient of the loss with respect to x[t, n, c].
  __device__ R gradient(int64 t, int64 c, R log_p) const {
    R passing = 0;
    for (int64 s = c == args.blank ? 0 : 1; s < states; s += c == args.blank ? 1 : 2) {
      if (state_class(s) != c) continue;
      const R paths = before[t * states + s] + after[t * states + s];
      passing += exp((kLogits ? paths + emission(t, s) : paths) - log_p);
    }
    return (kLogits ? exp(load(t, c) - largest[t]) / sums[t] : (R)0) - passing;
  }
};

__device__ inline void unit(const Args& args, int64 n) {
  const Sequence sequence(args, n);
  if (kLogits) sequence.find_sums();
  __syncthreads();
  R log_p = -(R)infinity();
  if (!sequence.has_labels_outside()) {
    sequence.find_before();
    sequence.find_after();
    log_p = sequence.log_probability();
  }
  const bool impossible = log_p == -(R)infinity();
  if (threadIdx.x == 0) put_loss(args, {n}, kZeroInfinity && impossible ? (R)0 : -log_p);
  if constexpr (kHas_gradient) {
    const int64 classes = args.x_dims[2];
    for (int64 element = threadIdx.x; element < args.x_dims[0] * classes; element += kThreads) {
      const int64 t = element / classes, c = element % classes;
      R value = 0;
      if (t >= sequence.times)
        value = in_previous(args, {t, n, c});
      else if (!impossible)
        value = sequence.gradient(t, c, log_p);
      put_gradient(args, {t, n, c}, value);
    }
  }
}
