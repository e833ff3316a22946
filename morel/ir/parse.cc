#include "morel/ir/parse.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <memory>
#include <unordered_map>
#include <unordered_set>

namespace morel {
namespace {

// Lists and graphs within each other; the parser is recursive.
constexpr int max_depth = 64;
// Sizes whose product with anything that occurs still fits.
constexpr int64_t max_elements = int64_t{1} << 48;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

class Parser {
 public:
  Parser(std::string_view text, const CaptureSource& captures) : text_(text), captures_(captures) {}

  Ref<Graph> run() {
    Ref<Graph> out = graph();
    out->functions = functions_;  // frees them, whatever happens now
    while (skip(), text_.substr(at_).starts_with("graph")) define_function();
    out->functions = functions_;
    for (const Ref<Graph>& function : functions_)
      if (!defined_.contains(function.get()))
        fail(at_, cat("the function ", function->name, " is called but not there"));
    if (at_ < text_.size()) expected("the end of the text");
    return out;
  }

 private:
  using Known = std::unordered_map<int64_t, Ref<Node>>;  // values by id

  struct Depth {
    explicit Depth(Parser& parser) : parser(parser) {
      if (++parser.depth_ > max_depth) parser.fail(parser.at_, "too many levels");
    }
    ~Depth() { --parser.depth_; }
    Parser& parser;
  };

  // ---- characters ----
  std::string position(size_t at) const {
    const std::string_view before = text_.substr(0, at);
    const size_t line = 1 + static_cast<size_t>(std::ranges::count(before, '\n'));
    const size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
    return cat("line ", line, ", column ", at - start + 1);
  }
  [[noreturn]] void fail(size_t at, std::string_view problem) const {
    raise(ErrorKind::Value, "In the text of a graph, ", position(at), ": ", problem);
  }
  [[noreturn]] void expected(std::string_view what) const {
    size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    const std::string_view found = text_.substr(at_, std::max<size_t>(end - at_, 1));
    fail(at_, cat("expected ", what, " but found ", found.empty() ? "the end" : to_string(Value(found))));
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  // Over white space and comments.
  void skip() {
    while (at_ < text_.size() && (std::isspace(static_cast<unsigned char>(text_[at_])) || text_[at_] == '#')) {
      if (text_[at_] == '#') at_ = std::min(text_.find('\n', at_), text_.size());
      else ++at_;
    }
  }
  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t') ++at_;
  }
  bool take(std::string_view symbol) {
    skip();
    if (!text_.substr(at_).starts_with(symbol)) return false;
    if (is_word(symbol.back()) && at_ + symbol.size() < text_.size() && is_word(text_[at_ + symbol.size()]))
      return false;
    at_ += symbol.size();
    return true;
  }
  void want(std::string_view symbol) {
    if (!take(symbol)) expected(to_string(Value(symbol)));
  }
  std::string_view word(std::string_view what) {
    skip();
    const size_t begin = at_;
    while (is_word(peek())) ++at_;
    if (at_ == begin) expected(what);
    return text_.substr(begin, at_ - begin);
  }
  // item {"," item} up to `close`, which is taken.
  template <class F>
  void sequence(std::string_view close, F&& item) {
    if (take(close)) return;
    do {
      item();
    } while (take(","));
    want(close);
  }

