"""Messages and advice, which speak of calls in Python, in the words of the command line."""

from __future__ import annotations

import re

__all__ = ["as_options"]

# What messages say, as a regular expression, and what it is on the command line; they apply one after another.
WORDS: tuple[tuple[str, str], ...] = (
    (r"graph\.with_gold\(graph\.gold, classes=\[\.\.\.\]\)", "--class NAME"),
    (r"graph\.with_gold\(\{[^}]*\}\)", "--gold FILE"),
    (r"(?:CrowdGraph\.)?from_responses\(\.\.\., ([^()]*)\)", r"\1"),
    (r"duplicates='first' or 'last' when building the graph", "--duplicates first or --duplicates last"),
    (r"\bkind='([^']*)'", r"--format \1"),
    (
        r"\b(volunteer|item|label|time|delimiter|encoding|missing|duplicates|task|workflow|model|policy)='([^']*)'",
        r"--\1 \2",
    ),
    (r"columns=\{'time': ''\}", "--no-time"),
    (r"\bmin_responses\b(?:=\.\.\.)?", "--min-responses"),
    (r"\bn_(volunteers|items|responses|communities)=", r"--\1 "),
    (r"\b(capacity|budget|snapshots|folds)(?==)", r"--\1"),
    (r"\bvotes=\{[^}]*\}", "--vote LABEL=CLASS"),
    (r"\bvotes=", "--vote"),
    (r"classes=\[\.\.\.\]", "--class NAME"),
    (r"\buse force\b", "use --force"),
    (r"\buse MajorityVote or MeanScore\b", "use --model majority_vote or --model mean_score"),
    (r"\buse DynIBCC\b", "use --model dynibcc"),
    (r"\bGive a time column\b", "Name a column with --time"),
    (r"(?:\bcg|\bcrowdgraph)\.evaluation\.cross_validate\b(?:\([^()]*\))?", "crowdgraph evaluate"),
    (r"\bcg\.allocation\b", "crowdgraph allocate"),
    (r"\bgraph = graph\.annotate\(cg\.DynIBCC\(\)\.fit\(graph\)\)", "--model dynibcc"),
    (r"\bgraph = graph\.annotate\(cg\.IBCC\(\)\.fit\(graph\)\)", "--model ibcc"),
    (r"\bgraph = graph\.annotate\(cg\.dynamics\.over_time\([^()]*\)\)", "--snapshots 4"),
    # What no option does.
    (r"leave them out(?: with|:) graph\.(?:subgraph|window)\([^()]*\)", "leave their rows out of the file"),
    (r"graph\.subgraph\([^()]*\)\.diagnose\(\)", "each as a file of its own"),
    (r"on their own: graph\.before\(\.\.\.\), graph\.window\(\.\.\.\)", "on their own, as two files"),
    (r": fit\.influence\([^()]*\)", ""),
    (r"\bor learn it with (IBCC\()", r"or, in Python, learn it with \1"),
    (r"\buse (malformed='skip') to leave such rows out", r"leave such rows out, in Python with \1"),
    (r"\bRaise (max_iter|max_draws)\b", r"In Python, raise \1"),
)


def as_options(message: str) -> str:
    """Calls of Python in a message as options of the command.

    Examples
    --------
    >>> as_options("Use missing='drop', or add gold with graph.with_gold({item: class, ...}).")
    'Use --missing drop, or add gold with --gold FILE.'
    """
    for said, meant in WORDS:
        message = re.sub(said, meant, message)
    return message
