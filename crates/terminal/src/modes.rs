//! What a program has switched on and off.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Modes {
    pub(crate) insert: bool,
    /// A line feed is also a carriage return.
    pub(crate) newline: bool,
    /// Rows count from the upper margin.
    pub(crate) origin: bool,
    pub(crate) autowrap: bool,
    pub(crate) visible: bool,
    pub(crate) application_cursor: bool,
    pub(crate) application_keypad: bool,
    pub(crate) bracketed_paste: bool,
    pub(crate) focus_events: bool,
    /// Number of the mode by which mouse events are asked for; 0 is none.
    pub(crate) mouse: u16,
    /// Number of the mode that says how they are told; 0 is none.
    pub(crate) mouse_encoding: u16,
    /// The wheel moves the cursor on the screen of full-screen programs.
    pub(crate) wheel_moves: bool,
    pub(crate) blink: bool,
    pub(crate) reverse_video: bool,
}

impl Default for Modes {
    fn default() -> Self {
        Self {
            insert: false,
            newline: false,
            origin: false,
            autowrap: true,
            visible: true,
            application_cursor: false,
            application_keypad: false,
            bracketed_paste: false,
            focus_events: false,
            mouse: 0,
            mouse_encoding: 0,
            wheel_moves: false,
            blink: false,
            reverse_video: false,
        }
    }
}

impl Modes {
    /// Modes that matter to the viewer alone. Those with an effect here are `State`'s.
    pub(crate) fn switch(&mut self, number: u16, on: bool) {
        match number {
            1 => self.application_cursor = on,
            5 => self.reverse_video = on,
            7 => self.autowrap = on,
            12 => self.blink = on,
            25 => self.visible = on,
            66 => self.application_keypad = on,
            9 | 1000 | 1002 | 1003 => self.mouse = if on { number } else { 0 },
            1004 => self.focus_events = on,
            1005 | 1006 | 1015 | 1016 => self.mouse_encoding = if on { number } else { 0 },
            1007 => self.wheel_moves = on,
            2004 => self.bracketed_paste = on,
            _ => {}
        }
    }

    /// What a soft reset leaves as it is.
    pub(crate) fn soft_reset(&mut self) {
        let Self { mouse, mouse_encoding, newline, reverse_video, blink, .. } = *self;
        *self = Self { mouse, mouse_encoding, newline, reverse_video, blink, ..Self::default() };
    }
}
