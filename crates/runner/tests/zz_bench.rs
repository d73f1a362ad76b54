#![allow(clippy::unwrap_used)]
mod commanding;
mod live_runner;
use commanding::{id, shell, spec, run};
use live_runner::LiveRunner;
use sandbank_protocol::Frame;
use std::time::Instant;

fn cpu(pid: u32) -> (f64, f64) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let f: Vec<&str> = stat[stat.rfind(')').unwrap()+2..].split(' ').collect();
    (f[11].parse::<f64>().unwrap()/100.0, f[12].parse::<f64>().unwrap()/100.0)
}
#[tokio::test]
async fn bench() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    for (i, cmd) in ["head -c 4294967296 /dev/zero", "dd if=/dev/zero bs=1M count=4096 2>/dev/null", "yes | head -c 4294967296"].iter().enumerate() {
        let n = format!("b{i}");
        let (c0, r0) = (cpu(std::process::id()), cpu(runner.pid()));
        let t = Instant::now();
        client.start(&shell(&n, cmd)).await.unwrap();
        let mut s = client.output(&id(&n), 0, true).await.unwrap();
        let (mut seen, mut frames) = (0u64, 0u64);
        while let Some(f) = s.next().await.unwrap() {
            if let Frame::Output { data, .. } = f { seen += data.len() as u64; frames += 1; }
        }
        let e = t.elapsed().as_secs_f64();
        let (c1, r1) = (cpu(std::process::id()), cpu(runner.pid()));
        eprintln!("{cmd}: {:.2} GB/s in {e:.2}s, {frames} frames; client u{:.2} s{:.2}; runner u{:.2} s{:.2}; load {}", seen as f64/e/1e9, c1.0-c0.0, c1.1-c0.1, r1.0-r0.0, r1.1-r0.1, std::fs::read_to_string("/proc/loadavg").unwrap().trim());
    }
    let mut times = Vec::new();
    let mut base = Vec::new();
    for i in 0..500 {
        let t = Instant::now();
        let h = run(&client, &spec(&format!("t{i}"), &["/bin/true"])).await;
        assert_eq!(h.code(), Some(0));
        times.push(t.elapsed().as_micros());
        let t = Instant::now();
        std::process::Command::new("/bin/true").status().unwrap();
        base.push(t.elapsed().as_micros());
    }
    times.sort(); base.sort();
    eprintln!("true p50 {} p95 {}; std spawn true p50 {} p95 {}", times[250], times[475], base[250], base[475]);
}
