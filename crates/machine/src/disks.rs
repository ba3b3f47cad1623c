//! Composes QEMU's options for a machine's disks. `boot` makes the images.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use model::{Bytes, Disk, DiskKind};
use rustix::fs::OFlags;

use crate::option::with_path;
use crate::{Engine, Vm};

/// Devices with 32-bit addresses reach memory below this address.
const REACHED: u64 = 1 << 32;

/// The serial number of the disk with the image of the user space, if that is a disk.
pub const USERSPACE_SERIAL: &str = "userspace";

/// An image that guests only read, so they share it.
#[derive(Clone, Copy, Debug)]
pub struct ReadOnly<'a> {
    /// The path of the image.
    pub image: &'a Path,
    /// Its size, a multiple of 2 MiB.
    pub size: Bytes,
}

/// The image of disk `number`, in a machine's directory.
pub fn image_file(number: usize) -> String {
    format!("disk{number}.img")
}

/// The serial number of disk `number`, if its kind has one.
pub fn serial(number: usize) -> String {
    format!("disk{number}")
}

/// The handle of the memory device of disk `number`, if it is persistent memory in the slot with that number
/// (`nvdimm_slot_to_handle` in `hw/acpi/nvdimm.c` of QEMU).
pub fn handle(number: usize) -> u32 {
    number as u32 + 1
}

/// Whether a file can bypass the host's page cache (open(2), `O_DIRECT`). If not, as on some tmpfs, the
/// guest's reads are served from the host's memory.
pub fn is_direct(image: &Path) -> bool {
    let direct = OFlags::DIRECT.bits().cast_signed();
    File::options().read(true).write(true).custom_flags(direct).open(image).is_ok()
}

/// The words for the kernel's command line that the disks of a machine require.
///
/// Persistent memory is above 4 GiB, and kernels count it as potential system memory. They would reserve 64
/// MiB of the nodes' memory for devices that cannot reach it (`swiotlb` in
/// `Documentation/admin-guide/kernel-parameters.txt`). A machine with all its memory below 4 GiB has no such
/// buffers without disks, and gets none with them.
///
/// If `brd` is built into the kernel, these words give the number and the size of RAM disks. A module gets them when
/// it is loaded.
pub fn boot_parameters(vm: &Vm<'_>) -> String {
    let memory = (vm.emulator.platform().memory)(vm.topology.memory().0);
    let is_low = pmem(vm) > 0 && memory.iter().all(|range| range.end <= REACHED);
    let swiotlb = is_low.then(|| "swiotlb=noforce".to_owned());
    let brd = of_brd(vm.disks).into_iter().flatten().map(|parameter| format!("brd.{parameter}"));
    swiotlb.into_iter().chain(brd).collect::<Vec<String>>().join(" ")
}

/// The parameters of `brd` for RAM disks; `None` if there are none. `brd` makes a given number of disks with the same
/// size in KiB (`drivers/block/brd.c`).
pub fn of_brd(disks: &[Disk]) -> Option<[String; 2]> {
    let mut ram = disks.iter().filter(|disk| disk.kind == DiskKind::Ram);
    let size = ram.next()?.size.0 >> 10;
    Some([format!("rd_nr={}", 1 + ram.count()), format!("rd_size={size}")])
}

/// The total size of persistent memory, including the user space of an exact machine.
fn pmem(vm: &Vm<'_>) -> u64 {
    let disks = vm.disks.iter().filter(|disk| disk.kind == DiskKind::Pmem);
    let userspace = vm.userspace.filter(|_| matches!(vm.engine, Engine::Exact(_)));
    disks.map(|disk| disk.size.0).chain(userspace.map(|image| image.size.0)).sum()
}

