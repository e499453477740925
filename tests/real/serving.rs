//! A well-made application serves while it rolls: no request of a client fails.

use crate::client::{Client, address_of};
use crate::site::RealSite;
use crate::support::yaml;
use crate::workload::Workload;

#[test]
fn no_request_fails_over_a_rolling_update() {
    let web = |image: &str| Workload::new("web", image).farewell(5);
    let service = ("service.yaml".to_owned(), yaml::service("web", "web"));
    let Some(place) = RealSite::new("serving", &[web("app:1").file(), service]) else { return };
    place.await_image(&web("app:1"), web("app:1").image());
    let address = address_of(&place, "web");
    let client = Client::start(&place, &address);
    place.push(&[web("app:2").file()], "Change the image");
    place.await_image(&web("app:2"), web("app:2").image());
    place.site.await_free_budget();
    let count = client.stop();
    assert!(count.failures.is_empty(), "{count:#?}");
    let served = |version: &str| count.answers.get(version).copied().unwrap_or_default();
    assert!(served("version=1") > 0 && served("version=2") > 0, "{count:#?}");
    eprintln!("{count:?}");
}
