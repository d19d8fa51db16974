//! What we ask of the system that Rust's library does not.

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};

/// What tells that the other end has closed its side, which not every system does.
#[cfg(target_os = "linux")]
const LEFT: libc::c_short = libc::POLLRDHUP;
#[cfg(not(target_os = "linux"))]
const LEFT: libc::c_short = 0;

#[cfg(target_os = "linux")]
const BOOT_CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
#[cfg(not(target_os = "linux"))]
const BOOT_CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;

/// Seconds of the clock that nobody sets and that counts a machine's sleep, where the system tells it,
/// as state/clock/boot.py. Where it can't be read all times are over.
pub fn boot_s() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes one value, which is ours.
    match unsafe { libc::clock_gettime(BOOT_CLOCK, &raw mut time) } {
        0 => time.tv_sec as f64 + time.tv_nsec as f64 / 1e9,
        _ => f64::INFINITY,
    }
}

/// Whether the other end of a socket has closed its side, or the connection is broken.
pub fn has_ended(socket: RawFd) -> bool {
    let mut asked = libc::pollfd { fd: socket, events: LEFT, revents: 0 };
    // SAFETY: it is one entry, which is ours, and the call does not wait.
    unsafe { libc::poll(&mut asked, 1, 0) > 0 }
}

/// A descriptor that is readable from a ring on, until it is hushed.
pub struct Bell(File);

impl Bell {
    pub fn new() -> std::io::Result<Self> {
        // SAFETY: it only makes a descriptor.
        match unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) } {
            ..0 => Err(std::io::Error::last_os_error()),
            // SAFETY: nobody else has it.
            descriptor => Ok(Self(unsafe { File::from_raw_fd(descriptor) })),
        }
    }

    pub fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    pub fn ring(&self) {
        // One that rings already goes on.
        let _ = (&self.0).write(&1u64.to_ne_bytes());
    }

    pub fn hush(&self) {
        // One that did not ring is silent.
        let _ = (&self.0).read(&mut [0; 8]);
    }
}
