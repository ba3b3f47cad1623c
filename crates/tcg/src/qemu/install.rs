//! The plugin's start.

use std::env;
use std::error::Error;
use std::fmt::Display;
use std::fs;
use std::path::Path;

use flight::profile::{FUNCTIONS_VARIABLE, PATH_VARIABLE, unpack_functions};
use qemu_plugin::{
    Args, HasCallbacks, Info, PluginId, Register, qemu_plugin_register_atexit_cb,
    qemu_plugin_register_vcpu_init_cb, qemu_plugin_register_vcpu_tb_trans_cb,
};

use super::callbacks;
use super::{Guest, PLUGIN};
use crate::arch::{Architecture, Arm64, X86_64};
use crate::arguments::Arguments;
use crate::functions::Functions;
use crate::profiler::Profiler;

struct Plugin;

qemu_plugin::register!(Plugin);

impl HasCallbacks for Plugin {}

impl Register for Plugin {
    fn register_default(
        &mut self,
        id: PluginId,
        args: &Args,
        info: &Info,
    ) -> qemu_plugin::Result<()> {
        match info.target_name.as_str() {
            X86_64::TARGET => install::<X86_64>(id, args, info),
            Arm64::TARGET => install::<Arm64>(id, args, info),
            target => fail(format!("it counts machines of x86-64 and arm64, not of {target}")),
        }
    }
}

/// Counts a guest of this architecture.
fn install<A: Guest>(id: PluginId, args: &Args, info: &Info) -> qemu_plugin::Result<()> {
    match profiler::<A>(args, info) {
        Ok(profiler) => A::profiler().get_or_init(|| profiler),
        Err(error) => fail(error),
    };
    qemu_plugin_register_vcpu_init_cb(id, Some(callbacks::on_cpu_made::<A>))?;
    qemu_plugin_register_vcpu_tb_trans_cb(id, Some(callbacks::on_translation::<A>))?;
    qemu_plugin_register_atexit_cb(id, |_| callbacks::end::<A>())
}

/// Ends QEMU.
fn fail(error: impl Display) -> ! {
    eprintln!("faultline's plugin: {error}");
    std::process::exit(1);
}

fn profiler<A: Guest>(args: &Args, info: &Info) -> Result<Profiler<A>, Box<dyn Error>> {
    let arguments = Arguments::parse(&args.raw)?;
    if arguments.turn.is_some() {
        PLUGIN.cpus.find_exit()?;
    }
    let system = info.system.as_ref().ok_or("it counts machines, not programs")?;
    let cpus = u16::try_from(system.max_vcpus)?;
    let path = env::var_os(PATH_VARIABLE).ok_or_else(|| format!("{PATH_VARIABLE} is not set"))?;
    let path = Path::new(&path);
    Profiler::new(&arguments, functions()?, path, cpus, PLUGIN.numbers.place())
        .map_err(|error| format!("{}: {error}", path.display()).into())
}

/// The kernel's functions; empty if no file is named.
fn functions() -> Result<Functions, Box<dyn Error>> {
    let Some(path) = env::var_os(FUNCTIONS_VARIABLE) else { return Ok(Functions::default()) };
    let path = Path::new(&path);
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let functions = unpack_functions(&bytes)
        .ok_or_else(|| format!("{}: the file is damaged", path.display()))?;
    Ok(Functions::new(functions))
}
