"""Makes the corpus that the task `parallel` ships with: tasks/text/data/english-french.tsv.

A small grammar of our own: agreement, adjectives before and after the noun, negation with
`ne ... pas`, object pronouns before the verb, elision. The same file comes out every time.
Run: python tools/corpus.py
"""

from __future__ import annotations

from pathlib import Path
from random import Random

from corpus_words import (
    ADJECTIVES,
    ARE,
    BEING,
    CAN,
    COLOURS,
    DOING,
    LIKE,
    MUST,
    NOUNS,
    NOW_AND_THEN,
    OBJECTS,
    OTHERS,
    PLACES,
    PRONOUNS,
    TIMES,
    Adjective,
    Noun,
    Verb,
)

FILE = (
    Path(__file__).parents[1] / "src" / "regard" / "tasks" / "text" / "data" / "english-french.tsv"
)
PAIRS = 4000
SHORTEST, LONGEST = 3, 12  # words, without the mark at the end

Both = tuple[list[str], list[str]]  # the same thing, in English and French words
Subject = tuple[Both, int, Noun | None]  # words, form of the verb, and the noun if there is one

# A determiner by number: English, and French m, f, m or f before a vowel.
DETERMINERS = {
    "the": (("the", "le la le"), ("the", "les les les")),
    "my": (("my", "mon ma mon"), ("my", "mes mes mes")),
    "our": (("our", "notre notre notre"), ("our", "nos nos nos")),
    "your": (("your", "votre votre votre"), ("your", "vos vos vos")),
    "this": (("this", "ce cette cet"), ("these", "ces ces ces")),
    "a": (("a", "un une un"), ("some", "des des des")),
}
BEFORE_VOWEL = {
    "je": "j'", "ne": "n'", "le": "l'", "la": "l'", "de": "d'", "que": "qu'", "me": "m'",
}  # fmt: skip
NOT = {"not": "pas", "never": "jamais"}


def opens_with_vowel(word: str) -> bool:
    """Whether a French word makes the one before it lose its vowel; no h here is aspirated."""
    return word[0] in "aeiouéêh"


def elided(words: list[str]) -> str:
    """French words as a text: `le arbre` becomes `l'arbre`."""
    text = ""
    for word, following in zip(words, [*words[1:], "."], strict=True):
        lost = word in BEFORE_VOWEL and opens_with_vowel(following)
        text += BEFORE_VOWEL[word] if lost else word + " "
    return text.strip()


def agreeing(adjective: Adjective, noun: Noun, plural: bool) -> str:
    """The French form of `adjective` for `noun`, when no vowel follows."""
    return adjective.french[2 * plural + noun.feminine]


def noun_phrase(
    rng: Random, kinds: str, names: str = "the the my our your this a", negated: bool = False
) -> tuple[Both, bool, Noun]:
    """A noun with its determiner and adjectives, whether it is plural, and the noun itself.

    `negated`: it is the object of a negated verb, where `un` and `des` become `de`.
    """
    noun = rng.choice([noun for noun in NOUNS if noun.kind in kinds])
    plural, name = rng.random() < 0.35, rng.choice(names.split())
    fitting = [a for a in ADJECTIVES if noun.kind in a.kinds]
    first, last = (
        [a] if rng.random() < 0.35 and (a := rng.choice(fitting)).first == place else []
        for place in (True, False)
    )
    english = [*(a.english for a in first + last), noun.english[plural]]
    french = _around(first, noun, plural, last)
    head, heads = _determiner(name, noun, plural, english[0], french[0])
    if name == "a" and (negated or (plural and first)):
        head, heads = ("any" if negated and plural else head), "de"
    return ([head, *english], [heads, *french]), plural, noun


def _around(first: list[Adjective], noun: Noun, plural: bool, last: list[Adjective]) -> list[str]:
    """The French noun between its adjectives."""
    name = noun.french[plural]
    vowel = opens_with_vowel(name) and not plural and not noun.feminine
    before = [a.french[4] if vowel else agreeing(a, noun, plural) for a in first]
    return [*before, name, *(agreeing(a, noun, plural) for a in last)]


def _determiner(name: str, noun: Noun, plural: bool, english: str, french: str) -> tuple[str, str]:
    """Both determiners, as the words that follow them want it."""
    head, forms = DETERMINERS[name][plural]
    m, f, vowel = forms.split()
    if name == "a" and not plural and english[0] in "aeiou":
        head = "an"
    if opens_with_vowel(french):
        # `une` stays; `ma` becomes `mon`; `cette` stays, and `ce` becomes `cet`.
        return head, (vowel if name == "my" or not noun.feminine else f)
    return head, (f if noun.feminine else m)


def subject(rng: Random, kinds: str = "py", asked: bool = False) -> Subject:
    """A pronoun or a noun phrase; a question begins with no `un`, which would need `qu'un`."""
    if rng.random() < 0.5 and kinds == "py":
        english, french, form = rng.choice(PRONOUNS)
        return ([english], [french]), form, None
    names = "the the my our your this" + ("" if asked else " a")
    words, plural, noun = noun_phrase(rng, kinds, names)
    return words, 4 if plural else 1, noun


