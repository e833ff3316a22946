// Included in front of every source of a library for one device (cmake/lite.cmake): one function writes the texts of
// all errors, where base/error.h makes one for every list of types.
#pragma once

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#define cat cat_of_types
#define raise raise_of_types
#include "morel/base/error.h"
#undef cat
#undef raise

namespace morel {

// A piece of a text: characters, or a number that is still to be written.
class TextPiece {
 public:
  TextPiece(const char* text) : TextPiece(std::string_view(text)) {}
  TextPiece(std::string_view text) : kind_(Kind::Text), size_(static_cast<uint32_t>(text.size())), text_(text.data()) {}
  TextPiece(int64_t number) : kind_(Kind::Signed), number_(number) {}
  TextPiece(uint64_t number) : kind_(Kind::Unsigned), number_(static_cast<int64_t>(number)) {}
  TextPiece(double number) : kind_(Kind::Real), real_(number) {}

  void append_to(std::string& text) const;

 private:
  enum class Kind : uint32_t { Text, Signed, Unsigned, Real };

  Kind kind_;
  uint32_t size_ = 0;
  union {
    const char* text_;
    int64_t number_;
    double real_;
  };
};

std::string joined(std::initializer_list<TextPiece> pieces);
[[noreturn]] void raise_joined(ErrorKind kind, std::initializer_list<TextPiece> pieces);

// The few types to which all that texts consist of comes down, so that there are few lists of types.
template <class T>
auto plain(const T& x) {
  static_assert(!std::is_same_v<T, char>, "characters are given as texts");
  if constexpr (std::is_array_v<T> || std::is_pointer_v<T>) return static_cast<const char*>(x);
  else if constexpr (std::is_convertible_v<T, std::string_view>) return std::string_view(x);
  else if constexpr (std::is_floating_point_v<T>) return double{x};
  else if constexpr (std::is_same_v<T, uint64_t>) return x;
  else return static_cast<int64_t>(x);
}

template <class... Args>
[[noreturn]] __attribute__((noinline, cold)) void raise_plain(ErrorKind kind, Args... args) {
  raise_joined(kind, {args...});
}
template <class... Args>
[[noreturn]] __attribute__((always_inline)) inline void raise(ErrorKind kind, const Args&... args) {
  raise_plain(kind, plain(args)...);
}
template <class... Args>
std::string cat(const Args&... args) {
  return joined({plain(args)...});
}

}  // namespace morel
