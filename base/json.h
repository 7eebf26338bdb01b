// json.h: nlohmann/json, instantiated once.
//
// The library is all templates: without these declarations every file that names a json compiles
// the value, the lexer, the parser and the writer anew, which was half of the whole build's time.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

extern template class nlohmann::basic_json<>;

namespace nlohmann::detail {

// Of a std::string, and of a std::string_view or const char*: what the project parses.
extern template class lexer<json, iterator_input_adapter<std::string::const_iterator>>;
extern template class parser<json, iterator_input_adapter<std::string::const_iterator>>;
extern template class lexer<json, iterator_input_adapter<const char*>>;
extern template class parser<json, iterator_input_adapter<const char*>>;
extern template class serializer<json>;

}  // namespace nlohmann::detail

namespace crucible {

// As text, whatever the strings in it hold: a byte that is no UTF-8 (an agent's words, a tool's
// output, a file's name) becomes U+FFFD. json's own dump() throws on one, so it is for values whose
// every byte is the program's own.
std::string JsonText(const nlohmann::json& value, int indent = -1);

}  // namespace crucible
