//! The `countersign` command line. Exit codes: 0 pass, 1 rejected or unsettled, 2 usage or configuration, 3 could not judge.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is the program's own output"
)]

mod backtest;
mod clone;
mod doctor;
mod explain;
mod launch;
mod matrix;
mod policy;
mod rehearse;
mod serve;
mod verify;
mod worlds;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use countersign_core::Decision;
use mimalloc::MiMalloc;

/// Many threads allocate much that is soon freed; the system's allocator keeps it for each of them (docs/decisions/0010).
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Checks a reviewer's signed checklist against the evidence.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve webhooks and work on what they ask for.
    Serve(ConfigArgs),
    /// Judge one pull request or sign-off on GitHub and print the verdict. Nothing is stored or posted.
    Verify(verify::VerifyArgs),
    /// Take a world file the whole way: simulated GitHub, signed webhooks, real server and database. A partial world is judged
    /// directly.
    Rehearse(rehearse::RehearseArgs),
    /// The same with a bundled world, shown step by step.
    Demo,
    /// Write a pull request on GitHub into a world file, with everything that a verdict rests on.
    Record(worlds::RecordArgs),
    /// Judge the evidence of a stored verdict again: the same bytes, or what differs. Exit code 1 for a difference.
    Replay(worlds::ReplayArgs),
    /// Show the way from evidence to the outcome of one check, of a stored verdict or of a world.
    Explain(worlds::ExplainArgs),
    /// Compare verdicts on worlds with verdicts that are known, check by check.
    Accuracy(worlds::AccuracyArgs),
    /// Bring the database to this version's form.
    Migrate(ConfigArgs),
    /// Look at policy files.
    Policy {
        #[command(subcommand)]
        command: policy::PolicyCommand,
    },
    /// Print what a revision of a clone would benchmark, or what differs from another revision.
    Matrix(matrix::MatrixArgs),
    /// Judge every pull request of a clone, or show what another policy would change.
    Backtest(backtest::BacktestArgs),
    /// Print which servers the points of an entry would start, with the source line of every flag, or what a change
    /// does to them. Nothing is run.
    Launch(launch::LaunchArgs),
    /// Check credentials, permissions, webhook, database and clock.
    Doctor(ConfigArgs),
}

/// Where the configuration is.
#[derive(Debug, Clone, Args)]
struct ConfigArgs {
    /// The configuration file.
    #[arg(long, env = "COUNTERSIGN_CONFIG", default_value = "countersign.toml")]
    config: PathBuf,
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// As it would stand in a comment.
    Markdown,
}

/// The exit code of a decision.
fn exit_of(decision: Decision) -> ExitCode {
    ExitCode::from(match decision {
        Decision::Pass | Decision::Warn => 0,
        Decision::Rejected | Decision::NeedsConfirmation => 1,
        Decision::Undecided => 3,
    })
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let quiet = !matches!(cli.command, Command::Serve(_));
    serve::logging(quiet);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("the runtime cannot start: {error}");
            return ExitCode::from(2);
        }
    };
    let result = runtime.block_on(async {
        match cli.command {
            Command::Serve(args) => serve::serve(&args.config).await,
            Command::Verify(args) => verify::run(&args).await,
            Command::Rehearse(args) => rehearse::run(&args).await,
            Command::Demo => rehearse::demo().await,
            Command::Record(args) => worlds::record(&args).await,
            Command::Replay(args) => worlds::replay(&args).await,
            Command::Explain(args) => worlds::explain(&args).await,
            Command::Accuracy(args) => worlds::accuracy(&args),
            Command::Migrate(args) => serve::migrate(&args.config).await,
            Command::Policy { command } => policy::run(&command),
            Command::Matrix(args) => matrix::run(&args),
            Command::Backtest(args) => backtest::run(&args),
            Command::Launch(args) => launch::run(&args),
            Command::Doctor(args) => doctor::run(&args.config).await,
        }
    });
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(2)
        }
    }
}
