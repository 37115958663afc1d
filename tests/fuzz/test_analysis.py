"""The analyser of texts and queries under any text: by hypothesis, and by atheris where it is installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fuzz.analysing import check

COMMON: Any = {"deadline": None, "database": None, "suppress_health_check": [HealthCheck.too_slow]}
QUICK = settings(max_examples=400, derandomize=True, phases=[Phase.generate], **COMMON)
HEAVY = settings(max_examples=40_000, print_blob=True, **COMMON)
ROOT = Path(__file__).parents[2]

PIECES = [
    "tea", "teas", "the", "running", "don't", "tools/run.py", "a_b-c.d", "e=mc2", "v1.2.3", "C++",
    "#tag", "straße", "İı", "ﬁﬃ", "ＡＢＣ", "①②", "½", "緑茶", "お茶が好き", "ข้าวผัด", "서울에서", "مُحَمَّد",
    "שלום", "हिन्दी", "ভাষা", "книга", "Ελλάδα", "🍕", "👍🏽", "👩‍👩‍👧", "🇩🇪", "\u0301", "\u200d",
    "\u200b", "\ufe0f", "\u202e", "\ufeff", "\0", "\ud800", "\udc00", "\n", "a\u0301\u0323",
    "\u1100\u1161", "\U000e0067", "\U0010ffff", "_", "__", "'", '"', "\\", "%", "NOT", "@7", "1_a",
    "x" * 700,
]  # fmt: skip
texts = st.one_of(
    st.text(max_size=60),
    st.lists(st.one_of(st.sampled_from(PIECES), st.characters(), st.just(" ")), max_size=30).map("".join),
)


@pytest.mark.parametrize("extent", [QUICK, pytest.param(HEAVY, marks=pytest.mark.heavy)], ids=["quick", "heavy"])
def test_the_analyser_keeps_its_promises_for_any_text(extent: settings) -> None:
    extent(given(texts)(check))()


@pytest.mark.parametrize(
    "text", ["\u302f", "a \u302e", "\u3030\u302f", "\u302f\uac00", "\uac00\u302f tea", "\u1734", "\u302a"]
)
def test_a_mark_of_hangul_without_a_syllable_is_no_word(text: str) -> None:
    check(text)


def test_a_promise_that_is_broken_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adk_memory._analysis.query_terms", lambda _text: ["coffee"])

    with pytest.raises(AssertionError):
        check("tea")


@pytest.mark.heavy
@pytest.mark.skipif(find_spec("atheris") is None, reason="atheris is not installed: there is no wheel for every Python")
def test_atheris_finds_no_text_that_breaks_a_promise(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])])
    ran = subprocess.run(
        [sys.executable, ROOT / "tests/fuzz/fuzz_analysis.py", "-max_total_time=30", "-max_len=400", "-timeout=20"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert ran.returncode == 0, ran.stderr[-3_000:]
    runs = re.findall(r"Done (\d+) runs", ran.stderr)
    assert runs, ran.stderr[-3_000:]
    assert int(runs[0]) > 1_000
