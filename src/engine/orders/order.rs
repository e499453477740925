//! Orders in values: what a person asks rhumb to do once with its own rights.
//!
//! They are in one object for each source, in the namespace of the inventories: one key for each,
//! which is its token. Everybody who may write there may order. Every text in it is bounded, as it
//! is written by others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::engine::Uid;
use crate::engine::facts::records::intents::MAX_ORDER_TOKEN_BYTES;
use crate::engine::facts::records::object_word::{object_word, parse_object_word};
use crate::object::{ContentHash, ObjectId, truncate};

/// The maximum number of pending orders of a source: each is remembered in the inventory, in at
/// most half a kilobyte.
pub(in crate::engine) const MAX_ORDERS: usize = 100;

/// The longest order in bytes: names of objects have at most 253, and so has nearly every user's.
const MAX_ORDER_BYTES: usize = 2048;

/// The maximum number of deletions that one order confirms: as many as an inventory lists.
pub(crate) const MAX_CONFIRMED_PER_ORDER: usize = 2000;

/// The longest uid in bytes: those of API servers have 36.
const MAX_UID_BYTES: usize = 64;

/// The longest confirmation in bytes: there is room for as many usual uids as it may name.
const MAX_CONFIRMATION_BYTES: usize = 96 << 10;

/// The longest argument in bytes: a hash in hexadecimal digits, and a step.
const MAX_ARGUMENT_BYTES: usize = 128;

/// The longest name of a user in bytes that is reported; of a longer one its beginning is.
const MAX_USER_BYTES: usize = 256;

/// The verb that confirms deletions.
const CONFIRM: &str = "confirm";

/// The text in place of an order that asks if anybody serves the source. Taking it out is the
/// answer.
pub(crate) const SERVING_PROBE_NAME: &str = "is-served";

/// Something that is to be done once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Its identity.
    pub token: Arc<str>,
    /// The verb.
    pub verb: OrderVerb,
    /// The object that it is about; of a confirmation, the first one that it names.
    pub object: ObjectId,
    /// The giver, as whoever wrote it says; empty where that is not said.
    pub by: Arc<str>,
}

/// The verb of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OrderVerb {
    /// Go back to what an older revision says, by default to that before the one that is in force.
    Undo(Option<Arc<str>>),
    /// Try what was rejected again.
    Retry,
    /// Go back to what was there before a rollout that goes on, or has not begun.
    Abort,
    /// Go on from this step of the rollout of this content.
    Promote(ContentHash, u32),
    /// Take all steps of the rollout of this content at once.
    PromoteFull(ContentHash),
    /// Delete these incarnations, which the source no longer wants.
    Confirm(Arc<BTreeSet<Uid>>),
    /// A word that means nothing here.
    Unknown(Arc<str>),
}

impl OrderVerb {
    /// Reads a word and its argument, which is empty where there is none.
    pub(crate) fn parse(word: &str, argument: &str) -> Self {
        let mut words = argument.split_whitespace();
        match word {
            "undo" => Self::Undo(words.next().map(Arc::from)),
            "retry" => Self::Retry,
            "abort" => Self::Abort,
            "promote" | "promote-full" => {
                let content = words.next().and_then(ContentHash::parse);
                let step = words.next().and_then(|step| step.parse().ok());
                match (word, content, step) {
                    ("promote", Some(content), Some(step)) => Self::Promote(content, step),
                    ("promote-full", Some(content), _) => Self::PromoteFull(content),
                    _ => Self::Unknown(word.into()),
                }
            }
            other => Self::Unknown(truncate(other, MAX_ORDER_TOKEN_BYTES).into()),
        }
    }
}

/// The form of an order in its object.
#[derive(Serialize, Deserialize)]
struct OrderText {
    verb: String,
    object: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    argument: String,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    uids: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
}

