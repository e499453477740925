//! The codes of reasons: stable words for machines. They stay as they are while a sentence changes.
//!
//! The words are those of Kubernetes' conditions, in upper camel case. A code that was given away
//! keeps its meaning for ever.

use std::fmt;

/// Makes a set of codes of one list, so that none of them is without a word and a meaning.
macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($code:ident => $meaning:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum $name {
            $(#[doc = $meaning] $code,)+
        }

        impl $name {
            /// All of them, in the order in which the reference lists them.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$code,)+];

            /// Returns the word.
            pub(crate) const fn word(self) -> &'static str {
                match self {
                    $(Self::$code => stringify!($code),)+
                }
            }

            /// Returns the meaning, as Markdown in full sentences.
            pub(crate) const fn description(self) -> &'static str {
                match self {
                    $(Self::$code => $meaning,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

codes! {
    /// The code of a reason.
    ReasonCode {
        WaitingForFirstList => "The first list of a kind is not complete yet.",
        WatchFailed => "A kind cannot be watched.",
        WaitingForInventory => "The inventory of the source is being written.",
        KindNotServed => "The API server does not serve the kind.",
        KindUnknown => "The API server cannot say now whether it serves the kind.",
        WaitingForDependency => "Another object has to come first.",
        WaitingForWave => "An earlier wave is not finished.",
        WaitingForBudget => "The rollout budget does not allow it now.",
        WritingClaim => "The claim on the rollout budget is being written.",
        RecordUnreadable => "One of rhumb's own records has to be repaired by a person.",
        WaitingForUnit => "The workload that it is released with has not started to roll out.",
        StepInProgress => "The rollout goes in steps, and one of them holds it.",
        ContentRejected => "The desired content failed, or a person undid it.",
        RolloutFailed => "The rollout failed.",
        OrderAnswered => "A person gave an order. It was carried out, or nothing was to be done.",
        Paused => "A person paused the object or its source.",
        OnHold => "A person holds the object for a time.",
        RefusedByServer => "The API server refuses the content.",
        OwnedByOther => "The object belongs to somebody else.",
        NotAdopted => "The object exists, and the source does not take over objects.",
        ManifestUnusable => "The manifest cannot be used.",
        UnitTooLarge => "The record of what is released together would be too large.",
        GeneratedValuesMismatch => "A chart made up values, and other objects have those of another render.",
        Terminating => "The object is being deleted.",
        WaitingForWatch => "The watch does not show rhumb's last write yet.",
        Retrying => "The last try failed, and is repeated.",
        CompetingWriter => "Somebody undoes each repair.",
        ReadingRevision => "The content is being read from an older revision.",
        KeyUnavailable => "The key that seals recorded hashes is not available.",
        ReadingObject => "Another object is being read.",
        SourceIncomplete => "The source was not read completely.",
        PruneDeferred => "No source wants the object any more. It is deleted once something has passed.",
        PruneNeedsConfirmation => "No source wants the object any more. It is deleted once a person confirms.",
        Kept => "No source wants the object any more, or none may have it, and it stays.",
        LeftAlone => "The manifest asks to leave the object alone.",
        OptedOut => "An annotation on the live object asks to leave it alone.",
        ReadingOtherSources => "The statements of other sources are being read.",
        SourceObserved => "The source is only observed.",
    }
}

codes! {
    /// The code of the cause that is inside a reason.
    CauseCode {
        KindUndiscovered => "Discovery does not name the kind now.",
        GroupUnavailable => "The server of the API group does not answer.",
        NamespaceNotWatched => "The source does not watch the namespace of the object.",
        NotFound => "The other object is not there yet.",
        NotNamed => "No source names the other object.",
        BeingDeleted => "The other object is being deleted.",
        Unhealthy => "The other object is not healthy.",
        NotChanged => "The other object does not show its newest content yet.",
        RollingOut => "The other object is being rolled out.",
        Soaking => "The other object was rolled out, and is watched for a while.",
        RollingBack => "The other object is rolled back first.",
        DependencyRefused => "The API server refuses the other object.",
        DependencyUnusable => "The manifest of the other object cannot be used.",
        DependencyContested => "Several sources want the other object.",
        DependencyPaused => "The other object is paused.",
        MaxWorkloads => "`maxWorkloads` workloads roll out already.",
        SlowStart => "The first rollouts of a revision have to succeed before more start.",
        MaxUnavailable => "`maxUnavailable` pods are unavailable already.",
        TakesDownTooMany => "The workload takes down more pods at once than `maxUnavailable` allows.",
        MaxStarts => "`startsPerMinute` rollouts have started in the last minute.",
        BehindAnother => "An earlier request waits for the budget.",
        LedgerRecreated => "The rollout ledger was made anew, and others write their claims again.",
        StepPodsPending => "Not all new pods of the step are ready.",
        NodeNotReady => "A node that needs the new pod is not Ready.",
        SurplusPods => "A scale gave the new template more pods than the step allows.",
        ContentQuarantined => "The object stays as it is.",
        ContentRolledBack => "The object is back at the content before.",
        ContentUnaffected => "The object keeps its content, as its unit was rolled back.",
        RollbackUnreadable => "The object is back at a content whose revision cannot be read any more.",
        PodFailing => "A new pod fails.",
        PodRefused => "No new pod can be created.",
        StatusFailed => "The status of the workload says that its rollout failed.",
        ProgressStalled => "The rollout made no progress in time.",
        RecreationRefused => "The workload was deleted, and the API server refuses to create it again.",
        WorkloadMissing => "The workload was deleted to be created again, and was not there in time.",
        RepairWithheld => "A change by somebody else is not repaired.",
        ContentWithheld => "A newer content is not applied.",
        DeletionWithheld => "A deletion is not carried out.",
        OwnedBySource => "Another source has the object.",
        OwnedByFormerSource => "Another source has the object, and no longer wants it.",
        OwnedByApplySet => "An ApplySet has the object, and its source is not known.",
        OwnedByTool => "A controller or another tool has the object.",
        StepPromoted => "The rollout goes on from its step.",
        RolloutAborted => "The rollout goes back, as a person aborted it.",
        RevisionUndone => "The objects go back, as a person undid a revision.",
        RejectionRetried => "Failed content is tried again.",
        DeletionsConfirmed => "Deletions are confirmed.",
        NothingDone => "The order had no effect.",
        FieldImmutable => "A field would change that never changes.",
        RecreationForbidden => "The object could be deleted and created again, and may not.",
        AnnotationStripped => "The server does not keep the release annotation.",
        LabelStripped => "The server does not keep the label of the inventory.",
        WriteConflict => "Another client wrote first.",
        LedgerFull => "The rollout ledger has no room for the record of what is released together.",
        FieldsChanged => "Somebody changes the same fields.",
        ObjectDeleted => "Somebody deletes the object.",
        NeverRead => "The source has not been read yet.",
        FileUnreadable => "A file of the source is not understood.",
        FolderNotRendered => "The folder that the manifest comes from is not rendered.",
        DefinedTwice => "The source defines the object several times.",
        WantedBySeveral => "Several sources want the object, and none of them has it.",
        HadByFirst => "Several sources want the object, and one of them has it.",
        DependencyCycle => "Objects depend on each other in a circle.",
        DependencyInLaterWave => "The object depends on one of a later wave.",
        ReconcileDisabled => "The manifest asks not to reconcile the object.",
        OnlyCreated => "The manifest asks to create the object only where it is missing.",
        UsedByKept => "An object that is kept uses it.",
        NotAllowed => "The source may not have the object any more.",
        KeptByAnnotation => "An annotation asks to keep the object.",
        Unproven => "No seal proves that rhumb made the object.",
        RootNotRendered => "A root that does not render may want the object.",
        WantedByOther => "Another source wants the object, or may.",
        MovedInRepository => "Another folder of the repository has the object, or may.",
        OtherLocation => "The inventory was made from another location.",
        LosesData => "The deletion would lose data, or take other objects along.",
        ConfirmationRequested => "An annotation asks for a confirmation.",
        KeptListIncomplete => "Not all objects that are to be kept are known.",
        BlastRadius => "More objects would go at once than the blast radius allows.",
        AllOfKind => "All objects of a kind would go.",
        UnitUnfinished => "A change of the same unit is not finished.",
        UsedByPruned => "Another object that is to go uses it.",
        PruneOff => "`prune` is off.",
        NotInFiles => "Single files were given, and the object is in none of them.",
        SealsUnchecked => "Seals cannot be checked.",
        SealKeyUnread => "The key of the seals is being read.",
        SourceNotObserved => "Another source that may want the object has to be observed again.",
        ScopeUnknown => "It is not known whether a kind of the source is namespaced.",
        SourceNotRead => "The source was not read completely.",
        InventoryUnread => "The inventory is being read.",
        FoldersUnsearched => "The other folders of the repository are searched for objects that moved.",
        RevisionUnrecorded => "The inventory does not record the revision as accepted yet.",
        KindNotListed => "A kind cannot be listed.",
        ContentUnread => "The last content of an object is being read.",
        TakeoverPeriod => "Other sources have some time to take the object over.",
        NotDecided => "The prune guard has not decided about the object yet.",
    }
}
