//! The table of immutable fields: what it names is refused by the server, and what it lets pass is
//! not.

use std::time::{Duration, Instant};

use rhumb::testing::change::immutable_fields;
use rhumb::testing::health;
use rhumb::testing::object::Gvk;
use serde_json::Value;

use crate::server::{Server, documents, merged};

#[tokio::test]
async fn the_server_refuses_exactly_what_the_table_names() {
    let server = Server::start().await;
    let (mut tried, mut wrong) = (0, Vec::new());
    for document in documents(include_str!("immutable.yaml")) {
        let object = &document["object"];
        let live = prepared(&server, object, &document["status"]).await;
        for attempt in document["tries"].as_array().unwrap() {
            tried += 1;
            if let Err(why) = check(&server, object, &live, attempt).await {
                wrong.push(format!("{} {}: {why}", object["kind"], attempt["change"]));
            }
        }
    }
    assert!(tried > 100, "{tried} tried");
    assert!(wrong.is_empty(), "{} of {tried} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns the live object, with the status that its controller would have written.
async fn prepared(server: &Server, object: &Value, status: &Value) -> Value {
    server.apply(object).await.unwrap_or_else(|refusal| panic!("{object}: {refusal:?}"));
    if !status.is_null() {
        server.patch_status(object, status).await;
    }
    let deadline = Instant::now() + Duration::from_mins(1);
    while object["kind"] == "CustomResourceDefinition" && !health::of(&server.get(object).await).is_current()
    {
        assert!(Instant::now() < deadline, "{object} is not established");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    server.get(object).await
}

async fn check(server: &Server, object: &Value, live: &Value, attempt: &Value) -> Result<(), String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = Gvk::from_api_version(&text(&object["apiVersion"]), &text(&object["kind"])).group_kind();
    let wanted = merged(object, &attempt["change"]);
    let rules = immutable_fields(&kind, live, &wanted);
    let named: Vec<&str> = rules.iter().map(|rule| rule.path.as_str()).collect();
    let expected: Vec<&str> = attempt["names"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    if named != expected {
        return Err(format!("named {named:?}"));
    }
    let must_refuse = !named.is_empty() || attempt["unnamed"] == true;
    match server.dry_run(&wanted).await {
        Err(refusal) if refusal.code == 422 && must_refuse => Ok(()),
        Ok(_) if !must_refuse => Ok(()),
        Ok(_) => Err("accepted".to_owned()),
        Err(refusal) => Err(format!("refused with {}: {}", refusal.code, refusal.message)),
    }
}
