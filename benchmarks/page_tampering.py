"""`python -m benchmarks.page_tampering`: alter one digit of a page, many times, and count the seals that turn red.

Half of the digits are altered in what the page says or draws, half in what it carries for its proof.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.browser import browser, find_chromium
from benchmarks.reporting import say


def tamper(page: str, rng: np.random.Generator) -> tuple[str, str]:
    """The page with one digit altered, and the words around it."""
    proof = page.index('id="proof">') + len('id="proof">')
    if rng.random() < 0.5:
        start, end = page.index("</p>", page.index('id="seal"')), page.index("</main>")
        drawn = re.compile(r'\s(?:d|points|x|y|cx|cy|r|width|height)="([^"]*)"')
        inside = {place for m in drawn.finditer(page, start, end) for place in range(*m.span(1))}
        places = [at for at in range(start, end) if page[at].isdigit() and (at in inside or _is_shown(page, at))]
    else:
        places = [at for at in range(proof, page.index("</script>", proof)) if page[at].isdigit()]
    place = int(rng.choice(places))
    other = str((int(page[place]) + int(rng.integers(1, 10))) % 10)
    return page[:place] + other + page[place + 1 :], page[max(0, place - 30) : place + 30]


def _is_shown(page: str, place: int) -> bool:
    """Whether a character is text between tags."""
    return page.rfind(">", 0, place) > page.rfind("<", 0, place)


def honest_page() -> str:
    """The page of the bundled penguins, with cross-validation."""
    from certifit.datasets import penguins_table
    from certifit.report import Report, render
    from certifit.table.cross_validation import cross_validate
    from certifit.table.labelled_table import labelled_table
    from certifit.table.table_classifier import TableClassifier

    data = labelled_table(penguins_table(), "species")
    model = TableClassifier().fit(data)
    return render(Report(model, data, cross_validate(model, data), "penguins.csv", {"C": 1.0}, "certifit audit"))


def main(count: int = 100) -> int:
    """Print how many of `count` altered pages were red; 1 where the honest page was not green, or one was not red."""
    if find_chromium() is None:
        say("no Chromium on this machine: nothing was tried")
        return 0
    page, rng, missed = honest_page(), np.random.default_rng(0), []
    with tempfile.TemporaryDirectory() as folder, browser() as tab:
        path = Path(folder) / "page.html"

        def seal(text: str) -> str:
            path.write_text(text, encoding="utf-8")
            tab.open(path)
            return str(tab.value("document.getElementById('seal').className")).removeprefix("seal ")

        honest = seal(page)
        for _ in range(count):
            text, where = tamper(page, rng)
            if seal(text) != "red":
                missed.append(where)
        beyond = [address for address in tab.requests if not address.startswith("file:")]
    print(f"honest page: {honest}; altered pages that are red: {count - len(missed)} of {count}; requests: {beyond}")
    for where in missed:
        print(f"missed: …{where}…")
    return int(honest != "green" or bool(missed) or bool(beyond))


if __name__ == "__main__":
    raise SystemExit(main())
