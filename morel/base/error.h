// The three classes of errors (docs/design.md, section 8): what the user did wrong (Value, Type, Index, ...), what is
// not supported, and what is our own fault (Internal). The Python layer maps each kind to one exception class.
#pragma once

#include <exception>
#include <sstream>
#include <string>
#include <utility>

namespace morel {

enum class ErrorKind { Value, Type, Index, Key, Attribute, Runtime, NotImplemented, Os, Memory, Internal };

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}
  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }
  // The dispatcher appends the automatic "call: ..." line here.
  void append(const std::string& text) { message_ += text; }

 private:
  ErrorKind kind_;
  std::string message_;
};

// Text of all arguments written one after the other.
template <class... Args>
std::string cat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

template <class... Args>
[[noreturn]] __attribute__((noinline, cold)) void raise(ErrorKind kind, const Args&... args) {
  throw Error(kind, cat(args...));
}

// MOREL_CHECK(condition, kind, text pieces...): raises when the condition does not hold.
#define MOREL_CHECK(condition, kind, ...)                                                                              \
  do {                                                                                                                 \
    if (!(condition)) [[unlikely]]                                                                                     \
      ::morel::raise(::morel::ErrorKind::kind, __VA_ARGS__);                                                           \
  } while (0)

// For invariants of our own code.
#define MOREL_ASSERT(condition)                                                                                        \
  do {                                                                                                                 \
    if (!(condition)) [[unlikely]]                                                                                     \
      ::morel::raise(::morel::ErrorKind::Internal, "internal error: `" #condition "` does not hold (", __FILE__, ":",  \
                     __LINE__, "); please report it");                                                                 \
  } while (0)

}  // namespace morel
