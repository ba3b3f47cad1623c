//! How the boots were done, and how to repeat the run.

use std::collections::BTreeSet;
use std::path::Path;

use compare::{KeptBoot, Results, VariantBoots};
use model::{
    Architecture, BootFacts, BootId, Disk, DiskKind, Machine, Manifest, Millis, Mode, PatchMail,
    Patched, Profiling, Sampler, Sequential, Topology, Variant, count,
};

use super::fit::Piece;
use super::{clipped, kernel};
use crate::ascii::{escape, excerpt, shell_word};
use crate::document::{self, Block, MAIL, part, sentence};
use crate::note::{self, Note};

/// The version and the files that are needed to run an experiment again.
#[derive(Clone, Debug, Default)]
pub struct Recipe<'a> {
    /// The version of Faultline that ran it.
    pub version: &'a str,
    /// The names and texts of its files, in printable ASCII. The experiment's file is the first; the files
    /// that it names follow.
    pub files: &'a [(String, String)],
    /// The names and values of the parameters that differ from their defaults, if the only workload is a built-in one.
    pub parameters: Option<Vec<(String, String)>>,
    /// Whether it is to be run on both architectures. The file says so itself.
    pub on_both: bool,
}

/// Most lines of a file in a mail. Lock files of user space can have hundreds of lines.
const MOST_LINES: usize = 24;
/// The longest line of a program in a mail, in bytes.
const LONGEST_LINE: usize = 200;
/// How long a program may take if neither the options of `try` nor an experiment's file say it.
const USUAL_TIMEOUT: Millis = Millis(30 * 60 * 1000);
/// How `try` measures until its verdicts are decided, if its options do not say it.
const USUAL_SEQUENTIAL: Sequential = Sequential { margin: 0.01, budget: None };
/// Most letters of a command and of the names of variants that stand beside it.
const MAX_BESIDE: usize = 70;
/// The letters by which a mail names the variants.
const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Lists the order in which the variants booted. `None` for an import, in exact mode, where the order does
/// not matter, with fewer than two variants, or with more variants than letters.
pub fn boots(results: &Results<'_>) -> Option<Block> {
    let Results { experiment, variants, .. } = results;
    let is_told = experiment.imported.is_some() || experiment.mode == Mode::Exact;
    if is_told || variants.len() > LETTERS.len() || variants.len() < 2 {
        return None;
    }
    let mut boots: Vec<(u32, u64, BootId, char, bool)> = Vec::new();
    for (column, letter) in variants.iter().zip(LETTERS) {
        for KeptBoot { id, superseded, boot } in &column.boots {
            let complete = boot.outcome.counts() && !superseded;
            boots.push((boot.block, boot.started, *id, char::from(*letter), complete));
        }
    }
    boots.sort_unstable();
    let blocks = boots.chunk_by(|a, b| a.0 == b.0).map(|block| {
        let block = block.iter().map(|(.., letter, complete)| match complete {
            true => letter.to_string(),
            false => format!("({letter})"),
        });
        block.collect::<Vec<_>>().join(" ")
    });
    let order = blocks.collect::<Vec<_>>().join(" | ");
    let letters = variants
        .iter()
        .zip(LETTERS)
        .map(|(column, letter)| format!("{} is {}", char::from(*letter), column.variant.name));
    let letters = letters.collect::<Vec<_>>().join(", ");
    let what = "boots of each variant, in blocks in which each boots once";
    let wanted = format!("{} {what}: {letters}. Boots in brackets do not count.", experiment.boots);
    let notes = [Note::on_all("wanted", wanted), Note::on_all("done", order)];
    Some(note::block("Boots:", &notes))
}

/// Lays out the origins and digests of kernels that were built, and of the user space. `None` if there are none.
pub fn built(results: &Results<'_>) -> Option<Block> {
    let variants = results.variants.iter();
    let kernels = variants.filter_map(|column| kernel::block(column.variant, facts(column)));
    let all: Vec<Block> = kernels.chain(userspace(results)).collect();
    let is_shown = results.experiment.imported.is_none() && !all.is_empty();
    is_shown.then(|| part("What was booted:", all))
}

