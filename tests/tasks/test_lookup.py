from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
import torch

from regard.errors import RegardError
from regard.recordings.record import record
from regard.recordings.samples import draw_samples
from regard.runs.config import assemble
from regard.tasks import SPECIAL, Batch
from regard.tasks.lookup.lookup import FILES, Lookup

Words = tuple[str, ...]
DEFAULT = {
    "train": 232, "validation": 16, "test": 328, "HI": 40, "HC": 64, "HT": 192, "NC": 32,
    "longer_seen": 544, "longer_incremental": 1084, "longer_new": 32, "all": 576,
}  # fmt: skip
OTHERS = [
    {},
    {"tables": 5, "bits": 2, "held_out_tables": 1, "held_out_compositions": 3, "held_out": 4},
    {"tables": 11, "bits": 4, "held_out_tables": 4, "held_out_inputs": 5, "tables_seed": 3},
    {"tables": 3, "bits": 1, "held_out_tables": 1, "held_out_compositions": 1,
     "held_out_inputs": 1, "held_out": 1},
]  # fmt: skip


def lookup(**settings: object) -> Lookup:
    return Lookup(Lookup.Config.model_validate(settings))


def in_words(task: Lookup, batch: Batch) -> list[tuple[Words, Words]]:
    return [
        (
            tuple(task.source_vocabulary.decode(source)),
            tuple(task.target_vocabulary.decode(target)),
        )
        for source, target in zip(batch.source.tolist(), batch.target.tolist(), strict=True)
    ]


def sets(task: Lookup) -> dict[str, list[tuple[Words, Words]]]:
    return {name: in_words(task, batch) for name, batch in task.rows.items()}


def compositions(rows: list[tuple[Words, Words]]) -> Counter[Words]:
    return Counter(source[1:] for source, _ in rows)


@pytest.fixture(params=OTHERS, ids=["default", "small", "large", "tiny"])
def task(request: pytest.FixtureRequest) -> Lookup:
    return lookup(**request.param)


def test_counts_are_those_of_the_paper() -> None:
    task = lookup()
    assert {name: len(rows) for name, rows in task.rows.items()} == DEFAULT
    assert (len(task.source_vocabulary), len(task.target_vocabulary)) == (19, 11)
    assert task.source_vocabulary.words[:3] == ("<PAD>", "<SOS>", ".")
    assert task.target_vocabulary.words[:3] == SPECIAL


