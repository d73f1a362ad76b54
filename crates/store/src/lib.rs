//! SQLite: one module per table, embedded migrations.
