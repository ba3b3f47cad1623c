//! Small kernels made by assembler and linker, compared.

use std::fs;
use std::process::Command;

use code::{Change, CodeDifference, Image, difference, listings};
use kernelfiles::kallsyms::Symbols;
use proptest::prelude::*;

/// A linker script with the addresses of a kernel's sections.
const SCRIPT: &str = "SECTIONS {
    .text 0xffffffff81000000 : { *(.text) }
    .rodata 0xffffffff82000000 : { *(.rodata) }
    .data 0xffffffff83000000 : { *(.data) }
    .data..percpu 0 : { *(.data..percpu) }
    /DISCARD/ : { *(.note*) }
}";

/// A file like `vmlinux` with these functions, in AT&T syntax, and this data.
fn kernel(code: &str, data: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let [source, script, file] =
        ["kernel.S", "kernel.lds", "vmlinux"].map(|name| directory.path().join(name));
    let text = format!(
        ".text\n.globl _start\n_start: ret\n{code}\n\
         {data}\n"
    );
    fs::write(&source, text).unwrap();
    fs::write(&script, SCRIPT).unwrap();
    let made = Command::new("cc")
        .args(["-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none", "-o"])
        .args([&file, &source])
        .arg("-T")
        .arg(&script)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    fs::read(file).unwrap()
}

/// A function of these instructions.
fn function(name: &str, instructions: &str) -> String {
    format!(
        ".p2align 4,0x90\n.type {name},@function\n\"{name}\":\n{instructions}\n.size {name},.-{name}\n"
    )
}

fn compared(base: &[u8], new: &[u8]) -> CodeDifference {
    let [base, new] = [base, new].map(|it| Image::read(it, &Symbols::default()).unwrap());
    difference(&base, &new)
}

/// The differences if one function is replaced. Other code before it makes it move.
fn between(base: &str, new: &str) -> Vec<(String, Change)> {
    let data = ".section .rodata,\"a\"\n.type other,@object; .size other,8; other: .quad 1\n\
                first: .asciz \"a first text\"\nsecond: .asciz \"a second text\"\n\
                .data\n.type count,@object; .size count,16; count: .quad 0,0\n\
                .type sum,@object; .size sum,8; sum: .quad 0\n\
                .section .data..percpu,\"aw\"\n.fill 64\n\
                .type pages,@object; .size pages,16; pages: .quad 0,0\n\
                .type state,@object; .size state,8; state: .quad 0\nper_cpu_end:\n";
    let moved = data.replace("other,8; other:", "other,24; other: .quad 0,0;");
    let moved =
        moved.replace("\nfirst:", "\n.asciz \"room\"\nfirst:").replace(".fill 64", ".fill 96");
    let others = function("callee", "ret") + &function("callee.isra.0", "xor %eax,%eax; ret");
    let room = function("room", "ret") + &"nop\n".repeat(100);
    let first = kernel(&(room.clone() + &others + &function("f", base)), data);
    let second = kernel(&(others + &room + &function("f", new)), &moved);
    let functions = compared(&first, &second).functions;
    functions.into_iter().map(|it| (it.name, it.change)).collect()
}

#[test]
fn code_that_only_moved_is_the_same() {
    for code in [
        "call callee; ret",
        "jmp callee",
        "mov $callee,%rdi; lea callee(%rip),%rsi; ret",
        "mov count(%rip),%rax; mov count+8,%rcx; ret",
        "mov count(,%rax,8),%rcx; ret",
        "mov $first,%rdi; lea second(%rip),%rsi; ret",
        "mov %gs:pages,%rax; mov %gs:pages(%rip),%rcx; mov $pages+8,%rbx; ret",
        "mov pages(%rdi),%rcx; add $pages+8,%rax; ret",
        "mov $per_cpu_end,%rax; ret",
        // The numbers are the same, but only one kernel has per-CPU data, or other data, at these addresses.
        "movq $70,%rax; movq $84,%rcx; movq $100,%rdx; ret",
        "1: dec %eax; jne 1b; ret; .fill 7,1,0x90",
        "mov $1f,%rax; 1: ret",
        ".byte 0x0f,0xff", // no instruction
    ] {
        assert_eq!(between(code, code), [], "{code}");
    }
}

