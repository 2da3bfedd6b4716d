// Generates device code for a GEMM operand: coordinates of its elements, and how they are loaded
// into shared memory (kernels/sm80/loader.cuh).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cuda/engines/sm80/gemm_problem.hpp"
#include "cuda/launch/arguments.hpp"

namespace ashlar::cuda {

// Kernel arguments; values that differ between variants become arrays over the variants of a
// launch.
class VariantArguments {
 public:
  VariantArguments(Arguments& arguments, std::size_t first, std::size_t count)
      : arguments_(arguments), first_(first), count_(count) {}
  Arguments& arguments() { return arguments_; }
  // "args.name", or "args.name[work.variant]"
  std::string add(const std::string& name, const PerVariant& values);
  // Always an array: "args.name"
  std::string add_array(const std::string& name, const PerVariant& values);

 private:
  PerVariant of_launch(const PerVariant& values) const;
  Arguments& arguments_;
  std::size_t first_, count_;
};

// Coordinates, or a linear element offset, as affine functions of sub-indices.
struct LinearMap {
  struct SubIndex {
    PerVariant extent;
    std::vector<PerVariant> factors;  // by target
  };
  struct Target {
    int axis;         // -1: the element offset in memory
    bool is_checked;  // may be out of bounds
    PerVariant base;
  };
  std::vector<Target> targets;
  std::array<std::vector<SubIndex>, 4> sub_indices;  // by GemmDim
};

enum class LoadMode : std::uint8_t { async, vectors, elements };

class OperandText {
 public:
  // `type`: of the elements in shared memory.
  OperandText(const GemmProblem& problem, const ProblemOperand& operand, GemmDim outer, DType type);

  LoadMode mode = LoadMode::elements;
  int vector = 1;            // elements per cp.async
  bool is_mn_major = false;  // of the tile in shared memory
  bool outer_is_fast = false;
  bool converts() const { return dtype_ != type_; }
  int place_numbers() const { return static_cast<int>(map_.targets.size()); }
  int slot() const { return slot_; }  // of the anchor's inputs
  // Prints struct NAME. A repacked operand is read from the given scratch reservation.
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

// Axes of the result that m or n may exceed: results out of bounds are not stored.
std::vector<int> axes_out_of_bounds(const GemmProblem& problem, const ProblemOperand& result);

// void place(const Args& args, const WorkTile& work, int row, int column, Index (&at)[rank])
// The first coordinate is negative out of bounds of the result.
std::string print_address(const GemmProblem& problem, const ProblemOperand& result,
                          VariantArguments& arguments);

}  // namespace ashlar::cuda