/// Returns the text of an order, as [`parse_orders`] reads it.
pub(crate) fn order_text(
    object: &ObjectId,
    verb: &str,
    argument: &str,
    by: &str,
    at: Timestamp,
) -> Result<String, serde_json::Error> {
    serde_json::to_string(&OrderText {
        verb: verb.to_owned(),
        object: object_word(object),
        argument: argument.to_owned(),
        uids: BTreeSet::new(),
        by: truncate(by, MAX_USER_BYTES).to_owned(),
        at: Some(at),
    })
}

/// Returns the text of an order that confirms deletions, as [`parse_orders`] reads it. The object
/// is the first of those that are meant, and the others are reported by their number.
///
/// # Errors
///
/// The text cannot be written as JSON.
pub(crate) fn confirmation_text<'a>(
    object: &ObjectId,
    uids: impl IntoIterator<Item = &'a Uid>,
    by: &str,
    at: Timestamp,
) -> Result<String, serde_json::Error> {
    serde_json::to_string(&OrderText {
        verb: CONFIRM.to_owned(),
        object: object_word(object),
        argument: String::new(),
        uids: uids.into_iter().map(ToString::to_string).collect(),
        by: truncate(by, MAX_USER_BYTES).to_owned(),
        at: Some(at),
    })
}

/// The orders object of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OrderList {
    /// The orders, those with the smallest tokens first: a token begins with the time.
    pub orders: Vec<Order>,
    /// Keys of [`SERVING_PROBE_NAME`].
    pub questions: Vec<String>,
    /// Keys that are no order, or one too many.
    pub refused: Vec<String>,
    /// The reason for which the first of them is refused.
    pub why: Option<String>,
}

/// Parses the data of an orders object. An order that cannot be read is refused, and delays nothing
/// else.
pub(crate) fn parse_orders(data: &BTreeMap<String, String>) -> OrderList {
    let mut list = OrderList::default();
    for (key, text) in data {
        if text == SERVING_PROBE_NAME {
            list.questions.push(key.clone());
            continue;
        }
        let read = match parse_order(key, text) {
            Ok(_) if list.orders.len() == MAX_ORDERS => {
                Err(format!("more than {MAX_ORDERS} orders at a time"))
            }
            read => read,
        };
        match read {
            Ok(order) => list.orders.push(order),
            Err(why) => {
                list.why.get_or_insert_with(|| format!("{}: {why}", truncate(key, MAX_ORDER_TOKEN_BYTES)));
                list.refused.push(key.clone());
            }
        }
    }
    list
}

fn parse_order(key: &str, text: &str) -> Result<Order, String> {
    if key.len() > MAX_ORDER_TOKEN_BYTES {
        return Err(format!("a token has at most {MAX_ORDER_TOKEN_BYTES} bytes"));
    }
    if text.len() > MAX_CONFIRMATION_BYTES {
        return Err(format!("a confirmation has at most {MAX_CONFIRMATION_BYTES} bytes"));
    }
    let read: OrderText = serde_json::from_str(text).map_err(|_| "it is no order".to_owned())?;
    if text.len() > MAX_ORDER_BYTES && read.verb != CONFIRM {
        return Err(format!("an order has at most {MAX_ORDER_BYTES} bytes"));
    }
    if read.argument.len() > MAX_ARGUMENT_BYTES {
        return Err(format!("an argument has at most {MAX_ARGUMENT_BYTES} bytes"));
    }
    let Some(object) = parse_object_word(&read.object) else {
        return Err("it names no object".to_owned());
    };
    let by = truncate(&read.by, MAX_USER_BYTES).into();
    let verb = match &*read.verb {
        CONFIRM => OrderVerb::Confirm(Arc::new(confirmed_uids(&read.uids)?)),
        verb => OrderVerb::parse(verb, &read.argument),
    };
    Ok(Order { token: key.into(), verb, object, by })
}

