//! A panic is told in one line, and ends the process: nobody would hear of a thread that has ended.

use std::panic::PanicHookInfo;
use std::sync::Once;

static HOOK: Once = Once::new();

/// Has each panic told in one line, from the first call on.
pub fn tell() {
    HOOK.call_once(|| std::panic::set_hook(Box::new(|panic| eprintln!("{}", line(panic)))));
}

fn line(panic: &PanicHookInfo) -> String {
    let thread = std::thread::current();
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let at = panic.location().map(ToString::to_string).unwrap_or_default();
    let text = text.unwrap_or("no text").replace(['\n', '\r'], " ");
    let name = thread.name().unwrap_or("unnamed");
    format!("action=panic part=native thread={name} at={at} error={text}: this worker ends")
}
