// Text -> graph, the inverse of print (ir/graph.h): what print writes reads back as the same text. By hand, types of
// nodes and trailing arguments that have defaults may be left out, ids may be any numbers, and lines may be comments.
#pragma once

#include <functional>
#include <string_view>

#include "morel/ir/graph.h"

namespace morel {

// The tensor that captured value number `idx` stands for; it must be of `type`.
using CaptureSource = std::function<Tensor(size_t idx, const Type& type)>;

// Raises with line and column where the text is no graph, and with the line where a node does not fit its operator.
// Without a source, captures have no data: such a graph can be transformed and printed but not run.
Ref<Graph> parse(std::string_view text, const CaptureSource& captures = {});

// ---- what the parser asks of the registry of operators (ops/call.cc) ----
struct NamedOp {
  const OpDef* op = nullptr;  // null when there is no such operator
  std::string_view name;      // lives as long as the operator
  uint64_t graphs = 0;        // bits of the arguments that are graphs
};
NamedOp op_of_name(std::string_view name);
// The types of the results of a call, whose arguments are completed. Raises when they differ from `written`, unless
// that is empty.
Types checked_call(const OpDef& op, Args& args, const Types& written);

}  // namespace morel
