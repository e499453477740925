//! Texts that many values have.

use std::collections::HashSet;
use std::sync::Arc;

/// One copy of each text that many objects share: folders, programs and files.
///
/// It is there as long as objects are made. The copies are kept by who has them: a table of all of
/// them would take as much as it saves.
#[derive(Debug, Default)]
pub(crate) struct SharedTexts(HashSet<Arc<str>>);

impl SharedTexts {
    /// Returns the shared copy of a text, and makes it where there is none.
    pub(crate) fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(shared) = self.0.get(text) {
            return shared.clone();
        }
        let shared: Arc<str> = text.into();
        self.0.insert(shared.clone());
        shared
    }

    /// Has this copy of a text shared, unless another one is.
    pub(crate) fn add(&mut self, text: &Arc<str>) {
        self.0.insert(text.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_copy() {
        let mut texts = SharedTexts::default();
        let first = texts.share("base/web.yaml");
        assert!(Arc::ptr_eq(&first, &texts.share("base/web.yaml")));
        assert!(!Arc::ptr_eq(&first, &texts.share("base/api.yaml")));
        assert_eq!((&*first, &*texts.share("base/api.yaml")), ("base/web.yaml", "base/api.yaml"));
    }

    #[test]
    fn the_first_copy_that_is_added_is_shared() {
        let mut texts = SharedTexts::default();
        let [first, second]: [Arc<str>; 2] = ["base".into(), "base".into()];
        texts.add(&first);
        texts.add(&second);
        assert!(Arc::ptr_eq(&first, &texts.share("base")));
    }
}
