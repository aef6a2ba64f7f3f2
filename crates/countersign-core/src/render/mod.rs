//! How a verdict is written: the comment, the status line, and JSON.

mod comment;
mod status;

pub use comment::{CommentOptions, comment, marker, marker_of};
pub use status::{HeadState, State, StatusLine, shorten, status_line, waiting_line};
