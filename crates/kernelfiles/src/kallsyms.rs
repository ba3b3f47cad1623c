//! `/proc/kallsyms`: the kernel's symbols, modules included (`kernel/kallsyms.c`).
//!
//! ```text
//! ffffffff81000000 T _text
//! ffffffffc0201000 t ext4_da_map_blocks    [ext4]
//! ```

/// The largest number of symbols, above that of any kernel. The rest is ignored.
const MAX_SYMBOLS: usize = 1 << 21;
/// The largest length of a function, above that of any. Code farther behind the last symbol belongs to no function.
const MAX_LENGTH: u64 = 1 << 20;
/// The largest length of a function of a module, where no symbol marks the end of the code. It is a guess, because
/// the list has no sizes. Code without symbols that is loaded within this distance after a module is attributed to
/// the module's last function.
const MAX_MODULE_LENGTH: u64 = 64 << 10;
/// The longest symbol name (`include/linux/kallsyms.h`, `KSYM_NAME_LEN`).
const MAX_NAME: usize = 512;
/// Symbols that end a region of code (`arch/x86/kernel/vmlinux.lds.S`,
/// `arch/arm64/kernel/vmlinux.lds.S`).
const ENDS: [&str; 7] = [
    "_etext", "__hyp_text_end", "__idmap_text_end", "_einittext", "__exittext_end", "__init_end",
    "_end",
];

/// Parts of the names of trampolines, by which a function reaches another one or its caller, and of padding. A jump
/// there is not a call (`arch/x86/lib/retpoline.S`, `include/linux/static_call.h`, `include/linux/bpf.h`,
/// `tools/objtool/elf.c`).
const TRAMPOLINES: [&str; 9] = [
    "_thunk", "untrain_ret", "safe_ret", "__x86_return", "__SCT__", "__static_call_", "__pfx_",
    "__cfi_", "bpf_dispatcher_",
];
/// The name of code that gcc moved out of a function has this after the function's name.
const COLD: &str = ".cold";

/// Code symbols in order of address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols(Vec<Symbol>);

/// A function of the kernel or of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Address of its first instruction.
    pub address: u64,
    /// The symbol's name, with a compiler's suffixes.
    pub name: String,
    /// Its module; empty for the kernel itself.
    pub module: String,
}

impl Symbols {
    /// The code symbols of a text in the form of `/proc/kallsyms`. Other lines are skipped. If an address has several
    /// names, the plainest is taken: the name with the fewest leading underscores, then the shortest, then the first
    /// alphabetically.
    pub fn parse(text: &str) -> Self {
        Self::of(text.lines().filter_map(code))
    }

    /// Collects functions, which can be in any order. See [`Symbols::parse`] for addresses with several names.
    pub fn of(symbols: impl Iterator<Item = Symbol>) -> Self {
        let mut symbols: Vec<Symbol> = symbols.take(MAX_SYMBOLS).collect();
        symbols.sort_by(|a, b| order(a).cmp(&order(b)));
        symbols.dedup_by_key(|symbol| (symbol.address, is_end(&symbol.name)));
        Self(symbols)
    }

    /// The function that contains an address: the last symbol before it, unless the kernel's code ends
    /// between them, or the distance exceeds the longest function (1 MiB; 64 KiB in a module).
    pub fn find(&self, address: u64) -> Option<&Symbol> {
        let next = self.0.partition_point(|symbol| symbol.address <= address);
        let symbol = self.0.get(next.checked_sub(1)?)?;
        let length = if symbol.module.is_empty() { MAX_LENGTH } else { MAX_MODULE_LENGTH };
        let inside = address - symbol.address < length && !is_end(&symbol.name);
        inside.then_some(symbol)
    }

    /// The address of the kernel's function with this name; `None` if there is none, or several.
    pub fn address(&self, name: &str) -> Option<u64> {
        let mut named =
            self.0.iter().filter(|symbol| symbol.name == name && symbol.module.is_empty());
        let address = named.next()?.address;
        named.next().is_none().then_some(address)
    }

    /// The kernel's functions without those of modules, in order of address, each with the address of the
    /// next symbol.
    pub fn functions(&self) -> impl Iterator<Item = (&Symbol, u64)> {
        let next = self.0.iter().skip(1).map(|symbol| symbol.address).chain([u64::MAX]);
        let is_function = |symbol: &Symbol| symbol.module.is_empty() && !is_end(&symbol.name);
        self.0.iter().zip(next).filter(move |(symbol, _)| is_function(symbol))
    }

