//! Sockets: who is connected, what has come, and what waits to be sent.

mod asks;
pub mod bounds;
pub mod client;
pub mod connection;
pub mod front;
#[cfg(test)]
mod front_tests;
mod idle;
pub mod planes;
#[cfg(test)]
mod random_tests;
mod room;
pub mod slots;
pub mod stream;
pub mod tls;
mod upkeep;
