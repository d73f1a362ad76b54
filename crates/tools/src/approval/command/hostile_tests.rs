//! Scripts that were written to get past the rules, and how much work a script can make.

use super::tests::programs;
use super::*;

/// Each of them made bash run `danger` while a plainer reader saw nothing of it.
pub(super) const HIDDEN: &[&str] = &[
    "ls <<\\\n-E\nx\nE\ndanger\n-E",
    "ls <<$\n$(danger)\n$",
    "ls <<E$\n$(danger)\nE$",
    "ls <<'a b'\nx\na b\ndanger",
    "ls; [[ 'a[$(danger)]' -eq 0 ]]",
    "[[ -v 'a[$(danger)]' ]]",
    "for x in 'a[$(danger)]'; do ((x)); done; ls",
    "ls ${HOME:'a[$(danger)]'}",
    "x='a[$(danger)]'; echo ${HOME:x}",
    "x='a[$(danger)]'; echo $((x))",
    "x='a[$(danger)]'; echo $(($x))",
    "echo $(( $(echo 'a[$(danger)]') ))",
    "x='a[$(danger)]'; for ((x; 0; )); do :; done",
    "let 'x=a[$(danger)]'",
    "test -v 'a[$(danger)]'",
    "[ -v 'a[$(danger)]' ]",
    "x='-v a[$(danger)]'; [ $x ]",
    "x=-v; [ $x 'a[$(danger)]' ]",
    "x=-v; [ \"$x\" 'a[$(danger)]' ]",
    "set -- -v 'a[$(danger)]'; [ \"$@\" ]",
    "printf -v 'a[$(danger)]' x",
    "x=-v; printf $x 'a[$(danger)]' x",
    "command printf -v 'a[$(danger)]' x",
    "builtin test -v 'a[$(danger)]'",
    "x=(['a[$(danger)]']=1)",
    "x=([a[$(danger)]]=1)",
    "a[$(danger)]=1",
    "unset 'a[$(danger)]'",
    "a=(1); unset 'a[$(danger)]'",
    "read 'a[$(danger)]' <<< x",
    "declare 'a[$(danger)]=1'",
    "export 'PS4=$(danger)'; set -x; :",
    "declare -i x='a[$(danger)]'",
    "x='a[$(danger)]'; declare -i y=x",
    "declare -n x='a[$(danger)]'; echo $x",
    "RANDOM='a[$(danger)]'",
    "OPTIND='a[$(danger)]'",
    "for RANDOM in 'a[$(danger)]'; do :; done",
    "mapfile -C danger -c 1 x <<< y",
    "getopts x 'a[$(danger)]' -x",
    "danger & wait -p 'a[$(danger)]' $!",
    "{x}>/dev/null danger",
    "z='danger '; ${z}x=1",
    "env a-b=1 danger",
    "env - danger",
    "env 'BASH_FUNC_ls%%=() { danger; }' bash -c ls",
    "env -S 'danger x'",
    "eval -- danger",
    "eval -- 'true; danger'",
    "trap -- '-x; danger' EXIT",
    "trap -- danger EXIT",
    "echo danger | xargs -I{} bash -c '{}'",
    "echo danger | xargs -I % bash -c %",
    "echo danger | xargs -0I % bash -c %",
    "echo danger | xargs --replace bash -c '{}'",
    "echo danger | xargs -i bash -c '{}'",
    "echo -c danger | xargs bash",
    "echo danger | xargs env",
    "find . -maxdepth 0 -exec danger + -rf data \\;",
    "find . -maxdepth 0 -exec echo + \\; -exec danger \\;",
    "y=' -exec danger ;'; find . -name b*$y",
    "x=-exec; y=';'; find . -maxdepth 0 \"$x\" danger \"$y\"",
    "x=-exec; find . -maxdepth 0 \"$x\" danger \\;",
    "x=';'; find . -maxdepth 0 -exec echo \"$x\" -exec danger \\;",
    "bash -ooc errexit pipefail danger",
    "bash -rcfile /dev/null -c danger",
    "bash -c -- danger",
    "bash -c - danger",
    "bash +x -c danger",
    "bash -O extglob -c danger",
    "echo danger | bash",
    "bash <<< danger",
    "PS4='$(danger)'; set -x; :",
    "PS4='$(danger)' bash -xc :",
    "BASH_ENV='$(danger)' bash -c :",
    "x='$(danger)'; echo ${x@P}",
    "x=y; y='a[$(danger)]'; echo ${!y}",
    "BASH_CMDS=([foo]=danger); foo",
    "BASH_ALIASES=([foo]=danger); shopt -s expand_aliases\nfoo",
    "shopt -s expand_aliases; alias foo=danger\nfoo",
    "hash -p danger foo; foo",
    "y='a PS4=$(danger)'; command export x=$y; set -x; :",
    "y='a PS4=$(danger)'; 'export' x=$y; set -x; :",
    "y='PS4=$(danger)'; export \"$y\"; set -x; :",
    "set -k; bash -c : BASH_ENV='$(danger)'",
    "true &\\\n& danger",
    "false |\\\n| danger",
    "echo $\\\n(danger)",
    "compgen -W '$(danger)'",
    "jobs -x danger",
    "coproc danger",
    "f() { \"$@\"; }; f danger",
    "set -- danger; \"$1\"",
    "set -- danger; $*",
    "x=danger; $x",
    "x='danger'; \"$x\"",
    "echo danger > f; . ./f",
    "select x in 'a[$(danger)]'; do ((REPLY)); done <<< 1",
    "time -p -- danger",
    ": >&'x$(danger)'",
    "x='$(danger)'; : >&\"$x\"",
    "[[ x =~ $(danger) ]]",
    "[[ (a == b) || c == $(danger) ]]",
    "case x in $(danger)) :;; esac",
    "case x in y) ;; *) danger ;& esac",
    "echo \"${x:-$(danger)}\"",
    "echo ${x:-`danger`}",
    "echo ${x:=$(danger)}",
    "echo ${x+\"$(danger)\"}",
    "echo \"${HOME+\"$(danger)\"}\"",
    "echo \"$(danger)\"'",
    "echo $'\\'' $(danger) '",
    "env -u $nothing ls danger",
    "x='X danger'; env -u $x ls",
    "env --unset $nothing ls danger",
    "env -C $nothing . danger",
    "env -u * danger",
    "nice -n $nothing 5 danger",
    "IFS=1; timeout -k $((515)) danger",
    "timeout -s $nothing KILL 5 danger",
    "exec -a $nothing ls danger",
    "echo 'X danger' | xargs env -u",
    "echo x | xargs -n $nothing 1 danger",
    "echo x | xargs -I $nothing y danger",
    "env -u $! ls danger",
    "env -u ${!} ls danger",
    "sudo -u $nothing root danger",
    "sudo A=1 -u root danger",
    "sudo -E A=1 B=2 -u root -g root danger",
    "set -- 1 danger; env A=\"${x:-$@}\" ls",
    "set -- -v 'a[$(danger)]'; [ \"${x:-$@}\" ]",
    ": > X; : > danger; find X danger -exec env -u {} +",
    "find . -maxdepth 0 -exec env -u {} danger \\;",
    "[[ =~ ]] && danger && [[ x ]]",
    "[[ -n =~ ]] && danger && [[ x ]]",
    "[[ ! =~ ]] || danger || [[ x ]]",
    "[[ x == =~ ]] || danger || [[ y ]]",
    "[[ ( =~ ) ]] && danger && [[ (x) ]]",
    "[[ x && =~ ]] && danger && [[ x ]]",
    ": <<E\n`echo \\\"; danger; echo \\\"`\nE",
    "((: <<-E\ndanger\n\tE\n-c) )",
    "csh -c 'if (1) danger'",
    "tcsh -c danger",
    "ksh93 -c danger",
    "pwsh -c danger",
];

