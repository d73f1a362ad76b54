//! Colours and attributes.

use crate::csi::Parameters;
use crate::style::{BLINK, BOLD, Color, DIM, INVERSE, INVISIBLE, ITALIC, OVERLINE, STRIKE, Style};

pub(crate) fn apply(style: &mut Style, parameters: &Parameters) {
    let mut at = 0;
    while at < parameters.len() {
        let (number, subs) = parameters.with_subs(at);
        at += 1 + subs.len();
        match number {
            0 => *style = Style::default(),
            1 => style.flags |= BOLD,
            2 => style.flags |= DIM,
            3 => style.flags |= ITALIC,
            4 => style.underline = subs.first().map_or(1, |kind| *kind as u8).min(5),
            5 | 6 => style.flags |= BLINK,
            7 => style.flags |= INVERSE,
            8 => style.flags |= INVISIBLE,
            9 => style.flags |= STRIKE,
            21 => style.underline = 2,
            22 => style.flags &= !(BOLD | DIM),
            23 => style.flags &= !ITALIC,
            24 => style.underline = 0,
            25 => style.flags &= !BLINK,
            27 => style.flags &= !INVERSE,
            28 => style.flags &= !INVISIBLE,
            29 => style.flags &= !STRIKE,
            53 => style.flags |= OVERLINE,
            55 => style.flags &= !OVERLINE,
            30..=37 => style.fg = Color::indexed(number as u8 - 30),
            40..=47 => style.bg = Color::indexed(number as u8 - 40),
            90..=97 => style.fg = Color::indexed(number as u8 - 90 + 8),
            100..=107 => style.bg = Color::indexed(number as u8 - 100 + 8),
            39 => style.fg = Color::DEFAULT,
            49 => style.bg = Color::DEFAULT,
            59 => style.line = Color::DEFAULT,
            38 | 48 | 58 => {
                let color = match subs {
                    [] => following(parameters, &mut at),
                    subs => within(subs),
                };
                let place = match number {
                    38 => &mut style.fg,
                    48 => &mut style.bg,
                    _ => &mut style.line,
                };
                if let Some(color) = color {
                    *place = color;
                }
            }
            _ => {}
        }
    }
}

/// `5;n` or `2;r;g;b` as further parameters.
fn following(parameters: &Parameters, at: &mut usize) -> Option<Color> {
    let rest = parameters.from(*at);
    match *rest {
        [5, index, ..] => {
            *at += 2;
            u8::try_from(index).ok().map(Color::indexed)
        }
        [2, red, green, blue, ..] => {
            *at += 4;
            rgb(red, green, blue)
        }
        _ => {
            *at += rest.len();
            None
        }
    }
}

/// `5:n`, `2:r:g:b`, or `2:space:r:g:b`.
fn within(subs: &[u16]) -> Option<Color> {
    match *subs {
        [5, index, ..] => u8::try_from(index).ok().map(Color::indexed),
        [2, red, green, blue] | [2, _, red, green, blue, ..] => rgb(red, green, blue),
        _ => None,
    }
}

fn rgb(red: u16, green: u16, blue: u16) -> Option<Color> {
    let byte = |part: u16| u8::try_from(part).ok();
    Some(Color::rgb(byte(red)?, byte(green)?, byte(blue)?))
}
