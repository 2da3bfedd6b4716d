#include "graph_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "../units.hpp"
#include "graph_layout.hpp"
#include "markup.hpp"

namespace ashlar::cli::html {

namespace {

// Pixels. Names are in a monospaced face, whose characters are 0.6 of its size wide.
constexpr double kCharacter = 7.25, kSmallCharacter = 6.35;
constexpr double kBoxPadding = 12, kOpHeight = 38, kPlainOpHeight = 26, kPillHeight = 38;
constexpr double kRegionPadding = 14, kCaptionHeight = 44, kPortWidth = 6, kMargin = 12;
constexpr std::size_t kMostCharacters = 26;
constexpr double kInputSpacing = 16;  // of lines that end at the same operation
constexpr double kChainWeight = 12;   // operations that follow each other stand below each other
constexpr Spacing kInner{14, 10, 22}, kOuter{20, 12, 34};

double text_width(std::string_view text, double character) {
  return static_cast<double>(character_count(text)) * character;
}

// A box with one or two lines of text, drawn with its top left corner at the origin.
struct Label {
  std::string style;  // of the group
  std::string first, second, hover;
  double radius = 5;

  double width() const {
    return std::max(text_width(first, kCharacter), text_width(second, kSmallCharacter)) +
           2 * kBoxPadding;
  }
  double height() const { return second.empty() ? kPlainOpHeight : kOpHeight; }
  std::string draw(double x, double y) const {
    const double middle = x + width() / 2;
    std::string svg = fmt::format(
        "<g class=\"{}\"><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"{:.1f}\" rx=\"{}\"/><text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>",
        style, escaped(hover), x, y, width(), height(), radius, middle, y + 16.5, escaped(first));
    if (!second.empty())
      svg += fmt::format("<text class=\"small\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", middle,
                         y + 30.5, escaped(second));
    return svg + "</g>\n";
  }
};

std::string names_of(const Graph& graph, const std::vector<TensorId>& ids) {
  std::string text;
  for (const TensorId id : ids) {
    if (id == kNoTensor) continue;
    const Tensor& tensor = graph.tensor(id);
    text += fmt::format("\n  {} {}", tensor.name, shape_text(tensor));
    if (tensor.kind == TensorKind::constant) text += fmt::format(" = {:g}", tensor.value);
  }
  return text;
}

Label op_label_of(const Graph& graph, NodeId id) {
  const Node& node = graph.nodes()[static_cast<std::size_t>(id)];
  const std::string name(op_label(node.op));
  Label label{"op", shortened(name, kMostCharacters), {}, {}};
  if (node.name != name) label.second = shortened(node.name, kMostCharacters);
  label.hover = fmt::format("{} '{}'\nreads{}\nwrites{}", name, node.name,
                            names_of(graph, node.inputs), names_of(graph, node.outputs));
  return label;
}

Label tensor_label(const Tensor& tensor) {
  const char* style = tensor.kind == TensorKind::output         ? "tensor output"
                      : tensor.kind == TensorKind::intermediate ? "tensor workspace"
                                                                : "tensor input";
  return {style, shortened(tensor.name, kMostCharacters),
          shortened(shape_text(tensor), kMostCharacters + 4),
          fmt::format("{}\n{}, {} bytes", tensor.name, shape_text(tensor), byte_size(tensor)),
          kPillHeight / 2};
}

// Straight where x stays, a curve with vertical ends elsewhere.
std::string draw_line(const std::vector<Point>& points, double dx, double dy, bool has_arrow) {
  std::string path = fmt::format("M{:.1f} {:.1f}", points[0].x + dx, points[0].y + dy);
  for (std::size_t i = 1; i < points.size(); ++i) {
    const Point &from = points[i - 1], &to = points[i];
    const double middle = (from.y + to.y) / 2 + dy;
    // A last piece of length 0 would leave the arrowhead without a direction.
    if (std::abs(from.x - to.x) < 0.05 && std::abs(from.y - to.y) < 0.05) continue;
    if (std::abs(from.x - to.x) < 0.05)
      path += fmt::format("V{:.1f}", to.y + dy);
    else
      path += fmt::format("C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", from.x + dx, middle,
                          to.x + dx, middle, to.x + dx, to.y + dy);
  }
  return fmt::format("<path class=\"edge\" d=\"{}\"{}/>\n", path,
                     has_arrow ? " marker-end=\"url(#arrow)\"" : "");
}

std::string svg_of(double width, double height, const std::string& label, const std::string& body) {
  return fmt::format(
      "<svg class=\"graph\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "role=\"img\" aria-label=\"{2}\">\n{3}</svg>\n",
      width + 2 * kMargin, height + 2 * kMargin, escaped(label), body);
}

bool has_memory(const Tensor& tensor) { return tensor.kind != TensorKind::constant; }

// The tensors in memory, or views of them, that an operation reads, each once. `storage` as in
// Inspection; null: every tensor has its own memory.
std::vector<TensorId> read_by(const Graph& graph, NodeId id, const std::vector<TensorId>* storage) {
  std::vector<TensorId> read;
  for (const TensorId input : graph.nodes()[static_cast<std::size_t>(id)].inputs) {
    if (input == kNoTensor) continue;
    const TensorId memory = storage ? (*storage)[static_cast<std::size_t>(input)] : input;
    if (has_memory(graph.tensor(memory)) &&
        std::find(read.begin(), read.end(), memory) == read.end())
      read.push_back(memory);
  }
  return read;
}

// Where the i-th of several lines meets the top of an operation, from its centre.
double input_offset(std::size_t i, std::size_t count) {
  const double spacing = count > 4 ? kInputSpacing / 2 : kInputSpacing;
  return (static_cast<double>(i) - static_cast<double>(count - 1) / 2) * spacing;
}

// One region: its operations, with a port for every tensor that it reads or writes in memory.
class RegionBox {
 public:
  RegionBox(const Inspection& whole, const RegionInspection& region, const RegionCaption& caption)
      : region_(region), caption_(caption) {
    std::map<NodeId, int> box_of;
    std::map<TensorId, int> writer;  // by the tensor that owns the memory
    for (const NodeId id : region.nodes) {
      box_of[id] = add(op_label_of(whole.graph, id));
      for (const TensorId output : whole.graph.nodes()[static_cast<std::size_t>(id)].outputs)
        if (output != kNoTensor) writer[owner(whole, output)] = box_of[id];
    }
    for (const NodeId id : region.nodes) {
      const std::vector<TensorId> read = read_by(whole.graph, id, &whole.storage);
      for (std::size_t i = 0; i < read.size(); ++i) {
        const auto found = writer.find(read[i]);
        const bool is_inside = found != writer.end() && found->second < box_of[id];
        const int from = is_inside ? found->second : port(entries_, read[i], Drawing::Rank::first);
        inner_.lines.push_back(
            {from, box_of[id], 0, input_offset(i, read.size()), is_inside ? kChainWeight : 1});
      }
    }
    for (const TensorId id : region.writes)
      if (const auto found = writer.find(id); found != writer.end())
        inner_.lines.push_back({found->second, port(exits_, id, Drawing::Rank::last), 0, 0, 2});
    lay_out(inner_, kInner);
  }

