// Prints a PointwiseProgram as a CUDA C++ device function.
#pragma once

#include <string>
#include <vector>

#include "cuda/launch/arguments.hpp"
#include "cuda/text/operation_text.hpp"
#include "plan/pointwise_program.hpp"

namespace ashlar::cuda {

// The surrounding text defines `R`, the register type, `Index`, the index type, and `Args`, the
// argument struct:
// template <int kCount> void NAME(const Args& args, const Index (&at)[rank], R (&acc0)[kCount]...,
//                                 R (&result)[kCount])
// computes kCount elements from `at` on along the last axis, at most vector_length(). Accumulators
// are present as far as the program has them; the result is present where the program has one, and
// the caller uses it as f32 or rounds it to `kept`. Where values are reduced (tails), `Tails&
// tails` comes last, and its take<number>(values) receives them.
std::string print_program(const PointwiseProgram& program, const Graph& graph,
                          const std::string& name, Arguments& arguments, DType kept = f32);

// The same in two functions, so that loads are in flight before results are computed: full-size
// loads are issued by
// template <int kCount> void hold(const Args& args, const Index (&at)[rank], Held<kCount>& held)
// and NAME has a parameter const Held<kCount>& held behind its accumulators. kPrefetchBytes is the
// number of bytes that Held has per element. Where Held has one tensor, take(from, held) reads
// kCount elements from elsewhere, such as shared memory.
std::string print_program_with_prefetch(const PointwiseProgram& program, const Graph& graph,
                                        const std::string& name, Arguments& arguments,
                                        DType kept = f32);
// Empty Held and hold() for a program without prefetch.
std::string print_empty_prefetch(int rank);
// Whether the step loads a distinct element for every result (no broadcast).
bool loads_per_result(const PointwiseProgram::Step& step, const PointwiseProgram& program);
// A contiguous load along the last axis of a tensor as large as the results; smaller (broadcast)
// tensors stay in the caches.
bool is_full_size_load(const PointwiseProgram::Step& step, const PointwiseProgram& program,
                       const Graph& graph);

// A store of one element of a view, for any value type:
// template <class V> void NAME(const Args& args, const Index (&at)[rank], V value)
std::string print_store(const View& view, const Graph& graph, const std::string& name,
                        Arguments& arguments);
// Address of an element of a view: void* NAME(const Args& args, const Index (&at)[rank])
std::string print_address(const View& view, const Graph& graph, const std::string& name,
                          Arguments& arguments);
// A load of a 64-bit integer: int64 NAME(const Args& args, const Index (&at)[rank])
std::string print_integer_load(const View& view, const Graph& graph, const std::string& name,
                               Arguments& arguments);

// The largest vector length up to `most` for which every access of the program along the last axis
// is aligned, given 16-byte aligned pointers.
int vector_length(const PointwiseProgram& program, int most);

}  // namespace ashlar::cuda
