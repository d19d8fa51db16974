//! The commands of one connection: their bytes until their replies, in the order in which they leave.
//!
//! The bytes are kept so that a call whose script Redis has forgotten is made once more, and so that it
//! is known of each call whether Redis can have it whole.

use std::collections::VecDeque;
use std::ops::Range;

use super::resp::{put_array, put_number, put_word};

/// What is done with bytes that were answered: they go when there are so many, and more than the others.
const COMPACT: usize = 64 * 1024;
/// Room that is kept when there is nothing under way.
const KEPT: usize = 4 * 1024 * 1024;

pub struct Script {
    pub sha: Vec<u8>,
    pub source: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Command {
    /// What is said when a connection is new.
    Greeting,
    /// SCRIPT LOAD.
    Load(usize),
    Call {
        token: u64,
        script: usize,
        /// How often Redis did not know its script.
        unknown: usize,
    },
    /// A call that was answered without its reply.
    Forgotten,
}

/// A call that ends without a reply, and whether Redis can have it.
pub struct Ended {
    pub token: u64,
    pub sent: bool,
}

struct Pending {
    command: Command,
    bytes: usize,
}

/// A call of which words are missing.
struct Filling {
    token: u64,
    script: usize,
    from: usize,
    missing: usize,
}

/// The commands of a script.
pub struct Prepared {
    load: Vec<u8>,
    call: Vec<u8>,
}

impl Prepared {
    pub fn new(script: &Script) -> Self {
        let (mut load, mut call) = (Vec::new(), Vec::new());
        put_array(&mut load, 3);
        [b"SCRIPT", b"LOAD".as_slice(), &script.source].iter().for_each(|word| put_word(&mut load, word));
        [b"EVALSHA", script.sha.as_slice()].iter().for_each(|word| put_word(&mut call, word));
        Self { load, call }
    }
}

#[derive(Default)]
pub struct Calls {
    bytes: Vec<u8>,
    /// Where the bytes of the oldest command begin, and where those that were not written.
    oldest: usize,
    sent: usize,
    pending: VecDeque<Pending>,
    filling: Option<Filling>,
    /// How many SCRIPT LOADs of a script are under way.
    loading: Vec<usize>,
}

impl Calls {
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// How many bytes are kept.
    pub fn under_way(&self) -> usize {
        self.bytes.len() - self.oldest
    }

    pub fn greet(&mut self, words: &[&[u8]]) {
        let from = self.bytes.len();
        put_array(&mut self.bytes, words.len());
        words.iter().for_each(|word| put_word(&mut self.bytes, word));
        self.push(Command::Greeting, from);
    }

    pub fn load(&mut self, script: usize, prepared: &Prepared) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(&prepared.load);
        self.push(Command::Load(script), from);
        if self.loading.len() <= script {
            self.loading.resize(script + 1, 0);
        }
        self.loading[script] += 1;
    }

    /// Begins a call: `ready` are `words` further words as RESP, and `more` words follow by `word` and
    /// `number`. None may be unfinished.
    pub fn begin(&mut self, token: u64, script: usize, prepared: &Prepared, words: usize, ready: &[u8], more: usize) {
        let from = self.bytes.len();
        put_array(&mut self.bytes, 2 + words + more);
        self.bytes.extend_from_slice(&prepared.call);
        self.bytes.extend_from_slice(ready);
        self.filling = Some(Filling { token, script, from, missing: more + 1 });
        self.filled();
    }

    pub fn word(&mut self, word: &[u8]) {
        if self.filling.is_some() {
            put_word(&mut self.bytes, word);
            self.filled();
        }
    }

    pub fn number(&mut self, value: i64) {
        if self.filling.is_some() {
            put_number(&mut self.bytes, value);
            self.filled();
        }
    }

    fn filled(&mut self) {
        let Some(call) = &mut self.filling else { return };
        call.missing -= 1;
        if call.missing == 0 {
            let (token, script, from) = (call.token, call.script, call.from);
            self.filling = None;
            self.push(Command::Call { token, script, unknown: 0 }, from);
        }
    }

    /// Takes back a call that did not get all of its words.
    pub fn take_unfinished(&mut self) -> Option<u64> {
        let call = self.filling.take()?;
        self.bytes.truncate(call.from);
        Some(call.token)
    }

    fn push(&mut self, command: Command, from: usize) {
        self.pending.push_back(Pending { command, bytes: self.bytes.len() - from });
    }

    /// What is to be written.
    pub fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    pub fn note_sent(&mut self, bytes: usize) {
        self.sent = (self.sent + bytes).min(self.bytes.len());
    }

    /// The command whose reply is the next one; None = no reply can come, for none was sent.
    pub fn next_answered(&self) -> Option<Command> {
        let next = self.pending.front()?;
        (self.oldest + next.bytes <= self.sent).then_some(next.command)
    }

    /// Forgets the command whose reply has come.
    pub fn answered(&mut self) {
        self.pop();
        self.compact();
    }

    /// Makes the call whose reply has come once more, after its script was loaded.
    pub fn again(&mut self, scripts: &[Prepared]) {
        let Some((Command::Call { token, script, unknown }, range)) = self.pop() else { return };
        if self.loading.get(script).is_none_or(|loads| *loads == 0) {
            self.load(script, &scripts[script]);
        }
        let from = self.bytes.len();
        self.bytes.extend_from_within(range);
        self.push(Command::Call { token, script, unknown: unknown + 1 }, from);
        self.compact();
    }

    fn pop(&mut self) -> Option<(Command, Range<usize>)> {
        let Pending { command, bytes } = self.pending.pop_front()?;
        let range = self.oldest..self.oldest + bytes;
        self.oldest = range.end;
        self.note_gone(command);
        Some((command, range))
    }

    fn note_gone(&mut self, command: Command) {
        if let Command::Load(script) = command {
            self.loading[script] -= 1;
        }
    }

    fn compact(&mut self) {
        if self.oldest == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT);
        } else if self.oldest < COMPACT || self.oldest < self.bytes.len() - self.oldest {
            return;
        } else {
            self.bytes.drain(..self.oldest);
        }
        self.sent -= self.oldest;
        self.oldest = 0;
    }

    /// Takes back every command of which nothing was written; the calls among them are added to
    /// `ended`. Returns whether a command stays of which a part was written.
    pub fn drop_unsent(&mut self, ended: &mut Vec<Ended>) -> bool {
        ended.extend(self.take_unfinished().map(|token| Ended { token, sent: false }));
        let first = ended.len();
        while let Some(last) = self.pending.back() {
            let from = self.bytes.len() - last.bytes;
            if from < self.sent {
                break;
            }
            let command = last.command;
            self.bytes.truncate(from);
            self.pending.pop_back();
            self.note_gone(command);
            if let Command::Call { token, .. } = command {
                ended.push(Ended { token, sent: false });
            }
        }
        ended[first..].reverse();
        self.sent < self.bytes.len()
    }

    /// Ends all calls. Replies of what was sent come still.
    pub fn forget(&mut self, ended: &mut Vec<Ended>) {
        let mut end = self.oldest;
        for pending in &mut self.pending {
            end += pending.bytes;
            if let Command::Call { token, .. } = pending.command {
                pending.command = Command::Forgotten;
                ended.push(Ended { token, sent: end <= self.sent });
            }
        }
        ended.extend(self.take_unfinished().map(|token| Ended { token, sent: false }));
    }
}
