//! Image references: every spelling of the real configs' shapes, what must be refused, and whose namespace it is.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may stop and speak")]

mod support;

use countersign_records::images::{Image, ImageError, NamespaceRule, Provenance};
use proptest::prelude::*;

fn image(text: &str) -> Image {
    Image::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

const HEX: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

#[test]
fn the_hash_sign_is_the_slash_after_the_registry() {
    let (a, b) = (
        image("nvcr.io#nvidia/made-up/release:1.2.0rc1"),
        image("nvcr.io/nvidia/made-up/release:1.2.0rc1"),
    );
    assert_eq!(a, b);
    assert!(a.same_image(&b));
    assert_eq!(a.registry.as_deref(), Some("nvcr.io"));
    assert_eq!(
        (a.namespace(), a.repository().as_str()),
        (Some("nvidia"), "nvidia/made-up/release")
    );
    assert_eq!(a.to_string(), "nvcr.io/nvidia/made-up/release:1.2.0rc1");
}

#[test]
fn docker_hub_has_several_names_and_none() {
    for text in [
        "docker.io/vllm/vllm-openai:v1",
        "index.docker.io/vllm/vllm-openai:v1",
        "docker.io#vllm/vllm-openai:v1",
        "Docker.IO/vllm/vllm-openai:v1",
    ] {
        assert_eq!(image(text), image("vllm/vllm-openai:v1"), "{text}");
    }
    assert_ne!(image("ghcr.io/vllm/vllm-openai:v1"), image("vllm/vllm-openai:v1"));
}

#[test]
fn parts() {
    let full = image(&format!(
        "localhost:5000/a/b_c.d--e:T-1.x_2@sha256:{}",
        HEX.to_uppercase()
    ));
    assert_eq!(full.registry.as_deref(), Some("localhost:5000"));
    assert_eq!(full.path, ["a", "b_c.d--e"]);
    assert_eq!(
        (full.tag.as_deref(), full.digest.as_deref()),
        (Some("T-1.x_2"), Some(HEX))
    );
    let bare = image("ubuntu");
    assert_eq!(
        (bare.namespace(), bare.tag.as_deref(), bare.registry.as_deref()),
        (None, None, None)
    );
    assert_eq!(
        image("host:80").path,
        ["host"],
        "without a slash it is a name with a tag"
    );
}

#[test]
fn the_same_image() {
    let same = |a: &str, b: &str| image(a).same_image(&image(b));
    assert!(same("a/b", "a/b:latest"));
    assert!(!same("a/b:1", "a/b:2"));
    assert!(!same("a/b:1", "a/c:1"));
    assert!(same(&format!("a/b:1@sha256:{HEX}"), &format!("a/b:2@sha256:{HEX}")));
    assert!(!same(&format!("a/b:1@sha256:{HEX}"), "a/b:1"), "a tag may move");
}

#[test]
fn what_is_no_reference() {
    let error = |text: &str| Image::parse(text).unwrap_err();
    assert_eq!(error(""), ImageError::Empty);
    assert_eq!(error("a/b#c"), ImageError::Hash);
    assert_eq!(error("x.io#a#b"), ImageError::Hash);
    assert!(matches!(error("A/b"), ImageError::Component(_)));
    assert!(matches!(error("a//b"), ImageError::Component(_)));
    assert!(matches!(error("a/b-"), ImageError::Component(_)));
    assert!(matches!(error("a/b___c"), ImageError::Component(_)));
    assert!(matches!(error("a/b:"), ImageError::Tag(_)));
    assert!(matches!(error("a/b:-x"), ImageError::Tag(_)));
    assert!(matches!(error("a/b:1 "), ImageError::Tag(_)));
    assert!(matches!(error("a/b:1@sha256:12"), ImageError::Digest(_)));
    assert!(matches!(error("x..io/a/b"), ImageError::Registry(_)));
    assert!(
        matches!(error("a/vllm\u{43e}penai"), ImageError::Component(_)),
        "a Cyrillic letter"
    );
    assert!(matches!(error(&"a".repeat(2000)), ImageError::TooLong(2000)));
}

#[test]
fn namespaces_are_compared_exactly() {
    let hub = |namespace: &str| NamespaceRule {
        registry: None,
        namespace: namespace.into(),
    };
    let rules = [
        hub("vllm"),
        hub("lmsysorg"),
        NamespaceRule {
            registry: Some("x.io".into()),
            namespace: "team".into(),
        },
    ];
    let judge = |text: &str| image(text).provenance(&rules);
    for fine in [
        "vllm/vllm-openai:v1",
        "docker.io/vllm/anything",
        "lmsysorg/sglang:x",
        "x.io#team/y:1",
        "X.IO/team/y",
    ] {
        assert_eq!(judge(fine), Provenance::Allowed, "{fine}");
    }
    for (close, of) in [
        ("vllm-project/vllm-openai:v1", "vllm"),
        ("lmsysorg-dev/sglang", "lmsysorg"),
        ("lmsys0rg/sglang", "lmsysorg"),
        ("vl1m/vllm-openai", "vllm"),
        ("ghcr.io/vllm/vllm-openai", "vllm"),
        ("x.io/lmsysorg/sglang", "lmsysorg"),
        ("team/y", "team"),
    ] {
        assert_eq!(judge(close), Provenance::LookAlike(of.into()), "{close}");
    }
    for other in ["rocm/sgl-dev:1", "ubuntu:22.04", "vllm:latest", "nvcr.io#nvidia/vllm:1"] {
        assert_eq!(judge(other), Provenance::Other, "{other}");
    }
}

#[test]
fn every_image_of_the_real_configs_reads() {
    let Some(dir) = support::shared("inferencex/configs") else {
        return;
    };
    let mut count = 0;
    for name in ["amd-master.yaml", "nvidia-master.yaml"] {
        let text = std::fs::read_to_string(dir.join(name)).unwrap();
        for line in text.lines() {
            let Some(value) = line.trim_start().strip_prefix("image:") else {
                continue;
            };
            let value = value.split(" #").next().unwrap().trim().trim_matches(['"', '\'']);
            let read = image(value);
            assert_eq!(image(&read.to_string()), read);
            count += 1;
        }
    }
    assert_eq!(count, 208, "one for each entry");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,60}") {
        let _ = Image::parse(&text);
    }

    #[test]
    fn what_is_shown_reads_back(text in "([a-z]{1,4}\\.io[#/]|localhost:5[0-9]{3}/)?[a-z]{1,5}(/[a-z0-9]{1,6}([._-][a-z0-9]{1,3})?){0,3}(:[A-Za-z0-9_][A-Za-z0-9._-]{0,9})?") {
        let read = image(&text);
        prop_assert_eq!(image(&read.to_string()), read);
    }

    #[test]
    fn sameness_is_symmetric(a in "(x\\.io[#/])?[ab](/[ab]){0,2}(:[12])?", b in "(x\\.io[#/])?[ab](/[ab]){0,2}(:[12])?") {
        let (a, b) = (image(&a), image(&b));
        prop_assert_eq!(a.same_image(&b), b.same_image(&a));
        prop_assert!(a.same_image(&a));
        prop_assert!(!a.same_image(&b) || a.same_repository(&b));
    }
}
