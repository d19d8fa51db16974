//! Whose request it is: signing keys, and what they have signed.

pub mod keys;
pub mod sign;
