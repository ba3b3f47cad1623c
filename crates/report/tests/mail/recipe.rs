//! How a run is repeated, in a mail.

use model::{Bytes, Disk, DiskKind, FileSystem, Format, Sequential};

use super::*;

#[test]
fn long_files_are_attached_or_lacking() {
    let mut case = two(Mode::Measured, 1.0);
    let line = "sha256 = \"dc79\"\n";
    // Without it the other files repeat nothing, and have no room either.
    let told =
        format!("\nAlso needed, and not in this mail: {}, userspace.lock.\n", case.files[0].0);
    for (lines, shown) in [(24, true), (25, false)] {
        case.files.truncate(1);
        case.files.push(("userspace.lock".into(), line.repeat(lines)));
        let mail = case.mail(|_| ()).0;
        assert_eq!((mail.contains(line), mail.contains(&told)), (shown, !shown));
    }
    case.attached = vec!["userspace.lock"];
    let mail = case.mail(|_| ()).0;
    assert!(
        mail.contains("\nOn request: userspace.lock.\n") && !mail.contains("Also needed"),
        "{mail}"
    );
    case.experiment.workloads[0].archive = Some(Pinned::from("/cache/402fa965.cpio".to_owned()));
    let mail = case.mail(|_| ()).0;
    let told = told.replace("userspace.lock", "402fa965.cpio");
    assert!(mail.contains(&told), "{mail}");
}

#[test]
fn one_command_repeats_a_program_that_is_in_the_mail() {
    let mut case = two(Mode::Exact, 1.2);
    let versions = ["6.1.174-1", "6.12.117-1~deb12u1"];
    for (boots, version) in case.boots.iter_mut().zip(versions) {
        let origin = format!("Debian {version}, linux-image-cloud-amd64");
        boots.iter_mut().for_each(|boot| boot.facts.kernel_origin = origin.clone());
    }
    // Stores have a reading of each workload.
    case.reading = common::on_rows(&[]);
    let manifest = &mut case.experiment.workloads[0].manifest;
    manifest.plain = true;
    manifest.parameters.clear();
    manifest.command = ["/home/me/prog", "a b"].map(str::to_owned).into();
    case.experiment.profile.stacks = true;
    manifest.source = format!("int main(void)\n{{\n\n{}\treturn 0;\n}}\n", "\t;\n".repeat(10));
    let command = "  faultline try debian:6.1.174-1,debian:6.12.117-1~deb12u1 --exact --seeds 2 --cpus 4 \
                   --memory 2G --nodes 2 --timeout 1s -- ./prog.c 'a b'\n";
    let mail = case.mail(|_| ()).0;
    assert!(mail.contains(command) && !mail.contains("Also needed"), "{mail}");
    assert!(mail.contains("\nprog.c:\n  int main(void)\n  {\n      ;\n"), "{mail}");
    patches_are_applied_by_the_command(&mut case);
    a_usual_disk_is_in_the_command(&mut case);
    // Measured mode needs no call paths. It ends when the verdicts are decided.
    let exact = case.experiment.clone();
    case.experiment.mode = Mode::Measured;
    case.experiment.profile.stacks = false;
    case.experiment.sequential = Some(Sequential { margin: 0.01, budget: None });
    let measured = " --measured --at-most 2 --cpus 4 ";
    assert!(case.mail(|_| ()).0.contains(measured));
    case.experiment.sequential = Some(Sequential { margin: 0.02, budget: None });
    assert!(!case.mail(|_| ()).0.contains(measured));
    case.experiment = exact;
    // A script has its own name, and a setting is not in the command.
    case.experiment.workloads[0].manifest.source = "#!/bin/sh\ntrue\n".into();
    assert!(case.mail(|_| ()).0.contains(" -- ./prog 'a b'\n"));
    case.experiment.workloads[0].manifest.source = "#!/bin/sh\ncat <<EOF\n\nEOF\n".into();
    let mail = case.mail(|_| ()).0;
    assert!(mail.contains(" -- ./prog 'a b'\n"), "{mail}");
    assert!(mail.ends_with("\nAlso needed, and not in this mail: prog.\n"), "{mail}");
    // The usual time limit is not named. A built-in workload needs no file either.
    case.experiment.workloads[0].timeout = Millis(30 * 60 * 1000);
    case.parameters = Some(vec![("scale".into(), "2".into())]);
    let command = "faultline run --kernels debian:6.1.174-1,debian:6.12.117-1~deb12u1 --workload autonuma --set \
                   scale=2 --mode exact --profile stacks --seeds 2 --cpus 4 --memory 2G --nodes 2\n";
    let mail = case.mail(|_| ()).0;
    assert!(mail.contains(command), "{mail}");
    case.variants[1].cmdline = "thp=never".into();
    assert!(!case.mail(|_| ()).0.contains("--kernels"));
}

