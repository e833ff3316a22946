#include "morel/lite/model.h"

#include <cstdio>
#include <cstring>

#include "morel/base/thread_pool.h"
#include "morel/lite/container.h"
#include "morel/lite/session.h"
#include "morel/lite/sizes.h"

namespace morel::lite {

struct Model::State {
  MappedFile file;
  Ref<Storage> copy;  // of a file that is not mapped, or a buffer that is not aligned
  PlanFile content;
  std::unique_ptr<Session> session;
  std::vector<TensorRef> inputs, outputs;

  Bytes copied() const { return {reinterpret_cast<const std::byte*>(copy->data()), copy->bytes()}; }

  // What is read after the size was found may be less, where another process writes; then the file is incomplete.
  Bytes read_file() {
    const size_t bytes = file.bytes().size();
    copy = Storage::allocate(bytes);
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(std::fopen(file.path().c_str(), "rb"), std::fclose);
    const size_t found = stream ? std::fread(copy->data(), 1, bytes, stream.get()) : 0;
    return copied().first(found);
  }

  void read(Bytes bytes, const std::string& name, const Context& context) {
    if (context.threads > 0) set_num_threads(context.threads);
    content = read_plan(bytes, name);
    try {
      start(planned_symbols(content.plan));
    } catch (Error& error) {
      error.append("\nin the model " + name);
      throw;
    }
  }

  void start(std::vector<int64_t> symbols) {
    session = std::make_unique<Session>(content.plan, content.weights, std::move(symbols));
    const Function& model = content.plan.functions[0];
    const auto name = [&](int32_t value) { return model.values[static_cast<size_t>(value)].name; };
    inputs.clear();
    outputs.clear();
    for (size_t i = 0; i < model.inputs.size(); ++i) inputs.emplace_back(name(model.inputs[i]), session->inputs()[i]);
    for (size_t i = 0; i < model.outputs.size(); ++i)
      outputs.emplace_back(name(model.outputs[i]), session->outputs()[i]);
  }
};

namespace {

const TensorRef& find(std::span<const TensorRef> list, std::string_view name, const char* what) {
  for (const TensorRef& tensor : list)
    if (tensor.name() == name) return tensor;
  raise(ErrorKind::Key, "the model has no ", what, " '", name, "'");
}

}  // namespace

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Model Model::build(const std::string& path, const Context& context) {
  auto state = std::make_unique<State>();
  state->file = MappedFile(path);
  const Bytes bytes = context.maps_file ? state->file.bytes() : state->read_file();
  if (!context.maps_file) state->file = MappedFile();
  state->read(bytes, path, context);
  return Model(std::move(state));
}

Model Model::build(Bytes bytes, const Context& context) {
  auto state = std::make_unique<State>();
  if (reinterpret_cast<uintptr_t>(bytes.data()) % weight_alignment) {
    state->copy = Storage::allocate(bytes.size());
    std::memcpy(state->copy->data(), bytes.data(), bytes.size());
    bytes = state->copied();
  }
  state->read(bytes, "buffer", context);
  return Model(std::move(state));
}

std::span<const TensorRef> Model::inputs() const { return state_->inputs; }
std::span<const TensorRef> Model::outputs() const { return state_->outputs; }
const TensorRef& Model::input(std::string_view name) const { return find(state_->inputs, name, "input"); }
const TensorRef& Model::output(std::string_view name) const { return find(state_->outputs, name, "output"); }

void Model::resize(std::span<const std::vector<int64_t>> shapes) {
  const Plan& plan = state_->content.plan;
  MOREL_CHECK(shapes.size() == state_->inputs.size(), Value, "resize takes the shapes of ", state_->inputs.size(),
              " inputs, got ", shapes.size());
  std::vector<int64_t> symbols;
  for (const Symbol& symbol : plan.symbols) {
    const std::vector<int64_t>& shape = shapes[static_cast<size_t>(symbol.input)];
    MOREL_CHECK(shape.size() == state_->inputs[static_cast<size_t>(symbol.input)].shape().size(), Value, "input ",
                symbol.input, " has ", state_->inputs[static_cast<size_t>(symbol.input)].shape().size(), " axes, not ",
                shape.size());
    symbols.push_back(shape[static_cast<size_t>(symbol.axis)]);
  }
  // The shapes of the inputs follow from the symbols; where others were asked for, nothing changes.
  const SizeValues sizes(plan, symbols);
  const Function& model = plan.functions[0];
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Sizes& wanted = model.values[static_cast<size_t>(model.inputs[i])].shape;
    bool same = wanted.size() == shapes[i].size();
    for (size_t k = 0; k < wanted.size() && same; ++k) same = sizes(wanted[k]) == shapes[i][k];
    MOREL_CHECK(same, Value, "input ", i, " ('", state_->inputs[i].name(),
                "') cannot be resized so: the model was converted for another size of a fixed axis");
  }
  state_->start(std::move(symbols));
}

void Model::predict() { state_->session->run(); }
const Plan& Model::plan() const { return state_->content.plan; }
size_t Model::arena_bytes() const { return state_->session->arena_bytes(); }
size_t Model::weight_bytes() const { return state_->content.weights.size(); }

}  // namespace morel::lite
