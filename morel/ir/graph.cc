#include "morel/ir/graph.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <unordered_set>

namespace morel {

Graph::~Graph() { clear(); }

// Node by node: a long chain of references must not be freed recursively.
void Graph::clear() {
  for (const Ref<Graph>& function : functions) function->clear();
  for (Ref<Graph>* derived : {&backward, &tangent})
    if (const Ref<Graph> function = std::move(*derived)) function->clear();
  results.clear();
  for (size_t i = nodes.size(); i-- > 0;) nodes[i]->args.clear();
}

Value Graph::add_parameter(Type type) {
  auto node = make_ref<Node>();
  node->types.push_back(std::move(type));
  node->graph = this;
  parameters.push_back(node);
  return node->output();
}

Value Graph::add_capture(const Tensor& tensor) {
  auto node = make_ref<Node>();
  node->types.push_back({tensor.dtype(), tensor.shape()});
  node->captured = tensor;
  node->graph = this;
  captures.push_back(node);
  return node->output();
}

Node& Graph::add_node(const OpDef& op, std::string_view op_name, Args args, Types types, std::string place) {
  auto node = make_ref<Node>();
  node->op = &op;
  node->name = op_name;
  node->args = std::move(args);
  node->types = std::move(types);
  node->place = std::move(place);
  node->graph = this;
  nodes.push_back(node);
  return *node;
}

bool bind_sizes(const Graph& graph, std::span<const Value> parameters, Numbers& values) {
  values.assign(graph.sizes ? graph.sizes->count() : 0, 0);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Shape &wanted = graph.parameters[i]->types[0].shape, &given = shape_of(parameters[i]);
    if (wanted.size() != given.size()) return false;
    for (size_t axis = 0; axis < wanted.size(); ++axis) {
      const int64_t size = given[axis];
      if (!wanted[axis].is_symbolic()) {
        if (wanted[axis].code() != size) return false;
        continue;
      }
      if (size < SymbolicSizes::least) return false;
      values[static_cast<size_t>(wanted[axis].expr().terms()[0].atoms[0]->symbol)] = size;
    }
  }
  return true;
}

void Graph::number() {
  int64_t next = 0;
  for (auto* list : {&parameters, &captures, &nodes})
    for (const Ref<Node>& node : *list) node->id = next++;
}

Values append_copy(Graph& graph, const Graph& callee, std::span<const Value> arguments) {
  std::unordered_map<const Node*, Values> copies;
  for (size_t i = 0; i < callee.parameters.size(); ++i) copies[callee.parameters[i].get()] = {arguments[i]};
  const auto copied = [&](const Value& value) {
    return map_inputs(value, [&](const Value& input) { return copies.at(node_of(input))[input.output()]; });
  };
  for (const Ref<Node>& node : callee.nodes) {
    Args args;
    for (const Value& arg : node->args) args.push_back(copied(arg));
    Node& copy = graph.add_node(*node->op, node->name, std::move(args), node->types, node->place);
    copy.stops_gradient = node->stops_gradient;
    Values& outs = copies[node.get()];
    for (uint32_t i = 0; i < node->types.size(); ++i) outs.push_back(copy.output(i));
  }
  Values out;
  for (const Value& result : callee.results) out.push_back(copied(result));
  return out;
}

