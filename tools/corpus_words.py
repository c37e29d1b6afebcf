"""The words of the English-French corpus that `corpus.py` makes, with all their forms."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Noun:
    """A noun in both languages, singular and plural; `kind` is what may be done with it."""

    english: tuple[str, str]
    french: tuple[str, str]
    feminine: bool
    kind: str


@dataclass(frozen=True)
class Adjective:
    """An adjective; its French forms are m, f, m plural, f plural, and m before a vowel."""

    english: str
    french: tuple[str, str, str, str, str]
    kinds: str
    first: bool = False  # whether French puts it before the noun


@dataclass(frozen=True)
class Verb:
    """A verb; English is (see, sees), French is je, il, nous, vous, ils, and the infinitive."""

    english: tuple[str, str]
    french: tuple[str, str, str, str, str, str]
    objects: str = ""  # the kinds of nouns that it takes


def _noun(english: str, french: str, gender: str, kind: str) -> Noun:
    one, *many = english.split("/")
    un, *des = french.split("/")
    plurals = (many or [one + "s"])[0], (des or [un + "s"])[0]
    return Noun((one, plurals[0]), (un, plurals[1]), gender == "f", kind)


def _adjective(english: str, french: str, kinds: str, first: bool = False) -> Adjective:
    m, f, mp, fp, *vowel = french.split()
    return Adjective(english, (m, f, mp, fp, (vowel or [m])[0]), kinds, first)


def _verb(english: str, french: str, objects: str = "") -> Verb:
    base, *third = english.split("/")
    je, il, nous, vous, ils, infinitive = french.split()
    forms = (je, il, nous, vous, ils, infinitive)
    return Verb((base, (third or [base + "s"])[0]), forms, objects)


# Kinds: p person, y young person, a animal, t thing, o what closes, r what is read, f food.
NOUNS = [
    _noun("man/men", "homme", "m", "p"),
    _noun("woman/women", "femme", "f", "p"),
    _noun("doctor", "médecin", "m", "p"),
    _noun("teacher", "professeur", "m", "p"),
    _noun("friend", "ami", "m", "p"),
    _noun("neighbour", "voisin", "m", "p"),
    _noun("queen", "reine", "f", "p"),
    _noun("boy", "garçon", "m", "y"),
    _noun("girl", "fille", "f", "y"),
    _noun("child/children", "enfant", "m", "y"),
    _noun("dog", "chien", "m", "a"),
    _noun("cat", "chat", "m", "a"),
    _noun("horse", "cheval/chevaux", "m", "a"),
    _noun("house", "maison", "f", "t"),
    _noun("car", "voiture", "f", "t"),
    _noun("hat", "chapeau/chapeaux", "m", "t"),
    _noun("tree", "arbre", "m", "t"),
    _noun("flower", "fleur", "f", "t"),
    _noun("key", "clé", "f", "t"),
    _noun("picture", "tableau/tableaux", "m", "t"),
    _noun("door", "porte", "f", "o"),
    _noun("window", "fenêtre", "f", "o"),
    _noun("book", "livre", "m", "r"),
    _noun("letter", "lettre", "f", "r"),
    _noun("story/stories", "histoire", "f", "r"),
    _noun("apple", "pomme", "f", "f"),
    _noun("cake", "gâteau/gâteaux", "m", "f"),
]

ADJECTIVES = [
    _adjective("old", "vieux vieille vieux vieilles vieil", "patr", first=True),
    _adjective("young", "jeune jeune jeunes jeunes", "pa", first=True),
    _adjective("beautiful", "beau belle beaux belles bel", "ator", first=True),
    _adjective("small", "petit petite petits petites", "yatof", first=True),
    _adjective("big", "grand grande grands grandes", "atof", first=True),
    _adjective("good", "bon bonne bons bonnes", "rf", first=True),
    _adjective("red", "rouge rouge rouges rouges", "tof"),
    _adjective("yellow", "jaune jaune jaunes jaunes", "tof"),
    _adjective("brown", "marron marron marron marron", "ato"),
    _adjective("sad", "triste triste tristes tristes", "pyar"),
    _adjective("happy", "heureux heureuse heureux heureuses", "py"),
    _adjective("sick", "malade malade malades malades", "pya"),
    _adjective("rich", "riche riche riches riches", "p"),
]
COLOURS = {"red", "yellow", "brown"}

DOING = [
    _verb("see", "vois voit voyons voyez voient voir", "pyatorf"),
    _verb("watch/watches", "regarde regarde regardons regardez regardent regarder", "pyato"),
    _verb("find", "trouve trouve trouvons trouvez trouvent trouver", "pyatrf"),
    _verb("like", "aime aime aimons aimez aiment aimer", "pyatorf"),
    _verb("sell", "vends vend vendons vendez vendent vendre", "atrf"),
    _verb("close", "ferme ferme fermons fermez ferment fermer", "o"),
    _verb("read", "lis lit lisons lisez lisent lire", "r"),
    _verb("eat", "mange mange mangeons mangez mangent manger", "f"),
]
BEING = [
    _verb("sing", "chante chante chantons chantez chantent chanter"),
    _verb("sleep", "dors dort dormons dormez dorment dormir"),
    _verb("play", "joue joue jouons jouez jouent jouer"),
]
LIKE = DOING[3]
CAN = _verb("can/can", "peux peut pouvons pouvez peuvent pouvoir")
MUST = _verb("must/must", "dois doit devons devez doivent devoir")
ARE = ("suis", "est", "sommes", "êtes", "sont")

# English, French, and which of the verb's forms it takes.
PRONOUNS = [
    ("I", "je", 0), ("he", "il", 1), ("she", "elle", 1),
    ("we", "nous", 2), ("you", "vous", 3), ("they", "ils", 4),
]  # fmt: skip
# Who an adjective can be about without saying whether I, we or you are men or women.
OTHERS = [("he", "il", 1, NOUNS[0]), ("she", "elle", 1, NOUNS[1]), ("they", "ils", 4, NOUNS[0])]
# English, French, and the subjects that would make it reflexive.
OBJECTS = [
    ("him", "le", ""), ("her", "la", ""), ("them", "les", ""),
    ("me", "me", "I we"), ("us", "nous", "I we"), ("you", "vous", "you"),
]  # fmt: skip
PLACES = [
    ("in the garden", "dans le jardin"),
    ("in the street", "dans la rue"),
    ("at the market", "au marché"),
    ("at school", "à l'école"),
    ("at home", "à la maison"),
    ("at the station", "à la gare"),
    ("by the river", "au bord de la rivière"),
    ("beside the wall", "à côté du mur"),
    ("opposite the church", "en face de l'église"),
    ("under the bridge", "sous le pont"),
    ("outside", "en plein air"),
]
TIMES = [
    ("today", "aujourd'hui"),
    ("in the evening", "le soir"),
    ("in winter", "en hiver"),
]
# These do not go with `often` or with a negation.
NOW_AND_THEN = [
    ("now", "en ce moment"),
    ("every day", "tous les jours"),
    ("all day", "toute la journée"),
    ("on Sundays", "tous les dimanches"),
    ("sometimes", "de temps en temps"),
]
