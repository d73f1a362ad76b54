//! Bodies as sandboxd's routes read them.

pub(crate) fn loose(data: &[u8]) {
    if let Ok(map) = super::body::loose(data) {
        let text = serde_json::to_vec(&map).expect("plain data");
        assert!(super::body::loose(&text).is_ok());
    }
}
