//! What is said on a new connection before it may be used: which versions the broker has, and who we
//! are.

use std::sync::Arc;
use std::time::Duration;

use super::bytes::Reader;
use super::lost::{Cause, Lost};
use super::scram::Scram;
use super::settings::{Login, Mechanism, Settings};
use super::wire::{self, Api};
use crate::base64::encode;

/// Writes a request, with its correlation id and the client's id.
pub type Put = Box<dyn FnOnce(&mut Vec<u8>, i32, &str)>;

/// What comes next: a request, or the connection may be used, for that long if its login ends.
pub enum Next {
    Say(Put),
    Ready(Option<Duration>),
}

enum Step {
    Versions,
    Mechanism,
    /// The password is said, or proven by the next word.
    First(Option<Scram>),
    Proof(Scram),
}

pub struct Exchange {
    settings: Arc<Settings>,
    step: Step,
}

fn refused(text: &str) -> Lost {
    Lost::new(Cause::Authentication, text)
}

impl Exchange {
    pub fn new(settings: Arc<Settings>) -> Self {
        Self { settings, step: Step::Versions }
    }

    /// Reads the answer to what was said last.
    pub fn hear(&mut self, answer: &mut Reader) -> Result<Next, Lost> {
        match std::mem::replace(&mut self.step, Step::Versions) {
            Step::Versions => self.versions(answer),
            Step::Mechanism => self.mechanism(answer),
            Step::First(scram) => self.first(scram, answer),
            Step::Proof(scram) => {
                let said = authenticated(answer)?;
                match scram.is_proven(said.token) {
                    true => Ok(Next::Ready(lifetime(said.lifetime_ms))),
                    false => Err(refused("the broker does not know the password itself")),
                }
            }
        }
    }

    fn versions(&mut self, answer: &mut Reader) -> Result<Next, Lost> {
        let login = self.settings.login.as_ref();
        let mut needed: Vec<&Api> = vec![&wire::PRODUCE, &wire::METADATA];
        if login.is_some() {
            needed.extend([&wire::HANDSHAKE, &wire::AUTHENTICATE]);
        }
        match wire::missing(answer, &needed)? {
            Err(error) => {
                return Err(Lost::new(
                    Cause::Unsupported,
                    &format!("the broker answers ApiVersions with error {error}"),
                ));
            }
            Ok(Some(api)) => {
                return Err(Lost::new(
                    Cause::Unsupported,
                    &format!("the broker does not have {} as Kafka 3 and 4 do", api.name),
                ));
            }
            Ok(None) => {}
        }
        let Some(login) = login else { return Ok(Next::Ready(None)) };
        self.step = Step::Mechanism;
        let mechanism = login.mechanism.name();
        Ok(Next::Say(Box::new(move |output, correlation, id| wire::put_handshake(output, correlation, id, mechanism))))
    }

    fn mechanism(&mut self, answer: &mut Reader) -> Result<Next, Lost> {
        let Some(login) = self.settings.login.as_ref() else { return Ok(Next::Ready(None)) };
        let (error, mechanisms) = wire::handshake(answer)?;
        if error != 0 {
            return Err(refused(&format!("the broker refuses {} and has {mechanisms}", login.mechanism.name())));
        }
        let (scram, token) = begin(login)?;
        self.step = Step::First(scram);
        Ok(say(token))
    }

    fn first(&mut self, scram: Option<Scram>, answer: &mut Reader) -> Result<Next, Lost> {
        let said = authenticated(answer)?;
        let Some(mut scram) = scram else { return Ok(Next::Ready(lifetime(said.lifetime_ms))) };
        let proof = scram.prove(said.token).map_err(refused)?;
        self.step = Step::Proof(scram);
        Ok(say(proof.into_bytes()))
    }
}

fn begin(login: &Login) -> Result<(Option<Scram>, Vec<u8>), Lost> {
    match login.mechanism {
        Mechanism::Plain => Ok((None, format!("\0{}\0{}", login.user, login.password).into_bytes())),
        Mechanism::Scram(hash) => {
            let mut random = [0; 24];
            let filled = rustls::crypto::ring::default_provider().secure_random.fill(&mut random);
            filled.map_err(|_| refused("this machine gives no random bytes"))?;
            let scram = Scram::new(hash, &login.user, &login.password, encode(&random));
            let first = scram.first().into_bytes();
            Ok((Some(scram), first))
        }
    }
}

fn say(token: Vec<u8>) -> Next {
    Next::Say(Box::new(move |output, correlation, id| wire::put_authenticate(output, correlation, id, &token)))
}

fn authenticated<'a>(answer: &mut Reader<'a>) -> Result<wire::Authenticated<'a>, Lost> {
    let said = wire::authenticated(answer)?;
    match said.error {
        0 => Ok(said),
        _ => Err(refused(&format!("SASL authentication error: {}", said.text))),
    }
}

fn lifetime(ms: i64) -> Option<Duration> {
    u64::try_from(ms).ok().filter(|ms| *ms > 0).map(Duration::from_millis)
}
