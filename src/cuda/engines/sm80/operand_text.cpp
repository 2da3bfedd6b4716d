#include "cuda/engines/sm80/operand_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::array kGroups = {GemmDim::batch, GemmDim::m, GemmDim::n, GemmDim::k};
constexpr std::array<const char*, 4> kGroupNames = {"batch", "m", "n", "k"};

bool all_are(const PerVariant& numbers, std::int64_t value) {
  return std::all_of(numbers.begin(), numbers.end(), [&](auto n) { return n == value; });
}
bool all_divide(const PerVariant& numbers, std::int64_t divisor) {
  return std::all_of(numbers.begin(), numbers.end(), [&](auto n) { return n % divisor == 0; });
}

// Whether the coordinate can leave [0, extent).
bool leaves(const GemmProblem& problem, const Coordinate& coordinate, std::int64_t extent) {
  for (std::size_t v = 0; v < problem.variants; ++v) {
    std::int64_t low = coordinate.base[v], high = low;
    bool is_empty = false;
    for (const IndexTerm& term : coordinate.terms) {
      const std::int64_t count = problem.of(term.dim)[static_cast<std::size_t>(term.sub_index)][v];
      is_empty = is_empty || count == 0;
      (term.factor[v] < 0 ? low : high) += term.factor[v] * (count - 1);
    }
    if (!is_empty && (low < 0 || high >= extent)) return true;
  }
  return false;
}

// The map to the given targets, with as few sub-indices as possible.
LinearMap linear_map(const GemmProblem& problem, const std::vector<Coordinate>& coordinates,
                     std::vector<LinearMap::Target> targets, const Dims& strides) {
  LinearMap map;
  const PerVariant zeros(problem.variants, 0);
  for (const GemmDim dim : kGroups) {
    auto& sub_indices = map.sub_indices[static_cast<std::size_t>(dim)];
    for (std::size_t number = 0; number < problem.of(dim).size(); ++number) {
      LinearMap::SubIndex sub_index{problem.of(dim)[number], {}};
      for (LinearMap::Target& target : targets) {
        PerVariant factor = zeros;
        for (std::size_t axis = 0; axis < coordinates.size(); ++axis) {
          if (target.axis >= 0 && target.axis != static_cast<int>(axis)) continue;
          const std::int64_t scale = target.axis >= 0 ? 1 : strides[static_cast<int>(axis)];
          for (const IndexTerm& term : coordinates[axis].terms)
            if (term.dim == dim && term.sub_index == static_cast<int>(number))
              for (std::size_t v = 0; v < factor.size(); ++v) factor[v] += term.factor[v] * scale;
        }
        sub_index.factors.push_back(std::move(factor));
      }
      if (!all_are(sub_index.extent, 1)) sub_indices.push_back(std::move(sub_index));
    }
    // Merges adjacent sub-indices that act as one.
    for (std::size_t number = sub_indices.size(); number-- > 1;) {
      LinearMap::SubIndex &above = sub_indices[number - 1], &below = sub_indices[number];
      bool is_one = true;
      for (std::size_t t = 0; t < targets.size(); ++t)
        for (std::size_t v = 0; v < problem.variants; ++v)
          is_one = is_one && above.factors[t][v] == below.factors[t][v] * below.extent[v];
      if (!is_one) continue;
      for (std::size_t v = 0; v < problem.variants; ++v) above.extent[v] *= below.extent[v];
      above.factors = below.factors;
      sub_indices.erase(sub_indices.begin() + static_cast<std::ptrdiff_t>(number));
    }
    const bool counts =
        std::any_of(sub_indices.begin(), sub_indices.end(), [](const auto& sub_index) {
          return std::any_of(sub_index.factors.begin(), sub_index.factors.end(),
                             [](const PerVariant& factor) { return !all_are(factor, 0); });
        });
    if (!counts) sub_indices.clear();
  }
  for (LinearMap::Target& target : targets) {
    target.base = zeros;
    for (std::size_t axis = 0; axis < coordinates.size(); ++axis) {
      if (target.axis >= 0 && target.axis != static_cast<int>(axis)) continue;
      const std::int64_t scale = target.axis >= 0 ? 1 : strides[static_cast<int>(axis)];
      for (std::size_t v = 0; v < target.base.size(); ++v)
        target.base[v] += coordinates[axis].base[v] * scale;
    }
  }
  map.targets = std::move(targets);
  return map;
}

