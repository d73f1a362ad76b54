//! Landlock: everything can be read and executed, only the named trees can be written.

use std::path::Path;

use ::landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus,
};

use super::ConfineError;

/// The newest rights we know of; older kernels enforce those of them that they know.
const NEWEST: ABI = ABI::V5;

/// Restricts this thread and everything it will start. At least the first version of landlock
/// must be in force.
pub(super) fn restrict(writable: &[String]) -> Result<(), ConfineError> {
    let failed = |error: ::landlock::RulesetError| ConfineError::Landlock(error.to_string());
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))
        .map_err(failed)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))
        .map_err(failed)?
        .create()
        .map_err(failed)?;
    let root = open(Path::new("/"))?;
    rules = rules.add_rule(PathBeneath::new(root, AccessFs::from_read(NEWEST))).map_err(failed)?;
    // A tree that does not exist cannot be written either.
    for tree in writable.iter().map(Path::new).filter(|tree| tree.exists()) {
        let access =
            if tree.is_dir() { AccessFs::from_all(NEWEST) } else { AccessFs::from_file(NEWEST) };
        rules = rules.add_rule(PathBeneath::new(open(tree)?, access)).map_err(failed)?;
    }
    match rules.restrict_self().map_err(failed)?.ruleset {
        RulesetStatus::NotEnforced => {
            Err(ConfineError::Landlock("this kernel does not have it, or it is off".to_owned()))
        }
        _ => Ok(()),
    }
}

fn open(path: &Path) -> Result<PathFd, ConfineError> {
    PathFd::new(path).map_err(|error| ConfineError::Landlock(error.to_string()))
}
