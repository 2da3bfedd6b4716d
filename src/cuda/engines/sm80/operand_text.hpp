// An operand of a tensor product as device code: where its elements lie, and how they are brought
// into shared memory (kernels/sm80/loader.cuh).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cuda/engines/sm80/gemm_problem.hpp"
#include "cuda/launch/arguments.hpp"

namespace ashlar::cuda {

// Numbers that differ between variants are arrays of the variants of one launch.
class VariantArguments {
 public:
  VariantArguments(Arguments& arguments, std::size_t first, std::size_t count)
      : arguments_(arguments), first_(first), count_(count) {}
  Arguments& arguments() { return arguments_; }
  // "args.name", or "args.name[where.variant]"
  std::string add(const std::string& name, const PerVariant& values);
  // Always an array: "args.name"
  std::string add_array(const std::string& name, const PerVariant& values);

 private:
  PerVariant of_launch(const PerVariant& values) const;
  Arguments& arguments_;
  std::size_t first_, count_;
};

// Coordinates, or what is made of them, as functions of digits.
struct LinearMap {
  struct SubIndex {
    PerVariant extent;
    std::vector<PerVariant> factors;  // by target
  };
  struct Target {
    int axis;         // -1: the element's number in memory
    bool is_checked;  // may be outside of the tensor
    PerVariant base;
  };
  std::vector<Target> targets;
  std::array<std::vector<SubIndex>, 4> sub_indices;  // by Group
};

enum class LoadMode : std::uint8_t { async, vectors, elements };

class OperandText {
 public:
  // `type`: of the words in shared memory.
  OperandText(const GemmProblem& problem, const ProblemOperand& operand, GemmDim outer, DType type);

  LoadMode mode = LoadMode::elements;
  int vector = 1;            // elements of a copy (async)
  bool is_mn_major = false;  // of the tile in shared memory
  bool outer_is_fast = false;
  bool converts() const { return dtype_ != type_; }
  int place_numbers() const { return static_cast<int>(map_.targets.size()); }
  int slot() const { return slot_; }  // of the anchor's inputs
  // struct NAME; of an operand that is in scratch, where.
  std::string print(const std::string& name, const Graph& graph, VariantArguments& arguments,
                    std::optional<int> reservation) const;

 private:
  bool fits_async(GemmDim dim, int count) const;
  bool fits_vectors(int count) const;
  PointwiseProgram program_;
  std::vector<Coordinate> coordinates_;
  LinearMap map_;
  const GemmProblem& problem_;
  GemmDim outer_;
  DType dtype_, type_;
  int slot_;
  bool is_plain_;
};

// Axes of the result whose ends rows or columns go beyond: what is outside is not stored.
std::vector<int> axes_out_of_bounds(const GemmProblem& problem, const ProblemOperand& result);

// void place(const Args& args, const Where& where, int row, int column, Index (&at)[rank])
// The first coordinate is below 0 outside of the result.
std::string print_address(const GemmProblem& problem, const ProblemOperand& result,
                          VariantArguments& arguments);

}  // namespace ashlar::cuda
