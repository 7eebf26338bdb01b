// target_reader.h: reads values of a target file's TOML. For target_parse.cc and target_checks.cc.
//
// The reader keeps the first complaint and goes on returning defaults: the parsing reads like the
// file and still reports one clear error.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "checks/target.h"

namespace crucible {

class Reader {
 public:
  explicit Reader(std::filesystem::path file) : file_(std::move(file)) {}

  void Complain(const toml::node& where, const std::string& what, const std::string& instead) {
    if (error_) return;
    error_ = Error{ErrorKind::kUsage, fmt::format("read target {}:{}: {}; {}", file_.string(),
                                                  where.source().begin.line, what, instead)};
  }

  void AllowKeys(const toml::table& table, const std::string& section,
                 const std::vector<std::string>& allowed) {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (std::find(allowed.begin(), allowed.end(), name) == allowed.end())
        Complain(node, fmt::format("unknown key '{}' in {}", name, section),
                 fmt::format("it takes {}", fmt::join(allowed, ", ")));
    }
  }

  const toml::table* Table(const toml::table& parent, const std::string& key, bool required) {
    const toml::node* node = parent.get(key);
    if (node == nullptr) {
      if (required) Complain(parent, fmt::format("[{}] is missing", key), "add it");
      return nullptr;
    }
    if (!node->is_table())
      Complain(*node, fmt::format("'{}' is not a table", key),
               fmt::format("write [{}] and its keys below", key));
    return node->as_table();
  }

  std::vector<const toml::table*> Tables(const toml::table& parent, const std::string& key) {
    std::vector<const toml::table*> result;
    const toml::node* node = parent.get(key);
    if (node == nullptr) return result;
    const toml::array* array = node->as_array();
    if (array == nullptr || !std::all_of(array->begin(), array->end(),
                                         [](const toml::node& item) { return item.is_table(); })) {
      Complain(*node, fmt::format("'{}' is not a list of tables", key),
               fmt::format("write [[{}]] before each", key));
      return result;
    }
    for (const toml::node& item : *array) result.push_back(item.as_table());
    return result;
  }

  std::string String(const toml::table& table, const std::string& key, bool required) {
    const toml::node* node = Find(table, key, required);
    if (node == nullptr) return {};
    const auto value = node->value_exact<std::string>();
    if (!value) Complain(*node, fmt::format("'{}' is not a text", key), "write it in quotes");
    if (value && value->empty())
      Complain(*node, fmt::format("'{}' is empty", key), "write a text between the quotes");
    return value.value_or("");
  }

  // A finite number above `least`.
  std::optional<double> Number(const toml::table& table, const std::string& key, double least) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return std::nullopt;
    const auto value = node->is_number() ? node->value<double>() : std::nullopt;
    if (!value || !(*value > least) || !(*value < 1e300)) {
      Complain(*node, fmt::format("'{}' is not a number above {}", key, least),
               "write for example 0.02");
      return std::nullopt;
    }
    return value;
  }

  void Duration(const toml::table& table, const std::string& key, std::int64_t& into) {
    if (table.get(key) == nullptr) return;
    const std::string text = String(table, key, true);
    const auto parsed = ParseDuration(text);
    if (parsed) {
      into = *parsed;
    } else if (!text.empty()) {
      Complain(*table.get(key), fmt::format("'{}' is not a duration: \"{}\"", key, text),
               "write for example \"500ms\", \"10s\", \"3m\" or \"1h\"");
    }
  }

  bool Bool(const toml::table& table, const std::string& key) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return false;
    if (!node->is_boolean())
      Complain(*node, fmt::format("'{}' is not a boolean", key), "write true or false");
    return node->value_or(false);
  }

  std::vector<std::string> Words(const toml::table& table, const std::string& key, bool required) {
    const toml::node* node = Find(table, key, required);
    return node == nullptr ? std::vector<std::string>{} : WordsOf(*node, key);
  }

  std::vector<std::string> WordsOf(const toml::node& node, const std::string& key) {
    std::vector<std::string> result;
    const toml::array* array = node.as_array();
    if (array == nullptr || array->empty()) {
      const char* what = array == nullptr ? "is not a list of texts" : "is an empty list";
      Complain(node, fmt::format("'{}' {}", key, what), "write [\"…\", \"…\"]");
      return result;
    }
    for (const toml::node& item : *array) {
      const auto word = item.value_exact<std::string>();
      if (!word || word->empty())
        Complain(item, fmt::format("'{}' holds something that is not a text", key),
                 "write each word in quotes");
      else
        result.push_back(*word);
    }
    return result;
  }

  // A command's words, whose placeholders are the ones that Substitute knows, and `more`.
  std::vector<std::string> CommandOf(const toml::node& node, const std::string& key,
                                     const std::string& more = "") {
    const std::vector<std::string> words = WordsOf(node, key);
    if (error_) return words;
    for (std::size_t i = 0; i < words.size(); ++i)
      if (const std::string bad = BadPlaceholder(words[i], more); !bad.empty())
        Complain(*node.as_array()->get(i), fmt::format("'{}' has {}", key, bad),
                 fmt::format("it takes {}{}", fmt::join(kPlaceholders, ", "),
                             more.empty() ? "" : ", " + more));
    return words;
  }

  std::vector<std::string> Command(const toml::table& table, const std::string& key, bool required,
                                   const std::string& more = "") {
    const toml::node* node = Find(table, key, required);
    return node == nullptr ? std::vector<std::string>{} : CommandOf(*node, key, more);
  }

  const toml::node* Find(const toml::table& table, const std::string& key, bool required) {
    const toml::node* node = table.get(key);
    if (node == nullptr && required)
      Complain(table, fmt::format("'{}' is missing", key), "add it to this table");
    return node;
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  std::filesystem::path file_;
  std::optional<Error> error_;
};

// One value of a params table: text, number or boolean.
inline std::optional<nlohmann::json> Scalar(Reader& reader, const toml::node& node,
                                            const std::string& key) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto whole = node.value_exact<std::int64_t>()) return *whole;
  if (const auto real = node.value_exact<double>()) return *real;
  if (const auto truth = node.value_exact<bool>()) return *truth;
  reader.Complain(node, fmt::format("params '{}' is neither a text, a number nor a boolean", key),
                  "write one value (or, under [[check]], a list of them)");
  return std::nullopt;
}

// Keys of a table in the order they were written.
inline std::vector<std::pair<std::string, const toml::node*>> InFileOrder(
    const toml::table& table) {
  std::vector<std::pair<std::string, const toml::node*>> items;
  for (const auto& [key, node] : table) items.emplace_back(std::string(key.str()), &node);
  std::stable_sort(items.begin(), items.end(), [](const auto& a, const auto& b) {
    const auto left = a.second->source().begin, right = b.second->source().begin;
    return std::tie(left.line, left.column) < std::tie(right.line, right.column);
  });
  return items;
}

void ReadChecks(Reader& reader, const toml::table& root, Target& target);
void ReadExploits(Reader& reader, const toml::table& root, Target& target);
void ReadIntegrity(Reader& reader, const toml::table& root, Target& target);
void ReadToolChecks(Reader& reader, const toml::table& root, Target& target);

}  // namespace crucible
