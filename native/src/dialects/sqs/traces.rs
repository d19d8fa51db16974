//! The trace header of X-Ray, of a message that has its context as W3C writes it;
//! `schemas/records/trace_context.py` reads the same.

use crate::plane::format::record::Attribute;
use crate::plane::unit::Kept;

const NAME: &str = "traceparent";
/// Version, trace, span, flags.
const LENGTHS: [usize; 4] = [2, 32, 16, 2];
const MOST_BYTES: usize = 512;

/// The header of a message; None = it has no context.
pub fn header_of(message: &Kept) -> Option<String> {
    let mut found = None;
    message.attributes(|Attribute { name, kind, value }| {
        let is_text = kind.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("string"));
        if name == NAME && is_text {
            found = std::str::from_utf8(value).ok().and_then(header);
        }
    });
    found
}

fn header(traceparent: &str) -> Option<String> {
    let mut parts = traceparent.splitn(LENGTHS.len() + 1, '-');
    let mut part = |length: usize| parts.next().filter(|part| part.len() == length && part.bytes().all(is_digit));
    let [version, trace, span, flags] = LENGTHS.map(&mut part);
    let (version, trace, span) = (version?, trace?, span?);
    let flags = u8::from_str_radix(flags?, 16).ok()?;
    let is_known = version != "ff" && (version != "00" || parts.next().is_none());
    let is_none = |id: &str| id.bytes().all(|digit| digit == b'0');
    if !is_known || is_none(trace) || is_none(span) || traceparent.len() > MOST_BYTES || traceparent.contains('\n') {
        return None;
    }
    let (time, rest) = trace.split_at(8);
    Some(format!("Root=1-{time}-{rest};Parent={span};Sampled={}", flags & 1))
}

fn is_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        let known =
            |sampled: u8| Some(format!("Root=1-0af76519-16cd43dd8448eb211c80319c;Parent={span};Sampled={sampled}"));
        for (given, expected) in [
            (format!("00-{trace}-{span}-01"), known(1)),
            (format!("00-{trace}-{span}-00"), known(0)),
            (format!("00-{trace}-{span}-fe"), known(0)),
            (format!("01-{trace}-{span}-01"), known(1)),
            (format!("01-{trace}-{span}-01-more-and-more"), known(1)),
            (format!("00-{trace}-{span}-01-more"), None),
            (format!("ff-{trace}-{span}-01"), None),
            (format!("00-{}-{span}-01", trace.to_uppercase()), None),
            (format!("00-{}-{span}-01", "0".repeat(32)), None),
            (format!("00-{trace}-{}-01", "0".repeat(16)), None),
            (format!("00-{trace}-{span}-1"), None),
            (format!("00-{trace}-{span}"), None),
            (format!("00{trace}{span}01"), None),
            (format!("01-{trace}-{span}-01-{}", "x".repeat(512)), None),
            (String::new(), None),
        ] {
            assert_eq!(header(&given), expected, "{given}");
        }
    }
}