def test_counts_follow_from_the_sizes(task: Lookup) -> None:
    config = task.config
    k, n, h = config.tables, 2**config.bits, config.held_out_tables
    s, c, i, v = k - h, config.held_out_compositions, config.held_out_inputs, config.held_out
    trained = s * s - c
    counts = {name: len(rows) for name, rows in task.rows.items()}
    held_out = {"HI": trained * i - v, "HC": c * n, "HT": 2 * s * h * n, "NC": h * h * n}
    assert counts == {
        "train": k * n + trained * (n - i),
        "validation": v,
        "test": sum(held_out.values()),
        **held_out,
        "longer_seen": max(1, round(s**3 * 136 / 216)) * (n // 2),
        "longer_incremental": max(1, round(k * k * s * 271 / 384)) * (n // 2),
        "longer_new": h**3 * (n // 2),
        "all": k * n + k * k * n,
    }
    assert len(task.source_vocabulary) == 3 + n + k
    assert len(task.target_vocabulary) == 3 + n


def test_every_row_is_right(task: Lookup) -> None:
    """Tables are read off the rows of one table; all others must follow from them."""
    rows = sets(task)
    results = {source: target[1] for source, target in rows["train"] if len(source) == 2}
    assert len(results) == task.config.tables * 2**task.config.bits
    for name in task.source_vocabulary.words[-task.config.tables :]:
        outputs = [result for (_, table), result in results.items() if table == name]
        assert len(set(outputs)) == len(outputs) == 2**task.config.bits
    for source, target in (row for part in rows.values() for row in part):
        expected = [source[0]]
        for table in source[1:]:
            expected.append(results[expected[-1], table])
        assert target == tuple(expected)


def test_splits_keep_their_rules(task: Lookup) -> None:
    rows, config = sets(task), task.config
    names = task.source_vocabulary.words[-config.tables :]
    first, last = names[: -config.held_out_tables], names[-config.held_out_tables :]
    inputs = 2**config.bits
    train = compositions(rows["train"])
    pairs = {c: count for c, count in train.items() if len(c) == 2}
    assert {c for c in train if len(c) == 1} == {(name,) for name in names}
    assert set(pairs.values()) == {inputs - config.held_out_inputs}
    spared = compositions(rows["validation"] + rows["HI"])
    assert set(spared) == set(pairs)
    assert set(spared.values()) == {config.held_out_inputs}
    unseen = compositions(rows["HC"])
    assert set(unseen) == set(product(first, first)) - set(pairs)
    assert set(compositions(rows["NC"])) == set(product(last, last))
    assert set(compositions(rows["HT"])) == {*product(first, last), *product(last, first)}
    assert rows["test"] == rows["HI"] + rows["HC"] + rows["HT"] + rows["NC"]
    parts = [rows[name] for name in ("train", "validation", "test")]
    assert Counter(rows["all"]) == Counter(row for part in parts for row in part)
    assert max(Counter(rows["all"]).values()) == 1
    for name, allowed in {
        "longer_seen": product(first, repeat=3),
        "longer_incremental": product(names, names, first),
        "longer_new": product(last, repeat=3),
    }.items():
        found = compositions(rows[name])
        assert set(found) <= set(allowed)
        assert set(found.values()) == {inputs // 2}
        assert len(set(rows[name])) == len(rows[name])


def test_attention_is_diagonal_and_never_at_the_end(task: Lookup) -> None:
    for name in task.splits:
        batch = task.split(name)
        assert batch.alignment is not None
        steps = torch.arange(batch.target.shape[1]).expand_as(batch.target)
        assert torch.equal(batch.alignment, steps.masked_fill(~batch.target_mask, -1))
        assert torch.equal(batch.target_lengths, batch.source_lengths - 1)


def test_everything_follows_from_the_tables_seed() -> None:
    assert sets(lookup()) == sets(lookup())
    assert sets(lookup())["HC"] != sets(lookup(tables_seed=1))["HC"]
    tables = [
        [row for row in sets(task)["train"] if len(row[0]) == 2]
        for task in (lookup(), lookup(held_out_compositions=3, held_out=5), lookup(tables_seed=1))
    ]
    assert tables[0] == tables[1] != tables[2]


def test_more_said_than_asked_does_not_count() -> None:
    task = lookup()
    batch = task.split("all")  # of two lengths
    said = torch.where(batch.target_mask, batch.target, 5)
    assert task.correct(said, batch).all()
    assert task.correct(torch.nn.functional.pad(said, (0, 4), value=3), batch).all()
    short = task.correct(batch.target[:, :2], batch)
    assert torch.equal(short, batch.target_lengths == 2)


def test_recordings_look_at_all_rows() -> None:
    assert sum(len(piece) for piece in draw_samples(lookup(), 1000)) == 576


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"held_out_tables": 8}, "task.held_out_tables=8 of 8 tables leaves none"),
        ({"held_out_compositions": 36}, "task.held_out_compositions=36 of 36 pairs"),
        ({"held_out_inputs": 8}, "task.held_out_inputs=8 of 8 strings leaves none"),
        ({"held_out": 56}, "task.held_out=56 of 56 rows with held-out inputs leaves none to test"),
        ({"tables": 100}, "task.tables=100 with task.bits=3 make more than 1,000,000 rows"),
    ],
)
def test_sizes_that_leave_nothing_are_told(settings: dict[str, int], says: str) -> None:
    with pytest.raises(RegardError, match=says):
        lookup(**settings)


