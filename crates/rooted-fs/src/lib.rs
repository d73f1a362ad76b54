//! File operations below one directory descriptor.