/// Returns the incarnations whose deletion an order confirms.
fn confirmed_uids(uids: &BTreeSet<String>) -> Result<BTreeSet<Uid>, String> {
    if uids.is_empty() || uids.len() > MAX_CONFIRMED_PER_ORDER {
        return Err(format!("a confirmation names 1 to {MAX_CONFIRMED_PER_ORDER} uids"));
    }
    let is_uid = |uid: &&String| {
        (1..=MAX_UID_BYTES).contains(&uid.len()) && uid.bytes().all(|byte| byte.is_ascii_graphic())
    };
    if !uids.iter().all(|uid| is_uid(&uid)) {
        return Err("it names no uid".to_owned());
    }
    Ok(uids.iter().map(|uid| Uid(uid.as_str().into())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::GroupKind;

    fn web() -> ObjectId {
        ObjectId::new(&GroupKind::parse("Deployment.apps"), Some("shop"), "web")
    }

    fn at() -> Timestamp {
        Timestamp::from_second(0).unwrap()
    }

    fn only(key: &str, text: &str) -> OrderList {
        parse_orders(&BTreeMap::from([(key.to_owned(), text.to_owned())]))
    }

    #[test]
    fn an_order_is_read_as_it_is_written() {
        fn check(verb: &str, argument: &str, expected: OrderVerb) {
            let text = order_text(&web(), verb, argument, "ann", at()).unwrap();
            let order = Order { token: "17-a0".into(), verb: expected, object: web(), by: "ann".into() };
            assert_eq!(only("17-a0", &text).orders, [order], "{text}");
        }
        check("undo", "", OrderVerb::Undo(None));
        check("undo", " abc ", OrderVerb::Undo(Some("abc".into())));
        check("retry", "", OrderVerb::Retry);
        check("abort", "", OrderVerb::Abort);
        let content = ContentHash::hash_bytes(b"web");
        check("promote", &format!("{content} 2"), OrderVerb::Promote(content, 2));
        check("promote-full", &content.to_string(), OrderVerb::PromoteFull(content));
        // The step and the content must be named, as the order may be carried out much later.
        check("promote", "", OrderVerb::Unknown("promote".into()));
        check("destroy", "all", OrderVerb::Unknown("destroy".into()));
    }

    #[test]
    fn what_is_no_order_or_too_long_is_refused_by_name() {
        fn check(key: &str, text: &str, expected: &str) {
            let list = only(key, text);
            assert_eq!((list.orders, list.refused), (Vec::new(), vec![key.to_owned()]), "{expected}");
            let why = list.why.unwrap();
            assert_eq!(why, format!("{}: {expected}", truncate(key, MAX_ORDER_TOKEN_BYTES)));
        }
        let order = |object: &str, argument: &str| {
            format!(r#"{{"verb":"undo","object":"{object}","argument":"{argument}"}}"#)
        };
        check("a", "", "it is no order");
        check("a", "undo", "it is no order");
        check("a", r#"{"verb":"undo"}"#, "it is no order");
        check("a", &order("web", ""), "it names no object");
        check("a", &order("Deployment.apps/shop/web", &"f".repeat(129)), "an argument has at most 128 bytes");
        check("a", &"x".repeat(2049), "it is no order");
        check(
            "a",
            &order(&format!("ConfigMap/shop/{}", "e".repeat(2048)), ""),
            "an order has at most 2048 bytes",
        );
        check("a", &"x".repeat(98_305), "a confirmation has at most 98304 bytes");
        let confirm =
            |uids: &str| format!(r#"{{"verb":"confirm","object":"ConfigMap/shop/env","uids":{uids}}}"#);
        check("a", &confirm("[]"), "a confirmation names 1 to 2000 uids");
        check("a", &confirm("\"u1\""), "it is no order");
        check("a", &confirm("{}"), "it is no order");
        check("a", &confirm("[1]"), "it is no order");
        check("a", &confirm("[\"\"]"), "it names no uid");
        check("a", &confirm("[\"u 1\"]"), "it names no uid");
        check("a", &confirm(&format!("[{:?}]", "u".repeat(65))), "it names no uid");
        let many: Vec<String> = (0..2001).map(|number| number.to_string()).collect();
        check("a", &confirm(&format!("{many:?}")), "a confirmation names 1 to 2000 uids");
        // It is for incarnations, and never for a name.
        let named = r#"{"verb":"confirm","object":"ConfigMap/shop/env","argument":"u1"}"#;
        check("a", named, "a confirmation names 1 to 2000 uids");
        check(&"t".repeat(65), &order("Deployment.apps/shop/web", ""), "a token has at most 64 bytes");
        let key = "t".repeat(240_000);
        check(&key, &order("Deployment.apps/shop/web", ""), "a token has at most 64 bytes");
    }

    #[test]
    fn an_order_that_is_exactly_as_long_as_it_may_be_is_read() {
        let check = |key: &str, text: &str| {
            let list = only(key, text);
            assert_eq!((list.orders.len(), list.why), (1, None), "{key}: {} bytes", text.len());
        };
        let padded = |text: String, bytes: usize| text.clone() + &" ".repeat(bytes - text.len());
        let undo = |argument: &str| order_text(&web(), "undo", argument, "", at()).unwrap();
        check(&"t".repeat(MAX_ORDER_TOKEN_BYTES), &undo(""));
        check("argument", &undo(&"f".repeat(MAX_ARGUMENT_BYTES)));
        check("order", &padded(undo(""), MAX_ORDER_BYTES));
        let uid = Uid("u".repeat(MAX_UID_BYTES).into());
        let confirmation = confirmation_text(&web(), [&uid], "", at()).unwrap();
        check("confirmation", &padded(confirmation, MAX_CONFIRMATION_BYTES));
    }

    #[test]
    fn a_confirmation_of_all_that_an_inventory_lists_fits_into_one_order() {
        let uids: BTreeSet<Uid> = (0..MAX_CONFIRMED_PER_ORDER)
            .map(|number| Uid(format!("8d2f0f7e-0000-4000-8000-{number:012}").into()))
            .collect();
        let env = ObjectId::new(&GroupKind::parse("ConfigMap"), Some("shop"), &"e".repeat(253));
        let text = confirmation_text(&env, &uids, &"ä".repeat(300), at()).unwrap();
        let orders = only("17-a0", &text).orders;
        assert_eq!(orders[0].verb, OrderVerb::Confirm(Arc::new(uids)));
        assert_eq!(orders[0].object, env);
    }

    #[test]
    fn a_question_is_no_order_and_is_not_refused() {
        let list = only("17-a0", SERVING_PROBE_NAME);
        assert_eq!(list, OrderList { questions: vec!["17-a0".to_owned()], ..OrderList::default() });
    }

    #[test]
    fn so_many_orders_are_kept_and_no_more() {
        let text = order_text(&web(), "retry", "", "", at()).unwrap();
        let data = (0..150).map(|number| (format!("{number:03}"), text.clone())).collect();
        let list = parse_orders(&data);
        assert_eq!((list.orders.len(), list.refused.len()), (MAX_ORDERS, 50));
        assert_eq!((&*list.orders[99].token, &*list.refused[0]), ("099", "100"));
        assert_eq!(list.why.as_deref(), Some("100: more than 100 orders at a time"));
    }

    #[test]
    fn of_a_long_name_of_a_user_the_beginning_is_reported() {
        let text = order_text(&web(), "retry", "", &"ä".repeat(300), at()).unwrap();
        assert_eq!(only("a", &text).orders[0].by.len(), 256);
        let verb = "v".repeat(500);
        let text = order_text(&web(), &verb, "", "", at()).unwrap();
        assert_eq!(only("a", &text).orders[0].verb, OrderVerb::Unknown("v".repeat(64).into()));
    }
}
