//! The native front of a worker: sockets, HTTP and JSON of hot requests, in batches for Python.
//!
//! The functions of this module are the C interface; see docs/decisions/0033. All are called by one
//! thread, with a pointer that `front_new` has returned and `front_free` has not got. What they
//! return a pointer to is good until the next call that returns one.

#![deny(unsafe_code)]

mod answers;
mod auth;
mod base64;
mod batch;
mod c;
#[cfg(test)]
mod chance;
mod dialects;
mod http;
mod json;
#[cfg(test)]
mod json_tests;
mod net;
mod pack;
mod panics;
mod plane;
mod quote;
mod replies;
mod requests;
mod system;
mod text;
