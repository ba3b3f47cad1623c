//! QEMU's command lines of machines.

use model::{Architecture, Bytes, Limits, Node};

use super::*;
use crate::arch::platform;
use crate::{Plugin, Switch};

fn node(cpus: &str, mib: u64, distances: &[u8]) -> Node {
    Node { cpus: cpus.parse().unwrap(), memory: Bytes::mib(mib), distances: distances.into() }
}

/// The command line with an option and its value on each line.
fn written(topology: &Topology, engine: Engine<'_>, directory: &str, console: Console) -> String {
    written_for(Architecture::X86_64, topology, engine, (directory, console))
}

fn written_for(
    arch: Architecture,
    topology: &Topology,
    engine: Engine<'_>,
    (directory, console): (&str, Console),
) -> String {
    let vm = Vm {
        emulator: &Emulator::unchecked(Path::new("qemu"), 10).for_arch(arch),
        engine,
        topology,
        disks: &[],
        userspace: None,
        image: Path::new("/cache/6.1/vmlinux"),
        initramfs: Path::new("/run/initramfs.cpio"),
        cmdline: "numa_balancing=disable",
        directory: Path::new(directory),
        recorder: Bytes::mib(256),
        limits: &Limits::default(),
    };
    let words = arguments(&vm, console);
    let words = words.iter().map(|word| word.to_str().unwrap());
    words.collect::<Vec<_>>().join(" ").replace(" -", "\n-")
}

/// The command line of a machine with one node.
fn plain() -> String {
    let topology = Topology::even(2, Bytes::mib(512), 1).unwrap();
    written(&topology, Engine::Tcg, "/run", Console::File)
}

/// The lines that [`plain`] does not have.
fn changed(written: &str) -> String {
    let plain = plain();
    let is_new = |line: &&str| !plain.lines().any(|it| it == *line);
    written.lines().filter(is_new).collect::<Vec<_>>().join("\n")
}

