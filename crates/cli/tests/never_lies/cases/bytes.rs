//! Odd bytes: exact in base64, valid text otherwise, characters whole.

use crate::heard::Heard;
use crate::place::Place;

/// Every byte, every pair around a border of ASCII, broken sequences, colours, lines without LF.
fn odd() -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..=255).collect();
    bytes.extend((0..=255).rev());
    bytes.extend(b"\0\0\r\rno line feed\r\x1b[31mred\x1b[0m\x1b]0;title\x07\x7f\x08");
    bytes.extend(b"\xc3(\xe2\x82\xf0\x9f\x98\xed\xa0\x80\xf8\x88\x80\x80\x80\xfe\xff\xc0\xaf");
    bytes.extend("\u{2028}\u{2029}\u{feff}\u{fffd}é€😀\"\\/".as_bytes());
    bytes.push(0xe2);
    bytes
}

pub(super) async fn any_byte(place: Place) -> anyhow::Result<()> {
    let odd = odd();
    place.write("odd", &odd).await?;
    let command = place.start(crate::place::shell("cat odd; cat odd >&2; exit 12")).await?;
    let exact = place.hear(&command).await?;
    assert_eq!((&exact.stdout, &exact.stderr, exact.exit_code), (&odd, &odd, Some(12)));
    // As text it is the same with what is no text replaced: valid JSON, nothing lost beside it.
    let text = Heard::default().all(place.stream(&command, "").await?).await?;
    let valid = String::from_utf8_lossy(&odd);
    assert_eq!(text.text(), valid);
    assert_eq!((text.errors().as_str(), text.exit_code), (&*valid, Some(12)));
    Ok(())
}

pub(super) async fn cut_characters(place: Place) -> anyhow::Result<()> {
    // One byte at a time with time to read each, on both streams with different borders.
    let script = r#"
        say() { for b in "$@"; do printf "\\x$b"; sleep 0.004; done; }
        word=(61 c3 b1 e2 82 ac f0 9f 98 80 e1 bd a0 f4 8f bf bf 0a)
        say "${word[@]}" & { sleep 0.002; say "${word[@]}"; } >&2 & wait
        for i in 1 2 3 4; do
            printf '\xf0\x9f'; sleep 0.01; printf '\x98\x80\xe2'; sleep 0.01; printf '\x82'
            sleep 0.01; printf '\xac'
        done; echo"#;
    let command = place.start(crate::place::shell(script)).await?;
    let text = Heard::default().all(place.stream(&command, "").await?).await?;
    let word = "añ€😀ὠ\u{10ffff}\n";
    assert_eq!(text.text(), format!("{word}{}\n", "😀€".repeat(4)));
    assert_eq!((text.errors().as_str(), text.exit_code), (word, Some(0)));
    // Borders of large reads: characters of 2, 3 and 4 bytes behind 0 to 3 bytes of another.
    for shift in ["", "x", "xx", "xxx"] {
        let script = format!("printf '{shift}'; yes 'é€😀' | head -n 60000 | tr -d '\\n'");
        let command = place.start(crate::place::shell(&script)).await?;
        let text = Heard::default().all(place.stream(&command, "").await?).await?;
        assert_eq!(text.dropped_bytes, 0);
        assert!(text.text() == format!("{shift}{}", "é€😀".repeat(60_000)), "behind {shift:?}");
    }
    Ok(())
}
