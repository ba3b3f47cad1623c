//! Options of `faultline record`.

use clap::Args;

use super::TurnArgs;

#[derive(Clone, Debug, Args)]
#[command(override_usage = "faultline record [OPTIONS] -- COMMAND [ARGUMENT]...")]
pub struct RecordArgs {
    /// The command and its arguments
    #[arg(last = true, required = true, value_names = ["COMMAND", "ARGUMENT"])]
    pub command: Vec<String>,
    /// Run the command this many times, each as a session of its own
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeat: u32,
    /// The record's name, by which `compare` finds it. The same command under the same name adds sessions to the record
    /// [default: record-COMMAND, and a new record each time]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Events to count by perf's names, such as tlb:tlb_flush,page-faults
    #[arg(long, value_delimiter = ',', value_name = "EVENT,...")]
    pub events: Vec<String>,
    /// The command reports phases by the metric protocol (docs/own-workload.md), and counters are those in its phases
    #[arg(long)]
    pub phases: bool,
    #[command(flatten)]
    pub turn: TurnArgs,
    /// Print no table, only what failed
    #[arg(long, short)]
    pub quiet: bool,
}
