//! Lists, all pages. Each page is a conditional request of its own.

use futures::future::BoxFuture;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::at_once;
use super::call::{Answer, Call};
use super::limits::Tally;
use crate::client::hub::{Hub, Who};
use crate::error::GitHubError;

/// Pages asked for at once.
const AT_ONCE: usize = 8;

/// How a page holds its items.
pub(crate) trait Page: DeserializeOwned + Send {
    /// One item.
    type Item: Send;
    /// Takes the items out.
    fn items(self) -> Vec<Self::Item>;
}

impl<T: DeserializeOwned + Send> Page for Vec<T> {
    type Item = T;
    fn items(self) -> Vec<T> {
        self
    }
}

/// Pages that are objects with one list.
macro_rules! page {
    ($name:ident, $field:literal) => {
        #[derive(Deserialize)]
        pub(crate) struct $name<T> {
            #[serde(rename = $field)]
            list: Vec<T>,
        }

        impl<T: DeserializeOwned + Send> Page for $name<T> {
            type Item = T;
            fn items(self) -> Vec<T> {
                self.list
            }
        }
    };
}

page!(WorkflowRuns, "workflow_runs");
page!(Jobs, "jobs");
page!(Artifacts, "artifacts");
page!(CheckRuns, "check_runs");
page!(Repositories, "repositories");

impl Hub {
    /// All items of a list. The rest of the pages is asked for together, once the first has said how many there are.
    pub(crate) async fn list<P: Page>(
        &self,
        who: &Who,
        call: &Call,
        tally: &Tally,
    ) -> Result<Vec<P::Item>, GitHubError> {
        self.list_up_to::<P>(who, call, self.config.limits.pages, tally).await
    }

    /// As [`Hub::list`], with a bound of its own.
    pub(crate) async fn list_up_to<P: Page>(
        &self,
        who: &Who,
        call: &Call,
        most: u32,
        tally: &Tally,
    ) -> Result<Vec<P::Item>, GitHubError> {
        let too_large = || GitHubError::TooLarge {
            what: call.what.clone(),
            limit: format!("{most} pages of 100"),
        };
        let (first, mut items) = self.page::<P>(who, call, 1, tally).await?;
        let last = last_page(&first);
        if last > most {
            return Err(too_large());
        }
        let mut work: Vec<BoxFuture<'_, _>> = Vec::new();
        for number in 2..=last {
            work.push(Box::pin(self.page::<P>(who, call, number, tally)));
        }
        let rest: Vec<_> = at_once(AT_ONCE, work).await.into_iter().collect::<Result<_, _>>()?;
        let mut next = rest.last().map_or(has_next(&first), |(answer, _)| has_next(answer));
        items.extend(rest.into_iter().flat_map(|(_, items)| items));
        // The list grew meanwhile, or its server gives no last page.
        let mut number = last.max(1);
        while next {
            number += 1;
            if number > most {
                return Err(too_large());
            }
            let (answer, more) = self.page::<P>(who, call, number, tally).await?;
            next = has_next(&answer) && !more.is_empty();
            items.extend(more);
        }
        Ok(items)
    }

    async fn page<P: Page>(
        &self,
        who: &Who,
        call: &Call,
        number: u32,
        tally: &Tally,
    ) -> Result<(Answer, Vec<P::Item>), GitHubError> {
        let call = call.clone().query("per_page", 100).query("page", number);
        let answer = self.send(who, &call, tally).await?;
        let items = answer.decode::<P>(&call.what)?.items();
        Ok((answer, items))
    }
}

/// The address of a relation in a `Link` header.
pub(crate) fn relation<'l>(link: &'l str, name: &str) -> Option<&'l str> {
    link.split(',').find_map(|part| {
        let (address, parameters) = part.split_once(';')?;
        let rel = parameters.split(';').any(|parameter| {
            parameter
                .trim()
                .strip_prefix("rel=")
                .is_some_and(|rel| rel.trim_matches('"') == name)
        });
        rel.then(|| address.trim().trim_start_matches('<').trim_end_matches('>'))
    })
}

fn has_next(answer: &Answer) -> bool {
    answer
        .link
        .as_deref()
        .is_some_and(|link| relation(link, "next").is_some())
}

fn last_page(answer: &Answer) -> u32 {
    let last = answer.link.as_deref().and_then(|link| relation(link, "last"));
    let number = last.and_then(|url| {
        let url = url::Url::parse(url).ok()?;
        url.query_pairs().find(|(name, _)| name == "page")?.1.parse().ok()
    });
    number.unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_headers() {
        let link = "<https://x/y?page=2&per_page=100>; rel=\"next\", <https://x/y?per_page=100&page=34>; rel=\"last\"";
        assert_eq!(relation(link, "next"), Some("https://x/y?page=2&per_page=100"));
        assert_eq!(relation(link, "prev"), None);
        let answer = |link: Option<&str>| Answer {
            status: 200,
            link: link.map(str::to_owned),
            body: bytes::Bytes::new(),
        };
        assert_eq!(last_page(&answer(Some(link))), 34);
        assert_eq!(last_page(&answer(None)), 1);
        assert!(has_next(&answer(Some(link))) && !has_next(&answer(None)));
    }
}