def test_all_sizes_that_do_not_fit_are_told_at_once() -> None:
    with pytest.raises(RegardError) as caught:
        lookup(held_out_compositions=36, held_out_inputs=8)
    assert len(caught.value.faults) == 2


def write(task: Lookup, folder: Path, *without: str) -> Path:
    """The task's rows as files like the published ones."""
    folder.mkdir(exist_ok=True)
    for name, file in {**FILES, "all": "all"}.items():
        if file not in without:
            lines = [
                f"{' '.join(source)} .\t{' '.join(target)}\t"
                f"{' '.join(str(n) for n in range(len(target)))}\n"
                for source, target in in_words(task, task.rows[name])
            ]
            (folder / f"{file}.tsv").write_text("".join(lines), encoding="utf-8")
    return folder


def test_files_give_the_same_task(tmp_path: Path) -> None:
    made = lookup(tables=11, tables_seed=2)
    read = lookup(data=str(write(made, tmp_path)))
    assert (read.source_vocabulary, read.target_vocabulary) == (
        made.source_vocabulary,
        made.target_vocabulary,
    )
    assert sets(read) == sets(made)
    assert torch.equal(read.train_batch(3, 8, 0).source, made.train_batch(3, 8, 0).source)


def test_all_rows_can_be_worked_out(tmp_path: Path) -> None:
    made = lookup()
    read = lookup(data=str(write(made, tmp_path, "all")))
    assert Counter(sets(read)["all"]) == Counter(sets(made)["all"])


def test_all_rows_are_checked(tmp_path: Path) -> None:
    write(lookup(), tmp_path)
    write(lookup(tables_seed=1), tmp_path, *FILES.values())
    with pytest.raises(RegardError, match=r"all\.tsv differs in \d+ rows from what training"):
        lookup(data=str(tmp_path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    write(lookup(), tmp_path, "new_compositions")
    with pytest.raises(RegardError, match=r"has no new_compositions\.tsv\. .* hold train\.tsv, "):
        lookup(data=str(tmp_path))


def test_sizes_are_refused_where_files_are_given(tmp_path: Path) -> None:
    write(lookup(), tmp_path)
    with pytest.raises(RegardError) as caught:
        lookup(data=str(tmp_path), tables=6, held_out=20)
    assert caught.value.faults == (
        "task.tables=6 has no effect on the files in task.data. Leave it out.",
        "task.held_out=20 has no effect on the files in task.data. Leave it out.",
    )
    again = lookup(**lookup(data=str(tmp_path)).config.model_dump())
    assert len(again.rows["train"]) == 232, "a configuration that was kept can be read again"


def test_other_content_makes_another_run(tmp_path: Path) -> None:
    names = []
    for seed in (0, 1, 0):
        write(lookup(tables_seed=seed), tmp_path)
        names.append(assemble("lookup", "chapter36", 0, {"data": str(tmp_path)}).name)
    assert names[0] == names[2] != names[1]


def test_published_files_have_the_same_sizes_and_rules(real: Callable[[str], Path]) -> None:
    folder = real("lookup/sample1")
    task = lookup(data=str(folder))
    assert {name: len(rows) for name, rows in task.rows.items()} == DEFAULT
    assert task.source_vocabulary == lookup().source_vocabulary
    assert task.target_vocabulary == lookup().target_vocabulary
    test_every_row_is_right(task)
    test_splits_keep_their_rules(task)
    test_attention_is_diagonal_and_never_at_the_end(task)


def test_pairs_to_record_have_no_end_either() -> None:
    config = assemble("lookup", "ao", 0, {"hidden": 8, "updates": 0})
    task = config.make_task()
    pairs = [(("010", "t1"), ("010", "101"))]
    recording = record(config.make_model(task), task=task, pairs=pairs)
    assert recording.storage.shape("encoder.words") == (1, 3)
    assert recording.storage.shape("decoder.words") == (1, 2)