/// Lays out the commands that repeat the run.
pub fn how(results: &Results<'_>, recipe: &Recipe<'_>) -> Vec<Block> {
    let Results { experiment, .. } = results;
    if let Some(imported) = &experiment.imported {
        return vec![sentence(format!("Imported from what {} left behind.", imported.tool))];
    }
    let commands = Block::Code(commands(results, recipe).join("\n"));
    vec![part(format!("How to repeat it, by faultline {}:", recipe.version), [commands])]
}

/// Returns the virtual machine of the boots as a note. `None` if it is not known, or not the same for all.
pub fn machine(results: &Results<'_>) -> Option<Note> {
    let topology = &results.experiment.machine.topology;
    let known = results.experiment.imported.is_none();
    let mut machines = results.variants.iter().filter(|_| known).filter_map(facts).map(|facts| {
        let provenance = &facts.provenance;
        (&*provenance.emulator, provenance.execution)
    });
    let first = machines.next()?;
    let (emulator, execution) = machines.all(|other| other == first).then_some(first)?;
    // A distribution's version of it follows in brackets.
    let emulator = emulator.split(" (").next().unwrap_or_default();
    let executed = format!("{}, {emulator}", execution?.name());
    let size = [
        count(topology.cpus() as usize, "CPU"),
        count(topology.nodes.len(), "node"),
        topology.memory().to_string(),
    ];
    let machine = &results.experiment.machine;
    let arch = machine.arch.unless_usual().map(|arch| arch.name().to_owned());
    let disks = machine.disks.iter().map(|it| format!("disk {it}"));
    let swap = machine.swap.iter().map(|it| format!("swap {it}"));
    let thp = compare::thp(&results.variants).map(|enabled| format!("THP {enabled}"));
    let parts = arch.into_iter().chain([size.join(", ")]).chain(thp).chain(disks).chain(swap);
    let parts = parts.chain([executed]);
    Some(Note::on_all("machine", escape(&parts.collect::<Vec<_>>().join("; "))))
}

/// Returns what each workload of the experiment does, as a note: its description and parameters, or the command of a
/// program. A parameter that differs between the points of a sweep has no value there. There are none for an import.
pub fn workloads<'a>(results: &Results<'a>) -> impl Iterator<Item = Note> + use<'a> {
    let experiment = results.experiment;
    let known = experiment.imported.is_none();
    let mut points = experiment.variants.iter().filter_map(|it| it.point.as_ref());
    let swept = points.next().map(|point| &*point.key);
    experiment.workloads.iter().filter(move |_| known).map(move |it| {
        let Manifest { name, description, command, parameters, plain, .. } = &it.manifest;
        let said = if *plain {
            let word = |word: &String| {
                let argument = word.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
                if argument == Some("program") {
                    let programs = it.programs().map(|it| shell_word(it.name.as_bytes()));
                    return programs.collect::<Vec<_>>().join(",");
                }
                let given = argument.and_then(|it| parameters.get(it)).map(|it| &it.value);
                shell_word(given.unwrap_or(word).as_bytes())
            };
            format!("the program `{}`", command.iter().map(word).collect::<Vec<_>>().join(" "))
        } else {
            let value = |name: &str, value: &str| match swept == Some(name) {
                true => format!("{name} of each point"),
                false => format!("{name} {value}"),
            };
            let set = parameters.iter().filter(|(_, it)| !it.value.is_empty());
            let given: Vec<String> = set.map(|(name, it)| value(name, &it.value)).collect();
            let given = Some(given.join("; ")).filter(|it| !it.is_empty());
            let given = given.map(|it| format!(" ({it})")).unwrap_or_default();
            let does = Some(description).filter(|it| !it.is_empty());
            format!("{name}{given}{}", does.map(|it| format!(": {it}")).unwrap_or_default())
        };
        Note::on_all("workload", said)
    })
}