#[test]
fn one_node() {
    insta::assert_snapshot!(plain(), @r"
    -nodefaults
    -no-user-config
    -no-reboot
    -display none
    -machine q35,dump-guest-core=off
    -accel tcg,thread=multi
    -cpu max,-erms,-fsrm,-fzrm,-fsrs,-fsrc
    -smp cpus=2,sockets=1,cores=2,threads=1
    -m 512M
    -object memory-backend-ram,id=memory0,size=512M
    -numa node,nodeid=0,memdev=memory0,cpus=0-1
    -kernel /cache/6.1/vmlinux
    -initrd /run/initramfs.cpio
    -append console=ttyS0 panic=-1 quiet cryptomgr.notests tsc=reliable no_timer_check numa_balancing=disable
    -chardev file,id=console,path=/run/console.log
    -S
    -qmp stdio
    -serial chardev:console
    -object memory-backend-file,id=recorder,share=on,size=268435456,mem-path=/run/flight.bin
    -device ivshmem-plain,memdev=recorder
    ");
}

#[test]
fn two_nodes_under_kvm_on_the_terminal() {
    let topology = Topology::even(4, Bytes::mib(2048), 2).unwrap();
    let written = written(&topology, Engine::Kvm, "/run/a,b", Console::Terminal);
    insta::assert_snapshot!(changed(&written), @r"
    -accel kvm
    -cpu host
    -smp cpus=4,sockets=2,cores=2,threads=1
    -m 2048M
    -object memory-backend-ram,id=memory0,size=1024M
    -object memory-backend-ram,id=memory1,size=1024M
    -numa node,nodeid=1,memdev=memory1,cpus=2-3
    -append console=ttyS0 panic=-1 quiet cryptomgr.notests numa_balancing=disable
    -chardev stdio,id=console,mux=on,signal=off,logfile=/run/a,,b/console.log
    -mon chardev=console,mode=readline
    -object memory-backend-file,id=recorder,share=on,size=268435456,mem-path=/run/a,,b/flight.bin
    ");
}

#[test]
fn a_node_with_memory_only_and_distances() {
    let nodes = vec![
        node("0,2", 256, &[10, 21, 31]),
        node("1,3", 256, &[21, 10, 31]),
        node("", 512, &[31, 31, 10]),
    ];
    let topology = Topology { nodes };
    insta::assert_snapshot!(changed(&written(&topology, Engine::Tcg, "/run", Console::File)), @r"
    -smp cpus=4,sockets=4,cores=1,threads=1
    -m 1024M
    -object memory-backend-ram,id=memory0,size=256M
    -numa node,nodeid=0,memdev=memory0,cpus=0,cpus=2
    -object memory-backend-ram,id=memory1,size=256M
    -numa node,nodeid=1,memdev=memory1,cpus=1,cpus=3
    -object memory-backend-ram,id=memory2,size=512M
    -numa node,nodeid=2,memdev=memory2,initiator=0
    -numa dist,src=0,dst=1,val=21
    -numa dist,src=0,dst=2,val=31
    -numa dist,src=1,dst=0,val=21
    -numa dist,src=1,dst=2,val=31
    -numa dist,src=2,dst=0,val=31
    -numa dist,src=2,dst=1,val=31
    -machine hmat=on
    -numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-latency,latency=100
    -numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-bandwidth,bandwidth=10000M
    -numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-latency,latency=100
    -numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-bandwidth,bandwidth=10000M
    -numa hmat-lb,initiator=0,target=2,hierarchy=memory,data-type=access-latency,latency=300
    -numa hmat-lb,initiator=0,target=2,hierarchy=memory,data-type=access-bandwidth,bandwidth=2000M
    -numa hmat-lb,initiator=1,target=0,hierarchy=memory,data-type=access-latency,latency=100
    -numa hmat-lb,initiator=1,target=0,hierarchy=memory,data-type=access-bandwidth,bandwidth=10000M
    -numa hmat-lb,initiator=1,target=1,hierarchy=memory,data-type=access-latency,latency=100
    -numa hmat-lb,initiator=1,target=1,hierarchy=memory,data-type=access-bandwidth,bandwidth=10000M
    -numa hmat-lb,initiator=1,target=2,hierarchy=memory,data-type=access-latency,latency=300
    -numa hmat-lb,initiator=1,target=2,hierarchy=memory,data-type=access-bandwidth,bandwidth=2000M
    ");
}

#[test]
fn an_exact_machine_with_its_plugin() {
    let topology = Topology { nodes: vec![node("0", 3072, &[]), node("1", 3072, &[])] };
    let exact = Exact {
        seed: 0x1f,
        clock: "/lib/libstillclock.so".into(),
        plugin: Some(Plugin {
            path: "/li,b/libtcg.so".into(),
            accesses: true,
            stacks: true,
            each: false,
            turn: Some(1000),
            memory_model: None,
            transfers: None,
            switch: Some(Switch { address: 0xffff_ffff_8100_2000, tgid: 2456, comm: 3032 }),
            functions: vec![],
        }),
    };
    let written = written(&topology, Engine::Exact(&exact), "/run/a,b", Console::File);
    insta::assert_snapshot!(changed(&written), @r"
    -machine q35,dump-guest-core=off,sata=off
    -icount shift=1,sleep=off
    -accel tcg,thread=single
    -rtc base=2020-01-01,clock=vm
    -seed 1
    -cpu max,-erms,-fsrm,-fzrm,-fsrs,-fsrc,-arat
    -global hpet.msi=on
    -global hpet.timers=5
    -plugin file=/li,,b/libtcg.so,node=0:0x0-0x80000000,node=0:0x100000000-0x140000000,node=1:0x140000000-0x200000000,stacks=on,turn=1000,switch=0xffffffff81002000:2456:3032
    -smp cpus=2,sockets=2,cores=1,threads=1
    -m 6144M
    -object memory-backend-ram,id=memory0,size=3072M
    -numa node,nodeid=0,memdev=memory0,cpus=0
    -object memory-backend-ram,id=memory1,size=3072M
    -numa node,nodeid=1,memdev=memory1,cpus=1
    -append console=ttyS0 panic=-1 quiet cryptomgr.notests tsc=reliable no_timer_check nokaslr cpu_init_udelay=0 initcall_blacklist=jent_mod_init,trace_eval_init,trace_eval_sync,ecdsa_init,ecdh_init nolapic_timer page_alloc.shuffle=1 faultline.seed=0000001f faultline.0=rkcqlsjjcnew faultline.1=kbimlgnxoilqvkmwob faultline_2=gehbknhlioqhaqr faultline.3= numa_balancing=disable
    -chardev file,id=console,path=/run/a,,b/console.log
    -object memory-backend-file,id=recorder,share=on,size=268435456,mem-path=/run/a,,b/flight.bin
    ");
}

#[test]
fn arm64_has_its_own_machine() {
    let topology = Topology::even(4, Bytes::mib(2048), 2).unwrap();
    let place = ("/run", Console::File);
    let written = written_for(Architecture::Arm64, &topology, Engine::Tcg, place);
    insta::assert_snapshot!(changed(&written), @r"
    -machine virt,gic-version=3,dtb-randomness=on,dump-guest-core=off
    -cpu max,pauth-impdef=on
    -smp cpus=4,sockets=2,clusters=1,cores=2,threads=1
    -m 2048M
    -object memory-backend-ram,id=memory0,size=1024M
    -numa node,nodeid=0,memdev=memory0
    -numa cpu,node-id=0,socket-id=0,cluster-id=0,core-id=0,thread-id=0
    -numa cpu,node-id=0,socket-id=0,cluster-id=0,core-id=1,thread-id=0
    -object memory-backend-ram,id=memory1,size=1024M
    -numa node,nodeid=1,memdev=memory1
    -numa cpu,node-id=1,socket-id=1,cluster-id=0,core-id=0,thread-id=0
    -numa cpu,node-id=1,socket-id=1,cluster-id=0,core-id=1,thread-id=0
    -append console=ttyAMA0 panic=-1 quiet cryptomgr.notests numa_balancing=disable
    ");
}

#[test]
fn an_exact_machine_of_arm64() {
    let nodes = vec![node("0,2", 256, &[]), node("1", 256, &[])];
    let exact = Exact { seed: 0, clock: "/x".into(), plugin: None };
    let place = ("/run", Console::File);
    let engine = Engine::Exact(&exact);
    let written = written_for(Architecture::Arm64, &Topology { nodes }, engine, place);
    insta::assert_snapshot!(changed(&written), @r"
    -machine virt,gic-version=3,dtb-randomness=on,dump-guest-core=off
    -icount shift=1,sleep=off
    -accel tcg,thread=single
    -rtc base=2020-01-01,clock=vm
    -seed 1
    -cpu max,pauth-impdef=on
    -smp cpus=3,sockets=3,clusters=1,cores=1,threads=1
    -object memory-backend-ram,id=memory0,size=256M
    -numa node,nodeid=0,memdev=memory0
    -numa cpu,node-id=0,socket-id=0,cluster-id=0,core-id=0,thread-id=0
    -numa cpu,node-id=0,socket-id=2,cluster-id=0,core-id=0,thread-id=0
    -object memory-backend-ram,id=memory1,size=256M
    -numa node,nodeid=1,memdev=memory1
    -numa cpu,node-id=1,socket-id=1,cluster-id=0,core-id=0,thread-id=0
    -append console=ttyAMA0 panic=-1 quiet cryptomgr.notests nokaslr arm64.nomops initcall_blacklist=jent_mod_init,trace_eval_init,trace_eval_sync,ecdsa_init,ecdh_init page_alloc.shuffle=1 faultline.seed=00000000 faultline_0=hb faultline.1=issjvrhzwagzemh faultline_2=wxxsadwkv faultline_3=xr numa_balancing=disable
    ");
}

/// Boots of another machine are of another experiment.
#[test]
fn the_exact_machine_is_described() {
    let of = |arch| exact_machine(&Emulator::unchecked(Path::new("qemu"), 10).for_arch(arch));
    insta::assert_snapshot!(of(Architecture::X86_64), @"q35,dump-guest-core=off,sata=off -accel tcg,thread=single -rtc base=2020-01-01,clock=vm -seed 1 1 max,-erms,-fsrm,-fzrm,-fsrs,-fsrc,-arat hpet.msi=on hpet.timers=4 console=ttyS0 panic=-1 quiet cryptomgr.notests tsc=reliable no_timer_check nokaslr cpu_init_udelay=0 initcall_blacklist=jent_mod_init,trace_eval_init,trace_eval_sync,ecdsa_init,ecdh_init nolapic_timer page_alloc.shuffle=1 faultline.seed=00000000 faultline_0=hb faultline.1=issjvrhzwagzemh faultline_2=wxxsadwkv faultline_3=xr");
    insta::assert_snapshot!(of(Architecture::Arm64), @"virt,gic-version=3,dtb-randomness=on,dump-guest-core=off -accel tcg,thread=single -rtc base=2020-01-01,clock=vm -seed 1 1 max,pauth-impdef=on console=ttyAMA0 panic=-1 quiet cryptomgr.notests nokaslr arm64.nomops initcall_blacklist=jent_mod_init,trace_eval_init,trace_eval_sync,ecdsa_init,ecdh_init page_alloc.shuffle=1 faultline.seed=00000000 faultline_0=hb faultline.1=issjvrhzwagzemh faultline_2=wxxsadwkv faultline_3=xr");
}

#[test]
fn no_socket_spans_nodes() {
    let sockets = |lists: &[&str]| {
        let nodes = lists.iter().map(|cpus| node(cpus, 128, &[])).collect();
        sockets(&Topology { nodes })
    };
    assert_eq!(sockets(&["0-3"]), 1);
    assert_eq!(sockets(&["0-1", "2-3", ""]), 2);
    assert_eq!(sockets(&["0-2", "3"]), 4);
    assert_eq!(sockets(&["2-3", "0-1"]), 4);
}

/// The variant's command line has the largest length that `lab` allows.
#[test]
fn the_words_of_a_seed_fit_into_the_command_line() {
    const VARIANT: usize = 1536;
    const LINE: usize = 2048;
    let exact = |seed| Exact { seed, clock: "/x".into(), plugin: None };
    let platform = platform(Architecture::X86_64);
    let lines =
        (0..1000).map(|seed| boot_parameters(platform, Engine::Exact(&exact(seed)), 1, "").len());
    assert!(lines.max().unwrap() + VARIANT + 16 < LINE);
    assert_ne!(drawn_words(1).len(), drawn_words(2).len());
}