  double width() const {
    const double caption = std::max(text_width(caption_.title, kCharacter),
                                    text_width(caption_.subtitle, kSmallCharacter));
    return std::max(inner_.width, caption) + 2 * kRegionPadding;
  }
  double height() const { return kCaptionHeight + inner_.height; }
  const std::map<TensorId, int>& entries() const { return entries_; }
  const std::map<TensorId, int>& exits() const { return exits_; }
  // Of a port, from the centre of the box.
  double offset(int port) const {
    const Drawing::Box& box = inner_.boxes[static_cast<std::size_t>(port)];
    return box.x + box.width / 2 - inner_.width / 2;
  }

  std::string draw(double x, double y) const {
    const std::string style = css_class(region_.method);
    std::string svg = fmt::format(
        "<g class=\"region {}\"><rect class=\"body\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"{:.1f}\" rx=\"8\"/>\n",
        style, x, y, width(), height());
    const double left = x + (width() - inner_.width) / 2, top = y + kCaptionHeight;
    for (const Drawing::Line& line : inner_.lines) {
      const bool leaves =
          inner_.boxes[static_cast<std::size_t>(line.to)].rank == Drawing::Rank::last;
      svg += draw_line(line.points, left, top, !leaves);
    }
    // Lines from above pass behind the caption.
    for (const auto& [tensor, port] : entries_) {
      const double at = x + width() / 2 + offset(port);
      svg += draw_line({{at, y}, {at, top}}, 0, 0, false);
    }
    for (std::size_t i = 0; i < labels_.size(); ++i)
      svg += labels_[i].draw(inner_.boxes[i].x + left, inner_.boxes[i].y + top);
    return svg + draw_caption(x, y) + "</g>\n";
  }

