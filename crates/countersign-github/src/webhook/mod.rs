//! Webhooks: the signature is checked over the raw bytes before anything is parsed; then only the fields that are used are
//! read, so that a change of GitHub's in some other field cannot lose an event (anchors, section 4, item 10).

mod payload;

pub use payload::{
    Account, CheckRun, CheckRunEvent, Comment, Event, InstallationEvent, IssueCommentEvent, PayloadError, PullRequest,
    PullRequestEvent, Review, ReviewCommentEvent, ReviewEvent, StatusEvent, WorkflowRun, WorkflowRunEvent, parse,
};

use hmac::{Hmac, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

/// Why a request is not from GitHub, or not for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// No `X-Hub-Signature-256`.
    #[error("the header X-Hub-Signature-256 is missing: set a webhook secret on the App")]
    Missing,
    /// Not `sha256=` and 64 hexadecimal digits.
    #[error("the header X-Hub-Signature-256 is malformed")]
    Malformed,
    /// Another secret, or another body.
    #[error("the signature does not match: the App's webhook secret and ours differ")]
    Mismatch,
}

/// Checks `X-Hub-Signature-256` over the body, in constant time.
///
/// # Errors
/// [`SignatureError`].
pub fn verify(secret: &SecretString, body: &[u8], header: Option<&str>) -> Result<(), SignatureError> {
    let header = header.ok_or(SignatureError::Missing)?;
    let digits = header.strip_prefix("sha256=").ok_or(SignatureError::Malformed)?;
    let given = hex::decode(digits).map_err(|_| SignatureError::Malformed)?;
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.expose_secret().as_bytes()).map_err(|_| SignatureError::Mismatch)?;
    mac.update(body);
    mac.verify_slice(&given).map_err(|_| SignatureError::Mismatch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_secret_over_the_right_bytes() {
        // Example of GitHub's documentation on validating webhook deliveries.
        let secret = SecretString::from("It's a Secret to Everybody");
        let right = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert_eq!(verify(&secret, b"Hello, World!", Some(right)), Ok(()));
        assert_eq!(
            verify(&secret, b"Hello, World?", Some(right)),
            Err(SignatureError::Mismatch)
        );
        assert_eq!(
            verify(&SecretString::from("x"), b"Hello, World!", Some(right)),
            Err(SignatureError::Mismatch)
        );
        assert_eq!(verify(&secret, b"", None), Err(SignatureError::Missing));
        for bad in ["", "sha1=00", "sha256=zz", &right[..30]] {
            assert!(verify(&secret, b"Hello, World!", Some(bad)).is_err(), "{bad}");
        }
    }
}
