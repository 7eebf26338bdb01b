#include "checks/eigh/elf_file.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/files.h"

namespace crucible::eigh {
namespace {

// A doctored file may name any address and any size: what is out of bounds is `bad`, read as empty.
class Image {
 public:
  explicit Image(const std::string& file) : file_(&file) {}

  template <class T>
  std::vector<T> Table(std::uint64_t offset, std::uint64_t bytes) {
    if (offset > file_->size() || bytes > file_->size() - offset) {
      bad_ = true;
      return {};
    }
    std::vector<T> table(bytes / sizeof(T));
    if (!table.empty()) std::memcpy(table.data(), file_->data() + offset, table.size() * sizeof(T));
    return table;
  }

  // Where a loaded address lies in the file.
  std::uint64_t OffsetOf(std::uint64_t address) {
    for (const Elf64_Phdr& segment : loads_)
      if (address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz)
        return segment.p_offset + (address - segment.p_vaddr);
    bad_ = true;
    return file_->size();
  }

  void AddLoad(const Elf64_Phdr& segment) { loads_.push_back(segment); }
  bool bad() const { return bad_; }

 private:
  const std::string* file_;
  std::vector<Elf64_Phdr> loads_;
  bool bad_ = false;
};

struct Dynamic {
  std::map<Elf64_Sxword, std::uint64_t> values;  // of the entries that may come once
  std::vector<std::pair<Elf64_Sxword, std::uint64_t>> names;

  std::uint64_t operator[](Elf64_Sxword tag) const {
    const auto found = values.find(tag);
    return found == values.end() ? 0 : found->second;
  }
};

Dynamic ReadDynamic(Image* image, const Elf64_Phdr& segment) {
  Dynamic dynamic;
  for (const auto& entry : image->Table<Elf64_Dyn>(segment.p_offset, segment.p_filesz)) {
    switch (entry.d_tag) {
      case DT_NULL:
        return dynamic;
      case DT_NEEDED:
      case DT_RPATH:
      case DT_RUNPATH:
      case DT_AUXILIARY:
      case DT_FILTER:
      case DT_AUDIT:
      case DT_DEPAUDIT:
        dynamic.names.emplace_back(entry.d_tag, entry.d_un.d_val);
        break;
      default:
        dynamic.values[entry.d_tag] = entry.d_un.d_val;
    }
  }
  return dynamic;
}

bool IsRelativeByCode(std::uint64_t type) {
  return type == R_X86_64_IRELATIVE || type == R_AARCH64_IRELATIVE;
}

// Symbols that relocations ask of others; sets whether one of its own is an IFUNC.
void ReadRelocations(Image* image, const Dynamic& dynamic, const std::string& names,
                     ElfFile* into) {
  const std::uint64_t symbols = dynamic[DT_SYMTAB];
  std::set<std::string> imported;
  for (const auto& [start, bytes] : {std::pair(dynamic[DT_RELA], dynamic[DT_RELASZ]),
                                     std::pair(dynamic[DT_JMPREL], dynamic[DT_PLTRELSZ])}) {
    if (bytes == 0) continue;
    for (const auto& relocation : image->Table<Elf64_Rela>(image->OffsetOf(start), bytes)) {
      if (IsRelativeByCode(ELF64_R_TYPE(relocation.r_info))) into->resolves_by_code = true;
      const std::uint64_t index = ELF64_R_SYM(relocation.r_info);
      if (index == 0) continue;
      const auto symbol = image->Table<Elf64_Sym>(
          image->OffsetOf(symbols + index * sizeof(Elf64_Sym)), sizeof(Elf64_Sym));
      if (symbol.empty()) return;
      if (symbol[0].st_shndx == SHN_UNDEF && symbol[0].st_name < names.size())
        imported.insert(names.c_str() + symbol[0].st_name);
      else if (ELF64_ST_TYPE(symbol[0].st_info) == STT_GNU_IFUNC)
        into->resolves_by_code = true;
    }
  }
  into->imported.assign(imported.begin(), imported.end());
}

}  // namespace

Result<ElfFile> ReadElfFile(const std::filesystem::path& library) {
  CRUCIBLE_ASSIGN(const std::string file, ReadFile(library));
  const auto refuse = [&](std::string_view cause) {
    return Fail(ErrorKind::kUsage, "read the dynamic section of", library.string(), cause,
                "build it as a 64-bit ELF shared library with the ordinary linker");
  };
  Image image(file);
  const auto header = image.Table<Elf64_Ehdr>(0, sizeof(Elf64_Ehdr));
  if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0 ||
      header[0].e_ident[EI_CLASS] != ELFCLASS64 || header[0].e_type != ET_DYN)
    return refuse("it is no 64-bit ELF shared library");
  ElfFile elf;
  std::optional<Elf64_Phdr> dynamic_segment;
  bool says_stack = false;
  for (const auto& segment : image.Table<Elf64_Phdr>(
           header[0].e_phoff, std::uint64_t{header[0].e_phnum} * sizeof(Elf64_Phdr))) {
    if (segment.p_type == PT_DYNAMIC) dynamic_segment = segment;
    if (segment.p_type == PT_GNU_STACK) {
      says_stack = true;
      elf.executable_stack = (segment.p_flags & PF_X) != 0;
    }
    if (segment.p_type != PT_LOAD) continue;
    image.AddLoad(segment);
    const auto bytes = image.Table<char>(segment.p_offset, segment.p_filesz);
    elf.segments.push_back({.address = segment.p_vaddr,
                            .bytes = std::string(bytes.begin(), bytes.end()),
                            .writable = (segment.p_flags & PF_W) != 0,
                            .executable = (segment.p_flags & PF_X) != 0});
  }
  if (!says_stack) elf.executable_stack = true;  // the loader's assumption
  if (!dynamic_segment) return refuse("it has no dynamic section");
  const Dynamic dynamic = ReadDynamic(&image, *dynamic_segment);
  const auto text = image.Table<char>(image.OffsetOf(dynamic[DT_STRTAB]), dynamic[DT_STRSZ]);
  const std::string names(text.begin(), text.end());
  for (const auto& [tag, at] : dynamic.names) {
    const std::string name = at < names.size() ? names.c_str() + at : "";
    (tag == DT_NEEDED                       ? elf.needed
     : tag == DT_RPATH || tag == DT_RUNPATH ? elf.search_paths
                                            : elf.stand_ins)
        .push_back(name);
  }
  elf.relocates_code = dynamic.values.contains(DT_TEXTREL) || (dynamic[DT_FLAGS] & DF_TEXTREL) != 0;
  if (dynamic[DT_RELSZ] != 0) return refuse("it has relocations of a kind that is not used here");
  ReadRelocations(&image, dynamic, names, &elf);
  if (image.bad()) return refuse("one of its tables lies outside the file");
  return elf;
}

}  // namespace crucible::eigh
