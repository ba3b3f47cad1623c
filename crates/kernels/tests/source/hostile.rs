//! Trees whose repositories name programs: none of them is run.

use super::*;

/// Programs that a repository's configuration can name. Each writes its name into a file of the directory `ran`.
const PROGRAMS: [&str; 8] = [
    "core.fsmonitor", "core.pager", "diff.external", "diff.x.command", "diff.x.textconv",
    "filter.x.clean", "filter.x.smudge", "gpg.program",
];

impl Bench {
    fn git_at(&self, place: &str, arguments: &[&str]) {
        let place = self.tree().join(place);
        fs::create_dir_all(&place).unwrap();
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]);
        let output = git.args(arguments).current_dir(&place).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }

    /// A repository with a commit, in the tree.
    fn repository(&self, place: &str, arguments: &[&str]) {
        self.git_at(place, &[&["init", "-q"], arguments].concat());
        self.write(&format!("{place}/.gitattributes"), "* filter=x diff=x\n");
        self.write(&format!("{place}/file.c"), "1\n");
        self.git_at(place, &["add", "-A"]);
        self.git_at(place, &["commit", "-q", "-m", "one"]);
    }

    /// Makes a repository's configuration name programs, and changes a file that its filter would read.
    fn arm(&self, place: &str, name: &str) {
        for program in PROGRAMS {
            let mark = self.place("ran").join(format!("{name}-{program}"));
            let script = self.place(&format!("{name}-{program}"));
            fs::write(&script, format!("#!/bin/sh\ntouch {}\ncat\n", mark.display())).unwrap();
            fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
            self.git_at(place, &["config", program, script.to_str().unwrap()]);
        }
        let hooks = self.place(&format!("{name}-hooks"));
        fs::create_dir_all(&hooks).unwrap();
        let hook = hooks.join("post-index-change");
        let mark = self.place("ran").join(format!("{name}-hook"));
        fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", mark.display())).unwrap();
        fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();
        for (key, value) in [
            ("core.hooksPath", hooks.to_str().unwrap()),
            ("log.showSignature", "true"),
            ("submodule.recurse", "true"),
            ("status.submoduleSummary", "true"),
            ("diff.submodule", "diff"),
        ] {
            self.git_at(place, &["config", key, value]);
        }
    }

    /// The programs that ran since the last time.
    fn ran(&self) -> Vec<String> {
        let place = self.place("ran");
        let mut ran: Vec<String> = fs::read_dir(&place)
            .map(|entries| entries.map(|it| it.unwrap().file_name().into_string().unwrap()))
            .map(Iterator::collect)
            .unwrap_or_default();
        ran.sort();
        let _ = fs::remove_dir_all(&place);
        fs::create_dir(&place).unwrap();
        ran
    }

    /// A tree with two submodules, one of them with its repository in the tree's, with another repository that git
    /// does not know, and with a bare one among its files.
    fn hostile() -> Self {
        let bench = Self::new();
        bench.repository("sub", &[]);
        let modules = bench.tree().join(".git/modules");
        fs::create_dir_all(&modules).unwrap();
        bench.repository("other", &["--separate-git-dir", modules.join("other").to_str().unwrap()]);
        bench.write(
            ".gitmodules",
            "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n\
             [submodule \"other\"]\n\tpath = other\n\turl = ./other\n\tignore = none\n",
        );
        bench.commit("submodules");
        bench.repository("unknown", &[]);
        bench.git_at("bare", &["init", "-q", "--bare"]);
        bench.write(".gitattributes", "* filter=x diff=x\n");
        bench.ran();
        for (place, name) in [
            (".", "top"),
            ("sub", "sub"),
            ("other", "other"),
            ("unknown", "unknown"),
            ("bare", "bare"),
        ] {
            bench.arm(place, name);
        }
        for file in ["mm/a.c", "sub/file.c", "other/file.c", "unknown/file.c"] {
            let text = fs::read_to_string(bench.tree().join(file)).unwrap();
            // The same size: only the content tells.
            bench.write(file, &text.replace('1', "x"));
        }
        bench
    }
}

#[test]
fn no_program_that_a_tree_names_is_run() {
    let bench = Bench::hostile();
    // A plain git command runs the programs.
    bench.git(&["status"]);
    let ran = bench.ran();
    for program in ["top-filter.x.clean", "sub-filter.x.clean", "other-filter.x.clean"] {
        assert!(ran.iter().any(|it| it == program), "{program}: {ran:?}");
    }

    let build = bench.build();
    let patched = Build { revert: vec!["HEAD~1".into()], ..build.clone() };
    let directory = format!("src:{}", bench.tree().display());
    for _ in 0..2 {
        for source in ["worktree", &directory, "git:HEAD"] {
            let source: Source = source.parse().unwrap();
            bench.cache().try_patches(&source, &build, &|_| ()).unwrap().unwrap();
            assert_eq!(bench.ran(), [""; 0], "reading {source:?}");
        }
        bench.write("sub/file.c", "y\n");
        bench.write("unknown/file.c", "y\n");
    }
    let _ = bench.run("git:HEAD", &patched);
    assert_eq!(bench.ran(), [""; 0], "a revert");
    for source in ["worktree", &directory, "git:HEAD"] {
        let text = bench.text(source, &build);
        assert!(text.ends_with("two\n3\n4\n5\n6\n7\n8\n9\n"), "{source}: {text}");
        assert_eq!(bench.ran(), [""; 0], "building {source}");
    }
    let left_out: Vec<String> =
        ["other", "sub"].iter().map(|name| format!("The submodule {name} is left out")).collect();
    assert!(left_out.iter().all(|line| bench.said.borrow().contains(line)));

    let history = History::read(&bench.tree(), ["v1", "HEAD"], false).unwrap();
    history.changes().unwrap();
    history.author("HEAD").unwrap();
    let bare = History::read(&bench.tree().join("bare"), ["HEAD", "HEAD"], false);
    assert!(bare.is_err());
    assert_eq!(bench.ran(), [""; 0], "the history");
}

#[test]
fn a_build_writes_only_into_its_own_directories() {
    let works = |more: &[&str]| {
        let mut unshare = Command::new("unshare");
        let script = "mount --bind /tmp /tmp && mount -o remount,bind,ro,nosuid,nodev /tmp";
        unshare.args(["--mount", "--net"]).args(more).args(["--", "sh", "-c", script]);
        unshare.output().is_ok_and(|output| output.status.success())
    };
    if !works(&[]) && !works(&["--user", "--map-root-user"]) {
        eprintln!("skipped: this host allows no namespaces");
        return;
    }
    let bench = Bench::new();
    let build = bench.build();
    let rule = "vmlinux:\n\t@touch $(O)/in ../evil ../repository/evil ../../evil; cat /proc/net/dev > $(O)/net; true\n";
    bench.write("Makefile", &MAKEFILE.replace("vmlinux:\n", rule));
    let kernel = bench.run("worktree", &build).unwrap();
    assert!(kernel.image.is_file());
    let built = bench.place("cache/build");
    assert!(built.join("linux/output/in").exists());
    for place in ["evil", "repository/evil", "../evil"] {
        assert!(!built.join(place).exists(), "{place}");
    }
    let devices = fs::read_to_string(built.join("linux/output/net")).unwrap();
    let devices: Vec<&str> =
        devices.lines().skip(2).map(|it| it.trim().split(':').next().unwrap()).collect();
    assert_eq!(devices, ["lo"]);
}