 private:
  static TensorId owner(const Inspection& whole, TensorId id) {
    return whole.storage[static_cast<std::size_t>(id)];
  }
  int add(Label label) {
    inner_.boxes.push_back({label.width(), label.height()});
    labels_.push_back(std::move(label));
    return static_cast<int>(labels_.size()) - 1;
  }
  int port(std::map<TensorId, int>& ports, TensorId tensor, Drawing::Rank rank) {
    const auto [found, is_new] = ports.try_emplace(tensor, static_cast<int>(inner_.boxes.size()));
    if (is_new) inner_.boxes.push_back({kPortWidth, 0, rank});
    return found->second;
  }
  std::string draw_caption(double x, double y) const {
    std::string svg = fmt::format(
        "<path class=\"head\" d=\"M{0:.1f} {1:.1f}v{2:.1f}a8 8 0 0 1 8 -8h{3:.1f}a8 8 0 0 1 8 "
        "8v{4:.1f}h-{5:.1f}z\"/><text class=\"title\" x=\"{6:.1f}\" y=\"{7:.1f}\">{8}</text>"
        "<text class=\"small\" x=\"{6:.1f}\" y=\"{9:.1f}\">{10}</text>",
        x, y + kCaptionHeight - 6, 14.0 - kCaptionHeight, width() - 16, kCaptionHeight - 14,
        width(), x + kRegionPadding, y + 16, escaped(caption_.title), y + 30,
        escaped(caption_.subtitle));
    if (caption_.link.empty()) return svg;
    return fmt::format("<a href=\"{}\">{}</a>\n", escaped(caption_.link), svg);
  }