/// QEMU's options for the disks of a machine.
///
/// - Persistent memory (`docs/nvdimm.txt`) belongs to node 0. Its image is mapped privately: the guest's
///   writes stay in QEMU's own memory and cause no writeback on the host.
/// - The other disks are files opened without the host's page cache, if the host's file system permits. A
///   flush of the guest is a flush on the host; discarded blocks are freed.
/// - The user space is read-only, and uses the host's page cache, which all guests share.
pub fn arguments(vm: &Vm<'_>) -> Vec<OsString> {
    let mut arguments = Vec::new();
    let pmem = pmem(vm);
    if pmem > 0 {
        let slots = vm.disks.len() + usize::from(vm.userspace.is_some());
        let most = (vm.topology.memory().0 + pmem) >> 20;
        option(&mut arguments, "-machine", "nvdimm=on".into());
        option(&mut arguments, "-m", format!("slots={slots},maxmem={most}M").into());
    }
    for (number, disk) in vm.disks.iter().enumerate() {
        let image = vm.directory.join(image_file(number));
        attach(&mut arguments, disk, number, &image);
    }
    if let Some(userspace) = &vm.userspace {
        let is_pmem = matches!(vm.engine, Engine::Exact(_));
        attach_read_only(&mut arguments, userspace, is_pmem, vm.disks.len());
    }
    arguments
}

/// Adds the user space. `unarmed` tells the guest that its writes would not persist, so its kernel treats the memory
/// as read-only.
fn attach_read_only(arguments: &mut Vec<OsString>, it: &ReadOnly<'_>, is_pmem: bool, slot: usize) {
    let name = USERSPACE_SERIAL;
    if is_pmem {
        let size = it.size.0;
        let memory = format!("memory-backend-file,id={name},share=on,readonly=on,size={size}");
        option(arguments, "-object", with_path(&memory, "mem-path", it.image));
        let device = format!("nvdimm,slot={slot},memdev={name},node=0,unarmed=on");
        option(arguments, "-device", device.into());
    } else {
        let drive = format!("if=none,id={name},format=raw,readonly=on");
        option(arguments, "-drive", with_path(&drive, "file", it.image));
        option(arguments, "-device", format!("virtio-blk-pci,drive={name},serial={name}").into());
    }
}

fn attach(arguments: &mut Vec<OsString>, disk: &Disk, number: usize, image: &Path) {
    let device = match disk.kind {
        DiskKind::Ram => return,
        DiskKind::Pmem => {
            let size = disk.size.0;
            let memory = format!("memory-backend-file,id=disk{number},share=off,size={size}");
            option(arguments, "-object", with_path(&memory, "mem-path", image));
            format!("nvdimm,slot={number},memdev=disk{number},node=0")
        }
        DiskKind::VirtioBlk | DiskKind::Nvme => {
            let cache = if is_direct(image) { "none" } else { "writeback" };
            let drive = format!("if=none,id=disk{number},format=raw,discard=unmap,cache={cache}");
            option(arguments, "-drive", with_path(&drive, "file", image));
            let model = if disk.kind == DiskKind::Nvme { "nvme" } else { "virtio-blk-pci" };
            format!("{model},drive=disk{number},serial={}", serial(number))
        }
    };
    option(arguments, "-device", device.into());
}

fn option(arguments: &mut Vec<OsString>, name: &str, value: OsString) {
    arguments.extend([name.into(), value]);
}

#[cfg(test)]
mod tests {
    use model::{Limits, Topology};

    use super::*;
    use crate::{Emulator, Exact};

    /// The command lines for the disks of a machine with this much memory.
    fn written(memory: Bytes, disks: &[(DiskKind, u64)]) -> String {
        written_with(memory, disks, Engine::Tcg, None)
    }

