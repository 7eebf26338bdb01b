// expression.h: the small integer expressions of a knobs file's constraints.
//
// Integers, names (letters, digits, '_' and '.'), + - * / % ( ) ! == != <= >= < > && ||, with C's
// precedence and short circuit. Pure. Division by zero and unknown names are errors, not values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"

namespace crucible {

using NameLookup = std::function<std::optional<std::int64_t>(const std::string& name)>;

// kUsage on a syntax error (with its column), an unknown name or a division by zero.
Result<std::int64_t> Evaluate(const std::string& expression, const NameLookup& lookup);

}  // namespace crucible
