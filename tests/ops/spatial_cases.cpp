// Cases of CTC, the spatial transformer, im2col and tensor_transform.
#include "graph/enum_names.hpp"
#include "ops/op_case.hpp"

namespace ashlar::ops {

namespace {

struct Ctc {
  std::string label;
  Dims x, labels;
  CtcLoss op;
  bool one_shape = true;
};

void add_ctc(std::vector<OpCase>& cases) {
  const std::vector<Ctc> all = {
      {"logits", {7, 3, 5}, {3, 2}, {}, false},
      {"probabilities", {6, 3, 4}, {3, 2}, {.input = CtcInput::probabilities}, false},
      {"concatenated labels", {6, 4, 5}, {7}, {.blank = 4}},
      {"skip", {5, 2, 4}, {2, 2}, {.padding = CtcPadding::skip, .blank = 1}, false},
      {"probabilities, skip",
       {5, 2, 4},
       {5},
       {.input = CtcInput::probabilities, .padding = CtcPadding::skip}},
      {"zero_infinity", {4, 5, 3}, {5, 4}, {.zero_infinity = true}},
      {"many classes", {3, 2, 70}, {2, 1}, {}},
      {"long", {80, 2, 6}, {2, 35}, {}},
      {"the blank alone", {4, 2, 1}, {2, 1}, {}},
      {"no labels", {4, 2, 3}, {2, 0}, {}},
      {"no labels at all", {4, 2, 3}, {0}, {}},
      {"no time", {0, 2, 3}, {2, 1}, {}},
      {"no batch", {4, 0, 3}, {0, 2}, {}},
  };
  for (const Ctc& c : all)
    for (bool gradient : {true, false}) {
      if (!gradient && c.op.padding == CtcPadding::skip) continue;
      cases.push_back({"ctc_loss", c.label + (gradient ? "" : ", loss only"), kFloating,
                       [=](CaseBuilder& b) {
                         const Value x = b.operand("x", c.x);
                         const Value previous = c.op.padding == CtcPadding::skip
                                                    ? b.input("previous", c.x, b.dtype())
                                                    : Value();
                         const std::vector<Operand<CtcLoss>> operands = {
                             {CtcLoss::x, x},
                             {CtcLoss::labels, b.input("labels", c.labels, i32)},
                             {CtcLoss::label_lengths, b.input("label_lengths", {c.x[1]}, i64)},
                             {CtcLoss::input_lengths, b.input("input_lengths", {c.x[1]}, i32)},
                             {CtcLoss::previous, previous}};
                         std::vector<Wanted<CtcLoss>> wanted = {CtcLoss::loss};
                         if (gradient) wanted.push_back(CtcLoss::gradient);
                         const auto results = b.graph().apply(c.op, operands, wanted);
                         b.result(results[CtcLoss::loss]);
                         if (gradient) b.result("gradient", results[CtcLoss::gradient]);
                       },
                       false, c.one_shape || !gradient});
    }
}

void add_generators(std::vector<OpCase>& cases) {
  for (bool align : {true, false})
    for (const Dims& size : {Dims{3, 5}, Dims{1, 4}, Dims{2, 3, 4}, Dims{0, 3}, Dims{40, 70}}) {
      const std::int64_t axes = size.rank();
      const std::string label = to_string(size) + (align ? ", aligned corners" : "");
      cases.push_back({"grid_generator_forward", label, kFloating,
                       [=](CaseBuilder& b) {
                         b.result(b.graph().apply(GridGeneratorForward{{size, align}},
                                                  {{GridGeneratorForward::theta,
                                                    b.operand("theta", {2, axes, axes + 1})}},
                                                  {GridGeneratorForward::grid}));
                       },
                       false, size.rank() == 2 && size[0] != 3});
      Dims grid = {2};
      for (std::int64_t extent : size) grid.push_back(extent);
      grid.push_back(axes);
      cases.push_back(
          {"grid_generator_backward", label, kFloating,
           [=](CaseBuilder& b) {
             b.result(b.graph().apply(GridGeneratorBackward{{size, align}},
                                      {{GridGeneratorBackward::dgrid, b.operand("dgrid", grid)}},
                                      {GridGeneratorBackward::dtheta}));
           },
           false, size.rank() == 2 && size[0] != 3});
    }
}

struct Sampling {
  std::string label;
  Dims x, grid;
  bool one_shape = true;
};

const std::vector<Sampling> kSamplings = {
    {"two axes", {2, 3, 4, 5}, {2, 6, 3, 2}, false},
    {"many channels", {1, 19, 3, 4}, {1, 2, 5, 2}, false},
    {"three axes", {1, 2, 3, 2, 4}, {1, 2, 3, 2, 3}},
    {"long rows", {1, 2, 5, 7}, {1, 1, 300, 2}},
    {"from extent 1", {1, 2, 1, 3}, {1, 2, 2, 2}},
    {"to nothing", {1, 2, 3, 3}, {1, 0, 2, 2}},
    {"no channels", {1, 0, 3, 3}, {1, 2, 2, 2}},
};

void add_samplers(std::vector<OpCase>& cases) {
  for (int m = 0; m < 2; ++m)
    for (int p = 0; p < 3; ++p)
      for (bool align : {true, false})
        for (const Sampling& s : kSamplings) {
          const GridSampleAttributes op{static_cast<GridSampleMode>(m), static_cast<GridPadding>(p),
                                        align};
          const std::string label = std::string(enum_name(op.mode)) + ", " +
                                    std::string(enum_name(op.padding)) +
                                    (align ? ", aligned corners, " : ", ") + s.label;
          Dims y = {s.x[0], s.x[1]};
          for (int axis = 1; axis + 1 < s.grid.rank(); ++axis) y.push_back(s.grid[axis]);
          cases.push_back({"grid_sample_forward", label, kFloating,
                           [=](CaseBuilder& b) {
                             b.result(b.graph().apply(
                                 GridSampleForward{op},
                                 {{GridSampleForward::x, b.operand("x", s.x)},
                                  {GridSampleForward::grid, b.input("grid", s.grid, b.wide())}},
                                 {GridSampleForward::y}));
                           },
                           false, s.one_shape || align});
          cases.push_back({"grid_sample_backward", label, kFloating,
                           [=](CaseBuilder& b) {
                             const auto results = b.graph().apply(
                                 GridSampleBackward{op},
                                 {{GridSampleBackward::x, b.input("x", s.x, b.dtype())},
                                  {GridSampleBackward::grid, b.input("grid", s.grid, b.dtype())},
                                  {GridSampleBackward::dy, b.operand("dy", y)}},
                                 {GridSampleBackward::dx, GridSampleBackward::dgrid});
                             b.result(results[GridSampleBackward::dx]);
                             b.result("dgrid", results[GridSampleBackward::dgrid]);
                           },
                           false, s.one_shape || align});
        }
  cases.push_back({"grid_sample_backward", "without dgrid", kFloating,
                   [](CaseBuilder& b) {
                     b.result(b.graph().apply(
                         GridSampleBackward{},
                         {{GridSampleBackward::x, b.input("x", {1, 2, 3, 4}, b.dtype())},
                          {GridSampleBackward::grid, b.input("grid", {1, 4, 3, 2}, b.dtype())},
                          {GridSampleBackward::dy, b.operand("dy", {1, 2, 4, 3})}},
                         {GridSampleBackward::dx}));
                   },
                   false, true});
}

void add_patches(std::vector<OpCase>& cases) {
  std::vector<DType> dtypes = kArithmetic;
  dtypes.push_back(boolean);
  struct Patches {
    std::string label;
    Dims x;
    Im2Col op;
    bool one_shape = true;
  };
  const std::vector<Patches> all = {
      {"3x2", {2, 3, 5, 6}, {.window = {3, 2}}, false},
      {"padded, strided, dilated",
       {1, 4, 7, 9},
       {.window = {3, 3},
        .padding = {2, 1},
        .post_padding = Dims{0, 4},
        .stride = {2, 3},
        .dilation = {1, 2}},
       false},
      {"one axis", {2, 3, 13}, {.window = {4}, .padding = {2}, .stride = {3}}},
      {"three axes", {1, 2, 3, 4, 5}, {.window = {2, 3, 2}, .padding = {1, 1, 1}}},
      {"long rows", {1, 2, 1, 2100}, {.window = {1, 3}, .padding = {0, 1}}},
      {"window in the padding", {1, 1, 2, 2}, {.window = {1, 1}, .padding = {3, 3}}},
      {"all extents 1", {1, 1, 1}, {.window = {1}}},
      {"no room", {1, 2, 0}, {.window = {2}}},
      {"no batch", {0, 2, 4, 4}, {.window = {2, 2}}},
  };
  for (const Patches& p : all)
    cases.push_back(
        {"im2col", p.label, dtypes,
         [=](CaseBuilder& b) {
           b.result(b.graph().apply(p.op, {{Im2Col::x, b.operand("x", p.x)}}, {Im2Col::y}));
         },
         true, p.one_shape});
}

void add_transforms(std::vector<OpCase>& cases) {
  struct Move {
    std::string label;
    Dims x;
    TensorTransform op;
    bool one_shape = true;
  };
  const TensorTransform fold{.pad_before = {0, 0, 1, 0}, .pad_after = {0, 0, 1, 1}, .fold = {2, 3}};
  TensorTransform unfold = fold;
  unfold.unfold = true;
  TensorTransform pad_all{.pad_before = {1, 2, 0, 3}, .pad_after = {0, 1, 2, 0}};
  TensorTransform crop_all = pad_all;
  crop_all.unfold = true;
  TensorTransform cube{.fold = {2, 1, 3}};
  TensorTransform uncube = cube;
  uncube.unfold = true;
  const std::vector<Move> all = {
      {"identity", {2, 3, 4, 5}, {}, false},
      {"padded", {2, 3, 4, 5}, pad_all, false},
      {"cropped", {3, 5, 4, 5}, crop_all, false},
      {"folded", {2, 3, 4, 5}, fold, false},
      {"unfolded", {2, 12, 4, 3}, unfold, false},
      {"folded on three axes", {1, 3, 4, 2, 6}, cube},
      {"unfolded on three axes", {1, 12, 2, 2, 3}, uncube},
      {"many channels", {1, 40, 2, 2}, {.fold = {2, 2}}, false},
      {"many channels unfolded", {1, 160, 1, 2}, {.fold = {2, 2}, .unfold = true}, false},
      {"one axis", {7}, {.pad_before = {2}, .pad_after = {3}}},
      {"a matrix", {3, 4}, {.pad_before = {1, 0}, .pad_after = {0, 5}}},
      {"long rows", {1, 1, 5000}, {.pad_before = {0, 0, 7}, .pad_after = {0, 0, 1}, .fold = {2}}},
      {"long rows unfolded", {1, 3, 1500}, {.fold = {3}, .unfold = true}},
      {"nothing", {2, 0, 4}, {.fold = {2}}},
      {"cropped to nothing", {2, 3}, {.pad_after = {2, 0}, .unfold = true}},
  };
  for (const Move& m : all)
    for (bool blended : {false, true}) {
      TensorTransform op = m.op;
      if (blended) {
        op.alpha = 2.0;
        op.beta = -1.0;
      }
      cases.push_back(
          {"tensor_transform", m.label + (blended ? ", blended" : ""), kArithmetic,
           [=](CaseBuilder& b) {
             const Value x = b.operand("x", m.x);
             Value z;
             if (blended) {
               Graph trial;
               const Value y = trial.apply(m.op, {{TensorTransform::x, trial.input("x", m.x, f32)}},
                                           {TensorTransform::y});
               z = b.input("z", y.dims(), b.dtype());
             }
             b.result(b.graph().apply(op, {{TensorTransform::x, x}, {TensorTransform::z, z}},
                                      {TensorTransform::y}));
           },
           true, m.one_shape || blended});
    }
}

}  // namespace

std::vector<OpCase> spatial_cases() {
  std::vector<OpCase> cases;
  add_ctc(cases);
  add_generators(cases);
  add_samplers(cases);
  add_patches(cases);
  add_transforms(cases);
  return cases;
}

}  // namespace ashlar::ops