#[test]
fn other_code_is_a_change() {
    for (base, new) in [
        ("call callee; ret", "call room; ret"),
        ("mov count(%rip),%rax; ret", "mov count+8(%rip),%rax; ret"),
        ("mov count(%rip),%rax; ret", "mov sum(%rip),%rax; ret"),
        ("mov $first,%rdi; ret", "mov $second,%rdi; ret"),
        ("mov %gs:pages,%rax; ret", "mov %gs:state,%rax; ret"),
        ("mov pages(%rdi),%rcx; ret", "mov pages+8(%rdi),%rcx; ret"),
        ("mov $100,%edi; ret", "mov $101,%edi; ret"), // such as a line's number
        ("movq $100,%rdi; ret", "movq $101,%rdi; ret"),
        ("mov 8(%rdi),%rax; ret", "mov 16(%rdi),%rax; ret"),
        ("mov %rdi,%rax; ret", "mov %rsi,%rax; ret"),
        ("mov (%rdi),%eax; ret", "mov (%rdi),%rax; ret"),
        ("mov (%rdi,%rsi,4),%eax; ret", "mov (%rdi,%rsi,8),%eax; ret"),
        ("incl (%rdi); ret", "lock incl (%rdi); ret"),
        ("mov (%rdi),%rax; ret", "mov %gs:(%rdi),%rax; ret"),
        ("1: nop; 2: dec %eax; jne 1b; ret", "1: nop; 2: dec %eax; jne 2b; ret"),
        ("inc %eax; ret", "inc %eax; nop; ret"),
        ("ret", "lea (%rsp),%rsp; ret"),
        (".byte 0x0f,0xff", ".byte 0x0f,0x04"),
    ] {
        assert_eq!(between(base, new), [("f".to_owned(), Change::Changed)], "{base} -> {new}");
    }
}

#[test]
fn what_is_no_code_of_the_function_is_set_aside() {
    // The compiler clones callees at will; jumps are encoded by distance; the tracer's call becomes a NOP.
    let far = ".fill 200,1,0x90";
    for (base, new) in [
        ("call callee; ret", "call callee.isra.0; ret"),
        ("jmp 1f; 1: ret", ".byte 0xe9,0,0,0,0; 1: ret"),
        ("ret", "ret; int3; int3"),
        ("ret", ".byte 0x0f,0x1f,0x44,0,0; ret"),
        ("endbr64; ret", "endbr64; .byte 0x0f,0x1f,0x44,0,0; ret"),
    ] {
        assert_eq!(between(base, new), [], "{base} -> {new}");
    }
    let tracer = function("__fentry__", far);
    let plain = kernel(&(tracer.clone() + &function("f", "inc %eax; ret")), "");
    let traced = kernel(&(tracer + &function("f", "call __fentry__; inc %eax; ret")), "");
    assert_eq!(compared(&plain, &traced).functions, []);
}

#[test]
fn functions_of_one_name_are_compared_in_any_order() {
    let copies = |[one, two]: [&str; 2]| {
        kernel(&(function("init.isra.0", one) + &function("init.isra.1", two)), "")
    };
    let [one, two] = ["xor %eax,%eax; ret", "mov $1,%eax; ret"];
    let base = copies([one, two]);
    assert_eq!(compared(&base, &copies([two, one])).functions, []);
    let difference = compared(&base, &copies([two, two]));
    let [changed] = &*difference.functions else { panic!("{difference:?}") };
    assert_eq!((&*changed.name, changed.change), ("init", Change::Changed));
    assert_eq!((changed.base.instructions, changed.new.instructions), (2, 2));
    assert_eq!((changed.removed, changed.added), (1, 1));
}

#[test]
fn new_functions_and_those_that_are_gone_are_told() {
    let base = kernel(&(function("a", "ret") + &function("b", "inc %eax; ret")), "");
    let new = kernel(&(function("a", "ret") + &function("c.part.0", "nop; ret")), "");
    let difference = compared(&base, &new);
    let told: Vec<_> = difference.functions.iter().map(|it| (&*it.name, it.change)).collect();
    assert_eq!(told, [("c", Change::New), ("b", Change::Gone)]);
    assert_eq!(difference.functions[0].new.bytes, 2);
    assert_eq!(difference.functions[0].base.bytes, 0);
    assert!(difference.same.contains("a") && difference.same.contains("_start"));
}

#[test]
fn a_cold_part_belongs_to_its_function() {
    let with =
        |cold: &str| kernel(&(function("f", "jne f.cold; ret") + &function("f.cold", cold)), "");
    let difference = compared(&with("ud2"), &with("inc %eax; ud2"));
    assert_eq!(difference.functions.len(), 1);
    assert_eq!(difference.functions[0].name, "f");
    assert_eq!(difference.functions[0].new.instructions, 2);
}

