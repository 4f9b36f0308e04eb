//! All at once, for a while: see [`stress`].

#[test]
fn nothing() {}
