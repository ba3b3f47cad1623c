//! Adds the kernel that this host runs.

use std::path::Path;

use model::Kernel;

use super::Cache;
use crate::Error;
use crate::request::check_name;
use crate::running::RunningKernel;

impl Cache {
    /// Copies the running kernel of the host with the root directory `root`. Without `name`, its name has a digest of
    /// its files, as that of a built kernel.
    pub(super) fn add_host(
        &self,
        root: &Path,
        name: Option<&str>,
        say: &dyn Fn(&str),
    ) -> Result<Kernel, Error> {
        name.map_or(Ok(()), check_name)?;
        let running = RunningKernel::find(root)?;
        let RunningKernel { release, image, modules, config, map, headers, left_out } = running;
        left_out.iter().for_each(|line| say(line));
        say(&format!("Copying the running kernel {release}"));
        let mut own = self.gather(&image)?;
        if own.release() != release {
            let problem =
                format!("it is the kernel {}, but the host runs {release}", own.release());
            return Err(Error::NoKernel { path: image, problem });
        }
        if let Some(config) = config {
            own.config(&config)?;
        }
        if let Some(map) = map {
            own.map(&map)?;
        }
        if let Some(modules) = modules {
            own.modules(&modules)?;
        }
        if let Some(headers) = headers {
            match own.headers_if_whole(&headers, say) {
                Err(error @ Error::NoKernel { .. }) => {
                    say(&format!("{release} comes without headers: {error}"));
                }
                added => added?,
            }
        }
        let name = name.map_or_else(|| own.name(), str::to_owned);
        self.keep_gathered(own, name, format!("host, {}", image.display()), say)
    }
}
