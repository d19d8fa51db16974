//! The native front of a worker: sockets, HTTP and JSON of hot requests, in batches for Python.
//!
//! The functions of this module are the C interface; see docs/decisions/0033. All are called by one
//! thread, with a pointer that `front_new` has returned and `front_free` has not got. What they
//! return a pointer to is good until the next call that returns one.

#![deny(unsafe_code)]

mod answers;
mod batch;
mod c;
mod connection;
mod front;
#[cfg(test)]
mod front_tests;
mod head;
#[cfg(test)]
mod head_tests;
mod idle;
mod json;
mod keys;
mod pack;
mod replies;
mod requests;
mod sign;
mod slots;
mod text;
