//! Does one session on this host: applies the settings of the variant, runs the agent with the job, puts the settings
//! back, and turns what was recorded into a boot.

use std::fs;
use std::mem;
use std::path::{Path, absolute};

use compare::on_host::remarks;
use flight::Job;
use flight::job::{JOB_FILE, WORKLOADS_PATH};
use machine::Session;
use machine::host::{describe, throttled};
use machine::settings::{HostSettings, SettingsError};
use model::{Boot, Note, NoteKind};
use plan::schedule::Slot;
use record::conclude::{Head, conclude};

use crate::job::{JobError, RECORDER, job};
use crate::{BootError, Bootable, Narrator, in_file, never_booted};

impl Bootable<'_> {
    /// Does the session in `slot`, as [`Bootable::boot`] does a boot.
    pub(crate) fn session(
        &self,
        (settings, streams): (&HostSettings, bool),
        slot: Slot,
        directory: &Path,
        doing: &mut dyn FnMut(&str),
    ) -> Result<Boot, BootError> {
        let root = Path::new("/");
        fs::create_dir_all(directory).map_err(in_file(directory))?;
        let directory = &absolute(directory).map_err(in_file(directory))?;
        let mut head = self.head(slot);
        let job = match self.host_job(streams)? {
            Ok(job) => job,
            Err(error) => return Ok(never_booted(head, &error.to_string())),
        };
        let path = directory.join(JOB_FILE);
        let text = serde_json::to_vec(&job).map_err(|error| in_file(&path)(error.into()))?;
        fs::write(&path, text).map_err(in_file(&path))?;
        if let Err(error) = settings.apply(&self.variant.settings) {
            settings.put_back()?;
            return match error {
                SettingsError::Setting(error) => Ok(never_booted(head, &error.to_string())),
                error => Err(error.into()),
            };
        }
        head.facts.provenance.host = describe(root);
        head.write(directory).map_err(in_file(&Head::path(directory)))?;
        let session = Session {
            agent: &self.guest.agent,
            directory,
            recorder: RECORDER,
            limits: &self.experiment.machine.limits,
            streams,
        };
        let (hot, before) = (throttled(root), machine::host::Reading::take());
        let mut narrator = Narrator::new(&head.workloads);
        let ending = machine::run_on_host(&session, &mut |event| {
            if let Some(what) = narrator.hear(event) {
                doing(what);
            }
        });
        let host = before.until_now();
        let slowed = throttled(root).saturating_sub(hot);
        let changed = remarks(&head.facts.provenance.host, &describe(root), slowed);
        let put_back = settings.put_back()?;
        let boot = conclude(head, directory, Some(&ending?), host, None);
        let mut boot = boot.map_err(in_file(directory))?;
        let left = put_back.left.into_iter();
        let workload = "this session".to_owned();
        boot.notes.extend(left.map(|text| Note {
            kind: NoteKind::Left,
            workload: workload.clone(),
            text,
        }));
        boot.notes.extend(changed);
        Ok(boot)
    }

    /// The job for the agent on this host.
    fn host_job(&self, streams: bool) -> Result<Result<Job, JobError>, BootError> {
        let made = job(self.experiment, self.variant, self.kernel, self.out_of_tree, None);
        let mut job = match made {
            Ok((job, _)) => job,
            Err(error) => return Ok(Err(error)),
        };
        let own = absolute(&self.guest.workloads).map_err(in_file(&self.guest.workloads))?;
        let programs = job.workloads.iter_mut().filter_map(|it| it.command.first_mut());
        for program in programs.filter(|it| *it == WORKLOADS_PATH) {
            *program = own.to_string_lossy().into_owned();
        }
        if streams {
            for workload in &mut job.workloads {
                workload.command = machine::with_streams(mem::take(&mut workload.command));
            }
        }
        Ok(Ok(job))
    }
}
