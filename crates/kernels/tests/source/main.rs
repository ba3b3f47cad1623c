//! Kernels from source: a small git repository whose Makefile makes a file that contains its sources.

#[path = "../fixture/mod.rs"]
mod fixture;
mod hostile;
mod on_request;
mod patches;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use kernels::{Cache, ChangedFile, Files, History, Prune, Request, Source};
use model::{Architecture, Build, Kernel};
use tempfile::TempDir;

/// Stands in for a kernel's Makefile. `vmlinux` fails if a source has the word `broken`.
const MAKEFILE: &str = "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 2\nEXTRAVERSION = -rc3\n\n\
allnoconfig:\n\tgrep -v LOST $(KCONFIG_ALLCONFIG) > $(O)/.config\n\
olddefconfig:\n\ttrue\n\
vmlinux:\n\t@for f in mm/*.c; do echo \"  CC      $$f\"; \\\n\
\t  if grep -q broken $$f; then echo \"../$$f:1:2: error: broken\" >&2; exit 1; fi; done\n\
\t@if grep -q full mm/*.c; then echo 'as: No space left on device' >&2; exit 1; fi\n\
\t@if grep -q stopped mm/*.c; then exit 130; fi\n\
\t@mkdir -p $(O)/include/config; echo 6.1.2-rc3 > $(O)/include/config/kernel.release\n\
\t@(printf '\\177ELF'; cat mm/*.c; ls $(O)/left 2>/dev/null; \\\n\
\t  printf '%s' '$(KCFLAGS)') > $(O)/vmlinux; touch $(O)/vmlinux.o\n\
Image:\n\t@mkdir -p $(O)/arch/arm64/boot $(O)/include/config; echo 6.1.2 > $(O)/include/config/kernel.release\n\
\t@(head -c 56 /dev/zero; printf 'ARM\\144%s' '$(ARCH) $(CROSS_COMPILE) $(CC)') > $(O)/arch/arm64/boot/Image\n\
modules:\n\t@mkdir -p $(O)/mm $(O)/kernel; printf '%s\\n' mm/b.o kernel/a.ko > $(O)/modules.order\n\
\techo 'char names[] __attribute__((section(\"__ksymtab_strings\"))) = \"of_a\";' | gcc -g -x c -c -o $(O)/kernel/a.ko -\n\
\techo 'extern int of_a; int b(void) { return of_a; }' | gcc -g -x c -c -o $(O)/mm/b.ko -\n";

struct Bench {
    directory: TempDir,
    said: RefCell<Vec<String>>,
}

