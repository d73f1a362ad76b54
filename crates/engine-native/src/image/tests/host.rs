//! The host image on this machine.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Fixture, ResolvedImage, is_link};
use crate::image::host::HostPieces;

#[test]
fn the_host_image_is_a_skeleton_with_binds() {
    let fixture = Fixture::new();
    let host = fixture.resolve("host");
    let [skeleton] = host.lower.as_slice() else { panic!("{:?}", host.lower) };
    assert!(host.binds.iter().any(|bind| bind.target == Path::new("/usr")));
    for bind in &host.binds {
        let target = skeleton.join(bind.target.strip_prefix("/").unwrap());
        assert!(target.is_dir() && !is_link(&target), "{} has no place", bind.target.display());
        assert!(bind.source.is_dir());
    }
    assert!(host.binds.is_sorted_by(|a, b| a.target < b.target));
    assert_eq!(fixture.resolve("host"), host, "it is made once");
    assert_eq!(fixture.names_in("skeletons").len(), 1);
}

#[test]
fn nothing_of_the_host_s_identity_is_in_it() {
    let fixture = Fixture::new();
    let host = fixture.resolve("host");
    let etc = host.lower[0].join("etc");
    for secret in
        ["shadow", "gshadow", "machine-id", "ssh", "ssl/private", "sudoers", "npmrc", "pip.conf"]
    {
        assert!(!etc.join(secret).exists(), "{secret} is in the host image");
        let bound = Path::new("/etc").join(secret);
        assert!(
            !host.binds.iter().any(|bind| bound.starts_with(&bind.source)),
            "{secret} is bound"
        );
    }
    let own = std::fs::read_to_string("/etc/passwd").unwrap();
    assert_ne!(std::fs::read_to_string(etc.join("passwd")).unwrap(), own);
    // Every copied file was readable by everyone on the host.
    let mut waiting = vec![etc.clone()];
    while let Some(dir) = waiting.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                waiting.push(entry.path());
            }
            let relative = entry.path().strip_prefix(&etc).unwrap().to_owned();
            let original = Path::new("/etc").join(&relative);
            let synthetic = [
                "passwd",
                "group",
                "hosts",
                "hostname",
                "resolv.conf",
                "profile",
                "bash.bashrc",
                "nsswitch.conf",
            ];
            if kind.is_file() && !synthetic.contains(&relative.to_str().unwrap()) {
                assert_ne!(original.metadata().unwrap().mode() & 0o004, 0, "{relative:?}");
            }
        }
    }
    for bind in &host.binds {
        assert_eq!(bind.source.metadata().unwrap().mode() & 0o005, 0o005, "{bind:?}");
    }
}

#[test]
fn a_changed_host_gives_another_skeleton_without_what_is_not_for_everyone() {
    let host = tempfile::tempdir().unwrap();
    let at = |path: &str| host.path().join(path);
    for dir in ["usr/bin", "etc/ssl/certs", "etc/alternatives", "sbin"] {
        std::fs::create_dir_all(at(dir)).unwrap();
    }
    std::os::unix::fs::symlink("usr/bin", at("bin")).unwrap();
    std::os::unix::fs::symlink("/usr/share/zoneinfo/UTC", at("etc/localtime")).unwrap();
    for (file, mode) in [("ld.so.cache", 0o644), ("services", 0o640), ("shadow", 0o644)] {
        std::fs::write(at("etc").join(file), file).unwrap();
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(at("etc").join(file), mode).unwrap();
    }
    std::fs::set_permissions(at("etc/alternatives"), std::fs::Permissions::from_mode(0o700))
        .unwrap();

    let pieces = HostPieces::look_in(host.path());
    let root = tempfile::tempdir().unwrap();
    pieces.build(root.path()).unwrap();
    let built = |path: &str| root.path().join(path);
    assert_eq!(std::fs::read_to_string(built("etc/ld.so.cache")).unwrap(), "ld.so.cache");
    assert!(is_link(&built("bin")) && is_link(&built("etc/localtime")) && built("sbin").is_dir());
    for left_out in ["etc/services", "etc/shadow", "etc/alternatives"] {
        assert!(!built(left_out).exists(), "{left_out} was taken over");
    }
    let binds: Vec<_> = pieces.binds().into_iter().map(|bind| bind.target).collect();
    assert_eq!(binds, ["/etc/ssl/certs", "/sbin", "/usr"].map(PathBuf::from));

    let before = pieces.fingerprint();
    assert_eq!(HostPieces::look_in(host.path()).fingerprint(), before);
    std::fs::write(at("etc/new"), "ldconfig replaces the file").unwrap();
    std::fs::rename(at("etc/new"), at("etc/ld.so.cache")).unwrap();
    let after = HostPieces::look_in(host.path()).fingerprint();
    assert_ne!(after, before);
    std::fs::create_dir(at("etc/java-21-openjdk")).unwrap();
    assert_ne!(HostPieces::look_in(host.path()).fingerprint(), after);
}

