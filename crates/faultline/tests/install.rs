//! Tests the program outside of its build directory, the files that `make install` adds, and the pages in `docs/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The error of a command that has to boot, without the environment variables that name its files.
fn said(program: &Path) -> String {
    let mut command = Command::new(program);
    command.env_remove("FAULTLINE_GUEST").args(["boot", "6.12", "--accel", "tcg"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_copied_program_says_where_it_looked_for_its_files() {
    let prefix = tempfile::tempdir().unwrap();
    let bin = prefix.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let program: PathBuf = bin.join("faultline");
    fs::copy(env!("CARGO_BIN_EXE_faultline"), &program).unwrap();
    let beside = bin.join("guest").display().to_string();
    let told = said(&program);
    assert!(told.contains(&beside) && told.contains("make install"), "{told}");
    let installed = prefix.path().join("lib/faultline");
    fs::create_dir_all(&installed).unwrap();
    let told = said(&program);
    assert!(told.contains(&installed.join("guest").display().to_string()), "{told}");
}

#[test]
fn each_command_has_a_man_page_and_each_shell_its_completions() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_faultline"));
    assert!(command.arg("generate").arg(directory.path()).status().unwrap().success());
    let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    assert!(read("faultline-run.1").contains("\\-\\-kernels"));
    assert!(read("faultline-kernel-add.1").contains("\\-\\-image"));
    assert!(!directory.path().join("faultline-generate.1").exists());
    let page = read("faultline.1");
    for list in [
        "\"EXIT CODES\"\n.TP\n0\ndone\n.TP\n1\n",
        "\"ENVIRONMENT\"\n.TP\nFAULTLINE_STORE\nthe store,",
    ] {
        assert!(page.contains(&format!("\n.SH {list}")), "{page}");
    }
    assert!(
        page.contains("\n.PP\nXDG variables must") && page.contains("\n.SH VERSION\n"),
        "{page}"
    );
    let page = fs::read_to_string(docs().join("cli.md")).unwrap();
    assert_eq!(
        read("cli.md"),
        page,
        "docs/cli.md is not what `faultline generate` writes: copy it"
    );
    for shell in ["faultline.bash", "faultline.fish", "_faultline"] {
        let completions = read(shell);
        assert!(completions.contains("explain") && !completions.contains("generate"), "{shell}");
    }
}

#[test]
fn without_a_command_the_help_is_printed_without_hidden_commands() {
    let faultline = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_faultline")).args(arguments).output().unwrap()
    };
    let (alone, asked) = (faultline(&[]), faultline(&["--help"]));
    // Like other programs with subcommands: the help is an error's text, because nothing was done.
    assert_eq!((alone.status.code(), asked.status.code()), (Some(2), Some(0)));
    let [help, asked] = [alone.stderr, asked.stdout].map(|it| String::from_utf8(it).unwrap());
    assert_eq!(help, asked);
    assert!(help.contains("  run        Run an experiment"), "{help}");
    let page = fs::read_to_string(docs().join("cli.md")).unwrap();
    assert!(!help.contains("generate") && !page.contains("## faultline generate"), "{help}");
}

#[test]
fn the_index_has_every_page_and_links_lead_somewhere() {
    let index = fs::read_to_string(docs().join("README.md")).unwrap();
    for entry in fs::read_dir(docs()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "README.md" || index.contains(&format!("]({name})")), "{name} has no line");
    }
    for link in index.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(docs().join(link).exists(), "{link}");
    }
}

#[test]
fn an_output_that_cannot_be_written_is_reported_by_the_users_name() {
    let directory = tempfile::tempdir().unwrap();
    let mail = directory.path().join("mail.txt");
    fs::write(&mail, "                 a          b\nAmean  x  1.00 (  0.00%)  2.00 (-100.00%)\n")
        .unwrap();
    let output = directory.path().join("nowhere/out.csv");
    let mut command = Command::new(env!("CARGO_BIN_EXE_faultline"));
    command.arg("table").arg(&mail).args(["--format", "csv", "-o"]).arg(&output);
    let said = command.output().unwrap();
    let told = String::from_utf8(said.stderr).unwrap();
    let expected =
        format!("faultline: {}: No such file or directory (os error 2)\n", output.display());
    assert_eq!((said.status.code(), told), (Some(1), expected));
}
