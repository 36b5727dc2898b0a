"""The stories of the workbook: two sentences each, by a grammar over 84 words.

    <BOS> the sad boy and a dog run to the green forest . but they cry with a bear . <EOS>
    <BOS> a bird and the girl fly to the moon . it and the girl sing of the moon . <EOS>

The grammar knows roles, not meanings: which words may stand in a place, and which words they allow
later. `story` yields the choices for each next word, and receives the word that is taken. Sampling,
the probability of a story and the next word of a beginning all run it.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import cache
from math import log

import numpy as np

from cellformer.engine.learning.recipe import IGNORED

BOS, EOS, STOP = MARKS = ("<BOS>", "<EOS>", ".")
_LISTED = {  # by meaning, as in the essay
    "animals": "cat dog bird fish bear horse cow pig duck rabbit mouse lion monkey frog",
    "people": "boy girl man woman mother father mom dad king queen friend baby",
    "nature": "sun moon star tree flower river sea sky rain snow wind forest",
    "colours": "red blue green yellow white black pink brown",
    "verbs": "run jump play eat sleep walk sing fly swim laugh cry look",
    "adjectives": "big small happy sad good bad old young hot cold fast slow",
    "function words": "the a and to of in on with he she it they but so",
}
GROUPS: Mapping[str, Sequence[str]] = {name: words.split() for name, words in _LISTED.items()}
CONTENT = tuple(word for words in GROUPS.values() for word in words)
GROUP = {word: name for name, words in GROUPS.items() for word in words}
WORDS = MARKS + CONTENT
ID = {word: k for k, word in enumerate(WORDS)}
ROWS = [ID[word] for word in CONTENT]  # where the embedding keeps the 84 words
LENGTH = 25  # of the longest story
N_ROUNDS = 6

# The control: half of the words of each group but the last exchange their roles. The k-th word takes
# the role of a k-th word of another group, for each k another one: so a group's words part.
ROUNDS = [
    [words[k] for words in [*GROUPS.values()][:-1] if k < len(words) // 2] for k in range(N_ROUNDS)
]
PLAYED = {
    word: words[(place + 1 + k % (len(words) - 1)) % len(words)]
    for k, words in enumerate(ROUNDS)
    for place, word in enumerate(words)
}  # by the word: its role
MOVED = [word for word in CONTENT if word in PLAYED]
PLAYER = {role: word for word, role in PLAYED.items()}
EXCHANGED = np.array([ID[PLAYER.get(word, word)] for word in WORDS] + [IGNORED])  # by id of a role

MALE, FEMALE = ("boy", "man", "father", "dad", "king"), ("girl", "woman", "mother", "mom", "queen")
FLYERS, SWIMMERS = ("bird", "duck"), ("fish", "frog", "duck")
GROUND, WATER = ("tree", "flower", "forest"), ("river", "sea")
ABOVE, WEATHER = ("sun", "moon", "star", "sky"), ("rain", "snow", "wind")
PLACES = {  # by the verb: the preposition, and where
    "run": ("to", GROUND + WATER),
    "walk": ("to", GROUND + WATER),
    "jump": ("on", GROUND),
    "play": ("in", WEATHER),
    "fly": ("to", ABOVE),
    "swim": ("in", WATER),
}
LOOKS = {  # of a place
    "tree": ("green", "brown"),
    "flower": ("red", "yellow", "pink"),
    "forest": ("green", "brown", "black"),
    "river": ("blue", "green", "cold"),
    "sea": ("blue", "green", "cold"),
    "sun": ("red", "yellow", "hot"),
    "moon": ("white", "yellow"),
    "star": ("white", "yellow", "hot"),
    "sky": ("blue", "pink", "black"),
    "rain": ("cold", "black"),
    "snow": ("cold", "white"),
    "wind": ("cold", "hot"),
}
GLAD, SORRY = ("happy", "good"), ("sad", "bad")
MANNERS = (*GLAD, *SORRY, "big", "small", "old", "young", "fast", "slow")
DEEDS = ("sing", "look", "sleep", "eat")  # of those who are neither glad nor sorry
TIED = {"sing": "of", "look": "to", "sleep": "in"}  # and go on to the place of the first sentence

HEROES = (*GROUPS["animals"], *GROUPS["people"])
ROLES: Mapping[str, Sequence[str]] = {  # words that the grammar does not tell apart
    "on land": [word for word in GROUPS["animals"] if word not in FLYERS + SWIMMERS],
    "in water": ("fish", "frog"),
    "he": MALE,
    "she": FEMALE,
    "they": ("friend", "baby"),
    "a water": WATER,
    "glad": GLAD,
    "sorry": SORRY,
    "any mood": ("big", "small", "old", "young"),
}
ROLE = {word: role for role, words in ROLES.items() for word in words}

Shares = Mapping[str, float]  # of the words that may come next
Story = Generator[Shares, str, None]


@cache
def mixed(*parts: tuple[float, tuple[str, ...]]) -> Shares:
    """The words of several lists: each list has a share, which its words divide evenly."""
    return {word: share / len(words) for share, words in parts for word in words}


def even(*words: str) -> Shares:
    """The same share for each word."""
    return mixed((1.0, words))


# --- the grammar --------------------------------------------------------------------------------


def story() -> Story:
    """Yield the shares of each next word, and receive the word."""
    yield even("the", "a")
    word = yield mixed((0.6, MANNERS), (0.4, HEROES))
    manner = word if word in MANNERS else ""
    hero = (yield even(*HEROES)) if manner else word
    yield even("and")
    yield even("the", "a")
    other = yield even(*(word for word in HEROES if word != hero))
    verb = yield even(*moves(hero, manner))
    place = yield from goal(*PLACES[verb])
    yield even(STOP)
    yield from ending(hero, other, manner, place)
    yield even(STOP)
    yield even(EOS)


def moves(hero: str, manner: str) -> tuple[str, ...]:
    """The verbs of a hero: animals act by their nature, and the fast do not walk."""
    if hero in FLYERS + SWIMMERS:
        return ("fly",) * (hero in FLYERS) + ("swim",) * (hero in SWIMMERS)
    swims = ("swim",) * (hero in GROUPS["people"])
    return {"fast": ("run", "jump"), "slow": ("walk", "play")}.get(
        manner, ("run", "walk", "jump", "play")
    ) + swims


def goal(preposition: str, places: tuple[str, ...]) -> Generator[Shares, str, str]:
    """The place of the first sentence, half of the time with a look that it can have."""
    yield even(preposition)
    yield even("the")
    looks = tuple(dict.fromkeys(look for place in places for look in LOOKS[place]))
    word = yield mixed((0.5, looks), (0.5, places))
    if word in places:
        return word
    return (yield even(*(place for place in places if word in LOOKS[place])))


def ending(hero: str, other: str, manner: str, place: str) -> Story:
    """The second sentence: a pronoun of the hero, and a deed that follows from the manner."""
    if manner in GLAD + SORRY:
        yield even("so" if manner in GLAD else "but")
    own = pronoun(hero)
    who = yield even("they", *own)
    if who in own:
        yield even("and")
        yield even("the")
        yield even(other)
    glad, sorry = ("laugh", "sing"), ("cry", "look")
    deed = yield even(*(glad if manner in GLAD else sorry if manner in SORRY else DEEDS))
    if deed in TIED:
        for word in (TIED[deed], "the", place):
            yield even(word)
        return
    yield even("with")
    yield even("a")
    word = yield mixed((0.3, MANNERS), (0.7, HEROES))
    if word in MANNERS:
        yield even(*HEROES)


def pronoun(hero: str) -> tuple[str, ...]:
    """The hero's pronoun; none for a friend or a baby."""
    if hero in GROUPS["animals"]:
        return ("it",)
    return ("he",) * (hero in MALE) + ("she",) * (hero in FEMALE)


