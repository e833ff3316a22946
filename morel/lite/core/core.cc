// What a library for one device has of its own: texts of errors (errors.h), and instead of tensor/symbolic.cc that
// sizes of tensors are numbers.
#include <cstdio>

#include "morel/base/error.h"
#include "morel/tensor/dim.h"
#include "morel/tensor/dtype.h"

namespace morel {
namespace {

[[noreturn]] void raise_symbolic() { raise(ErrorKind::Internal, "internal error: a size is no number"); }

}  // namespace

void TextPiece::append_to(std::string& text) const {
  switch (kind_) {
    case Kind::Text: text.append(text_, size_); return;
    case Kind::Signed: text += std::to_string(number_); return;
    case Kind::Unsigned: text += std::to_string(static_cast<uint64_t>(number_)); return;
    case Kind::Real: {
      char digits[32];
      text.append(digits, static_cast<size_t>(std::snprintf(digits, sizeof digits, "%g", real_)));
    }
  }
}

std::string joined(std::initializer_list<TextPiece> pieces) {
  std::string out;
  for (const TextPiece& piece : pieces) piece.append_to(out);
  return out;
}
void raise_joined(ErrorKind kind, std::initializer_list<TextPiece> pieces) { throw Error(kind, joined(pieces)); }

void raise_not_compiled(DType dtype) {
  raise(ErrorKind::NotImplemented, "this library is compiled without ", info(dtype).name);
}

int64_t Dim::specialised() const { raise_symbolic(); }
bool Dim::equal(Dim, Dim) { raise_symbolic(); }
bool Dim::less(Dim, Dim) { raise_symbolic(); }
Dim Dim::sum(Dim, Dim) { raise_symbolic(); }
Dim Dim::difference(Dim, Dim) { raise_symbolic(); }
Dim Dim::product(Dim, Dim) { raise_symbolic(); }
Dim Dim::quotient(Dim, Dim) { raise_symbolic(); }
Dim Dim::remainder(Dim, Dim) { raise_symbolic(); }

std::string to_string(Dim dim) { return std::to_string(static_cast<int64_t>(dim)); }

}  // namespace morel
