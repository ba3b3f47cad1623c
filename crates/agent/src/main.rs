//! The program that runs as PID 1 of a guest, or as a process on a host.

fn main() {
    agent::main()
}
