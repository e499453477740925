//! Rollouts: one that fails and goes back, and one with a canary.

use std::time::Instant;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;

use super::cluster_view::until;
use super::stage::{ErrorContext as _, Failure, Outcome, Stage, time};
use super::{DemoProcesses, LIMIT, after, image};

/// The annotations of a canary, under the name of the Deployment.
const CANARY: (&str, &str) = (
    "  name: web\n  namespace: shop\n",
    "  name: web\n  namespace: shop\n  annotations: {rhumb.dev/steps: \"1\", rhumb.dev/step-soak: 3s}\n",
);

impl DemoProcesses {
    pub(super) async fn broken_image(&self, stage: &mut Stage) -> Outcome {
        stage.step("Push an image that cannot be pulled, with a configuration that belongs to it");
        self.soaked(stage).await?;
        self.shop.edit("web/deployment.yaml", "web:1.5.0", "web:broken")?;
        self.shop.edit("web/config.yaml", "Fresh bread all day", "Fresh bread, and soon cake")?;
        self.shop.commit("Release web 1.6.0").await?;
        stage.command("git commit -am 'Release web 1.6.0' && git push");
        let mut watch = self.eyes.watch::<Deployment>(self.eyes.shop(), "web").await?;
        let runs = |tag: &'static str| {
            move |web: Option<&Deployment>| web.is_some_and(|web| image(web).ends_with(tag))
        };
        let (broken, pushed) =
            self.pushed(&mut watch, "Deployment web with the broken image", runs(":broken")).await?;
        stage.seen(&format!("the Deployment has the image {}", after(broken, pushed)));
        let back = watch.until("Deployment web with image web:1.5.0 again", LIMIT, runs("web:1.5.0")).await?;
        stage.seen(&format!(
            "and the one before it again {} later",
            time(back.saturating_duration_since(broken))
        ));
        let mut log_line = None;
        until("rhumb's log to say why", LIMIT, async || {
            log_line = self.daemon.as_ref().and_then(|daemon| daemon.says("it is back at revision"));
            Ok(if log_line.is_some() { Ok(()) } else { Err("it does not".to_owned()) })
        })
        .await?;
        stage.quote(&format!("rhumb: {}", log_line.unwrap_or_default()));
        let configuration: Api<ConfigMap> = self.eyes.shop();
        until("the configuration to be the one before it", LIMIT, async || {
            let data =
                configuration.get("web").await.expected("to read ConfigMap web")?.data.unwrap_or_default();
            let greeting = data.get("GREETING").cloned().unwrap_or_default();
            Ok(if greeting == "Fresh bread all day" { Ok(()) } else { Err(greeting) })
        })
        .await?;
        stage.seen("the ConfigMap went back with it; git still asks for 1.6.0, and it is not tried again");
        self.only_ready("web:1.5.0").await
    }

    pub(super) async fn canary(&self, stage: &mut Stage) -> Outcome {
        stage.step("Push an image that works, with one pod as a canary");
        self.soaked(stage).await?;
        self.shop.edit("web/deployment.yaml", "web:broken", "web:1.6.1")?;
        self.shop.edit("web/deployment.yaml", CANARY.0, CANARY.1)?;
        self.shop.commit("Release web 1.6.1 with a canary").await?;
        stage.command("git commit -am 'Release web 1.6.1 with a canary' && git push");
        let mut watch = self.eyes.watch::<Deployment>(self.eyes.shop(), "web").await?;
        let is_held =
            |web: Option<&Deployment>| web.and_then(overlay).is_some_and(|text| text == "surge=1 step=1");
        let (held, _) = self.pushed(&mut watch, "Deployment web held at its first step", is_held).await?;
        let mut seen = (0, 0);
        until("one ready pod on 1.6.1", LIMIT, async || {
            seen = self.eyes.ready_pods("web", "web:1.6.1").await?;
            Ok(if seen == (1, 5) { Ok(()) } else { Err(format!("{} of {}", seen.0, seen.1)) })
        })
        .await?;
        stage.seen("1 pod of 5 runs 1.6.1 and is ready; the 4 old ones serve");
        let is_free = |web: Option<&Deployment>| web.is_some_and(|web| overlay(web).is_none());
        let free = watch.until("Deployment web to be let go", LIMIT, is_free).await?;
        self.only_ready("web:1.6.1").await?;
        stage.seen(&format!(
            "let go after {}; all 4 pods run 1.6.1",
            time(free.saturating_duration_since(held))
        ));
        Ok(())
    }

    pub(super) async fn undo(&self, stage: &mut Stage) -> Outcome {
        stage.step("Take the last release back by hand");
        self.soaked(stage).await?;
        stage.command("rhumb rollout undo deploy/shop/web");
        let mut watch = self.eyes.watch::<Deployment>(self.eyes.shop(), "web").await?;
        let ordered = Instant::now();
        let output = self.rhumb.once(&["rollout", "undo", "deploy/shop/web"])?;
        stage.quote(&String::from_utf8_lossy(&output.stdout));
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(Failure::new("exit code 0", format!("{}: {said}", output.status)));
        }
        let is_back = |web: Option<&Deployment>| web.is_some_and(|web| image(web).ends_with("web:1.5.0"));
        let back = watch.until("Deployment web with image web:1.5.0", LIMIT, is_back).await?;
        stage.seen(&format!(
            "the Deployment has the image of 1.5.0 after {}; git's commit before, with the broken image, is passed over",
            time(back.saturating_duration_since(ordered))
        ));
        self.only_ready("web:1.5.0").await?;
        stage.seen("it stays so until its content changes in git, or until `rhumb rollout retry`");
        Ok(())
    }

    /// Waits until what was rolled out before counts as good: it must have been whole for the soak.
    async fn soaked(&self, stage: &mut Stage) -> Outcome {
        let begun = Instant::now();
        let budget: Api<ConfigMap> = Api::namespaced(self.eyes.client.clone(), "rhumb-system");
        until("nothing to be rolled out", LIMIT, async || {
            let budget = budget.get_opt("rollout-budget.rhumb.dev").await.expected("to read the budget")?;
            let claims = budget.and_then(|budget| budget.data?.remove("claims")).unwrap_or_default();
            let free = claims.is_empty() || claims.starts_with(r#"{"claims":[],"units":[]"#);
            Ok(if free { Ok(()) } else { Err(claims) })
        })
        .await?;
        stage.note(&format!(
            "(what was rolled out before counts as good now, after {} more)",
            time(begun.elapsed())
        ));
        Ok(())
    }
}

fn overlay(web: &Deployment) -> Option<&String> {
    web.metadata.annotations.as_ref()?.get("rhumb.dev/overlay")
}
