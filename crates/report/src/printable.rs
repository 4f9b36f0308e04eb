//! Makes text from a heap safe to show. Such text is untrusted: any program may have written it.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// True for characters that are not safe to show: control characters (which can control a terminal or an editor),
/// characters that change the direction of text, characters that XML forbids, and characters that most fonts cannot
/// show.
fn is_unsafe_to_show(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fdd0}'..='\u{fdef}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
        || c as u32 & 0xfffe == 0xfffe
}

/// Replaces characters that are not safe to show by U+FFFD. Such characters can control a terminal, or change the
/// direction of the text around them.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_unsafe_to_show) {
        let shown = text.chars();
        shown
            .map(|c| if is_unsafe_to_show(c) { '\u{fffd}' } else { c })
            .collect()
    } else {
        text.into()
    }
}

/// Returns the number of columns that a character takes, at least one.
fn columns(c: char) -> usize {
    c.width().unwrap_or(1).max(1)
}

/// Removes the middle of a text that has more than `room` columns. Two thirds of the remaining columns show the end of
/// the text, because most names differ at their ends.
#[must_use]
pub fn shorten_middle(text: &str, room: usize) -> Cow<'_, str> {
    if text.chars().map(columns).sum::<usize>() <= room {
        return text.into();
    }
    let head = room.saturating_sub(1) / 3;
    let tail = room.saturating_sub(head + 1);
    let within = |room: usize, chars: &mut dyn Iterator<Item = char>| -> Vec<char> {
        let mut used = 0;
        chars
            .take_while(|&c| {
                used += columns(c);
                used <= room
            })
            .collect()
    };
    let front = within(head, &mut text.chars());
    let back = within(tail, &mut text.chars().rev());
    let shown = front.into_iter().chain(['…']);
    shown.chain(back.into_iter().rev()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(shorten_middle("com.acme.Foo", 12), "com.acme.Foo");
        assert_eq!(shorten_middle("com.acme.impl.Foo", 10), "com…pl.Foo");
        assert_eq!(shorten_middle("abc", 1), "…");
        // Each of these characters takes two columns.
        assert_eq!(shorten_middle("漢字漢字", 8), "漢字漢字");
        assert_eq!(shorten_middle("漢字漢字", 7), "漢…漢字");
    }

    #[test]
    fn terminals_are_not_steered() {
        assert_eq!(printable("a\x1b[2Jb"), "a\u{fffd}[2Jb");
        assert_eq!(printable("a\u{202e}b\u{ffff}"), "a\u{fffd}b\u{fffd}");
        assert!(matches!(printable("plain é 漢"), Cow::Borrowed(_)));
    }
}
