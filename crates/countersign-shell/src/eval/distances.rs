//! Which worlds are joined first when there are too many.

use crate::world::World;

/// How far the first worlds are from each other: asking is dear, and joining two changes one of them only.
pub(super) struct Distances {
    /// By the lower and the higher of the two.
    rows: Vec<Vec<usize>>,
}

impl Distances {
    /// Worlds that are looked at at once.
    const WINDOW: usize = 12;

    pub(super) fn of(worlds: &[World]) -> Distances {
        let many = worlds.len().min(Distances::WINDOW);
        let row = |i: usize| {
            (0..many)
                .map(|j| {
                    if i < j {
                        worlds[i].distance(&worlds[j])
                    } else {
                        usize::MAX
                    }
                })
                .collect()
        };
        Distances {
            rows: (0..many).map(row).collect(),
        }
    }

    /// The least distance and its two worlds.
    pub(super) fn nearest(&self) -> (usize, usize, usize) {
        let mut best = (usize::MAX, 0, 1);
        for (i, row) in self.rows.iter().enumerate() {
            for (j, distance) in row.iter().enumerate() {
                if *distance < best.0 {
                    best = (*distance, i, j);
                }
            }
        }
        best
    }

    /// The world at `j` went into the one at `i`.
    pub(super) fn joined(&mut self, i: usize, j: usize, worlds: &[World]) {
        self.rows.remove(j);
        for row in &mut self.rows {
            row.remove(j);
        }
        let many = worlds.len().min(Distances::WINDOW);
        if self.rows.len() < many {
            let new = many - 1;
            for (other, row) in self.rows.iter_mut().enumerate() {
                row.push(worlds[other].distance(&worlds[new]));
            }
            self.rows.push(vec![usize::MAX; many]);
        }
        for other in (0..many).filter(|other| *other != i) {
            let (low, high) = (i.min(other), i.max(other));
            self.rows[low][high] = worlds[low].distance(&worlds[high]);
        }
    }
}
