// What one `fused` node is: an iteration space, over which its body's nodes are stages of one loop program.
#pragma once

#include "morel/ir/graph.h"
#include "morel/loops/program.h"

namespace morel {

// What a node is within a loop over `space`.
enum class Part : uint8_t {
  None,
  Element,    // one value for each position, or for each row
  Row,        // a row-wise operator along the last axis
  RowReduce,  // a reduction of the last axis
  Reduce,     // of other axes: the loop ends with it
};
// A node by itself, whatever is around it; fills in the space over which it runs.
Part part_of(const Node& node, Shape& space);

// Whether shapes are the same whatever their symbols stand for.
bool same(const Shape& a, const Shape& b);
// One value for each row of the space.
Shape row_shape(const Shape& space);
// The last axis gives rows that run one after the other in every mode of execution, whatever surrounds them: neither so
// short that they run side by side nor so long that they are cut into pieces. Of symbols it is taken to be so; a loop
// asks again when it has numbers.
bool has_plain_rows(const Shape& space);

struct FusedBody {
  enum class Kind : uint8_t { Elementwise, Rows, Reduction } kind = Kind::Elementwise;
  Shape space;
  const Node* columns = nullptr;  // Rows: the member that has a companion over columns
  const Node* reduce = nullptr;   // Reduction: the last member
};
FusedBody describe_fused(const Graph& body);
// Whether a result of a member is there when all rows are done: of a columns companion, of a reduction that ends the
// loop.
bool comes_last(const Node& node, uint32_t output);

// A fused node may begin with a kernel (kEpilogue) on whose result 0, or a reshape of it, its elementwise members work
// part by part: its epilogue. In the body, the results of the kernel come last, its first one as the very last.
// The kernel, null where a body is a loop alone.
const Node* producer_of(const Graph& body);
// A fused node with an epilogue, taken apart.
struct EpilogueParts {
  const Node* producer;
  Args args;                      // of the kernel, in terms of the graph that the fused node is in
  Ref<Graph> loop;                // the epilogue
  Value::List operands;           // of the loop; nothing stands for the product
  size_t product = 0;             // its position
  std::vector<uint32_t> outputs;  // of the kernel, which are results of the node after those of the loop
};
EpilogueParts split_epilogue(const Node& fused);

// The loop of a body: one input for each parameter, one output for each result. Results of a columns companion or of
// the reduction come last; a Rows program does not have the former.
loops::Program fused_program(const Graph& body);
loops::Program fused_columns_program(const Graph& body);
// A Reduction's first pass, into results of the type in which it computes.
loops::Program fused_reduction_program(const Graph& body, loops::ProgramKind kind);

}  // namespace morel