// Statements that add the contribution of one GEMM dimension; `to` names a target: "coord.at[0]".
template <class Name>
std::string print_group(const LinearMap& map, GemmDim dim, const std::string& index,
                        const std::string& prefix, VariantArguments& arguments, const Name& to) {
  const auto& sub_indices = map.sub_indices[static_cast<std::size_t>(dim)];
  if (sub_indices.empty()) return {};
  const std::string name = kGroupNames[static_cast<std::size_t>(dim)];
  std::string text = fmt::format("  int {}_rest = {};\n", name, index);
  for (std::size_t number = sub_indices.size(); number-- > 0;) {
    const std::string sub_index = fmt::format("{}{}", name, number);
    const std::string argument = prefix + "_" + sub_index;
    if (number == 0) {
      text += fmt::format("  const int {} = {}_rest;\n", sub_index, name);
    } else {
      PerVariant magic;
      for (const std::int64_t extent : sub_indices[number].extent)
        magic.push_back(divider_word(extent));
      const std::string extent = arguments.add(argument + "_extent", sub_indices[number].extent);
      const std::string divider = arguments.add(argument + "_magic", magic);
      text += fmt::format(
          "  const int {0}_above = divide({1}_rest, {2}, {3});\n"
          "  const int {0} = {1}_rest - {0}_above * (int){3};\n"
          "  {1}_rest = {0}_above;\n",
          sub_index, name, divider, extent);
    }
    for (std::size_t t = 0; t < map.targets.size(); ++t) {
      const PerVariant& factor = sub_indices[number].factors[t];
      if (all_are(factor, 0)) continue;
      const char* type = map.targets[t].axis < 0 ? "Index" : "int";
      std::string term = fmt::format("({}){}", type, sub_index);
      if (!all_are(factor, 1))
        term += fmt::format(" * ({}){}", type,
                            arguments.add(fmt::format("{}_factor{}", argument, t), factor));
      text += fmt::format("  {} += {};\n", to(t), term);
    }
  }
  return text;
}

std::string type_of(DType dtype) {
  const std::string text = tag(dtype);
  return text.substr(0, text.find('('));
}

}  // namespace

PerVariant VariantArguments::of_launch(const PerVariant& values) const {
  PerVariant result;
  for (std::size_t i = 0; i < count_; ++i)
    result.push_back(values.size() == 1 ? values[0]
                                        : values[std::min(first_ + i, values.size() - 1)]);
  return result;
}
std::string VariantArguments::add(const std::string& name, const PerVariant& values) {
  if (all_are(values, values[0])) return arguments_.number(name, values[0]);
  return add_array(name, values) + "[work.variant]";
}
std::string VariantArguments::add_array(const std::string& name, const PerVariant& values) {
  return arguments_.numbers(name, of_launch(values));
}

OperandText::OperandText(const GemmProblem& problem, const ProblemOperand& operand, GemmDim outer,
                         DType type)
    : problem_(problem),
      outer_(outer),
      dtype_(operand.dtype),
      type_(type),
      slot_(operand.slot),
      is_plain_(operand.program.is_plain_load() && bit_width(operand.dtype) >= 8 &&
                operand.program.steps[0].view.dtype == operand.dtype) {
  ProblemOperand moved = operand;
  const int last = moved.program.space.rank() - 1;
  move_axis_last(moved, fast_axis(moved.program));
  program_ = std::move(moved.program);
  coordinates_ = std::move(moved.coordinates);
  std::vector<LinearMap::Target> targets;
  if (is_plain_) targets.push_back({-1, false, {}});
  for (int axis = 0; axis <= last; ++axis) {
    const bool is_checked =
        leaves(problem, coordinates_[static_cast<std::size_t>(axis)], program_.space[axis]);
    if (!is_plain_ || is_checked) targets.push_back({axis, is_checked, {}});
  }
  const Dims strides = is_plain_ ? program_.steps[0].view.strides : Dims{};
  map_ = linear_map(problem, coordinates_, std::move(targets), strides);

  for (const IndexTerm& term : coordinates_[static_cast<std::size_t>(last)].terms)
    outer_is_fast = outer_is_fast || term.dim == outer;
  const int size = bit_width(type) / 8;
  const int across = 16 / size;
  for (const GemmDim dim : {GemmDim::k, outer}) {
    if (dim != GemmDim::k && size == 1) continue;  // ldmatrix cannot transpose bytes
    for (int count = across; count * size >= 4; count /= 2)
      if (is_plain_ && dtype_ == type && fits_async(dim, count)) {
        mode = LoadMode::async;
        vector = count;
        is_mn_major = dim == outer;
        return;
      }
  }
  if (fits_vectors(across) && !(outer_is_fast && size == 1)) {
    mode = LoadMode::vectors;
    is_mn_major = outer_is_fast;
  }
}