    /// The command lines for the disks of a machine with this engine and user space.
    fn written_with(
        memory: Bytes,
        disks: &[(DiskKind, u64)],
        engine: Engine<'_>,
        userspace: Option<ReadOnly<'_>>,
    ) -> String {
        let disks: Vec<Disk> = disks
            .iter()
            .map(|&(kind, mib)| Disk { kind, size: Bytes::mib(mib), format: None })
            .collect();
        let vm = Vm {
            emulator: &Emulator::unchecked(Path::new("qemu"), 10),
            engine,
            topology: &Topology::even(2, memory, 2).unwrap(),
            disks: &disks,
            userspace,
            image: Path::new("vmlinux"),
            initramfs: Path::new("initramfs"),
            cmdline: "",
            directory: Path::new("/no/such,directory"),
            recorder: Bytes::mib(1),
            limits: &Limits::default(),
        };
        let words = arguments(&vm);
        let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap()).collect();
        format!("{}\nkernel: {}", words.join(" ").replace(" -", "\n-"), boot_parameters(&vm))
    }

    #[test]
    fn every_kind() {
        let disks = [
            (DiskKind::Pmem, 1024),
            (DiskKind::VirtioBlk, 512),
            (DiskKind::Ram, 64),
            (DiskKind::Nvme, 512),
            (DiskKind::Pmem, 130),
        ];
        insta::assert_snapshot!(written(Bytes::mib(2048), &disks), @r"
        -machine nvdimm=on
        -m slots=5,maxmem=3202M
        -object memory-backend-file,id=disk0,share=off,size=1073741824,mem-path=/no/such,,directory/disk0.img
        -device nvdimm,slot=0,memdev=disk0,node=0
        -drive if=none,id=disk1,format=raw,discard=unmap,cache=writeback,file=/no/such,,directory/disk1.img
        -device virtio-blk-pci,drive=disk1,serial=disk1
        -drive if=none,id=disk3,format=raw,discard=unmap,cache=writeback,file=/no/such,,directory/disk3.img
        -device nvme,drive=disk3,serial=disk3
        -object memory-backend-file,id=disk4,share=off,size=136314880,mem-path=/no/such,,directory/disk4.img
        -device nvdimm,slot=4,memdev=disk4,node=0
        kernel: swiotlb=noforce brd.rd_nr=1 brd.rd_size=65536
        ");
    }

    #[test]
    fn a_machine_with_memory_above_4_gib_keeps_its_buffers() {
        let written = written(Bytes::mib(4096), &[(DiskKind::Pmem, 1024)]);
        assert!(written.ends_with("kernel: "), "{written}");
        assert!(written.contains("slots=1,maxmem=5120M"), "{written}");
    }

    #[test]
    fn other_disks_change_nothing_else() {
        let written = written(Bytes::mib(512), &[(DiskKind::VirtioBlk, 512), (DiskKind::Ram, 64)]);
        assert!(!written.contains("nvdimm") && !written.contains("swiotlb"), "{written}");
    }

    #[test]
    fn a_user_space_is_shared_and_read_only() {
        let userspace =
            Some(ReadOnly { image: Path::new("/cache/a,b/image"), size: Bytes::mib(400) });
        let disks = [(DiskKind::Nvme, 512)];
        let measured = written_with(Bytes::mib(2048), &disks, Engine::Tcg, userspace);
        insta::assert_snapshot!(measured, @r"
        -drive if=none,id=disk0,format=raw,discard=unmap,cache=writeback,file=/no/such,,directory/disk0.img
        -device nvme,drive=disk0,serial=disk0
        -drive if=none,id=userspace,format=raw,readonly=on,file=/cache/a,,b/image
        -device virtio-blk-pci,drive=userspace,serial=userspace
        kernel: 
        ");
        let exact = Exact { seed: 0, clock: "clock.so".into(), plugin: None };
        let disks = [(DiskKind::Pmem, 512)];
        let exact = written_with(Bytes::mib(2048), &disks, Engine::Exact(&exact), userspace);
        insta::assert_snapshot!(exact, @r"
        -machine nvdimm=on
        -m slots=2,maxmem=2960M
        -object memory-backend-file,id=disk0,share=off,size=536870912,mem-path=/no/such,,directory/disk0.img
        -device nvdimm,slot=0,memdev=disk0,node=0
        -object memory-backend-file,id=userspace,share=on,readonly=on,size=419430400,mem-path=/cache/a,,b/image
        -device nvdimm,slot=1,memdev=userspace,node=0,unarmed=on
        kernel: swiotlb=noforce
        ");
    }
}