/// A source without and with a patch of a list is one command too.
fn patches_are_applied_by_the_command(case: &mut Case) {
    let packages = case.boots.clone();
    let source = "Debian 6.12.117-1, linux-source-6.12; small configuration";
    let mail = PatchMail { message_id: "<1.a@b.org>".into(), ..PatchMail::default() };
    let subject = "[PATCH] mm: x".to_owned();
    let unpatched = source.to_owned();
    let patched = Patched { subject, patches: 1, unpatched, mail: Some(mail) };
    for facts in case.boots.iter_mut().flatten().map(|boot| &mut boot.facts) {
        facts.kernel_origin = source.into();
    }
    for facts in case.boots[1].iter_mut().map(|boot| &mut boot.facts) {
        facts.kernel_origin = source.replace("; ", ", \"[PATCH] mm: x\"; ");
        facts.patched = Some(patched.clone());
    }
    let (mail, comparison) = case.mail(|_| ());
    let command = "  b4 am -o - 1.a@b.org |\n    faultline try debian-source:6.12 --patch - --exact --seeds 2 ";
    assert!(mail.contains(command) && !mail.contains("Also needed"), "{mail}");
    let origin = "\n  origin    6.1  Debian 6.12.117-1, linux-source-6.12; small configuration\n";
    assert!(mail.contains(origin), "{mail}");
    assert!(report::brief(&comparison, "").contains("6.12  Debian 6.12.117-1, linux-source"));
    case.boots[1][0].facts.patched = Some(Patched { unpatched: "git x".into(), ..patched });
    assert!(!case.mail(|_| ()).0.contains("faultline try"));
    case.boots = packages;
}

fn a_usual_disk_is_in_the_command(case: &mut Case) {
    let format = Format {
        filesystem: FileSystem::Xfs,
        mkfs: Vec::new(),
        mount: "/disk0".into(),
        digest: None,
        options: String::new(),
    };
    let disk = Disk { kind: DiskKind::Pmem, size: Bytes::mib(512), format: Some(format) };
    case.experiment.machine.disks = vec![disk];
    let mail = case.mail(|_| ()).0;
    assert!(mail.contains(" --nodes 2 --disk 512M,xfs --timeout 1s -- ./prog.c"), "{mail}");
    let format = case.experiment.machine.disks[0].format.as_mut().unwrap();
    format.mkfs = vec!["-K".into()];
    assert!(!case.mail(|_| ()).0.contains("faultline try"));
    case.experiment.machine.disks.clear();
}

#[test]
fn packages_are_pinned_or_the_command_is_printed() {
    let mut case = two(Mode::Measured, 1.0);
    let told = "Its packages are written down by `faultline userspace lock --boot b";
    assert!(!case.mail(|_| ()).0.contains(told));
    case.experiment.userspace_digest = "00".into();
    case.boots[0][0].facts.userspace = vec!["fio=3.33-3".into()];
    let mail = case.mail(|_| ()).0;
    assert!(mail.contains(told), "{mail}");
    case.experiment.userspace = Some(UserspaceLock {
        architecture: "amd64".into(),
        suites: Vec::new(),
        taken: 0,
        packages: Vec::new(),
    });
    assert!(!case.mail(|_| ()).0.contains(told));
}
