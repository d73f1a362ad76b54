//! PID 1 of every sandbox: commands, files, tunnels, over one multiplexed channel.
//!
//! One thread serves everybody; what takes long, such as a search, has threads of its own. It never trusts the workload, and never exits because of it.

#![allow(unsafe_code, reason = "clone, privileges and cgroup placement need raw system calls")]

mod arguments;
mod cgroups;
mod clock;
mod commands;
mod contain;
mod descriptors;
mod files;
mod front;
mod git;
mod http;
mod limits;
mod log;
mod offload;
mod prepare;
mod privileges;
mod pty;
mod reaper;
mod search;
mod server;
mod signals;
mod spawn;
mod stamp;
mod start;
mod stats;
mod stdio;
mod tree;
mod tunnel;
mod watch;

use std::process::ExitCode;

use arguments::Arguments;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match Arguments::parse(&arguments) {
        Ok(Arguments::Client) => ExitCode::from(front::client::run(&arguments)),
        Ok(Arguments::Contain) => ExitCode::from(contain::run(&arguments)),
        Ok(Arguments::Serve(serve)) => {
            let error = start::serve(serve);
            eprintln!("runner: {error}");
            ExitCode::from(error.exit_code())
        }
        Err(usage) => {
            eprintln!("runner: {usage}");
            ExitCode::from(start::USAGE)
        }
    }
}
