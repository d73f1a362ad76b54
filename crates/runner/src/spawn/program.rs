//! A program to exec, in the form the kernel takes: built before the clone, read by the child.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::ptr;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum InvalidProgram {
    #[error("there is no program to run: argv is empty")]
    Empty,
    #[error("{0} contains a NUL character")]
    Nul(&'static str),
    #[error("{0:?} cannot be the name of an environment variable")]
    VariableName(String),
}

/// Owns every string; the pointers below go into them.
pub(crate) struct Program {
    /// Kept alive for the pointers.
    _strings: Vec<CString>,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    /// Paths to try in this order.
    candidates: Vec<*const c_char>,
    /// `/bin/sh`, room for the candidate, and the arguments: for scripts without a first line
    /// that names their interpreter.
    script: Vec<*const c_char>,
    /// Beginning of the message when nothing can be exec'd.
    complaint: CString,
    /// It was named by a path, and not looked for.
    is_path: bool,
}

/// Null-terminated arrays for the child.
#[derive(Clone, Copy)]
pub(super) struct Pointers {
    pub(super) arguments: *const *const c_char,
    pub(super) environment: *const *const c_char,
    pub(super) candidates: *const *const c_char,
    pub(super) script: *mut *const c_char,
    pub(super) complaint: *const c_char,
    pub(super) is_path: bool,
}

impl Program {
    pub(crate) fn new(
        argv: &[impl AsRef<[u8]>],
        environment: &BTreeMap<String, String>,
        default_path: &str,
    ) -> Result<Self, InvalidProgram> {
        let name = argv.first().map(AsRef::as_ref).filter(|name| !name.is_empty());
        let name = name.ok_or(InvalidProgram::Empty)?;
        let mut strings = Vec::new();
        let mut arguments = Vec::new();
        for argument in argv {
            arguments.push(keep(&mut strings, c_string(argument.as_ref(), "an argument")?));
        }
        let mut variables = Vec::new();
        for (name, value) in environment {
            if name.is_empty() || name.contains('=') {
                return Err(InvalidProgram::VariableName(name.chars().take(80).collect()));
            }
            let variable = c_string(format!("{name}={value}"), "an environment variable")?;
            variables.push(keep(&mut strings, variable));
        }
        let path = environment.get("PATH").map_or(default_path, String::as_str);
        let mut candidates = Vec::new();
        for candidate in candidate_paths(name, path) {
            candidates.push(keep(&mut strings, c_string(candidate, "PATH")?));
        }
        let shell = keep(&mut strings, c"/bin/sh".to_owned());
        let mut script = vec![shell, shell];
        script.extend(arguments.iter().skip(1));
        for list in [&mut arguments, &mut variables, &mut candidates, &mut script] {
            list.push(ptr::null());
        }
        let shown: String = String::from_utf8_lossy(name).chars().take(200).collect();
        let complaint = c_string(format!("sandbank: cannot run {shown:?}: "), "an argument")?;
        let is_path = name.contains(&b'/');
        let environment = variables;
        let _strings = strings;
        Ok(Self { _strings, arguments, environment, candidates, script, complaint, is_path })
    }

    pub(super) fn pointers(&mut self) -> Pointers {
        Pointers {
            arguments: self.arguments.as_ptr(),
            environment: self.environment.as_ptr(),
            candidates: self.candidates.as_ptr(),
            script: self.script.as_mut_ptr(),
            complaint: self.complaint.as_ptr(),
            is_path: self.is_path,
        }
    }
}

/// A CString's buffer stays where it is when the CString moves.
fn keep(strings: &mut Vec<CString>, string: CString) -> *const c_char {
    let pointer = string.as_ptr();
    strings.push(string);
    pointer
}

fn c_string(text: impl Into<Vec<u8>>, what: &'static str) -> Result<CString, InvalidProgram> {
    CString::new(text).map_err(|_| InvalidProgram::Nul(what))
}

/// A name with a slash is a path; any other is looked up, an empty entry meaning the cwd.
fn candidate_paths(name: &[u8], path: &str) -> Vec<Vec<u8>> {
    if name.contains(&b'/') {
        return vec![name.to_vec()];
    }
    let directories = path.split(':').map(|entry| if entry.is_empty() { "." } else { entry });
    directories.map(|directory| [directory.as_bytes(), b"/", name].concat()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(argv: &[&str], variable: (&str, &str)) -> Result<Program, InvalidProgram> {
        let argv: Vec<String> = argv.iter().map(|text| (*text).to_owned()).collect();
        let environment = [(variable.0.to_owned(), variable.1.to_owned())].into();
        Program::new(&argv, &environment, "/bin")
    }

    #[test]
    fn names_are_looked_up_and_paths_are_not() {
        let found = candidate_paths(b"ls", "/a::/b");
        assert_eq!(found, [b"/a/ls".as_slice(), b"./ls", b"/b/ls"]);
        assert_eq!(candidate_paths(b"./ls", "/a"), [b"./ls"]);
    }

    #[test]
    fn what_the_kernel_cannot_take_is_refused() {
        let refused = |argv, variable| program(argv, variable).err();
        assert_eq!(refused(&[], ("A", "b")), Some(InvalidProgram::Empty));
        assert_eq!(refused(&[""], ("A", "b")), Some(InvalidProgram::Empty));
        assert_eq!(refused(&["a\0"], ("A", "b")), Some(InvalidProgram::Nul("an argument")));
        assert!(matches!(refused(&["a"], ("A=", "b")), Some(InvalidProgram::VariableName(_))));
        assert!(matches!(refused(&["a"], ("A", "\0")), Some(InvalidProgram::Nul(_))));
        assert_eq!(refused(&["a"], ("A", "b")), None);
    }
}