fn is_seen(script: &str) -> bool {
    !read(script).unknown.is_empty() || programs(script).iter().any(|program| program == "danger")
}

#[test]
fn every_hidden_command_is_found_or_the_script_is_unknown() {
    let missed: Vec<_> = HIDDEN.iter().filter(|script| !is_seen(script)).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

/// A script of many bytes that repeats itself.
type Shape = fn(usize) -> String;

const COSTLY: &[(&str, Shape)] = &[
    ("find within find", |size| "find -exec ".repeat(size / 11)),
    ("find within find, ended", |size| {
        "find -exec ".repeat(size / 24) + &" {} \\;".repeat(size / 24)
    }),
    ("many of one find", |size| "find ".to_owned() + &"-exec a \\; ".repeat(size / 11)),
    ("sudo within sudo", |size| "sudo ".repeat(size / 5) + "x"),
    ("eval within eval", |size| "eval ".repeat(size / 5) + "x"),
    ("xargs with marks", |size| {
        "xargs ".to_owned() + &"-I{} ".repeat(size / 10) + &"{} ".repeat(size / 10)
    }),
    ("open parentheses", |size| "(".repeat(size)),
    ("open substitutions", |size| "echo $(".repeat(size / 7)),
    ("arithmetic", |size| "$((".repeat(size / 3)),
    ("arithmetic beside arithmetic", |size| "((1)".repeat(size / 4)),
    ("quotes within substitutions", |size| "\"$(".repeat(size / 3)),
    ("parameters", |size| "${x:-".repeat(size / 5)),
    ("backquotes", |size| "echo `x` ".repeat(size / 9)),
    ("escaped backquotes", |size| "\\".repeat(size - 2) + "`"),
    ("here-documents", |size| "a <<A ".repeat(size / 6)),
    ("here-documents for shells", |size| {
        "bash <<A;".repeat(size / 18) + "\n" + &"x\nA\n".repeat(size / 18)
    }),
    ("words", |size| "a ".repeat(size / 2)),
    ("commands", |size| "a;".repeat(size / 2)),
    ("lines", |size| "\n".repeat(size)),
    ("comments", |size| "#\n".repeat(size / 2)),
    ("scripts of shells", |size| "bash -c ".repeat(size / 9) + "x"),
    ("if within if", |size| "if ".repeat(size / 3)),
    ("cases", |size| "case x in ".repeat(size / 10)),
    ("tests", |size| "[[ ".to_owned() + &"( ".repeat(size / 3)),
];

#[test]
fn twice_the_script_is_at_most_twice_the_work_and_never_more_than_the_bound() {
    for (name, shape) in COSTLY {
        let steps = |size: usize| {
            let script = shape(size);
            assert!(script.len() <= MAX_SCRIPT_BYTES, "{name}");
            let found = read(&script);
            assert!(found.words <= MAX_WORDS && found.parts.len() <= MAX_PARTS, "{name}");
            found.steps.get()
        };
        let (half, whole) = (steps(MAX_SCRIPT_BYTES / 2), steps(MAX_SCRIPT_BYTES));
        // A bound may make the longer one end sooner; what is begun at the bound is still ended.
        assert!(whole <= 5 * half / 2 + 1_000, "{name}: {half} and {whole}");
        assert!(whole <= 2 * MAX_STEPS, "{name}: {whole}");
    }
}

#[test]
fn what_would_take_too_long_is_unknown() {
    for script in [
        "find -exec ".repeat(2_900),
        "sudo ".repeat(6_000) + "x",
        "a;".repeat(1_001),
        "sudo ".to_owned() + &"a ".repeat(15_000),
        format!("xargs {} a", "-I{} ".repeat(100)),
    ] {
        assert!(!read(&script).unknown.is_empty(), "{:.40}", script);
    }
}
