//! Developers' programs do their work inside: what the profile forbids, none of them needs.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod support;

use support::{TestEngine, cannot_run};

sandbank_engine_native::spawner_entry!();

/// A program of the host, a script that uses it, and what that prints.
const PROGRAMS: &[(&str, &str, &str)] = &[
    (
        "git",
        "git init -q r && cd r && git config user.email a@b && git config user.name n && \
         echo x > f && git add f && git commit -qm first && git log --oneline | wc -l",
        "1\n",
    ),
    (
        "gcc",
        "printf '#include <stdio.h>\\nint main(void){puts(\"built\");}' > a.c && gcc -O1 a.c -o a \
         && ./a",
        "built\n",
    ),
    (
        "node",
        "node -e \"const {Worker} = require('worker_threads'); const fs = require('fs'); \
         fs.writeFileSync('n', 'x'); new Worker('console.log(40 + 2)', {eval: true})\"",
        "42\n",
    ),
    (
        "python3",
        "python3 -c \"import multiprocessing, tempfile, threading, sqlite3, socket; \
         p = multiprocessing.Pool(2); print(sum(p.map(abs, [-1, -2]))); p.close(); p.join()\"",
        "3\n",
    ),
    (
        "perl",
        "perl -e 'use POSIX; my $p = fork // die; exit 0 unless $p; wait; print $? >> 8'",
        "0",
    ),
    (
        "bash",
        "bash -c 'exec 3<>/dev/null; coproc cat; echo in >&${COPROC[1]}; read -u ${COPROC[0]} \
       l; echo $l; diff <(echo a) <(echo a) && echo same'",
        "in\nsame\n",
    ),
    (
        "tar",
        "mkdir d && echo x > d/f && tar czf d.tgz d && rm -r d && tar xzf d.tgz && cat d/f",
        "x\n",
    ),
    ("make", "printf 'all:\\n\\t@echo made\\n' > Makefile && make -s", "made\n"),
    ("java", "java -version 2>&1 | grep -c -i version", "1\n"),
    ("go", "HOME=$PWD go env GOOS", "linux\n"),
    ("strace", "strace -f -o trace true && grep -c execve trace", "1\n"),
    ("setpriv", "setpriv --no-new-privs echo ok", "ok\n"),
    ("ps", "sleep 30 & ps -o comm= -p $!", "sleep\n"),
    ("flock", "flock lock echo locked", "locked\n"),
    ("find", "mkdir -p t/u && touch t/u/v && find t -type f", "t/u/v\n"),
    ("mktemp", "test -f $(mktemp) && echo made", "made\n"),
];

#[tokio::test(flavor = "multi_thread")]
async fn ordinary_programs_of_the_host_work_inside() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test
        .create_with(|spec| {
            spec.limits.memory_bytes = 1 << 30;
            spec.limits.tmp_bytes = 64 << 20;
        })
        .await;
    let mut failed = Vec::new();
    for (program, script, expected) in PROGRAMS {
        if test.sh(&machine.id, &format!("command -v {program}")).await.code() != Some(0) {
            println!("skipped: this host has no {program}");
            continue;
        }
        let output = test.sh(&machine.id, script).await;
        if output.stdout != *expected {
            failed.push(format!("{program}: {:?} {}", output.stdout, output.stderr));
        }
    }
    assert_eq!(failed, Vec::<String>::new());
    test.finish().await;
}