// Whether `count` elements along the last sub-index of the dimension are contiguous and aligned.
bool OperandText::fits_async(GemmDim dim, int count) const {
  const auto& sub_indices = map_.sub_indices[static_cast<std::size_t>(dim)];
  if (sub_indices.empty() || program_.steps[0].view.offset % count != 0) return false;
  const LinearMap::SubIndex& last = sub_indices.back();
  if (!all_are(last.factors[0], 1) || !all_divide(last.extent, count)) return false;
  for (std::size_t t = 1; t < last.factors.size(); ++t)
    if (!all_are(last.factors[t], 0)) return false;
  for (const auto& others : map_.sub_indices)
    for (const LinearMap::SubIndex& sub_index : others)
      if (&sub_index != &last && !all_divide(sub_index.factors[0], count)) return false;
  return all_divide(map_.targets[0].base, count);
}

// Whether the program computes `count` elements along the last axis as one vector, with aligned
// loads.
bool OperandText::fits_vectors(int count) const {
  const int last = program_.space.rank() - 1;
  const Coordinate& along = coordinates_[static_cast<std::size_t>(last)];
  if (vector_length(program_, count) != count || !all_divide(along.base, count)) return false;
  if (is_plain_ && program_.steps[0].view.strides[last] != 1) return false;
  if (leaves(problem_, along, program_.space[last])) return false;
  const GemmDim dim = outer_is_fast ? outer_ : GemmDim::k;
  const int fast = static_cast<int>(problem_.of(dim).size()) - 1;
  bool is_driven = false;
  for (const IndexTerm& term : along.terms) {
    const bool is_fast = term.dim == dim && term.sub_index == fast;
    is_driven = is_driven || (is_fast && all_are(term.factor, 1));
    if (!is_fast && !all_divide(term.factor, count)) return false;
  }
  return is_driven && !problem_.of(dim).empty() && all_divide(problem_.of(dim).back(), count);
}

