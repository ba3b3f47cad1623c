//! Manifests of workloads that a file names.

use super::*;

#[test]
fn a_metric_cannot_be_called_instructions() {
    let directory = tempfile::tempdir().unwrap();
    let manifest = "name = \"x\"\ndescription = \"\"\ncommand = [\"x\"]\n[[metrics]]\n\
                    name = \"instructions\"\nunit = \"\"\nmean = \"amean\"\n";
    std::fs::write(directory.path().join("x-manifest.toml"), manifest).unwrap();
    let text = GOOD.replace("name = \"autonuma\"", "manifest = \"x-manifest.toml\"");
    let error = parse(&directory.path().join("x.toml"), &text, None).unwrap_err();
    let problem = "x-manifest.toml: line 5: `instructions` cannot be the name of a metric";
    assert!(error.to_string().ends_with(problem), "{error}");
}

#[test]
fn the_name_of_a_workload_is_valid_in_tables_and_paths() {
    let directory = tempfile::tempdir().unwrap();
    let read = |workload: &str| {
        let text = GOOD.replace("name = \"autonuma\"", workload);
        parse(&directory.path().join("x.toml"), &text, None)
    };
    let long = "x".repeat(101);
    for name in ["", " ", ".", "..", "a/b", "../a", "a,b", "a\\nb", &long] {
        let manifest =
            format!("name = \"{name}\"\ndescription = \"\"\ncommand = [\"x\"]\nmetrics = []\n");
        std::fs::write(directory.path().join("own.toml"), manifest).unwrap();
        let own = "manifest = \"own.toml\"";
        assert_eq!(
            read(&format!("{own}\nas = \"own\"")).unwrap().experiment.workloads[0].manifest.name,
            "own"
        );
        let called = format!("\"{name}\"");
        let renamed = format!("name = \"autonuma\"\nas = {called}");
        for (workload, place) in [(own, "\"own.toml\""), (&*renamed, &*called)] {
            let error = read(workload).unwrap_err();
            assert_eq!(error.to_string(), format!("`{name}` cannot be the name of a workload"));
            let text = marked(&error);
            assert!(text.starts_with(place), "{text}");
        }
    }
    assert!(read("name = \"autonuma\"\nas = \"large (2 G)\"").is_ok());
}

#[test]
fn a_metric_has_a_name_of_the_protocol() {
    let directory = tempfile::tempdir().unwrap();
    let text = GOOD.replace("name = \"autonuma\"", "manifest = \"own.toml\"");
    let read = |metric: &str| {
        let manifest = format!(
            "name = \"x\"\ndescription = \"\"\ncommand = [\"x\"]\n\
             [[metrics]]\nname = \"{metric}\"\nunit = \"\"\nmean = \"amean\"\n"
        );
        std::fs::write(directory.path().join("own.toml"), manifest).unwrap();
        parse(&directory.path().join("x.toml"), &text, None)
    };
    assert!(read("SeqIn block").is_ok() && read(&"x".repeat(64)).is_ok());
    for metric in ["", "q <b>", "a  b", &"x".repeat(65)] {
        let error = read(metric).unwrap_err();
        let problem = format!("own.toml: line 5: `{metric}` cannot be the name of a metric");
        assert!(error.to_string().ends_with(&problem), "{error}");
        assert_eq!(&marked(&error)[..10], "\"own.toml\"");
        let error = crate::workloads::read(&directory.path().join("own.toml")).unwrap_err();
        assert!(error.to_string().ends_with(&problem), "{error}");
        assert!(error.hint().starts_with("use 1 to 64 letters"), "{error}");
    }
}