/// Lays out a file, without its empty lines. `attached` names the files that go beside the mail.
pub fn short_file(name: &str, text: &str, attached: &[&str]) -> Piece {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let is_short = lines.len() <= MOST_LINES;
    let text = is_short.then(|| document::text(&[file(name, &lines.join("\n"))], &MAIL));
    Piece::File { name: escape(name), text, is_beside: attached.contains(&name) }
}

/// A run that one command repeats, without files of the experiment.
pub struct OneCommand {
    command: String,
    /// The name of the program's file, its text if a mail can have it, and where it has the same counts: in which directory
    /// and by which compiler; if a program of the user's ran.
    program: Option<(String, Option<String>, String)>,
    /// The name of the file with patches, if they did not come in a mail of a list.
    patches: Option<String>,
}

impl OneCommand {
    /// Of an experiment that ran one workload on packages of Debian, or on a source without and with patches, as `run` and
    /// `try` do by default: a program whose text is known, or a built-in workload in exact mode. `None` for others.
    pub fn of(results: &Results<'_>, recipe: &Recipe<'_>) -> Option<Self> {
        let experiment = results.experiment;
        let [used] = &experiment.workloads[..] else { return None };
        let machine = machine_options(&experiment.machine, recipe.on_both)?;
        let (mode, is_exact) = match (experiment.mode, &experiment.sequential) {
            (Mode::Exact, None) => ("--exact --seeds", true),
            (Mode::Measured, Some(it)) if *it == USUAL_SEQUENTIAL => {
                ("--measured --at-most", false)
            }
            _ => return None,
        };
        let is_usual = (used.iterations, used.warmup) == (1, 0)
            && experiment.sampler == Sampler::default()
            && results.reading.workload(used).primary.is_empty()
            && experiment.userspace_digest.is_empty()
            && experiment.imported.is_none();
        let packages = results.variants.iter().map(package).collect::<Option<Vec<String>>>();
        let packages = packages.map(|it| [String::new(), it.join(",")]);
        let [before, kernels] =
            packages.or_else(|| patched(results, recipe)).filter(|_| is_usual)?;
        let Profiling { stacks, .. } = experiment.profile;
        let is_known = experiment.profile == Profiling { stacks, ..Profiling::default() };
        if kernels.is_empty() || !is_known {
            return None;
        }
        let patches = results.variants.last().and_then(facts).and_then(kernel::patch_file);
        let usual = format!("{} {machine}", experiment.boots);
        let is_long = used.timeout != USUAL_TIMEOUT;
        if let Some(parameters) = recipe.parameters.as_ref().filter(|_| !is_long && is_exact) {
            let set = |(name, value): &(String, String)| {
                format!(" --set {name}={}", shell_word(value.as_bytes()))
            };
            let workload = shell_word(used.manifest.name.as_bytes());
            let set: String = parameters.iter().map(set).collect();
            let profile = if stacks { " --profile stacks" } else { "" };
            let command = format!(
                "{before}faultline run --kernels {kernels} --workload {workload}{set} --mode exact{profile} --seeds {usual}"
            );
            return Some(Self { command, program: None, patches });
        }
        let (name, words, text) = program(&used.manifest).filter(|_| stacks == is_exact)?;
        let timeout = if is_long { format!(" --timeout {}", used.timeout) } else { String::new() };
        let command = format!("{before}faultline try {kernels} {mode} {usual}{timeout} -- {words}");
        let Manifest { directory, compiler, .. } = &used.manifest;
        let compiled = match (name.ends_with(".c"), &**compiler) {
            (false, _) => String::new(),
            (true, "") => ", by the same compiler".to_owned(),
            (true, compiler) => format!(", by {}", excerpt(compiler)),
        };
        let program = Some((name, text, format!("in {}{compiled}", excerpt(directory))));
        Some(Self { command, program, patches })
    }

