//! Finds the files of the kernel that a host runs.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::Doing;
use crate::own::STUB;
use crate::request::check_name;
use crate::{Error, input};

/// The file with the output of `uname -r`.
const RELEASE: &str = "proc/sys/kernel/osrelease";

/// The files of the running kernel, where distributions have them. What is missing or cannot be read is left out, but
/// for the image.
#[derive(Debug)]
pub(crate) struct RunningKernel {
    pub release: String,
    pub image: PathBuf,
    pub modules: Option<PathBuf>,
    pub config: Option<PathBuf>,
    pub map: Option<PathBuf>,
    pub headers: Option<PathBuf>,
    /// What was left out, and why.
    pub left_out: Vec<String>,
}

impl RunningKernel {
    /// Finds them below the root directory of a host. Fails when the image is missing or cannot be read.
    pub fn find(root: &Path) -> Result<Self, Error> {
        let path = root.join(RELEASE);
        let release = fs::read_to_string(&path).doing("read", &path)?.trim().to_owned();
        check_name(&release)?;
        let boot = |name: &str| root.join("boot").join(format!("{name}-{release}"));
        let library = root.join("lib/modules").join(&release);
        let image = image([boot("vmlinuz"), library.join("vmlinuz")], &release)?;
        let mut left_out = Vec::new();
        let mut choose = |part: &str, places: &[PathBuf]| {
            let found = places.iter().find(|place| place.exists());
            let problem = match found {
                Some(path) => match File::open(path) {
                    Ok(_) => return Some(path.clone()),
                    Err(error) => format!("{} cannot be read: {error}", path.display()),
                },
                None => {
                    let places: Vec<_> = places.iter().map(|it| it.display().to_string()).collect();
                    format!("there is no {}", places.join(", "))
                }
            };
            left_out.push(format!("{release} comes without {part}: {problem}"));
            None
        };
        let config = choose(
            "its configuration",
            &[boot("config"), library.join("config"), root.join("proc/config.gz")],
        );
        let modules = choose("modules", &[library.join("kernel")]).map(|_| library.clone());
        let headers = choose("headers", &[library.join("build")]);
        let maps = [boot("System.map"), library.join("System.map")];
        let is_map = |path: &&PathBuf| path.metadata().is_ok_and(|it| it.len() > STUB);
        let map = maps.iter().find(is_map);
        let map = map.and_then(|map| choose("its System.map", std::slice::from_ref(map)));
        Ok(Self { release, image, modules, config, map, headers, left_out })
    }
}

/// The image, which must be readable.
fn image(places: [PathBuf; 2], release: &str) -> Result<PathBuf, Error> {
    let Some(path) = places.iter().find(|place| place.exists()) else {
        let [first, second] = places;
        let problem = format!(
            "the image of the running kernel {release} is neither here nor in {}: give it with `faultline \
             kernel add --image FILE`",
            second.display()
        );
        return Err(Error::NoKernel { path: first, problem });
    };
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let problem = "only root can read it: run this as root, or copy it and give the copy with \
                           `faultline kernel add --image FILE`";
            Err(Error::NoKernel { path: path.clone(), problem: problem.into() })
        }
        _ => input::package(path),
    }
}
