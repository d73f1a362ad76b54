//! HTTP/2 itself, written by hand: what the library must not let through to us.

use sandbank_channel::RunnerClient;

use crate::fake::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, HELLO, PUSH_PROMISE, SETTINGS,
    STATUS_200, answering, begun, claimed, frame,
};

#[tokio::test(start_paused = true)]
async fn an_honest_answer_written_by_hand_is_understood() {
    let answer = begun(vec![frame(DATA, END_STREAM, 1, HELLO.as_bytes())]);
    let (client, hello) = RunnerClient::connect(answering(answer)).await.unwrap();
    assert_eq!(hello.epoch, "e");
    assert!(!client.is_closed());
}

#[tokio::test(start_paused = true)]
async fn broken_frames_end_the_channel() {
    let huge_header = {
        // A literal header whose value claims far more than a head may have.
        let mut block = vec![0x88, 0x00, 0x01, b'x', 0x7f, 0x80, 0x80, 0x04];
        block.extend([b'v'; 60 << 10]);
        block
    };
    let flood: Vec<u8> =
        std::iter::repeat_n(frame(CONTINUATION, 0, 1, &[0x40, 1, b'a', 1, b'b']), 40_000)
            .flatten()
            .collect();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("a frame of 16 MiB", begun(vec![claimed((1 << 24) - 1, DATA, 0, 1, &[0; 1000])])),
        ("data on a stream nobody opened", begun(vec![frame(DATA, 0, 9, b"x")])),
        (
            "data after the end",
            begun(vec![
                frame(DATA, END_STREAM, 1, b"{"),
                frame(DATA, END_STREAM, 1, HELLO.as_bytes()),
            ]),
        ),
        ("data before the head", [frame(DATA, END_STREAM, 1, HELLO.as_bytes())].concat()),
        ("a second head", begun(vec![frame(HEADERS, END_HEADERS, 1, STATUS_200)])),
        ("no status", [frame(HEADERS, END_HEADERS | END_STREAM, 1, b"")].concat()),
        ("broken compression", [frame(HEADERS, END_HEADERS, 1, &[0xff; 64])].concat()),
        ("a large head", [frame(HEADERS, END_HEADERS, 1, &huge_header)].concat()),
        ("a head without end", [frame(HEADERS, 0, 1, STATUS_200), flood].concat()),
        ("a push", [frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2, 0x88])].concat()),
        ("a length that lies", begun(vec![frame(DATA, END_STREAM | 8, 1, &[200, b'{', b'}'])])),
        ("settings of a wrong size", frame(SETTINGS, 0, 0, b"12345")),
    ];
    for (what, bytes) in cases {
        let error = RunnerClient::connect(answering(bytes)).await.err();
        let error = error.unwrap_or_else(|| panic!("{what} was taken for a greeting"));
        assert!(error.to_string().chars().count() < 1000, "{what}: {error}");
    }
}
