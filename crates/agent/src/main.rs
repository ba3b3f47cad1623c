//! The program that runs as PID 1 of the guest.

fn main() {
    agent::main()
}