std::string OperandText::print(const std::string& name, const Graph& graph,
                               VariantArguments& arguments, std::optional<int> reservation) const {
  const std::string function = name + "_program";
  std::string text, load, element;
  if (is_plain_) {
    const int vectors = mode == LoadMode::async     ? vector * bit_width(dtype_) / 8
                        : mode == LoadMode::vectors ? kVectorBytes
                                                    : kAnyAddress;
    if (reservation)
      arguments.arguments().scratch(name + "_data", *reservation);
    else
      arguments.arguments().pointer(name + "_data", program_.steps[0].view, vectors);
    load =
        "    load_words<kCount>(Type(), Element(), data(args) + (a.offset + b.offset), words);\n";
    element =
        "    const Element::Word word = data(args)[is_there ? a.offset + b.offset : 0];\n"
        "    return is_there ? word_of(Type(), Element(), word) : (typename Type::Word)0;\n";
  } else {
    text += print_program(program_, graph, function, arguments.arguments());
    std::string at;
    for (std::size_t axis = 0; axis < coordinates_.size(); ++axis)
      at += fmt::format("{}(Index)(a.at[{}] + b.at[{}])", axis == 0 ? "" : ", ", axis, axis);
    load = fmt::format(
        "    const Index at[{}] = {{{}}};\n    R values[kCount];\n    {}<kCount>(args, at, "
        "values);\n"
        "#pragma unroll\n    for (int l = 0; l < kCount; ++l) words[l] = narrow(Type(), "
        "values[l]);\n",
        coordinates_.size(), at, function);
    element =
        "    typename Type::Word words[1] = {0};\n"
        "    if (is_there) load<Type>(args, a, b, words);\n    return words[0];\n";
  }
  // Names of the targets as members of Coord.
  std::vector<std::string> members;
  int numbers = 0;
  for (const LinearMap::Target& target : map_.targets)
    members.push_back(target.axis < 0 ? "coord.offset" : fmt::format("coord.at[{}]", numbers++));
  const auto to = [&](std::size_t t) { return members[t]; };
  std::string start, checks;
  int checked = -1;
  for (std::size_t t = 0; t < map_.targets.size(); ++t) {
    const LinearMap::Target& target = map_.targets[t];
    if (!all_are(target.base, 0))
      start += fmt::format("  {} = {};\n", members[t],
                           arguments.add(fmt::format("{}_base{}", name, t), target.base));
    if (!target.is_checked) continue;
    if (checked < 0) checked = static_cast<int>(t) - (is_plain_ ? 1 : 0);
    const std::string member = members[t].substr(members[t].find('.'));
    checks += fmt::format(" && (uint32)(a{0} + b{0}) < (uint32){1}", member,
                          arguments.arguments().number(fmt::format("{}_limit{}", name, t),
                                                       program_.space[target.axis]));
  }
  const std::string parameters = "const Args& args, const WorkTile& work";
  return text +
         fmt::format(
             "struct {} {{\n  typedef {} Element;\n"
             "  static const int kMode = {}, kVector = {}, kChecked = {};\n"
             "  static const bool kMnMajor = {}, kOuterIsFast = {};\n"
             "  struct Coord {{\n    Index offset = 0;\n    int at[{}] = {{}};\n  }};\n",
             name, type_of(is_plain_ ? dtype_ : type_), static_cast<int>(mode), vector, checked,
             is_mn_major ? "true" : "false", outer_is_fast ? "true" : "false",
             std::max(numbers, 1)) +
         fmt::format("  __device__ static Coord outer({}, int i) {{\n  Coord coord;\n",
                     parameters) +
         start + print_group(map_, GemmDim::batch, "work.batch", name, arguments, to) +
         print_group(map_, outer_, "i", name, arguments, to) + "  return coord;\n  }\n" +
         fmt::format("  __device__ static Coord depth({}, int k) {{\n  Coord coord;\n",
                     parameters) +
         print_group(map_, GemmDim::k, "k", name, arguments, to) + "  return coord;\n  }\n" +
         fmt::format(
             "  __device__ static bool inside({}, const Coord& a, const Coord& b) {{\n"
             "    return true{};\n  }}\n",
             parameters, checks) +
         (is_plain_
              ? fmt::format("  __device__ static const Element::Word* data(const Args& args) {{\n"
                            "    return (const Element::Word*)args.{}_data;\n  }}\n",
                            name)
              : std::string()) +
         "  template <class Type, int kCount>\n"
         "  __device__ static void load(const Args& args, const Coord& a, const Coord& b,\n"
         "                              typename Type::Word (&words)[kCount]) {\n" +
         load +
         "  }\n  template <class Type>\n"
         "  __device__ static typename Type::Word element(const Args& args, const Coord& a,\n"
         "                                                const Coord& b, bool is_there) {\n" +
         element + "  }\n};\n";
}

std::vector<int> axes_out_of_bounds(const GemmProblem& problem, const ProblemOperand& result) {
  std::vector<int> axes;
  for (int axis = 0; axis < result.program.space.rank(); ++axis)
    if (leaves(problem, result.coordinates[static_cast<std::size_t>(axis)],
               result.program.space[axis]))
      axes.push_back(axis);
  return axes;
}

std::string print_address(const GemmProblem& problem, const ProblemOperand& result,
                          VariantArguments& arguments) {
  std::vector<LinearMap::Target> targets;
  targets.reserve(static_cast<std::size_t>(result.program.space.rank()));
  for (int axis = 0; axis < result.program.space.rank(); ++axis)
    targets.push_back({axis, false, {}});
  const LinearMap map = linear_map(problem, result.coordinates, std::move(targets), {});
  const auto to = [](std::size_t t) { return fmt::format("at[{}]", t); };
  std::string text = fmt::format(
      "__device__ inline void place(const Args& args, const WorkTile& work, int row, int column,\n"
      "                             Index (&at)[{}]) {{\n",
      map.targets.size());
  for (std::size_t t = 0; t < map.targets.size(); ++t)
    text += fmt::format(
        "  at[{}] = {};\n", t,
        all_are(map.targets[t].base, 0)
            ? "0"
            : "(Index)" + arguments.add(fmt::format("result_base{}", t), map.targets[t].base));
  text += print_group(map, GemmDim::batch, "work.batch", "result", arguments, to) +
          print_group(map, GemmDim::m, "row", "result", arguments, to) +
          print_group(map, GemmDim::n, "column", "result", arguments, to);
  for (const int axis : axes_out_of_bounds(problem, result))
    text += fmt::format("  if (at[{}] >= {}) at[0] = -1;\n", axis,
                        arguments.arguments().number(fmt::format("result_limit{}", axis),
                                                     result.program.space[axis]));
  return text + "}\n";
}

}  // namespace ashlar::cuda