namespace {

std::string operand(const Value& value);

std::string joined(std::span<const Value> values) {
  std::string out;
  for (size_t i = 0; i < values.size(); ++i) out += (i ? ", " : "") + operand(values[i]);
  return out;
}

std::string reference(const Value& value) {
  const Node* node = node_of(value);
  const std::string name = "%" + std::to_string(node->id);
  return node->types.size() > 1 ? name + "." + std::to_string(value.output()) : name;
}

std::string operand(const Value& value) {
  if (value.tag() == Value::Tag::Node) return reference(value);
  if (value.is_list()) return "[" + joined({value.list().data(), value.list().size()}) + "]";
  return to_string(value);
}

bool is_name(std::string_view text) {
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  return !text.empty() && std::ranges::all_of(text, is_part);
}

// Names of Python functions can be any text: "<lambda>".
std::string name_of(const Graph& graph) {
  return (graph.is_function ? "@" : "") + (is_name(graph.name) ? graph.name : to_string(Value(graph.name)));
}

std::string line_of(std::string place) {
  for (char& c : place)
    if (c == '\n' || c == '\r') c = ' ';
  return place;
}

std::string inputs(const std::vector<Ref<Node>>& nodes) {
  std::string out;
  for (const Ref<Node>& node : nodes)
    out += cat(out.empty() ? "" : ", ", "%", node->id, ": ", to_string(node->types[0]));
  return out;
}

std::string text_of(const SymbolicSizes& sizes) {
  std::string out, guards;
  for (size_t i = 0; i < sizes.count(); ++i) out += cat(i ? ", " : " sizes(", "s", i, "=", sizes.examples()[i]);
  for (const SizeGuard& guard : sizes.guards()) guards += (guards.empty() ? " assuming(" : ", ") + to_string(guard);
  return out + ")" + (guards.empty() ? "" : guards + ")");
}

void print_body(Graph& graph, const std::string& indent, std::string& out);

void print_node(const Node& node, const std::string& indent, std::string& out) {
  std::string types;
  for (const Type& type : node.types) types += (types.empty() ? ": " : ", ") + to_string(type);
  std::string args;
  for (const Value& arg : node.args) {
    if (!args.empty()) args += ", ";
    args += arg.tag() == Value::Tag::Graph ? name_of(*static_cast<const Graph*>(arg.graph())) : operand(arg);
  }
  out +=
      cat(indent, "%", node.id, types, " = ", node.name, "(", args, ")", node.stops_gradient ? " stops_gradient" : "",
          node.place.empty() ? "" : "  # " + line_of(node.place), "\n");
  for_each_body(node, [&](Graph& body) { print_body(body, indent + "  ", out); });
}

void print_body(Graph& graph, const std::string& indent, std::string& out) {
  graph.number();
  out += indent + "graph " + name_of(graph) + "(" + inputs(graph.parameters) + ")";
  if (!graph.captures.empty()) out += " captures(" + inputs(graph.captures) + ")";
  if (graph.sizes && graph.sizes->count() > 0) out += text_of(*graph.sizes);
  out += " {\n";
  for (const Ref<Node>& node : graph.nodes) print_node(*node, indent + "  ", out);
  const std::string results = joined({graph.results.data(), graph.results.size()});
  out += indent + "  return" + (results.empty() ? "" : " ") + results + "\n" + indent + "}\n";
}

}  // namespace

std::string print(Graph& graph) {
  std::string out;
  print_body(graph, "", out);
  for_each_function(graph, [&](Graph& function) { print_body(function, "", out); });
  return out;
}

void verify(Graph& graph) {
  std::unordered_set<const Node*> known;
  for (const auto* list : {&graph.parameters, &graph.captures})
    for (const Ref<Node>& node : *list) known.insert(node.get());
  const auto check = [&](const Value& value, std::string_view reader) {
    const Node* node = node_of(value);
    MOREL_CHECK(known.contains(node), Internal, "internal error: in graph ", graph.name, ", ", reader,
                " reads a value that does not come before it; please report it");
    MOREL_CHECK(value.output() < node->types.size(), Internal, "internal error: in graph ", graph.name, ", ", reader,
                " reads output ", value.output(), " of ", node->name, ", which has ", node->types.size());
  };
  for (const Ref<Node>& node : graph.nodes) {
    for_each_input(*node, [&](const Value& value) { check(value, node->name); });
    for_each_body(*node, [](Graph& body) { verify(body); });
    known.insert(node.get());
  }
  for (const Value& result : graph.results) for_each_input(result, [&](const Value& value) { check(value, "return"); });
  for_each_function(graph, [](Graph& function) { verify(function); });
}

}  // namespace morel
