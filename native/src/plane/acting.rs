//! Requests on handles that are under way: what became of each handle, until all is known.

use std::collections::HashMap;
use std::time::Instant;

use super::ask::{Asker, Handles};
use super::clients::{Clients, Done, Fault, News};
use super::counts::{Counts, InHand, Key};
use super::routes::Route;
use super::unit::Row;
use super::whys::Why;

/// By their numbers.
#[derive(Default)]
pub struct Acting {
    requests: HashMap<u64, Request>,
    /// Requests that wait for the journal, once for each of their handles, by the number that it has of them.
    journaling: HashMap<u64, Vec<u64>>,
}

struct Request {
    connection: u64,
    lane: u64,
    verb: u8,
    queue: u64,
    tag: u16,
    began: Instant,
    left: usize,
    /// None = nothing was done.
    done: Vec<Option<Done>>,
    tells_each: bool,
    /// Why nobody knows what became of some handles; why nobody knows whether the journal will have some.
    unknown: Option<String>,
    unjournaled: Option<String>,
}

impl Acting {
    pub fn begin(&mut self, number: u64, by: Asker, route: &Route, handles: &Handles) {
        let request = Request {
            connection: by.connection,
            lane: by.lane,
            verb: by.verb,
            queue: route.queue,
            tag: route.tag,
            began: by.began,
            left: handles.held.len(),
            done: vec![None; handles.held.len()],
            tells_each: handles.tells_each,
            unknown: None,
            unjournaled: None,
        };
        self.requests.insert(number, request);
    }

    /// What became of a handle; None = nothing was done, unless `unknown` says why nobody knows. Returns whether the
    /// reply to its request says of each handle what became of it.
    pub fn note(&mut self, row: &Row, done: Option<Done>, unknown: Option<&String>) -> bool {
        let Some(request) = self.requests.get_mut(&row.request) else { return false };
        request.done[row.place] = done;
        if done.is_none() {
            request.unknown = request.unknown.take().or_else(|| unknown.cloned());
        }
        request.tells_each
    }

    /// The handles of these rows wait for the journal.
    pub fn wait(&mut self, number: u64, rows: &[Row]) {
        self.journaling.insert(number, rows.iter().map(|row| row.request).collect());
    }

    /// The journal has what was waited for, or `why` says why nobody knows; the requests, once for each handle.
    pub fn journaled(&mut self, number: u64, why: &str) -> Vec<u64> {
        let waiting = self.journaling.remove(&number).unwrap_or_default();
        for number in waiting.iter().filter(|_| !why.is_empty()) {
            if let Some(request) = self.requests.get_mut(number) {
                request.unjournaled = Some(why.into());
            }
        }
        waiting
    }

    /// One handle is done with of each of these requests; those of which all are end.
    pub fn count_done(
        &mut self,
        requests: impl IntoIterator<Item = u64>,
        counts: &mut Counts,
        clients: &mut dyn Clients,
        now: Instant,
    ) {
        for number in requests {
            let Some(request) = self.requests.get_mut(&number) else { continue };
            request.left -= 1;
            if request.left == 0 {
                if let Some(request) = self.requests.remove(&number) {
                    request.end(counts, clients, now);
                }
            }
        }
    }
}

impl Request {
    fn end(self, counts: &mut Counts, clients: &mut dyn Clients, now: Instant) {
        let known: Vec<Done> = self.done.iter().copied().flatten().collect();
        let ok = known.iter().filter(|done| done.is_ok()).count();
        let Self { connection, lane, verb, queue, began, .. } = self;
        let in_hand = InHand { connection, lane, queue, verb, began };
        let took = now.saturating_duration_since(began);
        if let Some(text) = self.unjournaled {
            return clients.tell(News::Failed { connection, lane, verb, fault: Fault::MayBeStored, took, text });
        }
        let is_whole = self.unknown.is_none() && known.len() == self.done.len();
        if is_whole && (self.tells_each || ok == self.done.len()) {
            let key = Key { queue, tag: i64::from(self.tag), verb, more: false, is_gone: false };
            counts.note(key, lane, ok, took);
            clients.acted(connection, &known);
        } else if is_whole {
            // Python says of each why; it does again what was done, which is the same.
            counts.pass(clients, &in_hand, Why::Handle);
        } else if self.unknown.is_none() && known.is_empty() {
            counts.pass(clients, &in_hand, Why::Redis);
        } else {
            let text =
                self.unknown.unwrap_or_else(|| "it was done with some of the handles, and not with others".into());
            clients.tell(News::Failed { connection, lane, verb, fault: Fault::State, took, text });
        }
    }
}
