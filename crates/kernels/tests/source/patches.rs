//! Patches and mailboxes of patches.

use super::*;

#[test]
fn patches_apply_as_git_applies_them() {
    let bench = Bench::new();
    let patch = bench.place("series.mbox");
    bench.write("mm/a.c", "1\ntwo\n3\n4\n5\n6\nseven\n8\n9\n");
    bench.commit("mm: third");
    bench.write("mm/a.c", "1\ntwo\n3\n4\n5\n6\nseven\n8\nnine\n");
    bench.commit("mm: fourth");
    fs::write(&patch, bench.git(&["format-patch", "--stdout", "main~2..main"])).unwrap();
    let build = Build { patches: vec![patch.clone()], ..bench.build() };
    assert!(bench.text("git:v1", &build).contains("\n2\n3\n4\n5\n6\nseven\n8\nnine\n"));
    let one = Build { first: Some(1), ..build.clone() };
    assert!(bench.text("git:v1", &one).contains("\n6\nseven\n8\n9\n"));
    // The results of patches are known, so the index in which patches are applied is not needed.
    let index = bench.place("cache/build/repository/index-patches");
    fs::remove_file(&index).unwrap();
    fs::create_dir(&index).unwrap();
    let again = Build { set: [("X".into(), "y".into())].into(), ..one.clone() };
    assert!(bench.text("git:v1", &again).contains("\n6\nseven\n8\n9\n"));
    assert!(bench.run("git:main~2", &one).unwrap_err().ends_with("new index file"));
    fs::remove_dir(&index).unwrap();
    let subjects = kernels::subjects(&[patch]).unwrap();
    assert_eq!(subjects, ["\"[PATCH 1/2] mm: third\"", "\"[PATCH 2/2] mm: fourth\""]);
    let error = bench.run("git:main", &build).unwrap_err();
    assert!(
        error.ends_with("third\" changes nothing: the source already has its changes"),
        "{error}"
    );
    bench.write("mm/a.c", "1\n2\n3\n4\n5\n6\nsieben\n8\n9\n");
    let error = bench.run("worktree", &build).unwrap_err();
    assert_eq!(error, "unbuilt: \"[PATCH 1/2] mm: third\" does not apply: mm/a.c:4");
    let garbage = bench.place("garbage.mbox");
    fs::write(&garbage, "From me\n\n--- a/q\n+++ b/q\n@@ garbage @@\n").unwrap();
    let error =
        bench.run("git:v1", &Build { patches: vec![garbage], ..bench.build() }).unwrap_err();
    assert_eq!(error, "unbuilt: garbage.mbox does not apply: its diff is damaged");
    let missing =
        bench.run("git:v1", &Build { patches: vec!["/no/patch".into()], ..bench.build() });
    assert!(missing.unwrap_err().starts_with("/no/patch: cannot be read"));
}

#[test]
fn a_kernel_knows_the_mail_of_its_patches() {
    let bench = Bench::new();
    let mail = |number: u32, body: &str| {
        format!(
            "From 0 Mon Sep 17 00:00:00 2001\nFrom: A B <a@b>\nMessage-ID: <{number}@b>\n\
             Subject: [PATCH v2 {number}/1] mm: x\n\n---\n{body}\n\n"
        )
    };
    let diff = "--- a/mm/a.c\n+++ b/mm/a.c\n@@ -1,2 +1,2 @@\n-1\n+one\n 2\n";
    let series = bench.place("series.mbox");
    fs::write(&series, mail(0, "cover") + &mail(1, diff)).unwrap();
    let build = Build { patches: vec![series], ..bench.build() };
    let base = bench.run("git:v1", &bench.build()).unwrap();
    assert_eq!(base.patched, None);
    for _ in 0..2 {
        // The second time it is in the cache.
        let patched = bench.run("git:v1", &build).unwrap().patched.unwrap();
        assert_eq!((&*patched.subject, patched.patches), ("[PATCH v2 0/1] mm: x", 1));
        assert_eq!(
            (patched.unpatched, patched.mail.unwrap().message_id),
            (base.origin.clone(), "<0@b>".into())
        );
    }
    let none = Build { first: Some(0), ..build };
    assert_eq!(bench.run("git:v1", &none).unwrap().patched, None);
}

#[test]
fn a_mailbox_with_a_gap_or_two_versions_is_refused() {
    let bench = Bench::new();
    let mail = |number: &str| {
        format!(
            "From 0 Mon Sep 17 00:00:00 2001\nFrom: a@b\nSubject: [PATCH {number}/3] x\n\n---\n\
             --- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n\n"
        )
    };
    let path = bench.place("series.mbox");
    for (numbers, problem) in [
        (["1", "3"], "patch 2 of the series is missing"),
        (["2", "2"], "two patches with the number 2"),
    ] {
        fs::write(&path, numbers.map(mail).concat()).unwrap();
        let error = kernels::subjects(std::slice::from_ref(&path)).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}
