// result.h: how operations fail.
//
// Operating failures (a missing file, a refused lock, a build that breaks) return Result<T>;
// broken invariants go through CRUCIBLE_CHECK and end the program, also in release. Every error
// text says action, object, cause and next step, because it is read at three in the morning.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace crucible {

// Only what a caller acts on: the kind chooses the exit code and whether to try again.
enum class ErrorKind {
  kUsage,        // the user's words or files are wrong: exit 2
  kNotFound,     // the thing named does not exist
  kConflict,     // somebody else holds it or changed it first
  kIo,           // the operating system said no
  kTimeout,      // a limit ran out
  kInterrupted,  // a person stopped it: exit 130
  kUnavailable,  // a device, library or service is not to be had here
  kInternal,     // a library answered in a way it should not
};

struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string text;
};

template <class T = void>
using Result = tl::expected<T, Error>;

// "ACTION OBJECT: CAUSE; NEXT_STEP". `next_step` may be empty where there is none.
inline tl::unexpected<Error> Fail(ErrorKind kind, std::string_view action, std::string_view object,
                                  std::string_view cause, std::string_view next_step = "") {
  std::string text(action);
  if (!object.empty()) text.append(" ").append(object);
  text.append(": ").append(cause);
  if (!next_step.empty()) text.append("; ").append(next_step);
  return tl::unexpected(Error{kind, std::move(text)});
}

// The same failure, seen from one level up: "CONTEXT: text".
inline tl::unexpected<Error> Within(std::string_view context, const Error& error) {
  return tl::unexpected(Error{error.kind, std::string(context) + ": " + error.text});
}

// The exit code a program ends with on this error.
int ExitCode(const Error& error);

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              std::string_view why);

}  // namespace crucible

#define CRUCIBLE_CHECK(condition, why) \
  ((condition) ? (void)0 : ::crucible::CheckFailed(__FILE__, __LINE__, #condition, why))

// Returns the error of a Result expression from the enclosing function; else binds its value.
#define CRUCIBLE_CONCAT_INNER(a, b) a##b
#define CRUCIBLE_CONCAT(a, b) CRUCIBLE_CONCAT_INNER(a, b)
#define CRUCIBLE_TRY(expression)                                           \
  do {                                                                     \
    if (auto crucible_result = (expression); !crucible_result.has_value()) \
      return tl::unexpected(std::move(crucible_result).error());           \
  } while (0)
#define CRUCIBLE_ASSIGN(declaration, expression)                                          \
  auto CRUCIBLE_CONCAT(crucible_value_, __LINE__) = (expression);                         \
  if (!CRUCIBLE_CONCAT(crucible_value_, __LINE__).has_value())                            \
    return tl::unexpected(std::move(CRUCIBLE_CONCAT(crucible_value_, __LINE__)).error()); \
  declaration = std::move(*CRUCIBLE_CONCAT(crucible_value_, __LINE__))
