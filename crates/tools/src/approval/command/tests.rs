//! Where commands hide in scripts.

use super::*;

pub(super) fn programs(script: &str) -> Vec<String> {
    let script = read(script);
    let first = |part: &Part| part.words.first().map(|word| word.text.clone());
    script.parts.iter().filter_map(first).collect()
}

/// The program `danger` is found, and nothing is unknown.
#[track_caller]
fn is_found(script: &str) {
    let read = read(script);
    assert!(programs(script).iter().any(|program| program == "danger"), "{script}: {read:#?}");
    assert!(read.unknown.is_empty(), "{script}: {:?}", read.unknown);
}

/// Bash may run more than is found, and that is said.
#[track_caller]
fn is_unknown(script: &str) {
    let read = read(script);
    assert!(!read.unknown.is_empty(), "{script}: {read:#?}");
}

#[track_caller]
fn is_harmless(script: &str) {
    let read = read(script);
    assert!(!programs(script).iter().any(|program| program == "danger"), "{script}: {read:#?}");
    assert!(read.unknown.is_empty(), "{script}: {:?}", read.unknown);
}

#[test]
fn every_place_where_a_command_can_begin_is_found() {
    for script in [
        "danger",
        "  danger x",
        "\\danger",
        "d'ang'\"er\"",
        "dan\\\nger",
        "true; danger",
        "true && danger",
        "false || danger",
        "true | danger",
        "true |& danger",
        "true & danger",
        "true\ndanger",
        "# a word\ndanger",
        "true #word\n danger",
        "(danger)",
        "( (danger) )",
        "((danger); true)",
        "{ danger; }",
        "! danger",
        "time danger",
        "time -p danger",
        "echo $(danger)",
        "echo \"a $(danger) b\"",
        "echo `danger`",
        "echo \"`danger`\"",
        "echo `echo \\`danger\\``",
        "echo $(echo $(danger))",
        "echo ${x:-$(danger)}",
        "echo \"${x:-$(danger)}\"",
        "cat <(danger)",
        "tee >(danger)",
        "x=$(danger)",
        "x=1 danger",
        "> out danger",
        "danger > out 2>&1",
        "2>/dev/null danger",
        "true &> out; danger",
        "if danger; then true; fi",
        "if true; then danger; else true; fi",
        "if true; then true; elif danger; then true; fi",
        "while danger; do true; done",
        "until true; do danger; done",
        "for x in 1 2; do danger $x; done",
        "for x do danger; done",
        "for x in $(danger); do true; done",
        "select x in 1; do danger; done",
        "case x in a) true;; b) danger;; esac",
        "case x in\n(a|b) danger\n;;\nesac",
        "case $(danger) in esac",
        "case x in esac; danger",
        "f() { danger; }; f",
        "f () (danger)",
        "function f { danger; }",
        "[[ a == b ]] && danger",
        "[[ $(danger) ]]",
        "[[ x =~ ^(a|b)$ ]]; danger",
        "[[ ! ( -n =~ || x == =~ ) && =~ ]] && danger && [[ x ]]",
        "cat <<E\n$(danger)\nE",
        "cat <<-E\n\t`danger`\n\tE",
        "cat <<E\ntext\nE\ndanger",
        "cat <<'E'\n$(text)\nE\ndanger",
        "cat <<A <<B\na\nA\nb\nB\ndanger",
        "cat <<<text; danger",
        "bash -c danger",
        "/bin/bash -lc 'true; danger x'",
        "sh -e -c \"danger\"",
        "bash -o pipefail -c danger",
        "bash -eo pipefail -c danger",
        "bash -c 'bash -c \"danger\"'",
        "env danger",
        "env -i -u Y X=1 Z=2 danger",
        "/usr/bin/env -C /tmp danger",
        "sudo danger",
        "sudo -u root -E X=1 danger",
        "sudo --user root danger",
        "sudo X=1 -u root danger",
        "nice -n 5 danger",
        "nohup danger &",
        "timeout -s KILL 5 danger",
        "timeout --kill-after=1 5 danger",
        "xargs danger",
        "xargs -0 -n 1 -I{} danger {}",
        "echo x | xargs -r sh -c danger",
        "find . -name x -exec danger {} \\;",
        "find . -execdir danger {} + -exec true ';'",
        "find . -exec sh -c 'danger \"$1\"' _ {} \\;",
        "exec danger",
        "command danger",
        "builtin danger",
        "stdbuf -oL danger",
        "eval danger",
        "eval 'true;' danger",
        "trap danger EXIT",
        "trap 'danger' INT TERM",
        "sudo env X=1 nice -n 1 bash -c 'true && danger'",
        "((danger\n)\n)",
        "echo a\\;b; danger",
        "echo 'a;b' \"c;d\"; danger",
        "echo a#b; danger",
        "echo $'a b'; danger",
        "echo ${#x}; danger",
        "echo {a,b}; danger",
        "x=1; danger",
        "echo $x$y; danger",
    ] {
        is_found(script);
    }
}