def clause(who: Subject, verb: Verb, way: str, modal: Verb | None, pronoun: list[str]) -> Both:
    """Subject, verb and object pronoun, in one of the ways: plain, often, not, never, asked."""
    (english, french), form, _ = who
    said = _french(french, form, verb, way, modal, pronoun)
    if way == "plain" and not modal:
        return [*english, verb.english[form == 1]], said
    if way in ("often", "never") and not modal:
        return [*english, way, verb.english[form == 1]], said
    helper = modal.english[0] if modal else ("does" if form == 1 else "do")
    if way == "asked":
        return [helper, *english, verb.english[0]], said
    denied = [] if way == "plain" else [way]
    start = ["cannot"] if (helper, way) == ("can", "not") else [helper, *denied]
    return [*english, *start, verb.english[0]], said


def _french(
    who: list[str], form: int, verb: Verb, way: str, modal: Verb | None, pronoun: list[str]
) -> list[str]:
    """The French clause: pronouns stand before the verb that they belong to."""
    main = (modal or verb).french[form]
    core = [main] if modal else [*pronoun, main]
    if way in NOT:
        core = ["ne", *core, NOT[way]]
    elif way == "often":
        core.append("souvent")
    if modal:
        core += [*pronoun, verb.french[5]]
    return [*(["est-ce", "que"] if way == "asked" else []), *who, *core]


def doing(rng: Random) -> tuple[Both, str]:
    """Somebody does something to somebody or something."""
    verb = rng.choice(DOING)
    way, modal = _manner(rng, verb)
    who = subject(rng, asked=way == "asked")
    english, french = _object(rng, verb, way, who)
    pronoun = french if english[0] in [o[0] for o in OBJECTS] else []
    spoken, said = clause(who, verb, way, modal, pronoun)
    said = said if pronoun else said + french
    likely = 0.0 if verb is LIKE else 0.4
    return _where_and_when((spoken + english, said), rng, likely, way), way


def _manner(rng: Random, verb: Verb) -> tuple[str, Verb | None]:
    """In which way a verb is said, and with which other verb; liking is neither often nor must."""
    if verb is LIKE:
        return rng.choice(["plain", "not", "asked"]), None
    modal = rng.choice([CAN, MUST, None, None, None])
    often = [] if modal else ["often"]
    return rng.choice(["plain", "plain", "not", "not", "never", "asked", *often]), modal


def _object(rng: Random, verb: Verb, way: str, who: Subject) -> Both:
    """A pronoun where persons fit and it is not reflexive, else a noun phrase."""
    speaker = who[0][0][0]
    fitting = [([e], [f]) for e, f, same in OBJECTS if speaker not in same.split()]
    if "p" in verb.objects and rng.random() < 0.4:
        return rng.choice(fitting)
    names = "the the my our your this" + ("" if verb is LIKE else " a a")
    return noun_phrase(rng, verb.objects, names, negated=way in NOT)[0]


def being(rng: Random) -> tuple[Both, str]:
    """Somebody does something somewhere, or at some time."""
    verb = rng.choice(BEING)
    way, modal = _manner(rng, verb)
    who = subject(rng, asked=way == "asked")
    return _where_and_when(clause(who, verb, way, modal, []), rng, 0.75, way), way


def describing(rng: Random) -> tuple[Both, str]:
    """Something is as an adjective says."""
    (english, french), form, noun = subject(rng, rng.choice(["py", "atorf"]))
    if noun is None:
        she, elle, form, noun = rng.choice(OTHERS)
        english, french = [she], [elle]
    said_before = {*english, *(COLOURS if COLOURS & {*english} else ())}  # red is not yellow
    others = [a for a in ADJECTIVES if noun.kind in a.kinds and a.english not in said_before]
    adjective, way = rng.choice(others), rng.choice(["plain", "plain", "not", "never"])
    very = rng.random() < 0.3
    spoken = ["are" if form == 4 else "is", *([way] if way in NOT else []), *["very"] * very]
    said = ["ne", ARE[form], NOT[way]] if way in NOT else [ARE[form]]
    said += [*["très"] * very, agreeing(adjective, noun, form == 4)]
    return ([*english, *spoken, adjective.english], [*french, *said]), way


def _where_and_when(sentence: Both, rng: Random, likely: float, way: str) -> Both:
    """The sentence with a place, a time, both or neither behind it."""
    english, french = list(sentence[0]), list(sentence[1])
    times = TIMES + (NOW_AND_THEN if way in ("plain", "asked") else [])
    for choices in (PLACES, times):
        if rng.random() < likely:
            where, lieu = rng.choice(choices)
            english, french = [*english, where], [*french, lieu]
    return english, french


def pair(rng: Random) -> tuple[str, str]:
    """One sentence in both languages, with capitals and marks."""
    (english, french), way = rng.choice([doing, doing, doing, being, describing])(rng)
    first, second = " ".join(english), elided(french)
    ends = ("?", " ?") if way == "asked" else (".", ".")
    return first[0].upper() + first[1:] + ends[0], second[0].upper() + second[1:] + ends[1]


def corpus() -> list[tuple[str, str]]:
    """All pairs, in alphabetical order."""
    rng, found = Random(36), {}
    while len(found) < PAIRS:
        english, french = pair(rng)
        sizes = [len(text.rstrip(" .?").split()) for text in (english, french)]
        if all(SHORTEST <= size <= LONGEST for size in sizes):
            found[english] = french
    return sorted(found.items())


def as_file(pairs: list[tuple[str, str]]) -> bytes:
    """The pairs as the file holds them: one in a line, parted by a tab, in UTF-8."""
    return "".join(f"{english}\t{french}\n" for english, french in pairs).encode()


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_bytes(as_file(corpus()))