    /// Lays out the command and the text of the program. `attached` names the files that go beside the mail.
    pub fn pieces(&self, version: &str, attached: &[&str]) -> Vec<Piece> {
        // Paths are in the memory of a program, so they change its counts; so do its own instructions.
        let place = self.program.as_ref().map(|(.., made)| made);
        let place = place.map_or(String::new(), |it| format!(" (the same counts {it})"));
        let how = format!("How to repeat it, by faultline {version}{place}:");
        let how = part(how, [Block::Code(self.command.clone())]);
        let laid_out = |it| document::text(&[it], &MAIL);
        let text = self.program.as_ref().map(|(name, text, _)| Piece::File {
            name: escape(name),
            text: text.as_ref().map(|text| laid_out(file(&escape(name), text))),
            is_beside: attached.contains(&&**name),
        });
        let patches = self.patches.as_ref().map(|name| Piece::File {
            name: escape(name),
            text: None,
            is_beside: attached.contains(&&**name),
        });
        [Piece::Kept(laid_out(how))].into_iter().chain(text).chain(patches).collect()
    }
}

/// Returns the options that describe a machine; `None` if it has swap, uneven nodes, or other disks than one of the usual
/// kind.
fn machine_options(machine: &Machine, on_both: bool) -> Option<String> {
    let topology = &machine.topology;
    let [cpus, nodes] = [topology.cpus(), topology.nodes.len() as u32];
    let even = Topology::even(cpus, topology.memory(), nodes).ok()?;
    let disk = match &machine.disks[..] {
        [] => String::new(),
        [disk] => format!(" --disk {}", usual_disk(disk)?),
        _ => return None,
    };
    let is_usual = &even == topology && machine.swap.is_none();
    let arch = machine.arch.unless_usual().map(Architecture::name);
    let arch = if on_both { Some("both") } else { arch };
    let arch = arch.map(|arch| format!("--arch {arch} ")).unwrap_or_default();
    let memory = topology.memory();
    is_usual.then(|| format!("{arch}--cpus {cpus} --memory {memory} --nodes {nodes}{disk}"))
}

/// Returns the size and the file system of a disk as the option has them; `None` if it has anything else of its own.
fn usual_disk(disk: &Disk) -> Option<String> {
    let format = disk.format.as_ref()?;
    let is_usual = disk.kind == DiskKind::Pmem
        && format.mkfs.is_empty()
        && format.options.is_empty()
        && format.mount == "/disk0";
    is_usual.then(|| format!("{},{}", disk.size, format.filesystem.name()))
}

/// Returns the facts of a variant that changes no settings.
fn plain_facts<'a>(column: &VariantBoots<'a>) -> Option<&'a BootFacts> {
    let Variant { cmdline, settings, modules, point, .. } = column.variant;
    let is_plain =
        cmdline.is_empty() && settings.is_empty() && modules.is_empty() && point.is_none();
    facts(column).filter(|_| is_plain)
}

/// Returns what stands before and after a command's name to build the kernels, if they are a source and the same source
/// with patches that the reader can have; of a built-in workload also with each of the patches after the other.
fn patched(results: &Results<'_>, recipe: &Recipe<'_>) -> Option<[String; 2]> {
    let (base, patched) = results.variants.split_first()?;
    let (last, before) = patched.split_last()?;
    plain_facts(base).and(patches(base, last))?;
    let [first, mut source] = kernel::source(plain_facts(last)?)?;
    if !before.is_empty() {
        let numbers = patched.iter().map(|it| Some(patches(base, it)?.patches));
        let is_series = numbers.eq((1..=patched.len() as u32).map(Some));
        let is_plain = before.iter().all(|it| plain_facts(it).is_some());
        recipe.parameters.as_ref().filter(|_| is_series && is_plain)?;
        source.push_str(" --each");
    }
    Some([first, source])
}