    /// The addresses at which the kernel's functions begin, in order, without those of modules. A jump to one of them
    /// from another function is a call, so trampolines and parts of functions are left out.
    pub fn beginnings(&self) -> impl Iterator<Item = u64> {
        let is_part =
            |name: &str| name.contains(COLD) || TRAMPOLINES.iter().any(|part| name.contains(part));
        let functions = self.functions().map(|(symbol, _)| symbol);
        functions.filter(move |symbol| !is_part(&symbol.name)).map(|symbol| symbol.address)
    }

    /// Whether there are no symbols.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Symbols of data in order of address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables(Vec<Symbol>);

impl Variables {
    /// The symbols of a text in the form of `/proc/kallsyms` that are no code. Other lines are skipped. Of several names
    /// of an address the plainest is taken, as in [`Symbols::parse`].
    pub fn parse(text: &str) -> Self {
        let mut all: Vec<Symbol> = text.lines().filter_map(data).take(MAX_SYMBOLS).collect();
        all.sort_by(|a, b| order(a).cmp(&order(b)));
        all.dedup_by_key(|symbol| symbol.address);
        Self(all)
    }

    /// The last symbol at or before an address, and its distance.
    pub fn find(&self, address: u64) -> Option<(&Symbol, u64)> {
        let next = self.0.partition_point(|symbol| symbol.address <= address);
        let symbol = self.0.get(next.checked_sub(1)?)?;
        Some((symbol, address - symbol.address))
    }
}

/// The symbol of a line, if it is code. Without permission to see addresses they read as 0.
fn code(line: &str) -> Option<Symbol> {
    let (kind, symbol) = symbol(line)?;
    let is_code = matches!(kind, "t" | "T" | "w" | "W") || is_end(&symbol.name);
    (is_code && symbol.address > 0).then_some(symbol)
}

/// The symbol of a line, if it is data. The end of a region is none.
fn data(line: &str) -> Option<Symbol> {
    let (kind, symbol) = symbol(line)?;
    (!matches!(kind, "t" | "T" | "w" | "W") && !is_end(&symbol.name)).then_some(symbol)
}

/// The kind and the symbol of a line.
fn symbol(line: &str) -> Option<(&str, Symbol)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let kind = words.next()?;
    let name = name(words.next()?)?;
    let module = words.next().unwrap_or("[]").strip_prefix('[')?.strip_suffix(']')?;
    let module = if module.is_empty() { String::new() } else { self::name(module)? };
    Some((kind, Symbol { address, name, module }))
}

/// Whether a symbol of this name, of any kind, ends a region of code.
pub fn is_end(name: &str) -> bool {
    ENDS.contains(&name)
}

fn name(word: &str) -> Option<String> {
    let sound = word.len() <= MAX_NAME && word.bytes().all(|byte| byte.is_ascii_graphic());
    sound.then(|| word.to_owned())
}