#[test]
fn an_invalid_package_is_an_error_of_its_manifest() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.toml");
    let manifest = |package: &str| {
        let text = format!(
            "name = \"x\"\ndescription = \"\"\ncommand = [\"x\"]\npackages = [\"fio\", \"{package}\"]\n\
             [[metrics]]\nname = \"a\"\nunit = \"\"\nmean = \"amean\"\n"
        );
        std::fs::write(directory.path().join("own.toml"), text).unwrap();
    };
    let text = GOOD.replace("name = \"autonuma\"", "manifest = \"own.toml\"");
    manifest("Bonnie");
    let error = parse(&path, &text, None).unwrap_err().to_string();
    assert!(error.ends_with("own.toml: line 4: `Bonnie` is not the name of a package"), "{error}");
    manifest("boney");
    assert!(parse(&path, &text, None).is_ok());
    let problem = "there is no package `boney`";
    let error = package_error(&path, &text, "boney", problem).unwrap();
    assert!(error.to_string().ends_with("own.toml: there is no package `boney`"), "{error}");
    assert_eq!(&marked(&error)[..10], "\"own.toml\"");
    assert!(package_error(&path, &text, "postgresql-15", problem).is_none());
}

#[test]
fn programs_of_a_directory_are_found_before_boots() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::create_dir(path("bin")).unwrap();
    for name in ["cg.S.x", "ft.S.x"] {
        std::fs::write(path("bin").join(name), name).unwrap();
    }
    let read = |rest: &str| {
        let own = format!("name = \"nas\"\nbinaries = \"bin\"\n{rest}");
        let text = GOOD.replace("name = \"autonuma\"", &own);
        parse(&path("x.toml"), &text, None).map_err(|error| (rendered(&error), text))
    };
    let all = read("").unwrap().experiment;
    let programs = ["cg.S.x", "ft.S.x"]
        .map(|name| crate::workloads::binaries::program(&path("bin").join(name)).unwrap());
    assert_eq!(all.workloads[0].binaries, programs);
    let command = crate::workloads::command_of(&all.workloads[0], &all.machine).unwrap().join(" ");
    let places = "--program /faultline/programs/nas/cg.S.x,/faultline/programs/nas/ft.S.x";
    assert!(command.ends_with(places), "{command}");
    let any = read("parameters = { class = \"\" }").unwrap();
    assert_eq!(any.experiment.workloads[0].binaries, programs);
    let some = read("parameters = { benchmarks = \"ft\" }").unwrap();
    assert_eq!(some.experiment.workloads[0].binaries, programs[1..]);
    let written = write(&some.experiment, &some.reading).text;
    assert_eq!(parse(&path("y.toml"), &written, None).unwrap(), some, "{written}");
    let (error, _) = read("parameters = { benchmarks = \"ft,is\" }").unwrap_err();
    assert!(error.contains("bin has no program is.S.x"), "{error}");
    assert!(error.contains("there are: cg.S.x, ft.S.x"), "{error}");
    let (error, _) = read("program = \"bin/cg.S.x\"").unwrap_err();
    assert!(error.contains("the workload has both program and binaries"), "{error}");
}

#[test]
fn the_name_of_a_program_has_no_comma() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("a,b")).unwrap();
    std::fs::write(directory.path().join("a,b/cg,old.C.x"), "").unwrap();
    let manifest = "name = \"own\"\ndescription = \"\"\ncommand = [\"{program}\"]\nmetrics = []\n\
                    binaries = \"cg,old.C.x\"\n";
    std::fs::write(directory.path().join("own.toml"), manifest).unwrap();
    let read = |workload: &str| {
        let text = GOOD.replace("name = \"autonuma\"", workload);
        parse(&directory.path().join("x.toml"), &text, None)
    };
    for (workload, place) in [
        ("name = \"nas\"\nprogram = \"a,b/cg,old.C.x\"", "\"a,b/cg,old"),
        ("manifest = \"own.toml\"\nbinaries = \"a,b\"", "\"a,b\""),
    ] {
        let error = read(workload).unwrap_err();
        let told = "a,b/cg,old.C.x: the name of a program cannot have a comma";
        assert!(error.to_string().ends_with(told), "{error}");
        let text = marked(&error);
        assert!(text.starts_with(place), "{text}");
    }
    assert!(read("name = \"nas\"\nprogram = \"a,b/cg.C.x\"").is_ok());
}