/// Returns the patches by which alone the kernel of one variant differs from that of another, which has none. `None` if
/// it has none, or the kernels differ otherwise.
pub fn patches<'a>(base: &VariantBoots<'_>, new: &VariantBoots<'a>) -> Option<&'a Patched> {
    let base = facts(base).filter(|it| it.patched.is_none())?;
    facts(new)?.patched.as_ref().filter(|it| it.unpatched == base.kernel_origin)
}

/// Returns the name of the package of a variant's kernel. `None` for other kernels, and if the variant changes settings.
fn package(column: &VariantBoots<'_>) -> Option<String> {
    let facts = plain_facts(column).filter(|it| it.patched.is_none())?;
    kernel::request(facts)
}

/// Returns the name of the file of a program whose text is known: a C file or a script.
pub fn source_name(manifest: &Manifest) -> Option<String> {
    let program = Path::new(manifest.command.first()?).file_name()?.to_str()?;
    let end = if manifest.source.starts_with("#!") { "" } else { ".c" };
    (!manifest.source.is_empty()).then(|| format!("{program}{end}"))
}

/// Returns the file name of a program of the user's, the words of its command, and its text if a mail can have it.
/// `None` if the text is not known.
fn program(manifest: &Manifest) -> Option<(String, String, Option<String>)> {
    let Manifest { source, plain, parameters, command, .. } = manifest;
    if !plain || !parameters.is_empty() {
        return None;
    }
    let lines = source.lines().filter(|line| !line.trim().is_empty());
    let lines: Vec<String> = lines.map(|line| line.replace('\t', "    ")).collect();
    let is_short = lines.len() <= MOST_LINES && lines.iter().all(|it| it.len() <= LONGEST_LINE);
    // Blanks and empty lines are laid out otherwise, which would change a here-document.
    let is_shown = |byte: u8| matches!(byte, b'\n' | b'\t' | b' '..=b'~');
    let is_safe =
        source.bytes().all(is_shown) && !(source.starts_with("#!") && source.contains("<<"));
    let (_, arguments) = command.split_first()?;
    let name = source_name(manifest)?;
    let words = [format!("./{name}")].into_iter().chain(arguments.iter().cloned());
    let words = words.map(|word| shell_word(word.as_bytes())).collect::<Vec<_>>().join(" ");
    Some((name, words, (is_short && is_safe).then(|| lines.join("\n"))))
}

/// Returns the programs and archives that the run needs. `attached` names the files that go beside the mail.
pub fn programs(results: &Results<'_>, attached: &[&str]) -> Vec<Piece> {
    let used = results.experiment.workloads.iter();
    let names = used.flat_map(|it| it.files()).filter_map(|it| it.path().file_name());
    let names: BTreeSet<String> = names.map(|it| it.to_string_lossy().into_owned()).collect();
    let file = |name: String| Piece::File {
        name: escape(&name),
        text: None,
        is_beside: attached.contains(&&*name),
    };
    names.into_iter().map(file).collect()
}

/// Lists the digests of what ran in the guest besides its kernel.
pub fn guest(results: &Results<'_>) -> Vec<Block> {
    let own = &results.experiment.guest_digest;
    let own = (!own.is_empty()).then(|| part("Our programs in the guest:", [kernel::digest(own)]));
    own.into_iter().chain(userspace(results)).collect()
}

/// Lays out the digest of the user space in the guest. `None` if there is none.
fn userspace(results: &Results<'_>) -> Option<Block> {
    let experiment = results.experiment;
    if experiment.userspace_digest.is_empty() {
        return None;
    }
    let packages = experiment.packages().join(", ");
    let locked = lock_command(results).map(|command| {
        sentence(format!("Its packages are written down by `{command}` where it ran."))
    });
    let said = [kernel::digest(&experiment.userspace_digest)].into_iter().chain(locked);
    let title = format!("User space in the guest ({packages}):");
    Some(part(title, said.collect::<Vec<_>>()))
}