/// The sort key of a symbol: its address, then how plain its name is. A symbol at the end of a region is not a function, so
/// others at the same address come after it, and [`Symbols::find`] finds them.
fn order(Symbol { address, name, module }: &Symbol) -> (u64, bool, usize, usize, &str, &str) {
    let plain = name.trim_start_matches('_');
    (*address, !is_end(name), name.len() - plain.len(), plain.len(), name, module)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "\
ffffffff81000000 T _text
ffffffff81000000 T startup_64
ffffffff81000040 T __pfx_do_one
ffffffff81000050 T do_one
ffffffff81000060 t __se_sys_read
ffffffff81000060 T __x64_sys_read
ffffffff81000080 D _etext
ffffffff82000000 D jiffies
ffffffffc0201000 t ext4_da_map_blocks\t[ext4]
ffffffffc0201000 t twice
ffffffff81000070 t twice
";

    #[test]
    fn an_address_lies_in_the_function_before_it() {
        let symbols = Symbols::parse(TEXT);
        let name = |address| symbols.find(address).map(|symbol| &*symbol.name);
        assert_eq!(name(0xffff_ffff_8100_0000), Some("startup_64"));
        assert_eq!(name(0xffff_ffff_8100_005f), Some("do_one"));
        assert_eq!(name(0xffff_ffff_8100_0061), Some("__se_sys_read"));
        assert_eq!(name(0xffff_ffff_8100_0080), None);
        assert_eq!(name(0xffff_ffff_8000_0000), None);
        assert_eq!(name(0xffff_ffff_c020_2000), Some("twice"));
        assert_eq!(name(0xffff_ffff_d000_0000), None);
        assert_eq!(symbols.find(0).map(|symbol| &symbol.module), None);
    }

    #[test]
    fn addresses_far_behind_a_module_are_not_its() {
        let symbols = Symbols::parse(
            "ffffffffc0201000 t first\t[ext4]\nffffffffc0201100 t last\t[ext4]\n\
             ffffffffc0300000 t next\t[xfs]\n",
        );
        let name = |address| symbols.find(address).map(|symbol| &*symbol.name);
        assert_eq!(name(0xffff_ffff_c020_10ff), Some("first"));
        assert_eq!(name(0xffff_ffff_c021_10ff), Some("last"));
        assert_eq!(name(0xffff_ffff_c021_1100), None);
        assert_eq!(name(0xffff_ffff_c02f_ffff), None);
        assert_eq!(name(0xffff_ffff_c030_0000), Some("next"));
    }

    #[test]
    fn a_name_has_an_address_if_it_is_the_only_one() {
        let symbols = Symbols::parse(TEXT);
        assert_eq!(symbols.address("do_one"), Some(0xffff_ffff_8100_0050));
        assert_eq!(symbols.address("twice"), None);
        assert_eq!(symbols.address("jiffies"), None);
    }

    #[test]
    fn functions_of_the_kernel_reach_to_the_next_symbol() {
        let symbols = Symbols::parse(TEXT);
        let functions = symbols.functions().map(|(symbol, next)| (&*symbol.name, next & 0xfff));
        let expected = [
            ("startup_64", 0x40),
            ("__pfx_do_one", 0x50),
            ("do_one", 0x60),
            ("__se_sys_read", 0x70),
        ];
        assert_eq!(
            functions.collect::<Vec<_>>(),
            [&expected[..], &[("twice", 0x80), ("twice", 0xfff)]].concat()
        );
    }

    #[test]
    fn trampolines_and_parts_of_functions_are_not_jumped_to() {
        let symbols = Symbols::parse(
            "ffffffff81000000 T __pfx_first\nffffffff81000010 T first\n\
             ffffffff81000020 t first.cold\nffffffff81000030 t second.part.0\n\
             ffffffff81000040 T __indirect_thunk_start\n\
             ffffffff81000040 T __x86_indirect_thunk_array\n\
             ffffffff81000060 T __x86_indirect_thunk_rcx\n\
             ffffffff81000080 T srso_alias_return_thunk\nffffffff81000090 T __SCT__might_resched\n\
             ffffffff810000a0 T retbleed_untrain_ret\nffffffff810000b0 T __x86_return_skl\n\
             ffffffff810000c0 T last\nffffffff810000d0 T _etext\nffffffffc0201000 t first\t[ext4]\n",
        );
        let beginnings: Vec<u64> = symbols.beginnings().map(|address| address & 0xff).collect();
        assert_eq!(beginnings, [0x10, 0x30, 0xc0]);
    }

    #[test]
    fn the_end_of_code_is_known_where_a_function_begins() {
        let text = "ffffffff81000000 T first\nffffffff81000010 T next\nffffffff81000010 D _etext\n";
        let symbols = Symbols::parse(text);
        assert_eq!(symbols.address("_etext"), Some(0xffff_ffff_8100_0010));
        assert_eq!(symbols.find(0xffff_ffff_8100_0018).unwrap().name, "next");
        assert_eq!(symbols.functions().count(), 2);
    }

    #[test]
    fn variables_are_data_and_not_the_ends_of_regions() {
        let variables = Variables::parse(TEXT);
        let found = |address| variables.find(address).map(|(it, at)| (&*it.name, at));
        assert_eq!(found(0xffff_ffff_8200_0010), Some(("jiffies", 0x10)));
        assert_eq!(found(0xffff_ffff_8100_0090), None);
    }

    #[test]
    fn hidden_addresses_are_none() {
        assert!(Symbols::parse("0000000000000000 T _text\n").is_empty());
    }

    proptest! {
        #[test]
        fn garbage_is_survived(text in ".{0,200}", address in any::<u64>()) {
            let _ = Symbols::parse(&text).find(address);
        }
    }
}
