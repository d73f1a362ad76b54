//! `/etc/passwd` and `/etc/group` of a sandbox: the image's own accounts with `user` among them.

use sandbank_protocol::WORKSPACE;

/// The id of the workload's user in every sandbox.
const USER_ID: u32 = 1000;

const NOLOGIN: &str = "/usr/sbin/nologin";

/// Lines with the right number of fields and a name that no other line gets to redefine.
fn usable<'a>(
    own: &'a str,
    fields: usize,
    taken: &'a [&str],
) -> impl Iterator<Item = Vec<&'a str>> {
    own.lines().filter_map(move |line| {
        let parts: Vec<&str> = line.split(':').collect();
        let numbers = parts.get(2).is_some_and(|id| id.parse::<u32>().is_ok());
        let clean = parts.len() == fields && numbers && !parts[0].is_empty();
        (clean && !taken.contains(&parts[0])).then_some(parts)
    })
}

fn join(lines: impl IntoIterator<Item = String>) -> String {
    lines.into_iter().map(|line| line + "\n").collect()
}

/// `user` comes before other accounts of the same id, so that id has this name and home.
pub(super) fn passwd(own: &str, shell: &str) -> String {
    let user = format!("user:x:{USER_ID}:{USER_ID}:Sandbox user:{WORKSPACE}:{shell}");
    let others: Vec<Vec<&str>> = usable(own, 7, &["user"]).collect();
    let has = |name: &str| others.iter().any(|parts| parts[0] == name);
    let mut lines = Vec::new();
    if !has("root") {
        lines.push(format!("root:x:0:0:root:/root:{shell}"));
    }
    let (root, rest): (Vec<_>, Vec<_>) = others.iter().partition(|parts| parts[0] == "root");
    // No password works in a sandbox; hashes of the image have no business there.
    let shown = |parts: &&Vec<&str>| {
        let mut parts = (*parts).clone();
        parts[1] = "x";
        parts.join(":")
    };
    lines.extend(root.iter().map(shown));
    lines.push(user);
    lines.extend(rest.iter().map(shown));
    if !has("nobody") {
        lines.push(format!("nobody:x:65534:65534:nobody:/nonexistent:{NOLOGIN}"));
    }
    join(lines)
}

pub(super) fn group(own: &str) -> String {
    let others: Vec<Vec<&str>> = usable(own, 4, &["user"]).collect();
    let has = |name: &str, id: &str| others.iter().any(|p| p[0] == name || p[2] == id);
    let mut lines = Vec::new();
    if !has("root", "0") {
        lines.push("root:x:0:".to_owned());
    }
    lines.push(format!("user:x:{USER_ID}:"));
    for parts in &others {
        lines.push(format!("{}:x:{}:{}", parts[0], parts[2], parts[3]));
    }
    if !has("tty", "5") {
        lines.push("tty:x:5:".to_owned());
    }
    if !has("nogroup", "65534") {
        lines.push("nogroup:x:65534:".to_owned());
    }
    join(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_accounts_gets_the_three_that_matter() {
        let passwd = passwd("", "/bin/sh");
        assert_eq!(
            passwd.lines().collect::<Vec<_>>(),
            [
                "root:x:0:0:root:/root:/bin/sh",
                "user:x:1000:1000:Sandbox user:/vercel/sandbox/workspace:/bin/sh",
                "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin",
            ]
        );
        assert_eq!(group(""), "root:x:0:\nuser:x:1000:\ntty:x:5:\nnogroup:x:65534:\n");
    }

    #[test]
    fn the_image_s_accounts_stay_but_cannot_pose_as_user() {
        let own = "root:$6$hash:0:0:root:/root:/bin/bash\nnode:x:1000:1000::/home/node:/bin/bash\n\
                   user:x:0:0::/:/bin/sh\nbroken line\n:x:1:1:::\n";
        let passwd = passwd(own, "/bin/bash");
        let lines: Vec<_> = passwd.lines().collect();
        assert_eq!(lines[0], "root:x:0:0:root:/root:/bin/bash");
        assert!(lines[1].starts_with("user:x:1000:1000:"), "{passwd}");
        assert!(lines[2].starts_with("node:x:1000:"), "{passwd}");
        assert_eq!(lines.len(), 4, "{passwd}");
        let group = group("root:x:0:\nnode:x:1000:node\nuser:x:0:\ntty:x:5:\n");
        assert_eq!(
            group.lines().collect::<Vec<_>>(),
            ["user:x:1000:", "root:x:0:", "node:x:1000:node", "tty:x:5:", "nogroup:x:65534:"]
        );
    }
}
