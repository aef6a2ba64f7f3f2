//! Every example payload that GitHub's own tool kit publishes is read, or is of an event that we do not read.
//!
//! The examples are the npm package `@octokit/webhooks-examples`; its folder is given in `COUNTERSIGN_WEBHOOK_EXAMPLES`.

use countersign_github::webhook::{Event, parse};
use serde_json::Value;

#[test]
fn published_examples_are_read() {
    let Some(folder) = std::env::var_os("COUNTERSIGN_WEBHOOK_EXAMPLES") else {
        eprintln!("skipped: COUNTERSIGN_WEBHOOK_EXAMPLES names no folder of @octokit/webhooks-examples");
        return;
    };
    let mut read = 0;
    let mut other = 0;
    for host in std::fs::read_dir(&folder).unwrap() {
        let file = host.unwrap().path().join("index.json");
        let Ok(text) = std::fs::read(&file) else { continue };
        let events: Vec<Value> = serde_json::from_slice(&text).unwrap();
        for event in &events {
            let name = event["name"].as_str().unwrap();
            for example in event["examples"].as_array().unwrap() {
                match parse(name, example.to_string().as_bytes()) {
                    Ok(Event::Other) => other += 1,
                    Ok(_) => read += 1,
                    Err(error) => panic!("{}: {error}", file.display()),
                }
            }
        }
    }
    eprintln!("{read} payloads read, {other} of other events");
    assert!(read > 50 && other > 100, "{read} {other}");
}
