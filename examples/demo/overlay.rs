//! An overlay: a base, and what is different in production, rendered by the real kustomize.

use k8s_openapi::api::core::v1::ConfigMap;

use super::stage::{Failure, Outcome, Stage};
use super::{DemoProcesses, after};

/// The files of the commit, by their paths in the repository.
const FILES: [(&str, &str); 6] = [
    ("stall/base/kustomization.yaml", "resources: [stall.yaml]\n"),
    (
        "stall/base/stall.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stall}\ndata: {OPEN: on Saturdays, MENU: bread}\n",
    ),
    (
        "stall/prod/kustomization.yaml",
        "namespace: shop\nresources: [../base]\npatches: [{path: patch.yaml}]\n",
    ),
    (
        "stall/prod/patch.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stall}\ndata: {MENU: bread and cake}\n",
    ),
    ("stall/README.md", "The stall on the market. Only `prod` is followed.\n"),
    (".rhumbignore", "stall/base\n"),
];

/// The data that the overlay gives: one value of the base, and one of its patch.
const DATA: [(&str, &str); 2] = [("MENU", "bread and cake"), ("OPEN", "on Saturdays")];

impl DemoProcesses {
    pub(super) async fn overlay(&self, stage: &mut Stage) -> Outcome {
        stage.step("Add a base and an overlay of kustomize");
        for (path, text) in FILES {
            self.shop.write(path, text)?;
        }
        stage.command("rhumb render shop/stall/prod");
        let output = self.rhumb.once(&["render", "shop/stall/prod"])?;
        stage.quote(&String::from_utf8_lossy(&output.stdout));
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(Failure::new("the overlay to be rendered", said));
        }
        self.shop.commit("Open a stall").await?;
        stage.command("git commit -am 'Open a stall' && git push");
        let mut watch = self.eyes.watch::<ConfigMap>(self.eyes.shop(), "stall").await?;
        let is_rendered = |stall: Option<&ConfigMap>| {
            let data = stall.and_then(|stall| stall.data.as_ref());
            data.is_some_and(|data| data.iter().map(|(key, text)| (&**key, &**text)).eq(DATA))
        };
        let (arrived, pushed) =
            self.pushed(&mut watch, "ConfigMap stall with the values of base and patch", is_rendered).await?;
        stage.seen(&format!("the ConfigMap of the overlay is there {}", after(arrived, pushed)));
        Ok(())
    }
}