/// Puts the root together with mount(8) and runs a script in it as the workload's user.
fn run_in(host: &ResolvedImage, work: &Path, script: &str) -> std::process::Output {
    let root: PathBuf = work.join("root");
    std::fs::create_dir_all(&root).unwrap();
    let at = root.display();
    let mut setup = format!("set -e\nmount --bind {} {at}\n", host.lower[0].display());
    for bind in &host.binds {
        let target = bind.target.display();
        setup += &format!("mount --rbind -o ro {} {at}{target}\n", bind.source.display());
    }
    setup += &format!(
        "mount -t tmpfs tmpfs {at}/tmp\nmount -t proc proc {at}/proc\n\
         mount -t tmpfs tmpfs {at}/dev\n\
         for d in null urandom; do touch {at}/dev/$d; mount --bind /dev/$d {at}/dev/$d; done\n\
         mount -t tmpfs -o mode=0777 tmpfs {at}/vercel/sandbox/workspace\n\
         exec chroot --userspec=1000:1000 --groups= {at} /usr/bin/env -i \
         PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
         HOME=/vercel/sandbox/workspace /bin/bash -lc \"$1\"\n"
    );
    Command::new("unshare")
        .args(["--mount", "--propagation", "private", "bash", "-c", &setup, "setup", script])
        .output()
        .unwrap()
}

#[test]
fn tools_of_the_host_work_in_it() {
    let fixture = Fixture::new();
    let host = fixture.resolve("host");
    let work = tempfile::tempdir().unwrap();
    std::fs::set_permissions(work.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let checks = [
        ("bash", "[ \"$(whoami)\" = user ] && [ \"$(cd ~ && pwd)\" = /vercel/sandbox/workspace ]"),
        (
            "python3",
            "/usr/bin/python3 -c 'import ssl, sqlite3, json; ssl.create_default_context()'",
        ),
        ("node", "node -e 'require(\"crypto\").randomBytes(8); process.exit(0)'"),
        (
            "git",
            "cd /workspace && git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x",
        ),
        ("gcc", "cd /tmp && echo 'int main(){return 7;}' > a.c && gcc a.c -o a; ./a; [ $? = 7 ]"),
        ("curl", "curl --version && curl -s file:///etc/passwd | grep -q ^user:"),
        ("openssl", "openssl rand -hex 8 && openssl version"),
    ];
    let mut missing = 0;
    for (tool, script) in checks {
        let installed =
            ["/usr/bin", "/usr/local/bin"].iter().any(|dir| Path::new(dir).join(tool).exists());
        if !installed {
            println!("skipped: {tool} is not installed in /usr");
            missing += 1;
            continue;
        }
        let output = run_in(&host, work.path(), script);
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{tool}: {}\n{out}\n{err}", output.status);
    }
    assert!(missing < checks.len());
    let output =
        run_in(&host, work.path(), "cat /etc/shadow /etc/machine-id /root/x 2>&1; ls /etc/ssh");
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let output = run_in(&host, work.path(), "PATH=/first:$PATH; bash -lc 'echo $PATH'");
    let path = String::from_utf8_lossy(&output.stdout);
    assert!(path.starts_with("/first:"), "a login shell keeps its PATH: {path}");
}
