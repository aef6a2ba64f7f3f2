//! The row of pieces that a value is. It is copied all the time and rarely changed.

use std::sync::Arc;

use crate::value::Piece;

/// A row of pieces; most values are one piece, which needs no memory of its own.
#[derive(Debug, Clone, Default)]
pub(crate) enum Pieces {
    #[default]
    None,
    One([Piece; 1]),
    /// Shared by all copies of the value until one of them changes.
    Many(Arc<Vec<Piece>>),
}

impl Pieces {
    pub(crate) fn push(&mut self, piece: Piece) {
        match self {
            Pieces::None => *self = Pieces::One([piece]),
            Pieces::One([first]) => *self = Pieces::Many(Arc::new(vec![first.clone(), piece])),
            Pieces::Many(list) => match Arc::get_mut(list) {
                Some(list) => list.push(piece),
                None => {
                    // More is likely to follow.
                    let mut own = Vec::with_capacity(list.len() + 4);
                    own.extend(list.iter().cloned());
                    own.push(piece);
                    *list = Arc::new(own);
                }
            },
        }
    }

    pub(crate) fn pop(&mut self) {
        match self {
            Pieces::None => {}
            Pieces::One(_) => *self = Pieces::None,
            Pieces::Many(list) => {
                Arc::make_mut(list).pop();
            }
        }
    }
}

impl std::ops::Deref for Pieces {
    type Target = [Piece];

    fn deref(&self) -> &[Piece] {
        match self {
            Pieces::None => &[],
            Pieces::One(piece) => piece,
            Pieces::Many(list) => list,
        }
    }
}

impl std::ops::DerefMut for Pieces {
    fn deref_mut(&mut self) -> &mut [Piece] {
        match self {
            Pieces::None => &mut [],
            Pieces::One(piece) => piece,
            Pieces::Many(list) => Arc::make_mut(list).as_mut_slice(),
        }
    }
}
