//! Several calls at once.

use futures::future::BoxFuture;
use futures::{StreamExt, stream};

/// Runs what is given, so many at once, and gives the results in order.
///
/// The work is boxed: adapters of streams over borrowing closures give futures of which the compiler cannot see that they
/// may move between threads.
pub(crate) async fn at_once<T: Send>(most: usize, work: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    stream::iter(work).buffered(most).collect().await
}
