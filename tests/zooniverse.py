"""A Zooniverse export like those of real projects: two workflows, all kinds of tasks, and all that goes wrong."""

import csv
import json
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

COLUMNS = (
    "classification_id",
    "user_name",
    "user_id",
    "user_ip",
    "workflow_id",
    "workflow_name",
    "workflow_version",
    "created_at",
    "gold_standard",
    "expert",
    "metadata",
    "annotations",
    "subject_data",
    "subject_ids",
)
ANIMAL, NO_ANIMAL, UNSURE = "Yes, an animal", "No animal", "I can't tell"
DOING = ("Eating", "Moving", "Resting")
SPECIES = ("ZEBRA", "LION", "NTHNGHR")
QUESTIONS = {
    "T0": "Is there an animal in the picture?",
    "T1": "What is it doing?",
    "T2": "How much of the picture does it fill?",
    "T3": "Anything else?",
}


@dataclass
class Export:
    """Rows of an export, and how many of them are of which sort."""

    rows: list = field(default_factory=list)
    counts: Counter = field(default_factory=Counter)
    truth: dict = field(default_factory=dict)

    def write(self, path):
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([COLUMNS, *self.rows])
        return path

    def add(self, sort, **cells):
        number = len(self.rows)
        row = {
            "classification_id": 500_000 + number,
            "user_name": "anna",
            "user_id": "7",
            "user_ip": "deadbeef",
            "workflow_id": "21001",
            "workflow_name": "Animal or not",
            "workflow_version": "14.41",
            "created_at": f"2026-01-{1 + number // 80 % 28:02} {number % 24:02}:{number % 60:02}:07 UTC",
            "gold_standard": "",
            "expert": "",
            "metadata": json.dumps({"session": f"s{number // 5}", "user_agent": "Mozilla, or so"}),
            "annotations": "[]",
            "subject_data": subject_data("9001"),
            "subject_ids": "9001",
            **cells,
        }
        self.rows.append([row[name] for name in COLUMNS])
        self.counts[sort] += 1


def entry(task, value, **more):
    return {"task": task, "task_label": QUESTIONS.get(task, ""), "value": value, **more}


def subject_data(subject, *, retired=False):
    retirement = {"workflow_id": 21001, "retired_at": "2026-02-01", "retirement_reason": "consensus"}
    data = {"retired": retirement if retired else None, "Filename": f"cam-{subject}.jpg", "#site": "north"}
    return json.dumps({subject: data})


def realistic(*, n_subjects=60, n_volunteers=14, each=8, seed=0):
    """Return an export of both workflows; `each` is how many people classify a subject."""
    rng, export = np.random.default_rng(seed), Export()
    for subject in range(9000, 9000 + n_subjects):
        is_animal = bool(rng.random() < 0.6)
        doing = [name for name in DOING if is_animal and rng.random() < 0.5]
        export.truth[str(subject)] = ANIMAL if is_animal else NO_ANIMAL
        shared = {"subject_ids": str(subject), "subject_data": subject_data(str(subject), retired=subject % 10 == 0)}
        for person in rng.choice(n_volunteers, each, replace=False).tolist():
            name = f"not-logged-in-{person:02x}" if person < 4 else f"user_{person}"
            who = {"user_name": name, "user_id": "" if person < 4 else str(person)}
            version = {"workflow_version": "12.35" if rng.random() < 0.3 else "14.41"}
            says = is_animal if rng.random() < 0.9 else not is_animal
            answers = [entry("T0", UNSURE if rng.random() < 0.05 else ANIMAL if says else NO_ANIMAL)]
            if says:
                ticked = [option for option in DOING if (option in doing) == (rng.random() < 0.9)]
                inner = [entry("T1", ticked), entry("T2", str(int(rng.integers(0, 101))))]
                answers += [{"task": "T9", "task_label": None, "value": inner}]
            answers.append(entry("T3", "" if rng.random() < 0.8 else f"remark {len(export.rows)}"))
            export.add("animal", **shared, **who, **version, annotations=json.dumps(answers))
            if rng.random() < 0.02:
                export.add("repeated", **shared, **who, **version, annotations=json.dumps(answers[:1]))
        if subject % 6 == 0:
            mark = {"gold_standard": "true", "expert": "expert", "user_name": "the_owner"}
            export.add("gold", **shared, **mark, annotations=json.dumps([entry("T0", export.truth[str(subject)])]))
        for person in rng.choice(n_volunteers, 4, replace=False).tolist():
            chosen = [SPECIES[subject % 2] if is_animal else "NTHNGHR"]
            chosen += ["LION"] if is_animal and rng.random() < 0.1 else []
            value = [
                {"choice": name, "answers": {"HWMN": "3", "DNG": ["MVNG", "TNG"]}, "filters": {}}
                for name in dict.fromkeys(chosen)
            ]
            workflow = {"workflow_id": "21002", "workflow_name": "Which species?", "workflow_version": "3.1"}
            annotations = json.dumps([{"task": "T0", "task_label": "Which species?", "value": value}])
            export.add("survey", **shared, **workflow, user_name=f"user_{person}", annotations=annotations)
    for broken in ('[{"task": ', "{}", '[{"value": 1}]'):
        export.add("broken", annotations=broken)
    export.add("unanswered", annotations=json.dumps([entry("T0", None)]))
    return export