/// Lists the commands that repeat the run.
pub fn run(results: &Results<'_>, recipe: &Recipe<'_>) -> Block {
    let commands = Block::Code(commands(results, recipe).join("\n"));
    part(format!("By faultline {}:", recipe.version), [commands])
}

/// Lays out a file that the commands need.
pub fn file(name: &str, text: &str) -> Block {
    part(format!("{name}:"), [Block::Code(text.to_owned())])
}

/// Returns the commands that repeat the run: those that get the kernels, then those that run and compare.
fn commands(results: &Results<'_>, recipe: &Recipe<'_>) -> Vec<String> {
    let Results { experiment, variants, .. } = results;
    // Variants of one kernel share its command. Those of two kernels do not, although placeholders may make it the same.
    let mut kernels: Vec<((&str, &str), &VariantBoots<'_>, Vec<String>)> = Vec::new();
    for column in variants {
        let kernel = kernel::kernel_and_digest(column.variant, facts(column));
        let name = escape(&column.variant.name);
        match kernels.iter_mut().find(|(it, ..)| *it == kernel) {
            Some((.., names)) => names.push(name),
            None => kernels.push((kernel, column, vec![name])),
        }
    }
    let line = |(_, column, names): (_, &VariantBoots<'_>, Vec<String>)| {
        let has_version = |command: &str| {
            let mut versions = names.iter().map(|it| it.split(' ').next().unwrap_or_default());
            versions.all(|it| command.contains(&format!(":{it}-")))
        };
        let many = names.len() > 1;
        let names = names.join(", ");
        match kernel::command(column.variant, facts(column)) {
            // The settings of a matrix follow the kernel's version in their names.
            Some(command) if many && has_version(&command) => command,
            Some(command) if command.len() + names.len() > MAX_BESIDE => {
                format!("# {}\n{command}", clipped(&names, MAX_BESIDE))
            }
            Some(command) => format!("{command}  # {names}"),
            None => {
                format!("# {names}: built from files of the host of the boots; no command gets it")
            }
        }
    };
    let mut commands: Vec<String> = kernels.into_iter().map(line).collect();
    if let Some((file, _)) = recipe.files.first() {
        commands.push(format!("faultline run {}", operand(file)));
        commands.push(format!("faultline compare --full {}", operand(&experiment.name)));
    }
    commands
}

/// Quotes a name for a command, so that it is not taken for an option.
fn operand(name: &str) -> String {
    let word = shell_word(name.as_bytes());
    if name.starts_with('-') { format!("-- {word}") } else { word }
}

/// Returns the command that pins the packages of user space, on the host that has the boots. `None` if the
/// experiment pins them itself, or has none.
fn lock_command(results: &Results<'_>) -> Option<String> {
    let experiment = results.experiment;
    if experiment.userspace_digest.is_empty() || experiment.userspace.is_some() {
        return None;
    }
    let mut boots = results.variants.iter().flat_map(|column| &column.boots);
    let boot = boots.find(|kept| !kept.boot.facts.userspace.is_empty())?;
    Some(format!("faultline userspace lock --boot {} -o userspace.lock", boot.id))
}

/// Returns the facts of a variant's first complete boot, or else of its first boot. `None` without boots.
pub fn facts<'a>(column: &VariantBoots<'a>) -> Option<&'a BootFacts> {
    let boots = || column.boots.iter().map(|kept| kept.boot);
    let any = boots().find(|boot| boot.outcome.counts()).or_else(|| boots().next());
    any.map(|boot| &boot.facts)
}

/// Returns the mail of the patches with its subject. `None` if there is none, or variants have patches of several mails.
pub fn answered<'a>(results: &Results<'a>) -> Option<(&'a str, &'a PatchMail)> {
    let patched = results.variants.iter().filter_map(|it| facts(it)?.patched.as_ref());
    let mut mails = patched.map(|it| Some((&*it.subject, it.mail.as_ref()?)));
    let first = mails.next()??;
    mails.all(|other| other == Some(first)).then_some(first)
}