/// A kernel without its symbol table, and its functions as it lists them itself.
fn stripped(kernel: &[u8]) -> (Vec<u8>, Symbols) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("vmlinux");
    fs::write(&path, kernel).unwrap();
    let listed = Command::new("nm").arg(&path).output().unwrap();
    let symbols = Symbols::parse(str::from_utf8(&listed.stdout).unwrap());
    assert!(Command::new("strip").arg(&path).status().unwrap().success());
    (fs::read(path).unwrap(), symbols)
}

#[test]
fn a_packaged_kernel_is_compared_by_its_own_list_of_symbols() {
    let code = |extra: &str| {
        function("callee", "ret")
            + &function("f", &format!("mov count,%eax; {extra} call callee; ret"))
    };
    let data = ".data\n.type count,@object; .size count,8; count: .quad 0\n";
    let (plain, other) = (kernel(&code(""), data), kernel(&code("inc %eax;"), data));
    let [base, new] = [plain, other].map(|it| stripped(&it));
    assert!(matches!(Image::read(&base.0, &Symbols::default()), Err(code::Error::NoSymbols)));
    let [base, new] = [&base, &new].map(|(file, symbols)| Image::read(file, symbols).unwrap());
    assert_eq!(difference(&base, &base).functions, []);
    assert_eq!(difference(&base, &new).functions.len(), 1);
    let arrays = [5000, 6000].map(|before| {
        let code = function("f", "incq %gs:pages(,%rax,8); mov $pages,%rdi; ret");
        let data = format!(".section .data..percpu,\"aw\"\n.fill {before}\npages: .fill 64\n");
        stripped(&kernel(&code, &data))
    });
    let [one, two] = arrays.each_ref().map(|(it, symbols)| Image::read(it, symbols).unwrap());
    assert_eq!(difference(&one, &two).functions, []);
    let foreign = Symbols::parse("ffffffff91000000 T elsewhere\n");
    let (file, _) = stripped(&kernel("", ""));
    assert!(matches!(Image::read(&file, &foreign), Err(code::Error::NoCode)));
}

#[test]
fn instructions_stand_side_by_side() {
    let code = |extra: &str| {
        function("callee", "ret")
            + &function("f", &format!("{extra} jne 1f; mov $text,%rdi; call callee; 1: ret"))
    };
    let text = ".section .rodata,\"a\"\ntext: .asciz \"out of memory\\n\"\n";
    let files = ["", "lea (%rsp),%rsp;"].map(|extra| kernel(&code(extra), text));
    let [base, new] = files.each_ref().map(|it| Image::read(it, &Symbols::default()).unwrap());
    let [listing] = &*listings(&base, &new, "f") else { panic!() };
    assert_eq!(listing.symbols.each_ref().map(Option::as_deref), [Some("f"); 2]);
    let line = |at: usize| {
        let [base, new] = listing.lines[at].sides.each_ref().map(Option::as_deref);
        (base, new, listing.lines[at].same)
    };
    assert_eq!(line(0), (None, Some("lea (%rsp),%rsp"), false));
    assert_eq!(line(1), (Some("jne f+0xe"), Some("jne f+0x12"), true));
    let text = Some("mov $\"out of memory\\n\",%rdi");
    assert_eq!(line(2), (text, text, true));
    assert_eq!(line(3), (Some("call callee"), Some("call callee"), true));
    assert_eq!(listing.lines.len(), 5);
    // A function without a difference is listed as well.
    assert!(listings(&base, &new, "callee")[0].lines[0].same);
    assert_eq!(listings(&base, &new, "none"), []);
}

proptest! {
    #[test]
    fn hostile_files_are_survived(
        file in prop::collection::vec(any::<u8>(), 0..4096),
        text in ".{0,100}",
    ) {
        let _ = Image::read(&file, &Symbols::parse(&text));
    }
}

#[test]
fn damaged_kernels_are_survived() {
    let code = function("f.cold", "ud2")
        + &function("f", "call g; mov v,%eax; ret")
        + &function("g", "ret");
    let sound = kernel(&code, ".data\n.type v,@object; .size v,8; v: .quad 0\n");
    let whole = Image::read(&sound, &Symbols::default()).unwrap();
    // Damages the headers at both ends, and each byte between that is not 0.
    let size = sound.len();
    let places = (0..size).filter(|&at| sound[at] != 0 || at < 64);
    for (number, place) in places.enumerate() {
        let mut damaged = sound.clone();
        damaged[place] ^= [0xff, 0x01, 0x80, 0x10][number % 4];
        let Ok(damaged) = Image::read(&damaged, &Symbols::default()) else { continue };
        let _ = difference(&whole, &damaged);
        let _ = listings(&damaged, &whole, "f");
    }
    for length in (0..size).step_by(97) {
        assert!(Image::read(&sound[..length], &Symbols::default()).is_err(), "{length}");
    }
}