# --- stories --------------------------------------------------------------------------------------


def drawn(rng: np.random.Generator) -> Iterator[str]:
    """The words of a random story."""
    steps = story()
    shares = next(steps)
    for x in rng.random(LENGTH).tolist():
        word = chosen(shares, x)
        yield word
        if word == EOS:
            return
        shares = steps.send(word)


def chosen(shares: Shares, x: float) -> str:
    """The word in whose part of the shares a number from 0 to 1 falls."""
    for word, share in shares.items():
        x -= share
        if x < 0:
            return word
    return word


def told(words: Sequence[str]) -> Iterator[Shares]:
    """The shares of each next word of a story without <BOS>, and of the word after the last one;
    KeyError if no story begins so."""
    steps = story()
    shares = next(steps)
    for word in words:
        yield shares
        shares[word]
        if word == EOS:
            return
        shares = steps.send(word)
    yield shares


def sentences(rng: np.random.Generator, n: int) -> np.ndarray:
    """Ids of n random stories: [n, LENGTH]."""
    ids = np.full((n, LENGTH), IGNORED)
    for row in ids:
        words = [BOS, *drawn(rng)]
        row[: len(words)] = [ID[word] for word in words]
    return ids


def exchanged(rng: np.random.Generator, n: int) -> np.ndarray:
    """Ids of n random stories in which 34 words have exchanged their roles: [n, LENGTH]."""
    return np.asarray(EXCHANGED[sentences(rng, n)])


def floor(ids: np.ndarray) -> float:
    """The lowest possible loss on stories, in nats per word: of a model that knows the grammar."""
    stories = [*map(words_of, ids)]
    return sum(map(surprise, stories)) / sum(map(len, stories))


def surprise(words: Sequence[str]) -> float:
    """Minus the logarithm of a story's probability; KeyError for a story that cannot be."""
    return -sum(log(shares[word]) for word, shares in zip(words, told(words), strict=True))


def words_of(row: np.ndarray) -> list[str]:
    """The words of a story's ids, without <BOS>."""
    return [WORDS[v] for v in row[1:] if v != IGNORED]
