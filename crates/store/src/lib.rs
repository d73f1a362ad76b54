//! What the daemon must not forget, in one SQLite file.
//!
//! One module per table, migrations embedded, errors that say what to do. The store keeps rows
//! and decides nothing: which change follows from which event is the orchestrator's business.
//! Writes go through one connection, so writers queue here instead of colliding in SQLite.

mod approvals;
mod chat_settings;
mod claim;
mod column;
mod error;
mod events;
mod instance;
mod limits;
mod migrations;
mod open;
mod ports;
mod post_mortems;
mod sandbox_records;
mod sandboxes;
mod tokens;
mod tool_approvals;

pub use approvals::{ApprovalRow, Approvals, DEADLINE, Decided, Decision, Question};
pub use chat_settings::{ChatSettings, ChatSettingsRow};
pub use error::StoreError;
pub use events::{Event, Events};
pub use migrations::SCHEMA_VERSION;
pub use open::Store;
pub use ports::{PortRow, Ports};
pub use post_mortems::{PostMortemRow, PostMortems};
pub use sandbox_records::{RecordStatus, SandboxRecord, SandboxRecords};
pub use sandboxes::{LeaseRow, RowState, SandboxRow, Sandboxes, Stamp};
pub use tokens::{TokenRow, TokenScope, Tokens};
pub use tool_approvals::{ApprovalOutcome, ToolApprovalRow, ToolApprovals};
