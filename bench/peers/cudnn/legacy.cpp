#include "legacy.hpp"

#include <limits>

namespace ashlar::bench::cudnn {

LegacyForm::LegacyForm(const Library& library, DataType type, const Form& form)
    : library_(library) {
  std::vector<int> dims, strides;
  for (std::size_t i = 0; i < form.dims.size(); ++i) {
    if (form.dims[i] > std::numeric_limits<int>::max() ||
        form.strides[i] > std::numeric_limits<int>::max())
      throw Refused("dims or strides exceed the 32 bits of the legacy API");
    dims.push_back(static_cast<int>(form.dims[i]));
    strides.push_back(static_cast<int>(form.strides[i]));
  }
  library.check(library.call().create_tensor(&form_), "creating a tensor descriptor");
  const Status status = library.call().set_tensor(form_, type, static_cast<int>(dims.size()),
                                                  dims.data(), strides.data());
  if (status == 0) return;
  library.call().destroy_tensor(form_);
  library.check(status, "describing a tensor");
}

LegacyForm::~LegacyForm() { library_.call().destroy_tensor(form_); }

void consider_legacy(const Library& library, const Subgraph& subgraph, Bindings& bindings,
                     Fastest& fastest) {
  if (!library.call().create_tensor || !library.call().set_tensor) return;
  const LegacyProblem problem{library, subgraph, bindings, fastest};
  for (const auto family : {consider_softmax, consider_pooling, consider_batch_norm,
                            consider_movement, consider_dropout}) {
    try {
      family(problem);
    } catch (const Refused& refusal) {
      fastest.refused(refusal.what());
    }
  }
}

}  // namespace ashlar::bench::cudnn
