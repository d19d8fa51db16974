//! Where Redis is, and how to be let in.

use std::sync::Arc;

use rustls::ClientConfig;

use super::encryption;

/// What counts for a URL that names no host: redis-py's "localhost" may be ::1 first.
const HOST: &str = "127.0.0.1";
const PORT: u16 = 6379;

pub enum Place {
    Tcp { host: String, port: u16 },
    Unix(String),
}

pub struct Address {
    pub place: Place,
    pub tls: Option<Arc<ClientConfig>>,
    /// The user, if one is named, and the password.
    pub login: Option<(Option<Vec<u8>>, Vec<u8>)>,
    pub database: u32,
}

impl Address {
    /// The address in the options of a URL, by redis-py's names (`path`, `host`, `port`, `username`,
    /// `password`, `db`, `ssl_...`); `tls` says that it is one of rediss://, and `system_certs` names a
    /// file of authorities that count when the URL names none. Other options are left out.
    ///
    /// Fails with what this connection can't do, for people: then only Python's can be used.
    pub fn read(options: &[(&[u8], &[u8])]) -> Result<Self, String> {
        let options = Options(options);
        let place = match options.text("path")? {
            Some(path) => Place::Unix(path.into()),
            None => Place::Tcp {
                host: options.text("host")?.unwrap_or(HOST).into(),
                port: options.number("port")?.unwrap_or(PORT),
            },
        };
        // A user without a password is not named, as in redis-py.
        let user = options.find("username").filter(|user| !user.is_empty());
        let password = options.find("password").filter(|password| !password.is_empty());
        let login = password.map(|password| (user.map(<[u8]>::to_vec), password.to_vec()));
        let tls = if options.is_set("tls", false)? { Some(encryption::read(&options)?) } else { None };
        Ok(Self { place, tls, login, database: options.number("db")?.unwrap_or(0) })
    }
}

/// Options by name.
pub struct Options<'a>(pub &'a [(&'a [u8], &'a [u8])]);

impl<'a> Options<'a> {
    pub fn find(&self, name: &str) -> Option<&'a [u8]> {
        self.0.iter().find(|(other, _)| *other == name.as_bytes()).map(|(_, value)| *value)
    }

    pub fn text(&self, name: &str) -> Result<Option<&'a str>, String> {
        let found = self.find(name).map(std::str::from_utf8).transpose();
        found.map_err(|_| format!("{name} is no text"))
    }

    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, String> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| format!("{name} is no number that is possible: {text}"))
    }

    /// Whether it is on, by the words of redis-py.
    pub fn is_set(&self, name: &str, default: bool) -> Result<bool, String> {
        let text = self.text(name)?.map(str::to_ascii_uppercase);
        Ok(text.map_or(default, |text| !["", "0", "F", "FALSE", "N", "NO"].contains(&text.as_str())))
    }
}