  // ---- values ----
  template <class T>
  T number_of(std::string_view digits, size_t at) const {
    T out{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    if (error != std::errc() || end != digits.data() + digits.size())
      fail(at, cat(to_string(Value(digits)), " is no number that fits"));
    return out;
  }
  Value number() {
    skip();
    const size_t begin = at_;
    if (peek() == '-') ++at_;
    while (is_word(peek()) || peek() == '.' ||
           (at_ > begin && text_[at_ - 1] == 'e' && (peek() == '-' || peek() == '+')))
      ++at_;
    const std::string_view digits = text_.substr(begin, at_ - begin);
    if (digits.empty() || digits == "-") expected("a number");
    if (is_symbol(digits) || peek() == '*' || peek() == '+' || peek() == '-') {
      at_ = begin;
      return size();
    }
    if (digits.find_first_of(".en") != std::string_view::npos) return number_of<double>(digits, begin);
    return number_of<int64_t>(digits, begin);
  }
  std::string string() {
    const size_t begin = at_;
    want("'");
    std::string out;
    while (peek() != '\'') {
      if (at_ >= text_.size()) fail(begin, "the string does not end");
      char c = text_[at_++];
      if (c == '\\') {
        c = peek();
        at_ = std::min(at_ + 1, text_.size());
        if (c == 'x') {
          const std::string_view digits = text_.substr(at_, 2);
          unsigned byte = 0;
          const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
          if (error != std::errc() || digits.size() != 2 || end != digits.data() + 2)
            expected("two hexadecimal digits");
          c = static_cast<char>(byte);
          at_ += 2;
        } else if (c != '\'' && c != '\\') {
          --at_;
          expected("', \\ or x after \\");
        }
      }
      out += c;
    }
    ++at_;
    return out;
  }
  // (1, 2) or (1.0, 2.0).
  Value numbers() {
    const size_t begin = at_;
    Ints ints;
    Value::Floats floats;
    sequence(")", [&] {
      const Value value = number();
      if (value.is_integer()) ints.push_back(value.dim());
      else floats.push_back(value.number());
    });
    if (floats.empty()) return ints;
    if (!ints.empty()) fail(begin, "integers and floats are mixed");
    return floats;
  }
  Value named() {
    const size_t begin = at_;
    const std::string_view name = word("a value");
    if (name == "None") return {};
    if (name == "True" || name == "False") return name == "True";
    if (name == "complex") {
      want("(");
      const double real = number().number();
      want(",");
      const double imag = number().number();
      want(")");
      return std::complex<double>(real, imag);
    }
    for (int i = 0; i < num_dtypes; ++i)
      if (dtype_table[i].name == name) return static_cast<DType>(i);
    at_ = begin;
    const bool is_number = std::isdigit(static_cast<unsigned char>(name[0])) || is_symbol(name);
    if (is_number || name == "inf" || name == "nan") return number();
    expected("a value");
  }
  Value operand(const Known& known) {
    skip();
    if (peek() == '%') return reference(known);
    if (peek() == '\'') return string();
    if (peek() == '-') return number();
    if (take("(")) return numbers();
    if (!take("[")) return named();
    const Depth depth(*this);
    Value::List list;
    sequence("]", [&] { list.push_back(operand(known)); });
    return list;
  }
  int64_t id() {
    want("%");
    const size_t begin = at_;
    return number_of<int64_t>(word("the number of a value"), begin);
  }
  Value reference(const Known& known) {
    const size_t begin = at_;
    const auto found = known.find(id());
    if (found == known.end()) fail(begin, cat(text_.substr(begin, at_ - begin), " is not defined before"));
    const Ref<Node>& node = found->second;
    uint32_t output = 0;
    if (peek() == '.') {
      const size_t digits = ++at_;
      output = number_of<uint32_t>(word("the number of an output"), digits);
    }
    if (output >= node->types.size())
      fail(begin, cat(text_.substr(begin, at_ - begin), " does not exist: there are ", node->types.size(), " outputs"));
    return node->output(output);
  }

  // ---- types ----
  // s0, or the start of floor(a, b); also after a minus.
  static bool is_symbol(std::string_view word) {
    if (word.starts_with('-')) word.remove_prefix(1);
    return word == "floor" || (word.size() > 1 && word[0] == 's' && std::isdigit(static_cast<unsigned char>(word[1])));
  }
  // A sum of products of numbers, symbols and floor(a, b).
  Dim size() {
    const Depth depth(*this);
    skip();
    const bool negative = peek() == '-' && ++at_;
    Dim out = negative ? -size_product() : size_product();
    while (peek() == '+' || peek() == '-') {
      const bool minus = text_[at_++] == '-';
      const Dim term = size_product();
      out += minus ? -term : term;
    }
    return out;
  }
  Dim size_product() {
    Dim out = size_factor();
    while (peek() == '*') {
      ++at_;
      out *= size_factor();
    }
    return out;
  }
  Dim size_factor() {
    const size_t begin = at_;
    const std::string_view found = word("a size");
    if (found == "floor") {
      want("(");
      const Dim a = size();
      want(",");
      const Dim b = size();
      want(")");
      if (b.identical(0)) fail(begin, "division by zero");
      return floor_quotient(a, b);
    }
    const bool symbolic = is_symbol(found);
    const int64_t number = number_of<int64_t>(symbolic ? found.substr(1) : found, begin);
    if (number > max_elements) fail(begin, "the size is too large");
    if (!symbolic) return number;
    num_symbols_ = std::max(num_symbols_, number + 1);
    if (sizes_) check_symbols(begin);
    return symbol(number);
  }
  void check_symbols(size_t at) const {
    const int64_t known = sizes_ ? static_cast<int64_t>(sizes_->count()) : 0;
    if (num_symbols_ > known) fail(at, cat("the size s", num_symbols_ - 1, " is not defined in sizes(...)"));
  }
  // sizes(s0=2, s1=3) assuming(s1-3 == 0)
  void sizes_of(Graph& graph) {
    graph.sizes = sizes_ = make_ref<SymbolicSizes>();
    want("(");
    sequence(")", [&] {
      want(cat("s", sizes_->count()));
      want("=");
      skip();
      const size_t begin = at_;
      const int64_t example = number_of<int64_t>(word("a size"), begin);
      if (example < SymbolicSizes::least || example > max_elements) fail(begin, "the size is out of range");
      sizes_->add(example);
    });
    use_ = std::make_unique<SymbolicSizes::Use>(sizes_.get());
    if (!take("assuming")) return;
    want("(");
    sequence(")", [&] {
      skip();
      const size_t begin = at_;
      const Dim assumed = size();
      skip_blanks();
      const std::string_view relation = text_.substr(at_, 2);
      const auto found = std::ranges::find(guard_relations, relation);
      if (found == std::end(guard_relations)) expected("==, != or >=");
      at_ += 2;
      want("0");
      if (!sizes_->decide(static_cast<SizeGuard::Kind>(found - std::begin(guard_relations)), assumed))
        fail(begin, "this does not hold for the given sizes");
    });
  }
  Type type() {
    skip();
    const size_t begin = at_;
    const std::string_view name = word("a type");
    Type out;
    int found = 0;
    while (found < num_dtypes && dtype_table[found].short_name != name) ++found;
    if (found == num_dtypes) {
      at_ = begin;
      expected("a type");
    }
    out.dtype = static_cast<DType>(found);
    want("[");
    int64_t elements = 1;
    sequence("]", [&] {
      const Dim dim = size();
      out.shape.push_back(dim);
      if (dim.is_symbolic()) return;
      if (dim < 0) fail(begin, "a size is negative");
      if (__builtin_mul_overflow(elements, std::max<int64_t>(dim, 1), &elements) || elements > max_elements)
        fail(begin, "the tensor is too large");
    });
    return out;
  }

  // ---- graphs ----
  std::string name() {
    skip();
    return peek() == '\'' ? string() : std::string(word("the name of a graph"));
  }
  void define(Known& known, int64_t id, const Ref<Node>& node, size_t at) const {
    if (!known.emplace(id, node).second) fail(at, cat("%", id, " is defined twice"));
  }
  // The inputs in parentheses: `add(type)` gives the node.
  template <class F>
  void inputs(Known& known, F&& add) {
    want("(");
    sequence(")", [&] {
      skip();
      const size_t begin = at_;
      const int64_t number = id();
      want(":");
      define(known, number, Ref<Node>(node_of(add(type()))), begin);
    });
  }
  Value capture(Graph& graph, Type type, size_t at) {
    // Only the outermost graph has captures from outside.
    const Tensor tensor = captures_ ? captures_(graph.captures.size(), type) : Tensor();
    if (!tensor) {
      const Value out = graph.add_parameter(std::move(type));
      graph.captures.push_back(std::move(graph.parameters.back()));
      graph.parameters.pop_back();
      return out;
    }
    const Type given{tensor.dtype(), tensor.shape()};
    if (given != type)
      fail(at, cat("the captured value is ", to_string(type), " but the given tensor is ", to_string(given)));
    return graph.add_capture(tensor);
  }

  // A function that is defined somewhere; the first call says of which types its results are.
  const Ref<Graph>& function(const std::string& name) {
    for (const Ref<Graph>& known : functions_)
      if (known->name == name) return known;
    functions_.push_back(make_ref<Graph>());
    functions_.back()->name = name;
    functions_.back()->is_function = true;
    return functions_.back();
  }
  void define_function() {
    const size_t begin = at_;
    const Ref<Graph> made = graph();
    if (!made->is_function || !defined_.insert(made.get()).second) fail(begin, "this function is not the first");
    Types types;
    for (const Value& result : made->results) types.push_back(type_of(result));
    if (made->result_types.empty()) made->result_types = types;
    if (made->result_types != types) fail(begin, "the results are not of the types that a call says");
  }

  Ref<Graph> graph() {
    const Depth depth(*this);
    want("graph");
    const bool is_function = take("@");
    const std::string own = name();
    const Ref<Graph> out = is_function ? function(own) : make_ref<Graph>();
    out->name = own;
    Known known;
    inputs(known, [&](Type type) { return out->add_parameter(std::move(type)); });
    if (take("captures")) inputs(known, [&](Type type) { return capture(*out, std::move(type), at_); });
    if (depth_ == 1 && take("sizes")) sizes_of(*out);
    check_symbols(at_);
    want("{");
    while (!take("return")) node(*out, known);
    if (!take("}")) sequence("}", [&] { out->results.push_back(operand(known)); });
    return out;
  }

  void node(Graph& graph, Known& known) {
    skip();
    const size_t begin = at_;
    if (peek() != '%') expected("a node or 'return'");
    const int64_t number = id();
    Types types;
    if (take(":")) {
      do types.push_back(type());
      while (take(","));
    }
    want("=");
    skip();
    const size_t name_at = at_;
    const std::string_view op_name = word("the name of an operator");
    const NamedOp op = op_of_name(op_name);
    if (!op.op) fail(name_at, cat("there is no operator ", to_string(Value(op_name))));
    want("(");
    Args args;
    Ref<Graph> called;
    sequence(")", [&] {
      const bool is_graph = args.size() < 64 && op.graphs >> args.size() & 1;
      if (is_graph && take("@")) args.push_back(Value::of_graph(called = function(name())));
      else args.push_back(is_graph ? Value(name()) : operand(known));
    });
    skip_blanks();
    const bool stops_gradient = text_.substr(at_).starts_with("stops_gradient") && take("stops_gradient");
    std::string place = comment();
    for (size_t i = 0; i < args.size() && i < 64; ++i)
      if (op.graphs >> i & 1 && args[i].tag() == Value::Tag::Str) args[i] = body(args[i].str());
    if (called && called->result_types.empty()) called->result_types = types;
    try {
      types = checked_call(*op.op, args, types);
    } catch (const Error& error) {
      raise(error.kind(), "In the text of a graph, ", position(begin), ": ", error.message());
    }
    Node& made = graph.add_node(*op.op, op.name, std::move(args), std::move(types), std::move(place));
    made.stops_gradient = stops_gradient;
    define(known, number, graph.nodes.back(), begin);
  }
  // What follows on the same line.
  std::string comment() {
    skip_blanks();
    if (peek() != '#') return {};
    const size_t begin = at_ + 1, end = std::min(text_.find('\n', at_), text_.size());
    at_ = end;
    const std::string_view found = text_.substr(begin, end - begin);
    return std::string(found.starts_with(' ') ? found.substr(1) : found);
  }
  // The graph that an argument names stands below its node.
  Value body(const std::string& wanted) {
    skip();
    const size_t begin = at_;
    const Ref<Graph> out = graph();
    if (out->name != wanted) fail(begin, cat("expected graph ", wanted, " but found graph ", out->name));
    return Value::of_graph(out);
  }

  std::string_view text_;
  const CaptureSource& captures_;
  std::vector<Ref<Graph>> functions_;
  std::unordered_set<const Graph*> defined_;
  size_t at_ = 0;
  int depth_ = 0;
  int64_t num_symbols_ = 0;  // of those that occurred
  Ref<SymbolicSizes> sizes_;
  std::unique_ptr<SymbolicSizes::Use> use_;
};

}  // namespace

Ref<Graph> parse(std::string_view text, const CaptureSource& captures) { return Parser(text, captures).run(); }

}  // namespace morel
