#include "orchestrator/agents/expression.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <string_view>

namespace crucible {
namespace {

// Binary operators by precedence, weakest first.
constexpr std::array<std::array<std::string_view, 4>, 6> kLevels = {{
    {"||"},
    {"&&"},
    {"==", "!="},
    {"<=", ">=", "<", ">"},
    {"+", "-"},
    {"*", "/", "%"},
}};

class Parser {
 public:
  Parser(const std::string& text, const NameLookup& lookup) : text_(text), lookup_(lookup) {}

  Result<std::int64_t> Run() {
    CRUCIBLE_ASSIGN(const std::int64_t value, Binary(0));
    SkipSpace();
    if (at_ != text_.size()) return Problem("unexpected text");
    return value;
  }

 private:
  tl::unexpected<Error> Problem(std::string_view cause) {
    return Fail(ErrorKind::kUsage, "evaluate", fmt::format("'{}'", text_),
                fmt::format("{} at column {}", cause, at_ + 1),
                "use integers, knob names and C's operators");
  }

  void SkipSpace() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  bool Take(std::string_view word) {
    SkipSpace();
    if (text_.compare(at_, word.size(), word) != 0) return false;
    at_ += word.size();
    return true;
  }

  std::string_view TakeOperator(std::size_t level) {
    for (const std::string_view word : kLevels[level]) {
      if (word.empty()) break;
      if (Take(word)) return word;
    }
    return {};
  }

  Result<std::int64_t> Binary(std::size_t level) {
    if (level == kLevels.size()) return Unary();
    CRUCIBLE_ASSIGN(std::int64_t left, Binary(level + 1));
    for (std::string_view word = TakeOperator(level); !word.empty(); word = TakeOperator(level)) {
      // Short circuit: the right side is parsed, but its division by zero does not count.
      const bool decided = (word == "||" && left != 0) || (word == "&&" && left == 0);
      skipping_ += decided;
      auto right = Binary(level + 1);
      skipping_ -= decided;
      if (!right) return right;
      CRUCIBLE_ASSIGN(left, Apply(word, left, *right));
    }
    return left;
  }

  Result<std::int64_t> Apply(std::string_view word, std::int64_t a, std::int64_t b) {
    if (word == "||") return a != 0 || b != 0;
    if (word == "&&") return a != 0 && b != 0;
    if (word == "==") return a == b;
    if (word == "!=") return a != b;
    if (word == "<=") return a <= b;
    if (word == ">=") return a >= b;
    if (word == "<") return a < b;
    if (word == ">") return a > b;
    if (word == "+") return a + b;
    if (word == "-") return a - b;
    if (word == "*") return a * b;
    if (b == 0) {
      if (skipping_ > 0) return 0;
      return Problem("division by zero");
    }
    return word == "/" ? a / b : a % b;
  }

  Result<std::int64_t> Unary() {
    if (Take("!=")) return Problem("expected a value");
    if (Take("!")) {
      CRUCIBLE_ASSIGN(const std::int64_t value, Unary());
      return value == 0;
    }
    if (Take("-")) {
      CRUCIBLE_ASSIGN(const std::int64_t value, Unary());
      return -value;
    }
    if (Take("(")) {
      CRUCIBLE_ASSIGN(const std::int64_t value, Binary(0));
      if (!Take(")")) return Problem("expected ')'");
      return value;
    }
    SkipSpace();
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
                                  text_[at_] == '_' || text_[at_] == '.'))
      ++at_;
    const std::string word = text_.substr(begin, at_ - begin);
    if (word.empty()) return Problem("expected a value");
    if (std::isdigit(static_cast<unsigned char>(word[0]))) {
      std::int64_t value = 0;
      const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
      if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size())
        return Problem(fmt::format("'{}' is no integer", word));
      return value;
    }
    const auto value = lookup_(word);
    if (!value) return Problem(fmt::format("no knob is called '{}'", word));
    return *value;
  }

  const std::string& text_;
  const NameLookup& lookup_;
  std::size_t at_ = 0;
  int skipping_ = 0;
};

}  // namespace

Result<std::int64_t> Evaluate(const std::string& expression, const NameLookup& lookup) {
  return Parser(expression, lookup).Run();
}

}  // namespace crucible
