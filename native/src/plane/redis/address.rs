//! Where Redis is, and how to be let in.

/// What counts for a URL that names no host: redis-py's "localhost" may be ::1 first.
const HOST: &str = "127.0.0.1";
const PORT: u16 = 6379;

pub enum Place {
    Tcp { host: String, port: u16 },
    Unix(String),
}

pub struct Address {
    pub place: Place,
    /// The user, if one is named, and the password.
    pub login: Option<(Option<Vec<u8>>, Vec<u8>)>,
    pub database: u32,
}

impl Address {
    /// The address in the options of a URL, by redis-py's names (`path`, `host`, `port`, `username`,
    /// `password`, `db`). Options that say nothing about where and how to connect are left out.
    ///
    /// Fails with what this connection can't do, for people: then only Python's can be used.
    pub fn read<'a>(options: &[(&'a [u8], &'a [u8])]) -> Result<Self, String> {
        let find = |name: &str| options.iter().find(|(other, _)| *other == name.as_bytes()).map(|(_, value)| *value);
        let text = |name: &str| match find(name).map(std::str::from_utf8) {
            Some(Err(_)) => Err(format!("{name} is no text")),
            Some(Ok(text)) => Ok(Some(text)),
            None => Ok(None),
        };
        let number = |name: &str, value: &str| value.parse().map_err(|_| format!("{name} is no number: {value}"));
        let place = match text("path")? {
            Some(path) => Place::Unix(path.into()),
            None => Place::Tcp {
                host: text("host")?.unwrap_or(HOST).into(),
                port: text("port")?
                    .map_or(Ok(PORT as u32), |port| number("port", port))?
                    .try_into()
                    .map_err(|_| "port is too large")?,
            },
        };
        // A user without a password is not named, as in redis-py.
        let user = find("username").filter(|user| !user.is_empty());
        let password = find("password").filter(|password| !password.is_empty());
        let login = password.map(|password| (user.map(<[u8]>::to_vec), password.to_vec()));
        Ok(Self { place, login, database: text("db")?.map_or(Ok(0), |database| number("db", database))? })
    }
}