  const RegionInspection& region_;
  const RegionCaption& caption_;
  Drawing inner_;
  std::vector<Label> labels_;                // the first boxes
  std::map<TensorId, int> entries_, exits_;  // ports: boxes of inner_
};

// Which regions touch a tensor in memory.
struct Traffic {
  std::vector<int> readers, writers;
};

}  // namespace

std::string css_class(ComputeMethod method) {
  switch (method) {
    case ComputeMethod::reference: return "reference";
    case ComputeMethod::thread_per_output: return "per-output";
    case ComputeMethod::cuda_cores: return "cuda-cores";
    case ComputeMethod::simd: return "simd";
    case ComputeMethod::tensor_cores: return "tensor-cores";
  }
  return "reference";
}

Figure region_figure(const Inspection& inspection, const std::vector<RegionCaption>& captions) {
  std::vector<RegionBox> regions;
  Drawing outer;
  std::map<TensorId, Traffic> memory;
  for (std::size_t i = 0; i < inspection.regions.size(); ++i) {
    const RegionBox& box = regions.emplace_back(inspection, inspection.regions[i], captions[i]);
    outer.boxes.push_back({box.width(), box.height()});
    for (const auto& [tensor, port] : box.entries())
      memory[tensor].readers.push_back(static_cast<int>(i));
    for (const auto& [tensor, port] : box.exits())
      memory[tensor].writers.push_back(static_cast<int>(i));
  }
  std::vector<Label> pills;
  for (const auto& [tensor, traffic] : memory) {
    const Label& pill = pills.emplace_back(tensor_label(inspection.graph.tensor(tensor)));
    const int at = static_cast<int>(outer.boxes.size());
    outer.boxes.push_back({pill.width(), pill.height()});
    // A region that updates memory in place is drawn as its writer; memory that is written again
    // after it was read keeps its first writers. So the drawing has no cycle.
    const int written = traffic.writers.empty() ? -1 : traffic.writers.front();
    int first_reader = static_cast<int>(regions.size());
    for (const int reader : traffic.readers) {
      if (reader <= written) continue;
      first_reader = std::min(first_reader, reader);
      const RegionBox& box = regions[static_cast<std::size_t>(reader)];
      outer.lines.push_back({at, reader, 0, box.offset(box.entries().at(tensor))});
    }
    for (const int writer : traffic.writers) {
      if (writer >= first_reader) continue;
      const RegionBox& box = regions[static_cast<std::size_t>(writer)];
      outer.lines.push_back({writer, at, box.offset(box.exits().at(tensor)), 0});
    }
  }
  lay_out(outer, kOuter);
  std::string body;
  for (const Drawing::Line& line : outer.lines)
    body += draw_line(line.points, kMargin, kMargin,
                      static_cast<std::size_t>(line.to) >= regions.size());
  for (std::size_t i = 0; i < outer.boxes.size(); ++i) {
    const Drawing::Box& box = outer.boxes[i];
    const double x = box.x + kMargin, y = box.y + kMargin;
    body += i < regions.size() ? regions[i].draw(x, y) : pills[i - regions.size()].draw(x, y);
  }
  return {svg_of(outer.width, outer.height,
                 fmt::format("{} in fusion regions", inspection.graph.name()), body),
          outer.width + 2 * kMargin, outer.height + 2 * kMargin};
}

Figure plain_figure(const Graph& graph) {
  Drawing drawing;
  std::vector<Label> labels;
  std::map<TensorId, int> source;  // box that a tensor comes from
  const auto add = [&](Label label) {
    drawing.boxes.push_back({label.width(), label.height()});
    labels.push_back(std::move(label));
    return static_cast<int>(labels.size()) - 1;
  };
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const int box = add(op_label_of(graph, static_cast<NodeId>(i)));
    const std::vector<TensorId> read = read_by(graph, static_cast<NodeId>(i), nullptr);
    for (std::size_t at = 0; at < read.size(); ++at) {
      const bool is_bound = !source.contains(read[at]);
      if (is_bound) source[read[at]] = add(tensor_label(graph.tensor(read[at])));
      drawing.lines.push_back(
          {source[read[at]], box, 0, input_offset(at, read.size()), is_bound ? 1 : kChainWeight});
    }
    for (const TensorId id : graph.nodes()[i].outputs) {
      if (id == kNoTensor) continue;
      source[id] = box;
      if (graph.tensor(id).kind == TensorKind::output)
        drawing.lines.push_back({box, add(tensor_label(graph.tensor(id)))});
    }
  }
  lay_out(drawing, kOuter);
  std::string body;
  for (const Drawing::Line& line : drawing.lines)
    body += draw_line(line.points, kMargin, kMargin, true);
  for (std::size_t i = 0; i < labels.size(); ++i)
    body += labels[i].draw(drawing.boxes[i].x + kMargin, drawing.boxes[i].y + kMargin);
  return {svg_of(drawing.width, drawing.height, graph.name() + " as written", body),
          drawing.width + 2 * kMargin, drawing.height + 2 * kMargin};
}

}  // namespace ashlar::cli::html
