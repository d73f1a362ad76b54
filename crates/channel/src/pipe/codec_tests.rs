//! Any bytes, cut anywhere.

use proptest::prelude::*;

use super::*;

/// What a reader sees: payload, joined as far as no mark is in between, and the marks.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Payload(Vec<u8>),
    Mark(Mark),
}

fn read(pieces: &[&[u8]]) -> Vec<Seen> {
    let mut decoder = Decoder::default();
    let mut seen = Vec::new();
    for piece in pieces {
        let mut piece = piece.to_vec();
        let mut rest = piece.as_mut_slice();
        while !rest.is_empty() {
            let step = decoder.decode(rest);
            assert!(step.taken > 0 && step.payload <= step.taken, "{step:?}");
            assert!(step.mark.is_some() || step.taken == rest.len(), "{step:?}");
            match seen.last_mut() {
                _ if step.payload == 0 => {}
                Some(Seen::Payload(bytes)) => bytes.extend_from_slice(&rest[..step.payload]),
                _ => seen.push(Seen::Payload(rest[..step.payload].to_vec())),
            }
            seen.extend(step.mark.map(Seen::Mark));
            rest = &mut rest[step.taken..];
        }
    }
    seen
}

fn stuffed(payload: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    assert_eq!(stuff(payload, &mut wire, payload.len() * 2), payload.len());
    wire
}

/// Bytes that mean something come often.
fn wire() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        3 => proptest::collection::vec(any::<u8>(), 0..8),
        3 => proptest::collection::vec(prop_oneof![Just(ESC), Just(0), Just(1), Just(b'a')], 0..8),
        2 => (any::<[u8; 16]>(), 0..=OPEN_BYTES).prop_map(|(nonce, length)| {
            Nonce::new(nonce).open()[..length].to_vec()
        }),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn how_the_wire_is_cut_does_not_matter(wire in wire(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(wire.len() + 1)).collect();
        ends.push(wire.len());
        ends.sort_unstable();
        let mut from = 0;
        let pieces: Vec<&[u8]> = ends.iter().map(|end| {
            let piece = &wire[from..*end];
            from = *end;
            piece
        }).collect();
        let single: Vec<&[u8]> = wire.chunks(1).collect();
        prop_assert_eq!(read(&pieces), read(&[&wire]));
        prop_assert_eq!(read(&single), read(&[&wire]));
    }

    #[test]
    fn after_any_garbage_an_open_begins_a_clean_stream(garbage in wire(), nonce: [u8; 16], payload in wire()) {
        let nonce = Nonce::new(nonce);
        let wire = [&garbage[..], &nonce.open(), &stuffed(&payload)].concat();
        let seen = read(&[&wire]);
        let mut expected = vec![Seen::Mark(Mark::Open(nonce))];
        expected.extend((!payload.is_empty()).then_some(Seen::Payload(payload)));
        prop_assert!(seen.ends_with(&expected), "{:?} does not end with {:?}", seen, expected);
    }

    #[test]
    fn nothing_is_payload_before_the_first_open(wire in wire()) {
        let seen = read(&[&wire]);
        prop_assert!(matches!(seen.first(), None | Some(Seen::Mark(Mark::Open(_)))), "{:?}", seen);
    }

    #[test]
    fn payload_never_looks_like_an_open(payload in wire()) {
        let opened = [&Nonce::new([7; 16]).open()[..], &stuffed(&payload)].concat();
        let marks = read(&[&opened]).into_iter().filter(|seen| matches!(seen, Seen::Mark(_)));
        prop_assert_eq!(marks.count(), 1);
    }

    #[test]
    fn stuffing_stays_within_its_room_and_goes_on_where_it_stopped(payload in wire(), room in 2usize..40) {
        let (mut wire, mut taken) = (Vec::new(), 0);
        while taken < payload.len() {
            let before = wire.len();
            let step = stuff(&payload[taken..], &mut wire, room);
            prop_assert!(step > 0 && wire.len() - before <= room);
            taken += step;
        }
        prop_assert_eq!(wire, stuffed(&payload));
    }
}

#[test]
fn what_is_cut_off_in_the_middle_is_lost_and_told_once() {
    let first = Nonce::new([1; 16]).open();
    let second = Nonce::new([2; 16]).open();
    for cut in [&first[..1], &first[..2], &first[..20], &[ESC, b'x', b'y'], &[ESC, OPEN, b'A']] {
        let wire = [&first[..], b"abc", cut, &second, b"def"].concat();
        let expected = [
            Seen::Mark(Mark::Open(Nonce::new([1; 16]))),
            Seen::Payload(b"abc".to_vec()),
            Seen::Mark(Mark::Lost),
            Seen::Mark(Mark::Open(Nonce::new([2; 16]))),
            Seen::Payload(b"def".to_vec()),
        ];
        assert_eq!(read(&[&wire]), expected, "{cut:x?}");
    }
}

#[test]
fn text_is_sent_as_it_is() {
    let text = "Grüße, 世界 🦀\u{0}\u{1}".as_bytes();
    assert_eq!(stuffed(text), text);
    assert_eq!(stuffed(&[ESC; 2]), [ESC, 0, ESC, 0]);
}