impl Bench {
    /// A repository with two commits: `first`, and one that changes line 2 of `mm/a.c` to `two`.
    fn new() -> Self {
        let bench = Self { directory: TempDir::new().unwrap(), said: RefCell::default() };
        bench.git(&["init", "-q", "-b", "main", "."]);
        bench.write("Makefile", MAKEFILE);
        bench.write("mm/a.c", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
        bench.write(".gitignore", "*.o\n");
        bench.commit("first");
        bench.git(&["tag", "v1"]);
        bench.write("mm/a.c", "1\ntwo\n3\n4\n5\n6\n7\n8\n9\n");
        bench.commit("second");
        bench
    }

    fn tree(&self) -> PathBuf {
        let tree = self.directory.path().join("linux");
        fs::create_dir_all(&tree).unwrap();
        tree
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]);
        let output = git.args(arguments).current_dir(self.tree()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.tree().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn commit(&self, subject: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", subject]);
    }

    fn place(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn cache(&self) -> Cache {
        Cache::at(self.place("cache"))
    }

    fn build(&self) -> Build {
        // The options of the small configuration that a version lacks need not be there.
        let config = self.place("config");
        fs::write(&config, "CONFIG_64BIT=y\n").unwrap();
        let config = Some(config.to_str().unwrap().into());
        Build { tree: Some(self.tree()), config, ..Build::default() }
    }

    /// Builds; the error is why it cannot be built, or why the request is wrong.
    fn run(&self, source: &str, build: &Build) -> Result<Kernel, String> {
        self.said.borrow_mut().clear();
        let source: Source = source.parse().unwrap();
        let say = |line: &str| self.said.borrow_mut().push(line.to_owned());
        match self.cache().build(&source, build, &say) {
            Ok(Ok(kernel)) => Ok(kernel),
            Ok(Err(unbuilt)) => Err(format!("unbuilt: {}", unbuilt.problem())),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The sources that are in the image.
    fn text(&self, source: &str, build: &Build) -> String {
        let kernel = self.run(source, build).unwrap();
        String::from_utf8(fs::read(kernel.image).unwrap()).unwrap()[4..].to_owned()
    }

    fn has_built(&self) -> bool {
        self.said.borrow().iter().any(|line| line.starts_with("Building "))
    }
}

/// Every file below a directory with its contents and time.
fn files(directory: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let time = path.metadata().unwrap().modified().unwrap();
            found.insert(path.clone(), (fs::read(&path).unwrap(), time));
        }
    }
    found
}

#[test]
fn commits_and_working_trees_are_built_and_the_repository_is_only_read() {
    let bench = Bench::new();
    let build = bench.build();
    bench.write("mm/b.c", "new\n");
    bench.write("mm/ignored.o", "object");
    let before = files(&bench.tree());
    let first = bench.run("git:v1", &build).unwrap();
    assert!(first.name.starts_with("6.1.2-rc3-") && first.release == "6.1.2-rc3", "{first:?}");
    assert!(first.origin.starts_with("git v1, ") && first.origin.contains("(\"first\")"));
    assert!(bench.text("git:v1", &build).contains("\n2\n"));
    assert!(bench.text("git:main", &build).contains("\ntwo\n"));
    assert!(bench.text("worktree", &build).ends_with("9\nnew\n"));
    assert_eq!(before, files(&bench.tree()));
    bench.write("mm/b.c", "newer\n");
    assert!(bench.text("worktree", &build).ends_with("9\nnewer\n"));
    fs::remove_file(bench.tree().join("mm/b.c")).unwrap();
    assert!(bench.text("worktree", &build).ends_with("9\n"));
    assert!(!bench.has_built(), "the tree of main is built already");
}

#[test]
fn equal_code_is_built_once() {
    let bench = Bench::new();
    let build = bench.build();
    let first = bench.run("git:v1", &build).unwrap();
    assert!(bench.has_built());
    let again = bench.run("git:main", &Build { revert: vec!["main".into()], ..build.clone() });
    assert_eq!((again.unwrap().name, bench.has_built()), (first.name.clone(), false));
    let picked = Build { pick: vec!["main".into()], ..build.clone() };
    let picked = bench.run("git:v1", &picked).unwrap();
    assert_eq!(picked.name, bench.run("git:main", &build).unwrap().name);
    let other = Build { set: [("X".into(), "y".into())].into(), ..build };
    assert_ne!(bench.run("git:v1", &other).unwrap().name, first.name);
}

#[test]
fn a_kernel_that_does_not_compile_is_a_result_and_the_next_one_is_built() {
    let bench = Bench::new();
    let build = bench.build();
    bench.write("mm/a.c", "broken\n");
    let error = bench.run("worktree", &build).unwrap_err();
    assert_eq!(error, "unbuilt: does not build: mm/a.c:1:2: error: broken");
    assert!(bench.text("git:v1", &build).contains("\n2\n"));
    bench.write("mm/a.c", "full\n");
    let error = bench.run("worktree", &build).unwrap_err();
    assert_eq!(error, "make failed: as: No space left on device");
    bench.write("mm/a.c", "stopped\n");
    let error = bench.run("worktree", &build).unwrap_err();
    assert!(error.starts_with("make failed: ") && error.ends_with("Error 130"), "{error}");
}

#[test]
fn the_output_of_a_killed_build_is_not_used() {
    let bench = Bench::new();
    let build = bench.build();
    bench.run("git:v1", &build).unwrap();
    let linux = bench.place("cache/build/linux");
    fs::write(linux.join("output/left"), "").unwrap();
    fs::write(linux.join("mm/a.c"), "half of a checkout").unwrap();
    fs::write(bench.place("cache/build/linux.unfinished"), "").unwrap();
    fs::write(bench.place("cache/build/linux.index.lock"), "").unwrap();
    fs::write(bench.place("cache/build/repository/index-patches.lock"), "").unwrap();
    let build = Build { revert: vec!["main".into()], ..build };
    let build = Build { set: [("X".into(), "y".into())].into(), ..build };
    let text = bench.text("git:main", &build);
    assert!(text.contains("\n2\n") && !text.contains("left"), "{text}");
}

/// Sets the time of a file's last modification to this number of days ago.
fn age(path: &Path, days: u32) {
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - days * DAY).unwrap();
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[test]
fn kernels_from_source_go_if_they_were_not_used_for_long() {
    let bench = Bench::new();
    let (build, cache) = (bench.build(), bench.cache());
    let old = bench.run("git:v1", &build).unwrap();
    let again = bench.run("git:main", &build).unwrap();
    let image = bench.place("bzImage");
    fs::write(&image, fixture::kernel("6.1.2")).unwrap();
    let files = Files { image, name: Some("mine".into()), ..Files::default() };
    cache.add(&Request::Files(files), &|_| ()).unwrap();
    for kernel in cache.list(&|_| ()).unwrap() {
        age(&kernel.image.with_file_name("kernel.json"), 40);
    }
    bench.run("git:main", &build).unwrap();
    let used = cache.known(&|_| ()).unwrap().into_iter().map(|it| (it.kernel.name, it.used));
    let used: BTreeMap<_, _> = used.collect();
    assert!(used[&again.name].elapsed().unwrap() < DAY, "{used:?}");
    assert!(used[&old.name].elapsed().unwrap() > 39 * DAY, "{used:?}");

    let prune = |older: u32, builds, dry_run| {
        let prune = Prune { older: older * DAY, builds, dry_run };
        // A program that another test starts has the lock until it is executed.
        let waits = |line: &str| assert!(line.contains("aiting to build a kernel"), "{line}");
        let pruned = cache.prune(&prune, &waits).unwrap();
        assert!(pruned.iter().all(|it| it.size > 0 && it.path.exists() == dry_run));
        pruned.into_iter().map(|it| it.name).collect::<Vec<_>>()
    };
    assert_eq!(prune(41, false, false), [""; 0]);
    assert_eq!(prune(30, false, true), [&*old.name]);
    assert_eq!(prune(30, false, false), [&*old.name]);
    assert_eq!(prune(0, false, false), [&*again.name]);
    assert_eq!(cache.list(&|_| ()).unwrap().len(), 1);
    let builds = prune(30, true, false);
    assert!(builds.contains(&"build/linux".into()) && !builds.contains(&"build/lock".into()));
    assert_eq!(bench.run("git:v1", &build).unwrap().name, old.name);
}

#[test]
fn a_build_needs_neither_our_repository_nor_a_record_of_uses() {
    let bench = Bench::new();
    let build = bench.build();
    bench.write("mm/a.c", "changed\n");
    let kernel = bench.run("worktree", &build).unwrap();
    let used = kernel.image.with_file_name("used");
    fs::create_dir(&used).unwrap(); // cannot be written
    bench.cache().obtain(&kernel.name, &|_| ()).unwrap();
    fs::remove_dir_all(bench.place("cache/build/repository")).unwrap();
    assert_eq!(bench.run("worktree", &build).unwrap(), kernel);
    let other = Build { set: [("X".into(), "y".into())].into(), ..build };
    assert!(bench.text("worktree", &other).contains("changed"));
}

#[test]
fn requests_that_cannot_be_met_are_explained() {
    let bench = Bench::new();
    let build = bench.build();
    let error = bench.run("git:v9", &build).unwrap_err();
    assert!(error.ends_with("it has no commit `v9`: `git fetch --tags` may bring it"), "{error}");
    let lost = Build { config: None, ..build.clone() };
    let lost = Build { set: [("LOST".into(), "y".into())].into(), ..lost };
    let error = bench.run("git:v1", &lost).unwrap_err();
    assert!(error.ends_with("Kconfig does not allow CONFIG_LOST=y (it has n)"), "{error}");
    let odd = Build { modules: vec!["odd".into()], ..build.clone() };
    let error = bench.run("git:v1", &odd).unwrap_err();
    assert!(error.starts_with("the option of the module odd is not known"), "{error}");
    let without = Build { tree: None, ..build.clone() };
    assert!(bench.run("git:v1", &without).unwrap_err().contains("--tree"));
    let no_tree = Build { tree: Some(bench.place("")), ..build.clone() };
    let error = bench.run("git:v1", &no_tree).unwrap_err();
    assert!(error.contains("not a git repository"), "{error}");
    bench.git(&["commit", "-q", "--allow-empty", "-m", "empty"]);
    bench.git(&["checkout", "-q", "-b", "side", "v1"]);
    bench.write("mm/c.c", "c\n");
    bench.commit("side");
    bench.git(&["merge", "-q", "-m", "merge", "main"]);
    let merge = Build { pick: vec!["side".into()], ..build };
    assert!(bench.run("git:v1", &merge).unwrap_err().contains("has 2 parents"));
}

#[test]
fn a_shallow_clone_says_so() {
    let bench = Bench::new();
    let from = format!("file://{}", bench.tree().display());
    let shallow = bench.place("shallow");
    bench.git(&["clone", "-q", "--depth", "1", &from, shallow.to_str().unwrap()]);
    let build = Build { tree: Some(shallow), ..bench.build() };
    assert!(bench.text("git:HEAD", &build).contains("\ntwo\n"));
    let error = bench.run("git:HEAD~1", &build).unwrap_err();
    assert!(error.contains("shallow clone; `git fetch --unshallow`"), "{error}");
}

#[test]
fn a_partial_clone_that_lacks_objects_says_so_and_fetches_none() {
    let bench = Bench::new();
    bench.git(&["config", "uploadpack.allowFilter", "true"]);
    let from = format!("file://{}", bench.tree().display());
    let partial = bench.place("partial");
    let filter = ["clone", "-q", "--filter=blob:none", "--no-checkout", &from];
    bench.git(&[&filter[..], &[partial.to_str().unwrap()]].concat());
    let build = Build { tree: Some(partial.clone()), ..bench.build() };
    let before = files(&partial);
    let error = bench.run("git:HEAD", &build).unwrap_err();
    assert!(error.contains("as a partial clone does: complete it with"), "{error}");
    assert_eq!(before, files(&partial));
}

#[test]
fn directories_and_archives_are_sources_too() {
    let bench = Bench::new();
    let build = Build { tree: None, ..bench.build() };
    let source = format!("src:{}", bench.tree().display());
    assert!(bench.text(&source, &build).contains("\ntwo\n"));
    let archive = bench.place("linux.tar.xz");
    let tar = ["-cJf", archive.to_str().unwrap(), "--exclude=.git", "-C"];
    let status = Command::new("tar").args(tar).arg(bench.directory.path()).arg("linux").status();
    assert!(status.unwrap().success());
    let source = format!("src:{}", archive.display());
    assert!(bench.text(&source, &build).contains("\ntwo\n"));
    bench.run(&source, &build).unwrap();
    assert!(!bench.has_built(), "{:?}", bench.said);
    // As if Debian's source of these files had been read earlier.
    let known = bench.place("cache/build/sources.json");
    let tree = bench.git(&["write-tree"]).trim().to_owned();
    let from = "Debian 6.1.2-1, linux-source-6.1";
    fs::write(known, format!(r#"{{"debian-source:6.1": "{tree}", "{tree}": "{from}"}}"#)).unwrap();
    assert!(bench.run("debian-source:6.1", &build).unwrap().origin.starts_with(from));
    let error = bench.run("src:/no/such", &build).unwrap_err();
    assert!(error.starts_with("/no/such: "), "{error}");
    let error = bench.run(&format!("src:{}", bench.tree().join("mm").display()), &build);
    assert!(error.unwrap_err().contains("is not the source of a kernel"));
}

#[test]
fn the_working_tree_has_what_git_tracks_and_not_what_it_ignores() {
    let bench = Bench::new();
    let build = bench.build();
    bench.write("mm/tracked.c", "tracked\n");
    bench.write(".gitignore", "/*\n!/mm/\n!/Makefile\nmm/ignored.c\nmm/tracked.c\n");
    bench.git(&["add", "-f", "mm/tracked.c", ".gitignore"]);
    bench.git(&["commit", "-q", "-m", "third"]);
    bench.write("mm/new.c", "new\n");
    bench.write("mm/ignored.c", "ignored\n");
    bench.write("mm/excluded.c", "excluded\n");
    bench.write(".git/info/exclude", "excluded.c\n");
    assert!(bench.text("worktree", &build).ends_with("9\nnew\ntracked\n"));
    bench.write(".gitignore", "mm/new.c\nmm/ignored.c\n");
    assert!(bench.text("worktree", &build).ends_with("9\ntracked\n"));
    bench.git(&["update-index", "--assume-unchanged", "mm/tracked.c"]);
    bench.write("mm/tracked.c", "edited\n");
    assert!(bench.text("worktree", &build).ends_with("9\nedited\n"));
    bench.git(&["update-index", "--no-assume-unchanged", "mm/tracked.c"]);
    bench.git(&["update-index", "--split-index"]);
    bench.write("mm/tracked.c", "again\n");
    assert!(bench.text("worktree", &build).ends_with("9\nagain\n"));
}

#[test]
fn programs_that_the_repository_names_are_not_run() {
    let bench = Bench::new();
    let hook = bench.place("hook");
    let program = format!("touch {}; printf '/\\0'", hook.display());
    bench.git(&["config", "core.fsmonitor", &program]);
    bench.git(&["config", "diff.noprefix", "true"]);
    let build = Build { revert: vec!["main".into()], ..bench.build() };
    assert!(bench.text("git:main", &build).contains("\n2\n"));
    bench.write("mm/a.c", "edited\n");
    assert!(bench.text("worktree", &bench.build()).ends_with("edited\n"));
    assert!(!hook.exists());
}

#[test]
fn a_damaged_index_or_repository_of_ours_is_made_again() {
    let bench = Bench::new();
    let build = bench.build();
    bench.run("git:v1", &build).unwrap();
    fs::write(bench.place("cache/build/linux.index"), "damaged").unwrap();
    assert!(bench.text("git:main", &build).contains("\ntwo\n"));
    fs::write(bench.place("cache/build/repository/HEAD"), "damaged").unwrap();
    bench.write("mm/a.c", "new\n");
    assert!(bench.text("worktree", &build).ends_with("new\n"));
}

#[test]
fn a_submodule_that_is_left_out_is_named() {
    let bench = Bench::new();
    let commit = bench.git(&["rev-parse", "HEAD"]);
    let link = format!("160000,{},mm/sub", commit.trim());
    bench.git(&["update-index", "--add", "--cacheinfo", &link]);
    bench.git(&["commit", "-q", "-m", "link"]);
    bench.run("git:main", &bench.build()).unwrap();
    let said = bench.said.borrow();
    assert!(said.contains(&"The submodule mm/sub is left out".to_owned()), "{said:?}");
}

#[test]
fn the_history_of_a_range_has_its_commits_and_their_changes() {
    let bench = Bench::new();
    bench.git(&["checkout", "-q", "-b", "side"]);
    bench.write("mm/new file.c", "1\n");
    bench.commit("on the side");
    bench.git(&["checkout", "-q", "main"]);
    bench.write("mm/a.c", "1\nthree\n3\n4\n5\n6\n7\n8\n9\n");
    bench.commit("third");
    bench.git(&["merge", "-q", "--no-ff", "-m", "merge", "side"]);
    bench.git(&["commit", "-q", "--allow-empty", "-m", "empty"]);
    let read = |ends, line| History::read(&bench.tree(), ends, line);
    let subjects =
        |history: &History| history.commits.iter().map(|it| it.subject.clone()).collect::<Vec<_>>();
    let line = read(["v1", "HEAD"], true).unwrap();
    assert_eq!(subjects(&line), ["first", "second", "third", "merge", "empty"]);
    assert_eq!(line.commits[3].places, [2]);
    let history = read(["v1", "HEAD"], false).unwrap();
    assert_eq!(subjects(&history)[4..], ["merge", "empty"]);
    let side = subjects(&history).iter().position(|it| it == "on the side").unwrap();
    assert_eq!(history.commits[4].places, [5 - side, side]);
    let changes = history.changes().unwrap();
    let [new, edited] = [("mm/new file.c", true), ("mm/a.c", false)]
        .map(|(path, is_new)| ChangedFile { path: path.into(), is_new });
    assert_eq!(changes[side], [[new.clone()]]);
    assert_eq!(changes[4], [vec![new], vec![edited]]);
    assert_eq!((&changes[0], &changes[5]), (&vec![], &vec![vec![]]));
    assert!(history.author(&history.commits[4].id).unwrap().ends_with(" a <a@b>"));

    let wrong = |good, bad| read([good, bad], false).unwrap_err().to_string();
    assert_eq!(subjects(&read(["HEAD", "HEAD"], false).unwrap()), ["empty"]);
    assert!(wrong("HEAD", "v1").ends_with("`v1` is an ancestor of `HEAD`: exchange the two ends"));
    let fork = wrong("HEAD~1^1", "side");
    assert!(fork.contains("is not an ancestor of `side`; both come from "), "{fork}");
    assert!(wrong("nothing", "side").contains("it has no commit `nothing`"));
}

/// Without a cross compiler the refusal is tested.
#[test]
fn kernels_for_arm64_are_cross_compiled() {
    let bench = Bench::new();
    let for_arm64 = Build { arch: Architecture::Arm64, ..bench.build() };
    let x86 = bench.run("git:v1", &bench.build()).unwrap();
    let built = bench.run("git:v1@arm64", &for_arm64);
    let versioned = Build { compiler: "gcc-99".parse().unwrap(), ..for_arm64.clone() };
    let told = bench.run("git:v1@arm64", &versioned).unwrap_err();
    assert!(
        told.contains("`apt-get install ") && told.contains("gcc-99-aarch64-linux-gnu"),
        "{told}"
    );
    if Command::new("aarch64-linux-gnu-gcc").arg("--version").output().is_err() {
        assert!(built.unwrap_err().contains("gcc-aarch64-linux-gnu"));
        return;
    }
    let kernel = built.unwrap();
    assert_eq!((kernel.arch, x86.arch), (Architecture::Arm64, Architecture::X86_64));
    assert_ne!(kernel.name, x86.name);
    let made = String::from_utf8_lossy(&fs::read(&kernel.image).unwrap()[60..]).into_owned();
    assert!(made.starts_with("arm64 aarch64-linux-gnu- "), "{made}");
    assert!(made.ends_with("aarch64-linux-gnu-gcc"), "{made}");
    // Each architecture has its own output directory, so both are built from what the last build left.
    assert_eq!(bench.run("git:v1", &bench.build()).unwrap(), x86);
    assert!(!bench.has_built());
    // A configuration names its architecture.
    let config = bench.place("x86 config");
    fs::write(&config, "# Linux/x86 6.1.2 Kernel Configuration\nCONFIG_64BIT=y\n").unwrap();
    let config = Some(config.display().to_string());
    let told = bench.run("git:v1", &Build { config, ..for_arm64 }).unwrap_err();
    assert!(told.ends_with("it is the configuration of a kernel for x86, not for arm64"), "{told}");
}
