//! The disks of a machine, for QEMU's command line. Their images are made by others.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use model::{Bytes, Disk, DiskKind};
use rustix::fs::OFlags;

use crate::Vm;
use crate::arguments::with_path;

/// A machine with less memory than this has none above 4 GiB (`pc_q35_init` in `hw/i386/pc_q35.c`
/// of QEMU).
const ALL_LOW: Bytes = Bytes(0xb000_0000);

/// The image of disk `number`, in a machine's directory.
pub fn image_file(number: usize) -> String {
    format!("disk{number}.img")
}

/// The serial number by which a guest knows disk `number`, if its kind has one.
pub fn serial(number: usize) -> String {
    format!("disk{number}")
}

/// The handle by which a guest knows the memory module of disk `number`, if that is persistent
/// memory in the slot of that number (`nvdimm_slot_to_handle` in `hw/acpi/nvdimm.c` of QEMU).
pub fn handle(number: usize) -> u32 {
    number as u32 + 1
}

/// Whether the host's page cache can be kept out of the way to a file (open(2), `O_DIRECT`). Where
/// it can't, as on some tmpfs, what the guest reads comes from the host's memory.
pub fn is_direct(image: &Path) -> bool {
    let direct = OFlags::DIRECT.bits().cast_signed();
    File::options().read(true).write(true).custom_flags(direct).open(image).is_ok()
}

/// What the disks of a machine need on the kernel's command line.
///
/// Persistent memory lies above 4 GiB, and kernels take that for memory that could become system
/// memory: 64 MiB of the nodes' would be set aside for devices that can't reach it (`swiotlb` in
/// `Documentation/admin-guide/kernel-parameters.txt`). A machine all of whose memory lies below has
/// no such buffers without disks, and gets none with them.
pub fn boot_parameters(vm: &Vm<'_>) -> &'static str {
    let is_pmem = vm.disks.iter().any(|disk| disk.kind == DiskKind::Pmem);
    if is_pmem && vm.topology.memory() < ALL_LOW { "swiotlb=noforce" } else { "" }
}

/// The options of QEMU for the disks of a machine.
///
/// - Persistent memory (`docs/nvdimm.txt`) belongs to node 0. Its image is mapped privately: what
///   the guest writes stays in QEMU's own memory, and nothing writes it back to the host's disk
///   meanwhile.
/// - The others are files without the host's page cache where the host's file system lets be. A
///   flush of the guest is a flush on the host; what the guest discards takes no more space.
pub fn arguments(vm: &Vm<'_>) -> Vec<OsString> {
    let mut arguments = Vec::new();
    let pmem = vm.disks.iter().filter(|disk| disk.kind == DiskKind::Pmem);
    let pmem: u64 = pmem.map(|disk| disk.size.0).sum();
    if pmem > 0 {
        let (slots, most) = (vm.disks.len(), (vm.topology.memory().0 + pmem) >> 20);
        option(&mut arguments, "-machine", "nvdimm=on".into());
        option(&mut arguments, "-m", format!("slots={slots},maxmem={most}M").into());
    }
    for (number, disk) in vm.disks.iter().enumerate() {
        let image = vm.directory.join(image_file(number));
        attach(&mut arguments, disk, number, &image);
    }
    arguments
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
    use crate::{Emulator, Engine};

    /// What the disks of a machine with so much memory make of the command lines.
    fn written(memory: Bytes, disks: &[(DiskKind, u64)]) -> String {
        let disks: Vec<Disk> = disks
            .iter()
            .map(|&(kind, mib)| Disk { kind, size: Bytes::mib(mib), format: None })
            .collect();
        let vm = Vm {
            emulator: &Emulator::unchecked(Path::new("qemu-system-x86_64"), 10),
            engine: Engine::Tcg,
            topology: &Topology::even(2, memory, 2).unwrap(),
            disks: &disks,
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
        kernel: swiotlb=noforce
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
}
