"""F05 and F06: a question finds what it is about, on every backend alike."""

from __future__ import annotations

from itertools import permutations

from adk_memory import InMemoryMemoryService, MemoryService
from field_reports.calls import ask, found, missed, remember, texts

SEATS = "User prefers window seats on long flights"
BAND = "we saw The Who live"
LINKS = "docs are at https://example.com/docs/page, code in src/app/main.py"
NOISE = ["The weather in Lisbon was mild", "Invoices are due on Friday", "The cat sleeps on the sofa"]


async def test_f05_a_long_question_finds_the_entry(service: MemoryService) -> None:
    await remember(service, SEATS, *NOISE)
    questions = [
        "which seat does the user usually like when flying long distance?", "seats window", "window prefers",
        "Does she prefer a window or an aisle seat?",
        "Tell me everything about seating preferences, windows and so on",
        "flight", "USER PREFERENCES", "window seat " + " ".join(f"unrelated{n}" for n in range(300)),
    ]  # fmt: skip

    assert await missed(service, questions, SEATS) == []


async def test_f05_a_question_about_the_entry_has_it_first(service: MemoryService) -> None:
    await remember(service, SEATS, *NOISE)

    for question in [
        "which seat does the user usually like when flying long distance?",
        "Is the window seat the one that the user prefers?",
        "long flights",
    ]:
        assert (await found(service, question))[0] == SEATS, question


async def test_f05_more_words_of_the_query_rank_higher_in_any_order(service: MemoryService) -> None:
    said = ["window here", SEATS, "seats there", "window seats"]
    for number, text in enumerate(said):
        await remember(service, text, session=f"s{number}")
    await remember(service, *said, user="one session")

    for words in permutations(["prefers", "window", "seats"]):
        hits = await found(service, " ".join(words))
        assert hits[:2] == [SEATS, "window seats"], words
        assert len(hits) == 4
        # What was said around an entry may move it, but not above one with every word.
        hits = await found(service, " ".join(words), user="one session")
        assert hits[0] == SEATS, words
        assert sorted(hits) == sorted(said)


async def test_f05_a_rare_word_weighs_more_than_a_common_one(service: MemoryService) -> None:
    await remember(service, *[f"meeting number {number}" for number in range(20)], "zeppelin number")

    assert (await found(service, "zeppelin meeting"))[0] == "zeppelin number"


async def test_f05_adding_words_to_a_question_never_loses_an_entry(service: MemoryService) -> None:
    entries = [f"topic{number % 7} detail{number % 11} note{number}" for number in range(120)]
    await remember(service, *entries)
    seen: set[str] = set()

    for count in range(1, 8):
        hits = set(await found(service, " ".join([f"topic{n}" for n in range(count)])))
        assert seen <= hits
        seen = hits

    assert seen == set(entries)


async def test_f05_the_entry_with_every_word_is_first_among_thousands(sql_service: MemoryService) -> None:
    common = [f"window of opportunity {number}" for number in range(1_500)]
    await remember(sql_service, *common[:750], SEATS, *common[750:])

    assert (await found(sql_service, "window seats", limit=3))[0] == SEATS


async def test_f06_words_that_other_stores_drop_are_found(service: MemoryService) -> None:
    notes = [BAND, "what is it", "to be or not to be", "I don't", "not now", "a", "it", "Vitamin A", "IT department"]
    await remember(service, *notes)

    missing = [note for note in notes if note not in await found(service, note)]
    assert missing == []
    assert (await found(service, "the who"))[0] == BAND
    assert (await found(service, "who"))[0] == BAND
    assert "I don't" in await found(service, "don't")
    assert "not now" in await found(service, "not")


async def test_f06_every_visible_word_of_urls_hosts_and_paths_is_found(service: MemoryService) -> None:
    entries = {
        LINKS: ["example", "docs", "page", "main.py", "main", "app", "example.com", "src/app/main.py", "https", "code"],
        "mail jane.doe+news@mail.acme-corp.co.uk": ["jane", "doe", "news", "acme", "corp", "co.uk", "jane.doe", "mail"],
        "config at C:\\Users\\Ana\\settings.toml": ["Users", "Ana", "settings", "toml", "settings.toml"],
        "see /var/log/nginx/error.log:42": ["var", "nginx", "error", "log", "42", "error.log"],
        "image ghcr.io/zeta/beta-worker:v2.3.1@sha256": ["ghcr", "zeta", "beta", "worker", "beta-worker", "sha256"],
        "call foo_bar.baz_qux(kwargs) and <b>bold</b>": ["foo_bar", "foo", "qux", "baz_qux", "kwargs", "bold"],
        "ping 192.168.17.5 or fe80::77ff": ["192.168.17.5", "192", "17", "fe80", "77ff"],
        "ticket OPS-1234 at 2024-05-06T07:08": ["OPS", "1234", "OPS-1234", "2024", "2024-05-06"],
    }
    await remember(service, *entries, "an unrelated note")

    for text, queries in entries.items():
        assert await missed(service, queries, text) == [], text


async def test_f06_backends_give_the_same_answers_to_the_same_questions(sql_service: MemoryService) -> None:
    corpus = [
        BAND,
        LINKS,
        SEATS,
        *NOISE,
        "what is it",
        "don't",
        "running runs ran",
        "Example examples exemplary",
        "the the the",
    ]
    questions = [
        "the who", "who", "example", "page", "main.py", "app", "what is it", "not", "don't", "the", "run",
        "is it on the sofa",
        "https://example.com", "a window", "Friday invoices!", "examples of the weather", "zzz", "",
    ]  # fmt: skip
    reference = InMemoryMemoryService()
    await remember(reference, *corpus)
    await remember(sql_service, *corpus)

    for question in questions:
        expected, answered = await ask(reference, question), await ask(sql_service, question)
        assert texts(answered) == texts(expected), question
        scores = zip(answered, expected, strict=True)
        assert all(abs((here.score or 0) - (there.score or 0)) < 1e-6 for here, there in scores), question
