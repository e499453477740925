//! Objects in which `${NAME}` is meant literally.

use serde_json::Value;

use crate::object::annotations::SUBSTITUTE;
use crate::object::{annotation_text, text_at};

/// The annotation or label of Flux for such an object.
pub(crate) const FLUX_SUBSTITUTE: &str = "kustomize.toolkit.fluxcd.io/substitute";

/// The value of both.
const DISABLED_WORD: &str = "disabled";

/// Returns whether an object says that `${NAME}` in it is meant literally.
pub(crate) fn has_substitution_disabled(body: &Value) -> bool {
    let marks = [
        annotation_text(body, SUBSTITUTE),
        annotation_text(body, FLUX_SUBSTITUTE),
        text_at(body, &["metadata", "labels", FLUX_SUBSTITUTE]),
    ];
    marks.iter().any(|mark| mark.eq_ignore_ascii_case(DISABLED_WORD))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_says_so_in_our_word_or_in_that_of_flux() {
        #[track_caller]
        fn check(map: &str, key: &str, value: &str, expected: bool) {
            let body = json!({ "metadata": { map: { key: value } } });
            assert_eq!(has_substitution_disabled(&body), expected, "{body}");
        }
        check("annotations", "rhumb.dev/substitute", "disabled", true);
        check("annotations", FLUX_SUBSTITUTE, "disabled", true);
        check("labels", FLUX_SUBSTITUTE, "disabled", true);
        // Our words are read from annotations alone.
        check("labels", "rhumb.dev/substitute", "disabled", false);
        check("annotations", "rhumb.dev/substitute", "enabled", false);
        check("annotations", FLUX_SUBSTITUTE, "enabled", false);
        check("annotations", "rhumb.dev/reconcile", "disabled", false);
    }
}
