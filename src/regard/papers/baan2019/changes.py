"""baan2019, section 5: components swapped between models, and models pruned to their hubs."""

from __future__ import annotations

from regard.display import Bars, Figure, Rule, Table
from regard.instruments.interventions.prune import cut_down
from regard.instruments.interventions.swap import exchange
from regard.papers.baan2019._lookup import MODELS, SPLITS, Lookup, draw_splits, read_splits
from regard.papers.framework import EXPERIMENTS, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import draw_shares
from regard.statistics import Estimate

# Table 4: components of a baseline put into a guided model, and of a guided one into a baseline,
# of which the paper has the whole encoder and decoder alone.
COMPONENTS = ("encoder", "encoder.embedding", "encoder.W_ih", "encoder.W_hh",
              "decoder", "decoder.embedding", "decoder.W_ih", "decoder.W_hh")  # fmt: skip
# NC in Table 4, of guided models as they were and with a baseline's component.
PAPER = dict(zip(("", *COMPONENTS), (0.82, 0.17, 0.75, 0.89, 0.79, 0.12, 0.31, 0.60, 0.91),
                 strict=True))  # fmt: skip
INTO_BASELINE = {"quick": ("encoder", "decoder"), "full": COMPONENTS}
PAIRS = {"quick": 1, "full": 5}  # the paper has 3
KEEP = 0.05
EPOCHS = 20  # of retraining a pruned model


@EXPERIMENTS.register("baan2019/swap")
class SwapExperiment(Lookup):
    """Components of one model frozen inside the other."""

    title = "Component substitution"
    about = (
        "New compositions after a component of the other kind of model was put in, frozen, and"
        " the rest trained as before with a fresh optimiser (Table 4), in both directions. Models"
        " are those of the fast recipe, for time."
    )
    claims = ("baan.swap",)

    def plan(self, scale: Scale) -> Plan:
        """Guided models and baselines by the fast recipe."""
        return self.plan_fast(scale)

    def then(self, runs: Runs, scale: Scale) -> Plan:
        """One condition per component; quick: one pair, a third of the time."""
        guided, baseline = (runs[name][: PAIRS[scale]] for name in MODELS)
        plan: Plan = {}
        for into, donors, components, name in (
            (guided, baseline, COMPONENTS, "guided"),
            (baseline, guided, INTO_BASELINE[scale], "baseline"),
        ):
            updates = None if scale == "full" else into[0].config.training.updates // 3
            for component in components:
                plan[f"{name} with {component}"] = [
                    exchange(a, b, component, updates=updates).config(a.folder.parent)
                    for a, b in zip(into, donors, strict=True)
                ]
        return plan

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """NC of every condition."""
        pairs = len(runs["guided with encoder"])
        whole = {name: read_splits(runs[name][:pairs]) for name in ("guided", "baseline")}
        mixed = {
            name: {part: read_splits(runs[f"{name} with {part}"]) for part in components}
            for name, components in (("guided", COMPONENTS), ("baseline", INTO_BASELINE[scale]))
        }
        found = {"reference": whole["guided"]["NC"], "reference_baseline": whole["baseline"]["NC"]}
        panels = []
        for colour, (name, start, title) in enumerate(
            (("guided", "", "Baseline parts, guided models"),
             ("baseline", "baseline_", "Guided parts, baselines"))
        ):  # fmt: skip
            new = {part: splits["NC"] for part, splits in mixed[name].items()}
            found |= {start + part.replace(".", "_"): value for part, value in new.items()}
            rule = Rule(f"{name} as it was", y=whole[name]["NC"].mean)
            panels.append(draw_shares(title, "component", "NC", Bars.of(name, new, colour), rule))
        rows = (
            ("guided", "", *whole["guided"].values(), PAPER[""]),
            *(
                (name, part, *s.values(), PAPER[part] if name == "guided" else None)
                for name in mixed
                for part, s in mixed[name].items()
            ),
            ("baseline", "", *whole["baseline"].values(), None),
        )
        return Findings.of(
            {"baan.swap": found},
            Table(
                f"Sequence accuracy after substitution, {pairs} pairs (Table 4)",
                ("model", "component of the other", *SPLITS, "NC in the paper"),
                rows,
            ),
            Figure.of(
                "baan-swap",
                "New compositions (NC) after a component of the other kind of model was frozen"
                f" inside and the rest retrained (Table 4), {pairs} pairs.",
                *panels,
            ),
        )


@EXPERIMENTS.register("baan2019/prune")
class PruneExperiment(Lookup):
    """Only the strongest units."""

    title = "Neuron pruning"
    about = (
        "Guided models with only the 5 % most strongly connected units of encoder and decoder, at"
        " once and after 20 epochs of retraining, with the mask held and without (section 5.2)."
    )
    claims = ("baan.prune",)

    def then(self, runs: Runs, scale: Scale) -> Plan:
        """Retraining in both ways."""
        epochs = EPOCHS if scale == "full" else 5
        plan: Plan = {"mask held": [], "mask free": []}
        for run in runs["guided"]:
            cut = cut_down(run, KEEP, "units", epochs=epochs)
            for way, configs in plan.items():
                config = cut.going_on(keep_zeros=way == "mask held").config(run.folder.parent)
                configs.append(config)
        return plan

    def plan(self, scale: Scale) -> Plan:
        """Guided models alone."""
        return {"guided": self.plan_models(scale, 1)}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Every split at every stage."""
        cut = [cut_down(run, KEEP, "units").metrics() for run in runs["guided"]]
        stages: dict[str, Measures] = {
            "as it was": read_splits(runs["guided"]),
            "pruned": {split: Estimate.share(m[split] for m in cut) for split in SPLITS},
            "retrained, mask free": read_splits(runs["mask free"]),
            "retrained, mask held": read_splits(runs["mask held"]),
        }
        new = (values["NC"] for values in stages.values())
        return Findings.of(
            {"baan.prune": dict(zip(("full", "pruned", "free", "held"), new, strict=True))},
            Table(
                f"The strongest {KEEP:.0%} of units, {len(cut)} models",
                ("stage", *SPLITS),
                tuple((stage, *values.values()) for stage, values in stages.items()),
            ),
            Figure.of(
                "baan-prune",
                f"Sequence accuracy of guided models with only their strongest {KEEP:.0%} of"
                " units, at once and retrained; without a held mask what was pruned can grow"
                f" back. {len(cut)} seeds.",
                draw_splits("By split", stages),
            ),
        )
