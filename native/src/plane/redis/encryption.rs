//! How TLS is spoken, by the options of redis-py.

use std::fs::read as read_file;
use std::sync::Arc;

use rustls::ClientConfig;

use super::address::Options;
use crate::net::tls::{config, Checks, Trust};

/// Python's numbers of TLS 1.2, which is the least that is spoken here, and 1.3; less than 0 = the least
/// that can be spoken.
const TLS_1_2: i32 = 0x303;
const TLS_1_3: i32 = 0x304;
const KNOWN: [&str; 8] = [
    "ssl_ca_certs",
    "ssl_ca_data",
    "ssl_certfile",
    "ssl_keyfile",
    "ssl_password",
    "ssl_cert_reqs",
    "ssl_check_hostname",
    "ssl_min_version",
];

/// The settings of TLS. Fails with what they ask for that can't be done, for people.
pub fn read(options: &Options) -> Result<Arc<ClientConfig>, String> {
    let is_unknown = |name: &&[u8]| name.starts_with(b"ssl_") && !KNOWN.iter().any(|known| known.as_bytes() == *name);
    if let Some(name) = options.0.iter().map(|(name, _)| *name).find(is_unknown) {
        return Err(format!("{} is not supported", String::from_utf8_lossy(name)));
    }
    let checks = match options.text("ssl_cert_reqs")?.unwrap_or("required") {
        "none" => Checks::Nothing,
        "required" | "optional" if options.is_set("ssl_check_hostname", true)? => Checks::All,
        "required" | "optional" => Checks::Authority,
        other => return Err(format!("ssl_cert_reqs={other} is not supported")),
    };
    let is_newest = match options.number("ssl_min_version")?.unwrap_or(TLS_1_2) {
        -2 | 0x300..=TLS_1_2 => false,
        TLS_1_3 => true,
        other => return Err(format!("ssl_min_version={other} is not supported")),
    };
    let certificates = file(options, "ssl_certfile")?;
    let key = match options.find("ssl_keyfile") {
        Some(_) => file(options, "ssl_keyfile")?,
        None => certificates.clone(),
    };
    config(&Trust { authorities: authorities(options)?, certificates, key, checks, is_newest })
}

/// Those that the URL names, or else the system's.
fn authorities(options: &Options) -> Result<Vec<u8>, String> {
    let mut found = file(options, "ssl_ca_certs")?;
    if let Some(data) = options.find("ssl_ca_data") {
        found.push(b'\n');
        found.extend_from_slice(data);
    }
    if found.is_empty() {
        return file(options, "system_certs");
    }
    Ok(found)
}

/// What a file has that an option names; nothing = it names none.
fn file(options: &Options, name: &str) -> Result<Vec<u8>, String> {
    let Some(path) = options.text(name)? else { return Ok(Vec::new()) };
    read_file(path).map_err(|error| format!("{name}: {path}: {error}"))
}
