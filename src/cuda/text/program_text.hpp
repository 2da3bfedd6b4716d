// A PointwiseProgram printed as a device function.
#pragma once

#include <string>
#include <vector>

#include "cuda/launch/arguments.hpp"
#include "cuda/text/operation_text.hpp"
#include "plan/pointwise_program.hpp"

namespace ashlar::cuda {

// The text around it knows `R`, the type of registers, `Index`, that of positions, and `Args`, the
// struct of arguments:
// template <int kCount> void NAME(const Args& args, const Index (&at)[rank], R (&acc0)[kCount]...,
//                                 R (&result)[kCount])
// for kCount elements from `at` on along the last axis, at most vector_length(). Accumulators are
// there as far as the program has them, the result where the program has one, which the caller
// takes as it is (f32) or rounds to `kept`. Where values are reduced, `Tails& tails`
// comes last, and its take<number>(values) gets them.
std::string print_program(const PointwiseProgram& program, const Graph& graph,
                          const std::string& name, Arguments& arguments, DType kept = f32);

// The same in two functions, so that loads are on their way before results are made: those that are
// as large as the results are done by
// template <int kCount> void hold(const Args& args, const Index (&at)[rank], Held<kCount>& held)
// and NAME has a parameter const Held<kCount>& held behind its accumulators. kPrefetchBytes is what
// Held has of an element. Where it is of one tensor, take(from, held) takes kCount elements from
// elsewhere.
std::string print_program_with_prefetch(const PointwiseProgram& program, const Graph& graph,
                                        const std::string& name, Arguments& arguments,
                                        DType kept = f32);
// Held and hold() for a program that is not printed this way.
std::string print_empty_prefetch(int rank);
// Whether the step loads an element of its own for every result of the program.
bool loads_per_result(const PointwiseProgram::Step& step, const PointwiseProgram& program);
// A load of elements that lie together along the last axis, of a tensor with as many of them as the
// program has results; what is smaller is read again and again, and in the caches.
bool is_full_size_load(const PointwiseProgram::Step& step, const PointwiseProgram& program,
                       const Graph& graph);

// One element of a view, whatever type it has:
// template <class V> void NAME(const Args& args, const Index (&at)[rank], V value)
std::string print_store(const View& view, const Graph& graph, const std::string& name,
                        Arguments& arguments);
// Where an element of a view is: void* NAME(const Args& args, const Index (&at)[rank])
std::string print_address(const View& view, const Graph& graph, const std::string& name,
                          Arguments& arguments);
// An integer with all its 64 bits: int64 NAME(const Args& args, const Index (&at)[rank])
std::string print_integer_load(const View& view, const Graph& graph, const std::string& name,
                               Arguments& arguments);

// The most elements along the last axis, up to `most`, that every view of the program allows to be
// read and written as whole aligned vectors, if its pointers are aligned to 16 bytes.
int vector_length(const PointwiseProgram& program, int most);

}  // namespace ashlar::cuda
