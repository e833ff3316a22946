#include "morel/dist/redistribute.h"

#include <limits>
#include <map>
#include <mutex>
#include <tuple>

#include "morel/base/error.h"
#include "morel/runtime/eager.h"

namespace morel::dist {

using loops::ReduceOp;

namespace {

// Tensors of so few elements are sent whole to all that combine them: two messages cost more than a few bytes.
constexpr int64_t few_elements = 256;

void add(Step& step, Transfer transfer) {
  if (transfer.from != transfer.to) step.moved += transfer.box.num_elements();
  step.transfers[static_cast<size_t>(transfer.to)].push_back(std::move(transfer));
}

Step step_between(const Sharding* source, const Sharding* target) {
  Step step{source, target, {}, {}, 0};
  step.transfers.resize(static_cast<size_t>(source->mesh().size()));
  return step;
}

// Combines the parts along `along`. What stays partial is left alone. Where `to` cuts along these axes, the result is
// cut so at once; else along the longest tensor axis, from which it is gathered afterwards.
Step combining(const Sharding* from, const Sharding* to, const Axes& along, const Shape& shape) {
  AxisLists lists = from->axis_lists();
  Axes whole, kept;
  for (const int axis : from->partial())
    if (std::find(along.begin(), along.end(), axis) == along.end()) kept.push_back(axis);
  for (const int axis : along) {
    const int tensor_axis = to->tensor_axis_of(axis);
    (tensor_axis >= 0 ? lists[static_cast<size_t>(tensor_axis)] : whole).push_back(axis);
  }
  const Shape local = from->local_shape(0, shape);
  if (!whole.empty() && num_elements(local) > few_elements) {
    Axes& list = lists[static_cast<size_t>(std::max_element(local.begin(), local.end()) - local.begin())];
    list.append(whole.begin(), whole.end());
  }
  Step step = step_between(from, from->with_partial({}, ReduceOp::Sum));
  step.target = Sharding::get(&from->mesh(), lists, kept, from->combine());
  step.combine = from->combine();
  for (int to_position = 0; to_position < from->mesh().size(); ++to_position) {
    const Box box = step.target->box(to_position, shape);
    for (const int position : from->mesh().group(to_position, along)) add(step, {position, to_position, box});
  }
  return step;
}

// Every position takes what it lacks from those that have it; of several with the same piece another one for each
// receiver.
Step moving(const Sharding* from, const Sharding* to, const Shape& shape) {
  const Mesh& mesh = from->mesh();
  Step step = step_between(from, to);
  for (int receiver = 0; receiver < mesh.size(); ++receiver) {
    const Box wanted = to->box(receiver, shape);
    if (wanted.is_empty()) continue;
    std::map<std::vector<int64_t>, std::vector<int>> holders;  // by the first index of the piece
    for (int position = 0; position < mesh.size(); ++position) {
      const Box piece = from->box(position, shape);
      if (mesh.index_along(position, from->partial()) == mesh.index_along(receiver, from->partial()) &&
          !intersection(piece, wanted).is_empty())
        holders[{piece.start.begin(), piece.start.end()}].push_back(position);
    }
    for (const auto& [start, positions] : holders) {
      const bool own = std::find(positions.begin(), positions.end(), receiver) != positions.end();
      const int holder = own ? receiver : positions[static_cast<size_t>(receiver) % positions.size()];
      add(step, {holder, receiver, intersection(from->box(holder, shape), wanted)});
    }
  }
  return step;
}

// A whole value becomes parts along `along`: itself at the first process, nothing at the others; everywhere itself
// where combining it with itself changes nothing.
Step parting(const Sharding* from, const Sharding* to, const Axes& along, const Shape& shape) {
  Step step = step_between(from, to);
  step.combine = to->combine();
  const bool idempotent = to->combine() != ReduceOp::Sum && to->combine() != ReduceOp::Prod;
  for (int position = 0; position < from->mesh().size(); ++position)
    if (idempotent || from->mesh().index_along(position, along) == 0)
      add(step, {position, position, from->box(position, shape)});
  return step;
}

Plan make_plan(const Sharding* from, const Sharding* to, const Shape& shape) {
  MOREL_CHECK(&from->mesh() == &to->mesh(), NotImplemented, "a tensor on the mesh ", to_string(from->mesh()),
              " cannot be moved to the mesh ", to_string(to->mesh()), " yet; take full_tensor() and distribute it");
  Plan plan;
  const bool same_kind = from->combine() == to->combine();
  Axes ending, starting;
  for (const int axis : from->partial())
    if (!same_kind || !to->is_partial(axis)) ending.push_back(axis);
  for (const int axis : to->partial())
    if (!same_kind || !from->is_partial(axis)) starting.push_back(axis);
  const Sharding* now = from;
  if (!ending.empty()) {
    plan.steps.push_back(combining(now, to, ending, shape));
    now = plan.steps.back().target;
  }
  const Sharding* moved = Sharding::get(&to->mesh(), to->axis_lists(), now->partial(), now->combine());
  if (moved != now) plan.steps.push_back(moving(now, moved, shape));
  if (!starting.empty()) plan.steps.push_back(parting(moved, to, starting, shape));
  return plan;
}

// Sends what others need and receives what this process needs; the received pieces in the order of `step.transfers`.
std::map<std::pair<int, int>, Tensor> exchange(const Step& step, const Shape& shape, DType dtype,
                                               std::span<const Tensor> parts) {
  const Mesh& mesh = step.source->mesh();
  const std::vector<int>& here = world().positions(mesh);
  std::map<std::pair<int, int>, Tensor> received;
  if (static_cast<int>(here.size()) == mesh.size() || here.empty()) return received;
  std::vector<Message> sends, receives;
  std::vector<Tensor> sent;
  const auto rank_of = [&](int position) { return mesh.ranks()[static_cast<size_t>(position)]; };
  for (const std::vector<Transfer>& transfers : step.transfers) {
    for (const Transfer& transfer : transfers) {
      const int64_t bytes = transfer.box.num_elements() * size_of(dtype);
      if (transfer.from == transfer.to || bytes == 0) continue;
      for (size_t i = 0; i < here.size(); ++i) {
        if (transfer.from == here[i]) {
          sent.push_back(contiguous(part_of(parts[i], step.source->box(here[i], shape).start, transfer.box)));
          sends.push_back({rank_of(transfer.to), sent.back().data(), static_cast<size_t>(bytes)});
        } else if (transfer.to == here[i]) {
          const Shape size(transfer.box.size.begin(), transfer.box.size.end());
          Tensor& piece = received[{transfer.from, transfer.to}] = Tensor::empty(size, dtype);
          receives.push_back({rank_of(transfer.from), piece.data(), static_cast<size_t>(bytes)});
        }
      }
    }
  }
  world().exchange(sends, receives);
  return received;
}

Tensor assembled(const Step& step, int position, const Shape& shape, DType dtype,
                 const std::function<Tensor(const Transfer&)>& piece_of) {
  const std::vector<Transfer>& transfers = step.transfers[static_cast<size_t>(position)];
  const Box box = step.target->box(position, shape);
  const Shape size(box.size.begin(), box.size.end());
  if (transfers.empty()) return step.combine ? identities(size, dtype, *step.combine) : Tensor::empty(size, dtype);
  if (transfers.size() == 1) return piece_of(transfers[0]);
  if (step.combine) {
    Tensor sum = piece_of(transfers[0]);
    for (size_t i = 1; i < transfers.size(); ++i) sum = combined(*step.combine, sum, piece_of(transfers[i]));
    return convert(sum, dtype);
  }
  const Tensor out = Tensor::empty(size, dtype);
  for (const Transfer& transfer : transfers) copy_into(part_of(out, box.start, transfer.box), piece_of(transfer));
  return out;
}

std::vector<Tensor> run(const Step& step, const Shape& shape, DType dtype, std::span<const Tensor> parts) {
  const std::vector<int>& here = world().positions(step.source->mesh());
  const auto received = exchange(step, shape, dtype, parts);
  std::vector<Tensor> out;
  for (const int position : here) {
    out.push_back(assembled(step, position, shape, dtype, [&](const Transfer& transfer) {
      for (size_t i = 0; i < here.size(); ++i)
        if (here[i] == transfer.from)
          return part_of(parts[i], step.source->box(transfer.from, shape).start, transfer.box);
      const auto piece = received.find({transfer.from, transfer.to});
      if (piece != received.end()) return piece->second;
      return Tensor::empty(Shape(transfer.box.size.begin(), transfer.box.size.end()), dtype);  // nothing to send
    }));
  }
  return out;
}

}  // namespace

std::string_view Step::name() const {
  if (combine && source->partial().size() < target->partial().size()) return "to_partial";
  if (combine) return source->axis_lists() == target->axis_lists() ? "all_reduce" : "reduce_scatter";
  if (moved == 0) return "slice";
  for (size_t axis = 0; axis < target->rank(); ++axis) {
    const Axes &before = source->axes(axis), &after = target->axes(axis);
    if (after.size() > before.size() || !std::equal(after.begin(), after.end(), before.begin())) return "all_to_all";
  }
  return "all_gather";
}

int64_t Plan::moved() const {
  int64_t out = 0;
  for (const Step& step : steps) out += step.moved;
  return out;
}

const Plan& plan(const Sharding* from, const Sharding* to, const Shape& shape) {
  using Key = std::tuple<const Sharding*, const Sharding*, std::vector<int64_t>>;
  static std::mutex mutex;
  static std::map<Key, Plan>& plans = *new std::map<Key, Plan>;
  static const Plan& nothing = *new Plan;
  if (from == to) return nothing;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = plans.try_emplace(Key{from, to, {shape.begin(), shape.end()}});
  if (is_new) found->second = make_plan(from, to, shape);
  return found->second;
}

std::string to_string(const Plan& plan) {
  std::string out;
  for (const Step& step : plan.steps) out += cat(out.empty() ? "" : ", ", step.name(), " ", step.moved);
  return out.empty() ? "nothing" : out;
}

std::vector<Tensor> redistribute(const Plan& plan, const Shape& shape, DType dtype, std::vector<Tensor> parts) {
  for (const Step& step : plan.steps) parts = run(step, shape, dtype, parts);
  return parts;
}

Tensor combined(ReduceOp combine, const Tensor& a, const Tensor& b) {
  const auto apply = [&](OpName name) {
    const DType wide = compute_dtype(a.dtype());
    const Value args[] = {convert(a, wide), convert(b, wide)};
    return execute(find_op(name), args)[0].tensor();
  };
  switch (combine) {
    case ReduceOp::Sum: return apply("add");
    case ReduceOp::Prod: return apply("mul");
    case ReduceOp::Min: return apply("minimum");
    case ReduceOp::Max: return apply("maximum");
    case ReduceOp::Any: return apply("logical_or");
    case ReduceOp::All: return apply("logical_and");
    case ReduceOp::ArgMin:
    case ReduceOp::ArgMax: break;
  }
  raise(ErrorKind::Internal, "positions of extremes cannot be combined");
}

Tensor identities(const Shape& shape, DType dtype, ReduceOp combine) {
  if (combine == ReduceOp::Sum || combine == ReduceOp::Any) return Tensor::full(shape, dtype, 0);
  if (combine == ReduceOp::Prod || combine == ReduceOp::All) return Tensor::full(shape, dtype, 1);
  const bool lowest = combine == ReduceOp::Max;
  const double infinity = std::numeric_limits<double>::infinity();
  if (is_float(dtype)) return Tensor::full(shape, dtype, lowest ? -infinity : infinity);
  const Tensor out = Tensor::empty(shape, dtype);
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>)
      std::fill_n(out.as<T>(), out.size(), lowest ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max());
  });
  return out;
}

Tensor part_of(const Tensor& tensor, const Numbers& start, const Box& box) {
  Layout layout = tensor->layout;
  bool whole = true;
  for (size_t axis = 0; axis < box.start.size(); ++axis) {
    whole = whole && layout.shape[axis] == box.size[axis];
    layout.offset += (box.start[axis] - start[axis]) * layout.strides[axis];
    layout.shape[axis] = box.size[axis];
  }
  return whole ? tensor : tensor.with_layout(std::move(layout));
}

}  // namespace morel::dist
