"""Results of checks as JUnit XML, which every CI server shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple
from xml.etree import ElementTree

from certifit.core import Certificate


class CheckedCase(NamedTuple):
    """One thing that was checked; `failure` says what is wrong, or is empty."""

    name: str
    failure: str = ""


def certificate_cases(certificate: Certificate) -> list[CheckedCase]:
    """The claim as a whole, and each of its checks."""
    whole = "" if certificate.holds else "; ".join(certificate.failures()) or "the claim does not hold"
    cases = [CheckedCase(f"{certificate.kind}: {certificate.claim}", whole)]
    for check in certificate.checks:
        wrong = "" if check.passed else f"{check.residual:.3g}, allowed {check.limit:.3g}"
        cases.append(CheckedCase(check.name, wrong))
    return cases


def junit_xml(suite: str, cases: Sequence[CheckedCase], output: str = "") -> bytes:
    """A JUnit file of one suite.

    >>> cases = [CheckedCase("holds"), CheckedCase("table", "another")]
    >>> print(junit_xml("audit", cases).decode())  # doctest: +ELLIPSIS
    <?xml version='1.0' encoding='utf-8'?>
    <testsuites><testsuite name="audit" tests="2" failures="1" errors="0"...
    """
    failures = sum(bool(case.failure) for case in cases)
    counts = {"tests": str(len(cases)), "failures": str(failures), "errors": "0"}
    root = ElementTree.Element("testsuites")
    found = ElementTree.SubElement(root, "testsuite", {"name": _plain(suite), **counts})
    for case in cases:
        one = ElementTree.SubElement(found, "testcase", {"classname": "certifit.audit", "name": _plain(case.name)})
        if case.failure:
            ElementTree.SubElement(one, "failure", {"message": _plain(case.failure)})
    ElementTree.SubElement(found, "system-out").text = _plain(output)
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)


def _plain(text: str) -> str:
    """Text without characters that XML cannot hold."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)
