// counted.h: numbers of things in sentences: "1 mission", "2 missions".
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace crucible {

// `n` and the word in the form that goes with it; `many` where that is not `one` with an s. Pure.
template <std::integral Number>
std::string Counted(Number n, std::string_view one, std::string_view many = "") {
  std::string text = std::to_string(n) + " ";
  if (n == 1) return text.append(one);
  return many.empty() ? text.append(one) + "s" : text.append(many);
}

}  // namespace crucible
