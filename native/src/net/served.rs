//! What the plane has served: answers to clients, and news for Python.

use std::time::Instant;

use crate::dialects::Repeats;
use crate::net::front::Front;
use crate::net::news;
use crate::plane::clients::{Clients, Delivery, Done, News, Word};
use crate::plane::whys::Why;

impl Front {
    /// Answers what the plane has served by what `write` writes; nothing if nobody asks it any more.
    fn answer_of(&mut self, connection: u64, write: impl FnOnce(&Repeats, &mut Vec<u8>)) {
        let mut json = std::mem::take(&mut self.planes.json);
        json.clear();
        if let Some((asked, repeats)) =
            self.asked(connection).and_then(|asked| Some((asked, asked.repeats.as_deref()?)))
        {
            write(repeats, &mut json);
            let (head, now) = (repeats.head(), Instant::now());
            let line = (asked.lane, repeats.verb as u64, asked.began.unwrap_or(now));
            self.reply(connection, head, &json, now);
            if self.planes.has_line() {
                self.tell_served(connection, line, now);
            }
        }
        self.planes.json = json;
    }

    /// Tells Python of an answer that has a line in its access log.
    fn tell_served(&mut self, connection: u64, (lane, verb, began): (u64, u64, Instant), now: Instant) {
        let took_us = now.saturating_duration_since(began).as_micros() as u64;
        let number = self.heads.last();
        let slot = self.slots.of(connection).and_then(|slot| self.slots.get(slot));
        let peer = slot.map_or_else(String::new, |connection| connection.peer.to_string());
        self.batch.plane(|packer| news::write_served(packer, [lane, verb, took_us, number], &peer));
    }
}

impl Clients for Front {
    fn give(&mut self, connection: u64, messages: &[Delivery]) -> bool {
        if !messages.is_empty() && self.is_gone(connection) {
            return false;
        }
        self.answer_of(connection, |repeats, json| repeats.received(json, messages));
        true
    }

    fn sent(&mut self, connection: u64, ids: &[[u8; 36]], at_ms: u64) {
        self.answer_of(connection, |repeats, json| repeats.sent(json, ids, at_ms));
    }

    fn acted(&mut self, connection: u64, done: &[Done]) {
        let texts = self.planes.words.clone();
        let results: Vec<(&Word, u64)> =
            done.iter().filter_map(|done| Some((texts.get(usize::from(done.word))?, done.visible_ms))).collect();
        self.answer_of(connection, |repeats, json| repeats.acted(json, &results));
    }

    fn pass(&mut self, connection: u64, why: Why) -> bool {
        let is_passed = self.passed(connection, Instant::now());
        if is_passed {
            self.planes.whys.note(why);
        }
        is_passed
    }

    fn tell(&mut self, news: News) {
        let call = match &news {
            News::Failed { connection, .. } => {
                self.asked(*connection).and_then(|asked| asked.repeats.as_ref()?.call.clone())
            }
            _ => None,
        };
        self.batch.plane(|packer| news::write(packer, &news, call.as_ref()));
    }
}
