// campaign_reader.h: reads a campaign file's tables with one clear complaint (private to missions).
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "checks/target.h"
#include "missions/campaign_file.h"

namespace crucible {

// Insertions, deletions and replacements that turn one word into the other.
inline std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

inline std::string Suggestion(const std::string& word, const std::vector<std::string>& known) {
  const auto nearest = std::min_element(
      known.begin(), known.end(),
      [&](const auto& a, const auto& b) { return Distance(word, a) < Distance(word, b); });
  const std::string list = fmt::format("it takes {}", fmt::join(known, ", "));
  const bool close = Distance(word, *nearest) <= std::max<std::size_t>(1, nearest->size() / 3);
  return close ? fmt::format("did you mean '{}'? {}", *nearest, list) : list;
}

// Keeps the first complaint and goes on, so that the parsing below reads like the file.
class CampaignReader {
 public:
  explicit CampaignReader(std::filesystem::path file) : file_(std::move(file)) {}

  void Complain(const toml::node& where, const std::string& what, const std::string& instead) {
    if (!error_)
      error_ =
          Error{ErrorKind::kUsage,
                fmt::format("read campaign {}:{}: {}; {}", file_.string(),
                            std::max<std::uint32_t>(1, where.source().begin.line), what, instead)};
  }

  void AllowKeys(const toml::table& table, const std::string& section,
                 const std::vector<std::string>& known) {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (std::find(known.begin(), known.end(), name) == known.end())
        Complain(node, fmt::format("unknown key '{}' in {}", name, section),
                 Suggestion(name, known));
    }
  }

  const toml::table* Table(const toml::table& root, const std::string& key,
                           const std::vector<std::string>& known) {
    const toml::node* node = root.get(key);
    if (node == nullptr) return nullptr;
    if (!node->is_table())
      Complain(*node, fmt::format("'{}' is not a table", key),
               fmt::format("write [{}] and its keys below", key));
    else
      AllowKeys(*node->as_table(), "[" + key + "]", known);
    return node->as_table();
  }

  bool Text(const toml::table& table, const std::string& key, std::string& into) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return false;
    const auto value = node->value_exact<std::string>();
    if (!value || value->empty()) {
      Complain(*node, fmt::format("'{}' is not a text", key), "write it in quotes");
      return false;
    }
    into = *value;
    return true;
  }

  template <class Number>
  void Whole(const toml::table& table, const std::string& key, std::int64_t least,
             std::int64_t most, Number& into) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return;
    const auto value = node->value_exact<std::int64_t>();
    if (!value || *value < least || *value > most)
      Complain(*node, fmt::format("'{}' is not a whole number from {} to {}", key, least, most),
               value ? "write one within that" : "write it without quotes or a point");
    else
      into = static_cast<Number>(*value);
  }

  void Duration(const toml::table& table, const std::string& key, std::int64_t& into) {
    std::string text;
    if (!Text(table, key, text)) return;
    const auto parsed = ParseDuration(text);
    if (parsed && *parsed > 0)
      into = *parsed;
    else
      Complain(*table.get(key), fmt::format("'{}' is not a duration: \"{}\"", key, text),
               "write for example \"90s\", \"5m\" or \"1h\"");
  }

  // Not negative, with or without a point.
  void Amount(const toml::table& table, const std::string& key, double& into) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return;
    const auto value = node->is_number() ? node->value<double>() : std::nullopt;
    if (!value || !(*value >= 0) || *value > 1e12)
      Complain(*node, fmt::format("'{}' is not a number from 0", key), "write it without quotes");
    else
      into = *value;
  }

  void Texts(const toml::table& table, const std::string& key, std::vector<std::string>& into) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return;
    const toml::array* words = node->as_array();
    for (std::size_t i = 0; words != nullptr && i < words->size(); ++i)
      into.push_back((*words)[i].value_exact<std::string>().value_or(""));
    if (words == nullptr || std::find(into.begin(), into.end(), "") != into.end())
      Complain(*node, fmt::format("'{}' is not a list of texts", key), "write [\"…\"]");
  }

  void Bool(const toml::table& table, const std::string& key, bool& into) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return;
    if (!node->is_boolean())
      Complain(*node, fmt::format("'{}' is not a boolean", key), "write true or false");
    else
      into = node->value_or(false);
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  std::filesystem::path file_;
  std::optional<Error> error_;
};

// campaign_models.cc: the [[model]] tables, [planner], and the price table that both have.
void ReadPrices(CampaignReader& reader, const toml::table& table, UsdPrices& prices);
void ReadModels(CampaignReader& reader, const toml::table& root, CampaignFile& file);
void ReadPlanner(CampaignReader& reader, const toml::table& root, CampaignFile& file);

}  // namespace crucible