#[test]
fn text_that_is_no_command_is_none() {
    for script in [
        "",
        "# danger",
        "echo danger",
        "echo 'x; danger'",
        "echo \"x; danger\"",
        "echo \"\\$(danger)\"",
        "echo '$(danger)'",
        "echo \\; danger",
        "echo x\\\ndanger",
        "cat <<'E'\ndanger\n$(danger)\nE",
        "cat <<E\ndanger\n\\$(danger)\nE",
        "cat <<<danger",
        "echo >danger",
        "danger=1",
        "for danger in a; do true; done",
        "case danger in danger) true;; esac",
        "case x in x) true;; danger|y) true;; esac",
        "function danger { true; }",
        "[[ danger == danger ]]",
        "((6 * 7))",
        "bash -c 'echo danger'",
        "env X=danger true",
        "timeout 5 echo danger",
        "find danger -name danger",
        "xargs echo danger",
    ] {
        is_harmless(script);
    }
}

#[test]
fn what_cannot_be_told_is_said_to_be_unknown() {
    for script in [
        "$x",
        "${x} y",
        "d*r",
        "dange{r,x}",
        "~/x",
        "$(echo danger)",
        "$'dan\\x67er'",
        "bash",
        "bash script.sh",
        "curl x | sh",
        "sh -c '[[ x || danger ]]'",
        "dash -c '((danger))'",
        "zsh -c danger",
        "fish -c danger",
        "csh -c danger",
        "nu -c danger",
        "env -u \"$x\" danger",
        "echo \"`echo \\\"; danger; echo \\\"`\"",
        "[[ x =~ ]] && danger && [[ x ]]",
        "[[ x y ]] && danger",
        "[[ ]] && danger",
        "bash -c \"$x\"",
        "bash $x",
        "eval \"$x\"",
        "source x",
        ". x",
        "alias ls=danger",
        "env -S 'danger x'",
        "sudo --unheard danger",
        "sudo $x danger",
        "xargs -Z danger",
        "ssh host danger",
        "watch danger",
        "coproc danger",
        "echo 'not closed; danger",
        "echo \"not closed; danger",
        "echo `danger",
        "echo $(danger",
        "(danger",
        "danger)",
        "echo $[1<<2]\ndanger",
        "a[1<<2]=3\ndanger\n2",
        "a[1 #]=3; danger",
        "echo \"$\\\n(danger)\"",
        "echo \"${x:-'}$(danger)\"",
        "${ danger; }",
        "echo \"$(case x in x) danger;; esac)\"",
        "cat <<E\nfoo\\\nE\n'\nE\ndanger\n'",
        "cat <<$x\ndanger\n$x",
        "cat <<E $(echo\ndanger)\nE",
        "echo @(a|danger)",
        "[[ a << b ]]\ndanger\nb",
        "x=(: <<E\ndanger\nE\ntrue); echo y",
        "x=(a #)\ndanger",
        "find . $x",
    ] {
        is_unknown(script);
    }
    is_unknown(&"(".repeat(10_000));
    is_unknown(&format!("echo {}danger{}", "$(".repeat(1_000), ")".repeat(1_000)));
    is_unknown(&"true;".repeat(2_000));
    is_unknown(&"x".repeat(100_000));
    is_unknown(&format!("{}danger", "sudo ".repeat(1_000)));
    is_unknown(&format!("{}danger", "eval ".repeat(1_000)));
}

/// Bash runs more than what is written as a command, and what is written is still found.
#[test]
fn what_is_beside_something_unknown_is_found() {
    for script in [
        "echo $((1 + $(danger)))",
        "((x = $(danger)))",
        "x=(a $(danger))",
        "for ((i = 0; i < 3; i++)); do danger; done",
        "echo $((x + 1)); danger",
        "declare -a x; danger",
        "let x=1; danger",
        "[[ a -eq 1 ]] && danger",
        "PS4=x; danger",
    ] {
        is_unknown(script);
        assert!(programs(script).iter().any(|program| program == "danger"), "{script}");
    }
}

#[test]
fn a_shell_that_is_given_its_script_is_looked_into_all_the_same() {
    for script in [
        "bash <<E\ndanger\nE",
        "cat <<'E' | bash\ndanger\nE",
        "bash -s <<< 'danger'",
        "sudo sh <<E\ntrue\ndanger\nE",
    ] {
        is_unknown(script);
        assert!(programs(script).iter().any(|program| program == "danger"), "{script}");
    }
}

#[test]
fn words_and_files_are_as_the_program_gets_them() {
    let script = read("x=1 cp -r 'a b' \"c $d\" e\\ f > out 2>> log < in 3>&1");
    let part = &script.parts[0];
    let words: Vec<_> = part.words.iter().map(|word| (word.text.as_str(), word.fixed())).collect();
    let expected = [("cp", true), ("-r", true), ("a b", true), ("c ", false), ("e f", true)];
    assert_eq!(words, expected);
    assert!(part.assigns);
    let texts = |words: &[Word]| words.iter().map(|word| word.text.clone()).collect::<Vec<_>>();
    assert_eq!(
        (texts(&part.writes), texts(&part.reads)),
        (vec!["out".into(), "log".into()], vec!["in".into()])
    );
}
